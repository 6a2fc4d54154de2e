"""The four papers' experiments, and the numbers that they print."""
