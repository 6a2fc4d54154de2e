"""Which method to use on this data set, by a rule that is stated beside the answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray
from vennforest.multiprobability import Multiprobability
from vennforest.report.measures import (
    Difference,
    Measures,
    log_losses,
    mean_difference,
    squared_losses,
)
from vennforest.report.predictions import OutOfFold


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

    Of the methods that give bounds (of all, if none does) those count whose log loss differs from
    the lowest by no more than chance, and of these the one that ranks rows best is chosen:
    with calibration equal, what is left to differ in is how well classes are told apart.

    Parameters
    ----------
    measures : dict of str to Measures
        By method.
    folds : OutOfFold
        The predictions they are taken of.
    """
    bounded = [m for m, estimates in folds.estimates.items() if estimates.bounds is not None]
    among = bounded or list(measures)
    lowest = min(among, key=lambda m: (measures[m].log_loss, measures[m].brier))
    level = [
        method
        for method in among
        if method == lowest or not compare_losses(method, lowest, measures, folds)[0].clear
    ]
    best = max(level, key=lambda m: (np.nan_to_num(measures[m].auc), -measures[m].log_loss))
    whom = "the methods that give bounds" if bounded else "the methods compared, none with bounds"
    rule = f"the lowest log loss among {whom}"
    if len(level) > 1:
        rule = f"the best ranking (AUC) among {whom} whose log loss is within chance of the lowest"
    against, by = {}, {}
    for other in measures:
        if other != best:
            against[other], by[other] = compare_losses(other, best, measures, folds)
    return Verdict(best, rule, against, by)


def compare_losses(
    first: str, second: str, measures: dict[str, Measures], folds: OutOfFold
) -> tuple[Difference, str]:
    """Return the first method's loss minus the second's, and which loss that is.

    The log loss; where one of theirs is infinite, the Brier score.
    """
    finite = measures[first].impossible == 0 and measures[second].impossible == 0
    losses = log_losses if finite else squared_losses
    gap = mean_difference(
        losses(folds.estimates[first].p, folds.codes),
        losses(folds.estimates[second].p, folds.codes),
        folds,
    )
    return gap, "log loss" if finite else "Brier score"


def settled_labels(bounds: Multiprobability) -> NDArray[np.bool_]:
    """Tell for which rows (n,) one class is the most probable wherever between the bounds.

    That is so where its lower bound is at least every other class's upper bound.
    """
    best = bounds.lower.argmax(axis=1)[:, None]
    others: FloatArray = bounds.upper.copy()
    np.put_along_axis(others, best, -np.inf, axis=1)
    lowest = np.take_along_axis(bounds.lower, best, axis=1)[:, 0]
    settled: NDArray[np.bool_] = lowest >= others.max(axis=1)
    return settled
