"""Detect that a stream of data has changed."""

from vennforest.monitoring.evidence import Change
from vennforest.monitoring.monitor import Monitor

__all__ = [
    "Change",
    "Monitor",
]
