"""The commands, each in a file of its own; what is typed for them is in arguments."""
