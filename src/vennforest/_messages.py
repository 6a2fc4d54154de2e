"""Errors and warnings of the library, and helpers for their messages."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from reprlib import Repr
from typing import Any

PACKAGE = str(Path(__file__).parent) + os.sep

CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control characters except line feed and tab, direction marks, and lone surrogates."""


EXTRAS = {
    "openpyxl": "excel",
    "sqlglot": "sql",
    "shap": "shap",
    "dask": "dask",
    "pyspark": "spark",
    "onnx": "onnx",
    "skl2onnx": "onnx",
    "onnxruntime": "onnx",
    "lightgbm": "boosters",
    "xgboost": "boosters",
    "catboost": "boosters",
} | dict.fromkeys(("pandas", "pyarrow", "matplotlib", "jinja2", "typer", "rich", "skops"), "all")
"""The optional packages, and the extras that install them."""


MAX_ERROR = 200
"""Characters of another library's error in a message."""

ABBREVIATION = Repr()
ABBREVIATION.maxlist = ABBREVIATION.maxtuple = ABBREVIATION.maxset = ABBREVIATION.maxdict = 8
ABBREVIATION.maxstring, ABBREVIATION.maxother = 80, 120


class InputError(ValueError):
    """An argument or a file that cannot be used; the message is one sentence for the user."""


class CalibrationWarning(UserWarning):
    """A warning of this library."""


def shown(value: Any) -> str:
    """Return an argument as text of one line; arrays, tables and long values are abbreviated."""
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        if shape or not hasattr(value, "item"):
            return f"{type(value).__name__} of shape {shape}"
        value = value.item()
    return " ".join(ABBREVIATION.repr(value).split())


def listed(names: Iterable[object], n: int, to_text: Callable[[Any], str] = repr) -> str:
    """Return the first n names as text such as "a, b and 3 more"."""
    texts = [to_text(name) for name in names]
    remainder = f" and {len(texts) - n} more" if len(texts) > n else ""
    return ", ".join(texts[:n]) + remainder


def plain_number(value: float, digits: int) -> str:
    """Return a number as text with some significant digits; large ones in full, as 5,043,850."""
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e+" in text and abs(value) < 1e15 else text


ARGUMENT = re.compile(r"(y|cv)\b|\w*[_=(]")
"""The name of an argument, or a call, at the beginning of a message."""


def counted(n: int, noun: str = "row") -> str:
    """Return a number of things as text, such as "1 row" and "2,000 rows"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def as_sentence(text: str) -> str:
    """Return text with one full stop at its end, and a capital unless an argument begins it."""
    first = text[:1] if ARGUMENT.match(text) else text[:1].upper()
    return f"{first}{text[1:].rstrip('.')}."


def nearest(value: object, names: Iterable[object]) -> str:
    """Return ``": did you mean 'platt'?"`` with the most similar name, "" if none is similar."""
    by_lower_case = {str(name).strip().lower(): str(name) for name in names}
    text = value.strip().lower() if isinstance(value, str) else ""
    close = get_close_matches(text[:100], list(by_lower_case), n=1)  # takes long for long texts
    return f": did you mean {by_lower_case[close[0]]!r}?" if close else ""


def not_one_of(
    argument: str, names: Iterable[object], value: object, alternative: str = ""
) -> InputError:
    """Return the error for an argument whose value is not one of the allowed names."""
    names = list(names)
    return InputError(
        f"{argument} must be one of [{listed(names, 20)}]{alternative}, got {shown(value)}"
        f"{nearest(value, names)}"
    )


def needed(package: str, purpose: str) -> Any:
    """Import a package of `EXTRAS`, or raise an `ImportError` that says how to install it."""
    try:
        return import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise ImportError(f"{purpose} need {name}: {how_to_install(name)}") from error


def how_to_install(package: str) -> str:
    """Return how a user installs a package of `EXTRAS`."""
    return f"install it with pip install 'vennforest[{EXTRAS[package]}]'"


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line of at most `MAX_ERROR` characters."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)  # libraries add words of their own
    text = " ".join(str(error).split())
    return text if len(text) <= MAX_ERROR else text[: MAX_ERROR - 1] + "…"


def warn(message: str) -> None:
    """Warn at the first caller outside of this library (``skip_file_prefixes`` of Python 3.12)."""
    frame, level = sys._getframe(1), 2
    while frame.f_code.co_filename.startswith(PACKAGE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, CalibrationWarning, stacklevel=level)


def harmless(text: str) -> str:
    """Return text with `CONTROL` characters, which could act on a terminal or page, escaped."""
    return CONTROL.sub(lambda match: ascii(match.group())[1:-1], text)
