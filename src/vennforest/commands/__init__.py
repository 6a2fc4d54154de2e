"""The commands, a module for each; their options are in `options`."""
