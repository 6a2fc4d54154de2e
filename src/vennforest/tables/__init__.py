"""Tables in files and data frames: one reader for fit, predict and report."""
