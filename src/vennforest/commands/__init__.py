"""Commands: ``run_NAME`` of each; `options` declares them and their options."""
