"""A fitted calibrator as a table: the intervals of the score on which it is constant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.bounded import BoundedCalibrator
from vennforest.calibrators.core.exports import CalibrationTable
from vennforest.calibrators.core.interface import Calibrator
from vennforest.calibrators.maps.beta import BetaCalibration
from vennforest.calibrators.maps.bostrom import BostromScaling
from vennforest.calibrators.maps.isotonic import IsotonicCalibration, StepMap
from vennforest.calibrators.maps.platt import PlattScaling
from vennforest.calibrators.maps.uncalibrated import Uncalibrated
from vennforest.calibrators.venn import Venn
from vennforest.calibrators.venn.taxonomies import CallableTaxonomy, LabelTaxonomy, NeighbourCells
from vennforest.calibrators.venn_abers import VennAbers
from vennforest.counts import ScoreGrid

LOWEST = -float(np.finfo(np.float64).max)
"""The smallest score there is."""

TOP = 1 << 63


def table_of(calibrator: Calibrator) -> CalibrationTable:
    """Return the table of a fitted calibrator of two classes.

    The intervals are known from what it is; what stands in them is what it answers itself.

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
    begins = _begins(calibrator)
    if begins is None:
        raise ValueError(
            f"a table must be of a calibrator that is constant between scores, got {calibrator}: "
            "use to_json or to_sql"
        )
    grid: ScoreGrid | None = calibrator._fitted.grid
    lowest, _ = accepted(calibrator)
    if grid is not None:
        begins = _on_grid(begins, grid)
    start = np.unique(np.append(lowest, begins[begins > lowest])) + 0.0
    p0 = p1 = p = None
    if isinstance(calibrator, BoundedCalibrator):
        bounds = calibrator.predict_multiprobability(start)
        p0, p1 = bounds.p0, bounds.p1
        if calibrator.merge != "smooth":
            p = calibrator.predict_proba(start)[:, 1]
    else:
        p = calibrator.predict_proba(start)[:, 1]
    columns = [one for one in (p0, p1, p) if one is not None]
    new = np.append(True, np.any([one[1:] != one[:-1] for one in columns], axis=0))
    return CalibrationTable(
        start[new],
        *(None if one is None else np.ascontiguousarray(one[new]) for one in (p0, p1, p)),
    )


def accepted(calibrator: Calibrator) -> tuple[float, float]:
    """Return the smallest and the largest score that a calibrator of two classes takes."""
    grid: ScoreGrid | None = calibrator._fitted.grid
    if grid is not None:
        return grid.low, grid.high
    return (0.0, 1.0) if _needs_probabilities(calibrator) else (LOWEST, -LOWEST)


def _needs_probabilities(calibrator: Any) -> bool:
    if isinstance(calibrator, BetaCalibration | BostromScaling | Uncalibrated):
        return True
    if isinstance(calibrator, PlattScaling):
        return calibrator.maps_[0].interior is not None
    return getattr(calibrator, "on_", "logits") == "probabilities"


def after(scores: FloatArray) -> FloatArray:
    """Return the smallest float above each score."""
    above: FloatArray = np.nextafter(scores, np.inf)
    return above


def _begins(calibrator: Calibrator) -> FloatArray | None:
    """Return where the answer may change; None where it moves everywhere."""
    if isinstance(calibrator, VennAbers):
        table = calibrator.tables_[0]
        # p0 depends on how many calibration scores are <= s, p1 on how many are < s.
        return np.concatenate([table.zeros.ends, after(table.ones.ends)])
    if isinstance(calibrator, IsotonicCalibration):
        one = calibrator.maps_[0]
        return after(one.ends) if isinstance(one, StepMap) else None
    if isinstance(calibrator, Venn):
        taxonomy = calibrator.taxonomy_
        if isinstance(taxonomy, CallableTaxonomy) or not type(taxonomy).__module__.startswith(
            "vennforest."
        ):
            return None
        if isinstance(taxonomy, NeighbourCells):
            return after(taxonomy._cut_at[taxonomy._cell < 0])  # those of nodes that are not leaves
        # On either side of where the predicted label changes, categories come in order.
        middle = taxonomy.boundary if isinstance(taxonomy, LabelTaxonomy) else 0.5
        first = float(np.nextafter(middle, np.inf))
        low = _changes(taxonomy, LOWEST, float(middle), taxonomy.n_categories_)
        high = _changes(taxonomy, first, -LOWEST, taxonomy.n_categories_)
        return np.concatenate([low, [first], high])
    return None


def _changes(
    category: Callable[[FloatArray], IntArray], low: float, high: float, n: int
) -> FloatArray:
    """Return where categories, which come in order from low to high, change."""
    first, last = category(np.array([low, high]))
    codes = np.arange(min(first, last), max(first, last))
    rising = first <= last

    def beyond(scores: FloatArray) -> NDArray[np.bool_]:
        return category(scores) > codes if rising else category(scores) <= codes

    return first_where(beyond, low, high, len(codes))


def _on_grid(begins: FloatArray, grid: ScoreGrid) -> FloatArray:
    """Return the first scores whose cell's middle is at or above others, where there are any."""
    begins = begins[begins <= grid.score_of([grid.cells - 1])[0]]
    return first_where(lambda s: grid(s) >= begins, grid.low, grid.high, len(begins))


def first_where(
    test: Callable[[FloatArray], NDArray[np.bool_]], low: float, high: float, n: int
) -> FloatArray:
    """Return the smallest floats (n,) in [low, high] for which a rising test is true.

    Halving over the floats in their order, so that not the last bit is left open.

    Parameters
    ----------
    test : callable
        From scores (n,) to booleans (n,); true at ``high``, and never false above where it is
        true.
    low, high : float
    n : int
    """
    left, right = (np.repeat(_order(np.array([end])), n) for end in (low, high))
    while (left < right).any():
        middle = left + (right - left) // 2
        true = test(_float(middle))
        left, right = (
            np.where(true, left, np.minimum(middle + 1, right)),
            np.where(true, middle, right),
        )
    return _float(right)


def _order(scores: FloatArray) -> NDArray[np.uint64]:
    """Return integers in the order of floats."""
    bits = (scores + 0.0).view(np.uint64)
    negative = bits >= np.uint64(TOP)
    return np.where(negative, ~bits, bits | np.uint64(TOP))


def _float(order: NDArray[np.uint64]) -> FloatArray:
    """Return the floats of these places in the order."""
    positive = order >= np.uint64(TOP)
    bits = np.where(positive, order & ~np.uint64(TOP), ~order)
    return bits.view(np.float64)
