"""What calibrators are made of: their interface, counts of labels, validation, regressions."""
