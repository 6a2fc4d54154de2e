"""Boström (2008), Calibrating random forests."""
