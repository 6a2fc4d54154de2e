"""Are the bounds valid? Measured, setting by setting, where the truth is known."""
