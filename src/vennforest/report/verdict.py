"""Which method to use on this data set, by a rule that is stated beside the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray
from vennforest.multiprobability import Multiprobability
from vennforest.report.folds import OutOfFold
from vennforest.report.measures import (
    Difference,
    Measures,
    difference,
    log_losses,
    squared_losses,
)

RULES = {
    True: "the lowest log loss among the methods that give bounds",
    False: "the lowest log loss, since none of the methods compared gives bounds",
}


@dataclass(frozen=True)
class Verdict:
    """The recommended method and how the others compare with it.

    Attributes
    ----------
    method : str
        The recommended one.
    rule : str
        How it was chosen.
    against : dict of str to Difference
        For every other method its loss minus the recommended one's; where either log loss is
        infinite, of Brier scores.
    by : dict of str to str
        By which loss each was compared.
    """

    method: str
    rule: str
    against: dict[str, Difference]
    by: dict[str, str]


def judge(measures: dict[str, Measures], folds: OutOfFold) -> Verdict:
    """Choose a method by the rule, and compare every other one with it.

    Parameters
    ----------
    measures : dict of str to Measures
        By method.
    folds : OutOfFold
        The predictions they are taken of.
    """
    bounded = [m for m, estimates in folds.estimates.items() if estimates.bounds is not None]
    among = bounded or list(measures)
    best = min(among, key=lambda m: (measures[m].log_loss, measures[m].brier))
    against, by = {}, {}
    for other in measures:
        if other == best:
            continue
        finite = measures[other].impossible == 0 and measures[best].impossible == 0
        losses = log_losses if finite else squared_losses
        against[other] = difference(
            losses(folds.estimates[other].p, folds.codes),
            losses(folds.estimates[best].p, folds.codes),
            folds,
        )
        by[other] = "log loss" if finite else "Brier score"
    return Verdict(best, RULES[bool(bounded)], against, by)


def settled_labels(bounds: Multiprobability) -> NDArray[np.bool_]:
    """Tell for which objects (n,) one class is the most probable wherever between the bounds.

    That is so where its lower bound is at least every other class's upper bound.
    """
    best = bounds.lower.argmax(axis=1)[:, None]
    others: FloatArray = bounds.upper.copy()
    np.put_along_axis(others, best, -np.inf, axis=1)
    lowest = np.take_along_axis(bounds.lower, best, axis=1)[:, 0]
    settled: NDArray[np.bool_] = lowest >= others.max(axis=1)
    return settled
