"""Maps from scores to probabilities, one a file."""
