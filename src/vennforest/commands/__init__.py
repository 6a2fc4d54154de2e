"""What the commands ``fit`` and ``predict`` do."""
