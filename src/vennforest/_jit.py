"""Compilation and caching of kernels."""

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba.core import event

from vennforest._messages import warn

CACHE = os.environ.get("VENNFOREST_CACHE", "1") != "0"
"""Whether compiled kernels are kept on disk (set ``VENNFOREST_CACHE=0`` to compile again)."""

LONG_COMPILATION = 2.0
"""Seconds of compilation that each process repeats, after which a warning tells the user."""


class CompilationTimer(event.TimingListener):
    """Warn once if compilation takes long and no folder can keep what was compiled."""

    def on_end(self, compilation: event.Event) -> None:
        """Add the duration of a compilation that has ended."""
        before = self.duration if self.done else 0.0
        super().on_end(compilation)  # type: ignore[no-untyped-call]
        if self.done and before <= LONG_COMPILATION < self.duration:
            warn(
                f"compilation took {self.duration:.0f} s so far and is repeated in every process, "
                "since neither the package's folder nor the user's cache can be written: set "
                "NUMBA_CACHE_DIR to a folder that can"
            )


@cache
def _time_compilation() -> None:
    """Warn once if kernels take long to compile from now on."""
    event.register("numba:compile", CompilationTimer())  # type: ignore[no-untyped-call]


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` at its first call, with IEEE arithmetic, releasing the global lock."""
    try:
        return numba.njit(cache=CACHE, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        _time_compilation()
        return numba.njit(nogil=True, error_model="numpy")(function)
