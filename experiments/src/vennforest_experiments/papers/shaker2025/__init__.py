"""Shaker & Hüllermeier (2025), Random forest calibration."""
