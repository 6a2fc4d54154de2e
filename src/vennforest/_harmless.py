"""Text of users, tables and models, shown so that it steers neither a terminal nor a page."""

from __future__ import annotations

import re

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
