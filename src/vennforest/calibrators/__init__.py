"""calibrators."""
