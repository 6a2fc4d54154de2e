"""Detect that a stream of data has changed, and protect probabilities against it."""

from vennforest.monitoring.evidence import Change
from vennforest.monitoring.jumpers import CompositeJumper, simple_jumper
from vennforest.monitoring.monitor import Monitor
from vennforest.monitoring.p_values import conformal_p_values
from vennforest.monitoring.protected import ProtectedClassifier

__all__ = [
    "Change",
    "CompositeJumper",
    "Monitor",
    "ProtectedClassifier",
    "conformal_p_values",
    "simple_jumper",
]
