"""Commands, one module each; `options` declares their options."""
