"""Warnings that point at the user's line, however deep in the library they are found."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

INSIDE = str(Path(__file__).parent) + os.sep


def warn(message: str) -> None:
    """Give a UserWarning at the first caller outside of this library.

    Python 3.12 has ``skip_file_prefixes`` for it.
    """
    frame, level = sys._getframe(1), 2
    while frame.f_code.co_filename.startswith(INSIDE) and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)
