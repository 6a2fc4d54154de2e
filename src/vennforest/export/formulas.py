"""What a calibrator answers, as formulas of the scores that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vennforest._validation import FloatArray, InputError
from vennforest.calibrators.core.formula import LOWEST, Column, Score, Terms, on_grid, summed
from vennforest.calibrators.core.interface import CalibrationTable, Calibrator
from vennforest.calibrators.core.scores import SUM_TOLERANCE
from vennforest.calibrators.likelihood_ratio import IntervalTable

LEVEL = 0.95
"""Of the intervals that are exported."""


class Taken(NamedTuple):
    """Which scores a calibrator takes."""

    low: float
    high: float
    sum_to_one: bool
    """Whether a row of columns must sum to 1, within 1e-5."""

    @property
    def tolerance(self) -> float | None:
        """How far from 1 a row may sum; None: as far as it likes."""
        return SUM_TOLERANCE if self.sum_to_one else None


def taken(calibrator: Calibrator) -> Taken:
    """Return the scores that a calibrator takes."""
    grid = calibrator._fitted.grid
    if grid is not None:
        return Taken(grid.low, grid.high, False)
    if not calibrator._takes_probabilities:
        return Taken(LOWEST, -LOWEST, False)
    return Taken(0.0, 1.0, len(calibrator.classes_) > 2 and not _one_a_class(calibrator))


def _one_a_class(calibrator: Calibrator) -> bool:
    """Tell whether each class has a map of its own score, whatever the others."""
    return hasattr(calibrator, "maps_") and not hasattr(calibrator, "on_")


def answers(calibrator: Calibrator, confidence: bool = False) -> dict[str, Terms]:
    """Return ``p``, and with bounds ``p0`` and ``p1``, as formulas of the columns of scores.

    Each is that of the second of two classes, or there is one a class. With ``confidence`` there
    are ``low95`` and ``high95`` too.
    """
    k, grid = len(calibrator.classes_), calibrator._fitted.grid
    columns = [Score(j) for j in range(1 if k == 2 else k)]
    scores: Terms = tuple(columns if grid is None else [on_grid(one, grid) for one in columns])
    if (at := calibrator._fitted.reversed_at) is not None:
        scores = (at - scores[0],)
    found = calibrator._formulas(scores)
    if confidence:
        found |= intervals(_tables(calibrator), scores, found["p"])
    shift = calibrator._fitted.shift
    if shift is None:
        return found
    if k > 2 and "p0" in found:
        raise ValueError(
            f"a formula must be of two classes where with_prior has set shares, got {calibrator}"
        )
    return {name: _shifted(p, shift.factors) for name, p in found.items()}


def _shifted(p: Terms, factors: FloatArray) -> Terms:
    """Return the formulas of `shift_probabilities`."""
    if len(p) == 1:
        own = p[0] * float(factors[1])
        return (own / (own + (1.0 - p[0]) * float(factors[0])),)
    moved = [one * float(factor) for one, factor in zip(p, factors, strict=True)]
    return tuple(one / summed(moved) for one in moved)


def intervals(tables: Sequence[IntervalTable], scores: Terms, p: Terms) -> dict[str, Terms]:
    """Return the ends of confidence intervals, widened to contain the probabilities."""
    low, high = [], []
    for table, score, middle in zip(tables, scores, p, strict=True):
        edges, lower, upper = table.steps()
        ends = score.look_up(edges, {"low": lower, "high": upper})
        low.append(ends["low"].min(middle))
        high.append(ends["high"].max(middle))
    return {"low95": tuple(low), "high95": tuple(high)}


def _tables(calibrator: Calibrator) -> Sequence[IntervalTable]:
    make = getattr(calibrator, "_interval_tables", None)
    if make is None:
        raise InputError(
            f"confidence must be False: a {type(calibrator).__name__} gives no confidence intervals"
        )
    tables: Sequence[IntervalTable] = make(LEVEL)
    return tables


def table_of(calibrator: Calibrator) -> CalibrationTable:
    """Return the table of a fitted calibrator of two classes.

    Raises
    ------
    ValueError
        If there are more classes, or neither bounds nor probabilities are constant on intervals.
    """
    if len(calibrator.classes_) != 2:
        raise ValueError(
            f"classes must be two for a table of scores, got {len(calibrator.classes_)}"
        )
    if calibrator._fitted.reversed_at is not None:
        raise ValueError(
            "a table must be of scores that rise with the second class, got reversed ones "
            '(higher_is="safer"): use to_sql, or reverse the scores before fitting'
        )
    try:
        found = answers(calibrator)
    except ValueError:
        found = {}
    columns = {
        name: one
        for name, (one,) in found.items()
        if isinstance(one, Column) and isinstance(one.at, Score)
    }
    if not columns:
        raise ValueError(
            f"a table must be of a calibrator that is constant between scores, got {calibrator}: "
            "use to_json or to_sql"
        )
    low = taken(calibrator).low
    table = next(iter(columns.values())).table
    kept = np.append(table.start[1:] > low, True)
    start = np.maximum(table.start[kept], low)

    def column(name: str) -> FloatArray | None:
        one = columns.get(name)
        return None if one is None else one.table.columns[one.name][kept]

    return CalibrationTable(start + 0.0, column("p0"), column("p1"), column("p"))
