"""What users are told: errors and warnings that point at their line, and text shown safely."""

from __future__ import annotations

import os
import re
import sys
import warnings
from pathlib import Path


class InputError(ValueError):
    """An argument or a file that cannot be used; the message is one sentence for the user."""


class CalibrationWarning(UserWarning):
    """What this library warns of, apart from what others warn of meanwhile."""


INSIDE = str(Path(__file__).parent) + os.sep


def warn(message: str) -> None:
    """Give a warning at the first caller outside of this library.

    Python 3.12 has ``skip_file_prefixes`` for it.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_code.co_filename.startswith(INSIDE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, CalibrationWarning, stacklevel=level)


_TURNS = "\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069"
STEERING = re.compile(rf"[\x00-\x08\x0b-\x1f\x7f-\x9f{_TURNS}\ud800-\udfff]")


def harmless(text: str) -> str:
    """Return text in which what could steer a terminal or turn a page is written as an escape.

    Control characters but line breaks and tabs, marks that turn the direction of writing, and
    what is no text: a file, a model or a table may be called anything.
    """
    return STEERING.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
