"""The version, and whether this process is the command line's own."""

__version__ = "0.1.0"

OWN_PROCESS = False
"""Set by ``vennforest`` and ``python -m vennforest``; not where Python code calls a command."""
