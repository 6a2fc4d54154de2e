"""Search for faults of a model and its data that spoil calibrated probabilities."""

from vennforest.auditing.audit import audit
from vennforest.auditing.finding import Finding

__all__ = ["Finding", "audit"]
