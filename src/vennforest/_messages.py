"""What users are told: errors and warnings that point at their line, and text shown safely."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any


class InputError(ValueError):
    """An argument or a file that cannot be used; the message is one sentence for the user."""


def listed(names: Iterable[object], most: int, shown: Callable[[Any], str] = repr) -> str:
    """Return names behind each other, "a, b and 3 more"."""
    texts = [shown(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


LONGEST = 100
"""Letters of a name that are compared with others."""


def nearest(given: object, names: Iterable[object]) -> str:
    """Return ``": did you mean 'platt'?"`` by the nearest of some names; "" where none is near."""
    known = {str(name).strip().lower(): str(name) for name in names}
    text = given.strip().lower() if isinstance(given, str) else ""
    close = get_close_matches(text[:LONGEST], list(known), n=1, cutoff=0.6)
    return f": did you mean {known[close[0]]!r}?" if close else ""


def not_one_of(
    argument: str, names: Iterable[object], given: object, other: str = ""
) -> InputError:
    """Return the error for a name that is none of some, with the nearest of them."""
    known = list(names)
    near = nearest(given, known)
    return InputError(f"{argument} must be one of {known}{other}, got {given!r}{near}")


def needed(package: str, what: str, extra: str = "all") -> Any:
    """Return an optional package; without it an `ImportError` says how to install it."""
    try:
        return import_module(package)
    except ImportError as missing:
        raise ImportError(
            f"{what} need {package.partition('.')[0]}: install it with "
            f"pip install 'vennforest[{extra}]'"
        ) from missing


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
