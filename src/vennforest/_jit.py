"""The one place that decides how kernels are compiled, cached and spread over threads."""

import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import joblib
import numba

CACHE = os.environ.get("VENNFOREST_CACHE", "1") != "0"
"""Whether compiled kernels are kept on disk (set ``VENNFOREST_CACHE=0`` to compile anew)."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` at its first call; it runs without Python's global lock.

    IEEE arithmetic is kept (no fastmath), so that results are the same on every machine and for
    any number of threads.
    """
    try:
        return numba.njit(cache=CACHE, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        return numba.njit(nogil=True, error_model="numpy")(function)


def run_in_blocks(
    work: Callable[[int, int], None], n: int, n_jobs: int | None, smallest: int = 1
) -> None:
    """Call ``work(start, stop)`` on equal parts of ``range(n)``, one thread per part.

    ``n_jobs`` is scikit-learn's: ``None`` follows ``joblib.parallel_config`` and is 1 otherwise,
    and inside joblib workers no more threads are started than they allow. Each part has at least
    ``smallest`` items. Parts must write to places of their own.
    """
    parts = min(joblib.effective_n_jobs(n_jobs), max(1, n // smallest)) if n_jobs != 1 else 1
    if parts == 1:
        work(0, n)
        return
    edges = [n * part // parts for part in range(parts + 1)]
    joblib.Parallel(n_jobs=parts, require="sharedmem")(
        joblib.delayed(work)(start, stop) for start, stop in pairwise(edges)
    )
