"""The error for users, importable before anything heavy is."""


class InputError(ValueError):
    """An argument or a file that cannot be used; the message is one sentence for the user."""
