"""Whether this process runs a command and nothing else, so that nobody else meets what it did."""

OWN = False
"""Set by ``vennforest`` and ``python -m vennforest`` alone; not where Python calls the command."""
