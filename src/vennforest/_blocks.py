"""Work on many rows in blocks: one after another in a fast cache, or side by side over threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import joblib
import numpy as np
from numpy.typing import NDArray

NUMBERS = 1 << 13
"""Numbers in a block: a few arrays of so many fit into the cache of one core."""

FloatArray = NDArray[np.float64]


def blocks(n: int, columns: int = 1) -> Iterator[slice]:
    """Yield consecutive slices of n rows of so many numbers each."""
    rows = max(1, NUMBERS // columns)
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def in_blocks(function: Callable[[FloatArray], FloatArray], scores: FloatArray) -> FloatArray:
    """Return what a function gives for scores (n,) or (n, k), which looks at each row by itself.

    The same as all at once, several times as fast where it makes arrays on the way.
    """
    columns = 1 if scores.ndim == 1 else scores.shape[1]
    if scores.size <= NUMBERS:
        return function(scores)
    out: FloatArray | None = None
    for block in blocks(len(scores), columns):
        found = function(scores[block])
        if out is None:
            out = np.empty((len(scores), *found.shape[1:]))
        out[block] = found
    assert out is not None
    return out


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
