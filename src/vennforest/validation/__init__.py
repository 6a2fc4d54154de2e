"""Validation of probabilities that any model has made."""

from vennforest.validation.update import Update, update

__all__ = ["Update", "update"]
