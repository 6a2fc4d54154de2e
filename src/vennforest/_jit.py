"""Compilation and caching of kernels."""

import os
from collections.abc import Callable
from typing import Any

import numba

CACHE = os.environ.get("VENNFOREST_CACHE", "1") != "0"
"""Whether compiled kernels are kept on disk (set ``VENNFOREST_CACHE=0`` to compile again)."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` at its first call, with IEEE arithmetic, releasing the global lock."""
    try:
        return numba.njit(cache=CACHE, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return numba.njit(nogil=True, error_model="numpy")(function)
