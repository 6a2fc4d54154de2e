"""Calibrated class probabilities with valid bounds, from any scikit-learn classifier."""

__version__ = "0.1.0"
