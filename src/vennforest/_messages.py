"""Texts of errors and warnings, the line that a warning names, and text that is safe to show."""

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

PACKAGE = str(Path(__file__).parent) + os.sep

CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters but line break and tab, marks of writing direction, and lone surrogates."""

MAX_COMPARED = 100
"""Letters of a name that are compared with other names."""


class InputError(ValueError):
    """An argument or a file that cannot be used; the message is one sentence for the user."""


class CalibrationWarning(UserWarning):
    """A warning of this library."""


def listed(names: Iterable[object], most: int, shown: Callable[[Any], str] = repr) -> str:
    """Return names separated by commas, such as "a, b and 3 more"."""
    texts = [shown(name) for name in names]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more


def nearest(value: object, names: Iterable[object]) -> str:
    """Return ``": did you mean 'platt'?"`` with the most similar name, "" if none is similar."""
    by_lower_case = {str(name).strip().lower(): str(name) for name in names}
    text = value.strip().lower() if isinstance(value, str) else ""
    close = get_close_matches(text[:MAX_COMPARED], list(by_lower_case), n=1, cutoff=0.6)
    return f": did you mean {by_lower_case[close[0]]!r}?" if close else ""


def not_one_of(
    argument: str, names: Iterable[object], value: object, other: str = ""
) -> InputError:
    """Return the error for a value that is not one of some names."""
    allowed = list(names)
    return InputError(
        f"{argument} must be one of {allowed}{other}, got {value!r}{nearest(value, allowed)}"
    )


def needed(package: str, what: str, extra: str = "all") -> Any:
    """Return an optional package; the `ImportError` without it says how to install it."""
    try:
        return import_module(package)
    except ImportError as missing:
        raise ImportError(
            f"{what} need {package.partition('.')[0]}: install it with "
            f"pip install 'vennforest[{extra}]'"
        ) from missing


def warn(message: str) -> None:
    """Warn at the first caller outside of this library (``skip_file_prefixes`` of Python 3.12)."""
    frame, level = sys._getframe(1), 2
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, CalibrationWarning, stacklevel=level)


def harmless(text: str) -> str:
    """Return text with escapes for `CONTROL` characters, which could act on a terminal or page.

    Names of files, columns and labels may contain any character.
    """
    return CONTROL.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
