"""The error for users, importable before anything heavy is."""


class InputError(ValueError):
    """What a user gave cannot be worked with; the message is one sentence for that user."""
