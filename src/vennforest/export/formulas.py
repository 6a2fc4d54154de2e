"""What a calibrator answers, as formulas of the scores that it takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Venn
from vennforest.calibrators.base import SUM_TOLERANCE, Calibrator
from vennforest.calibrators.formula import LOWEST, Column, Score, Term, Terms, summed
from vennforest.calibrators.intervals import IntervalCurve
from vennforest.prior import shift_probabilities

LEVEL = 0.95
"""Of the intervals that are exported."""


class CalibrationTable(NamedTuple):
    """Intervals of the score, ascending, and what a calibrator of two classes says in each.

    Row i applies to scores s with ``start[i] <= s < start[i + 1]``, the last one for all from
    ``start[-1]`` on. All arrays have shape (m,).
    """

    start: FloatArray
    """The first score of each interval; ``start[0]`` is the smallest score that is accepted."""
    p0: FloatArray | None
    """Lower probability of the second class, in [0, 1]; None without bounds."""
    p1: FloatArray | None
    """Upper probability of the second class, in [0, 1]; None without bounds."""
    p: FloatArray | None
    """Probability of the second class, in [0, 1]."""


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
    if not calibrator._takes_probabilities:
        return Taken(LOWEST, -LOWEST, False)
    return Taken(0.0, 1.0, len(calibrator.classes_) > 2 and calibrator._rows_sum_to_one)


def answers(calibrator: Calibrator, confidence: bool = False) -> dict[str, Terms]:
    """Return ``p``, and with bounds ``p0`` and ``p1``, as formulas of the columns of scores.

    Each is that of the second of two classes, or there is one a class. With ``confidence`` there
    are ``low95`` and ``high95`` too.
    """
    scores = _scores(calibrator)
    found = calibrator._formulas(scores)
    if confidence:
        found |= intervals(_tables(calibrator), scores)
    shift = calibrator.shift_
    if shift is not None:
        factors = shift.factors.tolist()
        found["p"] = _shifted(found["p"], factors)
        for low, high in (("p0", "p1"), ("low95", "high95")):
            if low in found:
                whole = low == "p0" and isinstance(calibrator, Venn)  # bounds of k distributions
                shifted = _shifted_distributions if whole else _shifted_intervals
                found[low], found[high] = shifted(found[low], found[high], factors)
    return widened(found)


def _scores(calibrator: Calibrator) -> Terms:
    """Return the columns of scores as the calibrator's formulas take them."""
    k = len(calibrator.classes_)
    scores: Terms = tuple(Score(j) for j in range(1 if k == 2 else k))
    if (at := calibrator.reversed_at_) is not None:
        scores = (at - scores[0],)
    return scores


def _odds(p: Term, factor: float, of_other: float) -> Term:
    """Return the probability whose odds are those of p, times the factors' ratio."""
    own = p * factor
    return own / (own + (1.0 - p) * of_other)


def _shifted(p: Terms, factors: list[float]) -> Terms:
    """Return the formulas of `shift_probabilities`."""
    if len(p) == 1:
        return (_odds(p[0], factors[1], factors[0]),)
    moved = [one * factor for one, factor in zip(p, factors, strict=True)]
    return tuple(one / summed(moved) for one in moved)


def _shifted_intervals(low: Terms, high: Terms, factors: list[float]) -> tuple[Terms, Terms]:
    """Return the formulas of `shift_intervals`."""
    if len(low) == 1:
        return _shifted(low, factors), _shifted(high, factors)
    rest = [factors[:j] + factors[j + 1 :] for j in range(len(low))]
    return (
        tuple(_odds(p, f, max(r)) for p, f, r in zip(low, factors, rest, strict=True)),
        tuple(_odds(p, f, min(r)) for p, f, r in zip(high, factors, rest, strict=True)),
    )


def _shifted_distributions(low: Terms, high: Terms, factors: list[float]) -> tuple[Terms, Terms]:
    """Return the formulas of `shift_bounds` for bounds of k distributions."""
    if len(low) == 1:
        return _shifted_intervals(low, high, factors)
    least = summed(p * f for p, f in zip(low, factors, strict=True))
    total = [least + (u - p) * f for p, u, f in zip(low, high, factors, strict=True)]
    others = [reduce(Term.max, total[:j] + total[j + 1 :]) for j in range(len(low))]
    return (
        tuple(p * f / other for p, f, other in zip(low, factors, others, strict=True)),
        tuple(p * f / own for p, f, own in zip(high, factors, total, strict=True)),
    )


def intervals(tables: Sequence[IntervalCurve], scores: Terms) -> dict[str, Terms]:
    """Return the ends of confidence intervals."""
    ends = []
    for table, score in zip(tables, scores, strict=True):
        edges, lower, upper = table.steps()
        ends.append(score.look_up(edges, {"low95": lower, "high95": upper}))
    return {name: tuple(one[name] for one in ends) for name in ("low95", "high95")}


def widened(found: dict[str, Terms]) -> dict[str, Terms]:
    """Return formulas with intervals, where there are some, that contain the probabilities."""
    if "low95" not in found:
        return found
    low, high, p = found["low95"], found["high95"], found["p"]
    return found | {
        "low95": tuple(map(Term.min, low, p)),
        "high95": tuple(map(Term.max, high, p)),
    }


def _tables(calibrator: Calibrator) -> Sequence[IntervalCurve]:
    make = getattr(calibrator, "_interval_curves", None)
    if make is None:
        raise InputError(
            f"confidence must be False: a {type(calibrator).__name__} gives no confidence intervals"
        )
    tables: Sequence[IntervalCurve] = make(LEVEL)
    return tables


def table_of(calibrator: Calibrator) -> CalibrationTable:
    """Return the map of two classes as a table, where it is constant on intervals.

    Venn–Abers, isotonic calibration (``"step"`` and ``"nearest"``), and Venn with a taxonomy
    that has a name. The table is equal to what the calibrator answers to the last bit;
    ``pandas.DataFrame(table._asdict())`` is a data frame.

    Raises
    ------
    ValueError
        If there are more than two classes, or nothing is constant on intervals.
    """
    check_is_fitted(calibrator, "classes_")
    if len(calibrator.classes_) != 2:
        raise ValueError(
            f"classes must be two for a table of scores, got {len(calibrator.classes_)}"
        )
    if calibrator.reversed_at_ is not None:
        raise ValueError(
            "a table must be of scores that rise with the second class, got reversed ones "
            "(increasing=False): use to_sql, or reverse the scores before fitting"
        )
    try:
        found = calibrator._formulas(_scores(calibrator))
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

    shift = calibrator.shift_

    def column(name: str) -> FloatArray | None:
        one = columns.get(name)
        if one is None:
            return None
        p: FloatArray = one.table.columns[one.name][kept]
        if shift is not None:
            p = shift_probabilities(np.column_stack([1 - p, p]), shift.factors)[:, 1]
        return p

    return CalibrationTable(start + 0.0, column("p0"), column("p1"), column("p"))
