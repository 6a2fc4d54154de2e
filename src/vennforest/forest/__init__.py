"""forest."""
