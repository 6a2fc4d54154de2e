"""Detect that a stream of data has changed, and protect probabilities against it."""

from vennforest.monitoring.evidence import Change
from vennforest.monitoring.monitor import Monitor
from vennforest.monitoring.protected import ProtectedClassifier

__all__ = [
    "Change",
    "Monitor",
    "ProtectedClassifier",
]
