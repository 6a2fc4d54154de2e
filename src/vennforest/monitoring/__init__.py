"""Detection of changes in a stream of data."""

from vennforest.monitoring.evidence import Change
from vennforest.monitoring.monitor import Monitor

__all__ = ["Change", "Monitor"]
