"""Estimated performance of rows without labels, all together and by periods of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from vennforest._files import one_line
from vennforest._validation import IntArray
from vennforest.performance import PerformanceEstimate, estimate_performance
from vennforest.performance.estimate import FEWEST

MOST_PERIODS = 40
"""Periods that are shown; with more of them longer ones are taken."""

SLICES = 10
"""Equal parts that times which are numbers are cut into, at most."""


@dataclass(frozen=True, eq=False)
class Period:
    """Rows of a stretch of time.

    Attributes
    ----------
    name : str
    rows : ndarray of shape (m,)
    """

    name: str
    rows: IntArray


@dataclass(frozen=True, eq=False)
class Expected:
    """What is expected of the predictions of some rows.

    Attributes
    ----------
    name : str
    n_rows : int
    found : PerformanceEstimate or None
    reason : str
        Why there is none.
    """

    name: str
    n_rows: int
    found: PerformanceEstimate | None
    reason: str = ""


def periods(times: NDArray[Any], least: int = FEWEST) -> tuple[str, list[Period]]:
    """Return the shortest periods of which all but the first and the last have enough rows.

    Parameters
    ----------
    times : ndarray of shape (n,)
        Dates or numbers.
    least : int
        Rows that a period is to have. Numbers are cut into equal parts that have them.

    Returns
    -------
    (str, list of Period)
        What the periods are: "week", "month", "quarter", "year" or "part".
    """
    if times.dtype.kind == "M":
        for name, numbers in _calendar(times):
            values, codes = np.unique(numbers, return_inverse=True)
            sizes = np.bincount(codes)
            inner = sizes[1:-1]
            if name == "year" or (
                len(values) <= MOST_PERIODS
                and len(values) > 1
                and (inner if len(inner) else sizes).min() >= least
            ):
                return name, [
                    Period(_written(name, value), np.flatnonzero(codes == code))
                    for code, value in enumerate(values)
                ]
    moments, at = np.unique(times, return_inverse=True)
    parts = max(1, min(SLICES, len(times) // (2 * least), len(moments)))
    middle = np.cumsum(np.bincount(at)) - np.bincount(at) / 2
    number = np.minimum((middle / len(times) * parts).astype(np.intp), parts - 1)[at]
    return "part", [
        Period(f"{times[rows].min():g} to {times[rows].max():g}", rows)
        for code in np.unique(number)
        for rows in [np.flatnonzero(number == code)]
    ]


def _calendar(times: NDArray[Any]) -> list[tuple[str, NDArray[np.int64]]]:
    days = times.astype("datetime64[D]").astype(np.int64)
    months = times.astype("datetime64[M]").astype(np.int64)
    weeks = (days + 3) // 7  # since the Monday before 1970
    return [("week", weeks), ("month", months), ("quarter", months // 3), ("year", months // 12)]


def _written(name: str, value: int) -> str:
    if name == "week":
        return str(np.datetime64(int(value) * 7 - 3, "D"))
    if name == "month":
        return str(np.datetime64(int(value), "M"))
    if name == "quarter":
        return f"{1970 + value // 4} Q{value % 4 + 1}"
    return str(1970 + value)


def expected(model: Any, X: Any, name: str, **options: Any) -> Expected:
    """Return what is expected of the rows of X; a reason in its place where nothing is."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    try:
        return Expected(name, n, estimate_performance(model, X, **options))
    except ValueError as error:
        return Expected(name, n, None, one_line(error))


def expected_over_time(
    model: Any, X: Any, parts: Sequence[Period], **options: Any
) -> list[Expected]:
    """Return what is expected of each period's rows."""
    return [expected(model, _safe_indexing(X, part.rows), part.name, **options) for part in parts]
