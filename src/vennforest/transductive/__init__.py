"""Retrained for every object and every tentative label."""

from vennforest.transductive.classifier import TransductiveClassifier

__all__ = ["TransductiveClassifier"]
