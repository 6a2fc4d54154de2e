"""From predictions to an evaluation: everything is measured here, whoever predicted."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import InputError
from vennforest.decisions import CostMatrix
from vennforest.metrics import auc_interval
from vennforest.report.evaluation import NAMES, Evaluation, Origin
from vennforest.report.measures import (
    Difference,
    difference_over_rows,
    log_losses,
    measure,
    squared_losses,
)
from vennforest.report.predictions import MethodEstimates, OutOfFold
from vennforest.report.verdict import judge


def assemble(
    folds: OutOfFold,
    *,
    X: Any,
    name: str,
    target: str,
    positive: Any,
    costs: Any,
    settings: dict[str, Any],
    names: Mapping[str, str] | None = None,
    origin: Origin = "folds",
    by: Mapping[str, NDArray[Any]] | None = None,
    notes: Sequence[str] = (),
    started: float | None = None,
) -> Evaluation:
    """Measure predictions and compare them.

    Parameters
    ----------
    folds : OutOfFold
        The predictions of n rows.
    X : data frame or array of shape (n_rows, d), or None
    name, target : str
    positive : label or None
        The positive class of two; None: the rarer one.
    costs : CostMatrix, array-like, dict, str, path or None
    settings : dict
        What was run, with ``random_state``.
    names : mapping of str to str, optional
        What a reader calls methods.
    origin : str
    by : mapping of str to ndarray of shape (n_rows,), optional
        Values of all rows of X, missing ones None.
    notes : sequence of str
    started : float, optional
        When, by ``time.perf_counter``.
    """
    at, why = positive_index(positive, folds)
    seed = int(settings["random_state"])
    matrix = None if costs is None else CostMatrix.read(costs, folds.classes)
    shares = folds.baseline()
    baseline = measure(shares, folds.codes, folds.classes, at, seed)
    measures = {
        method: measure(estimates, folds.codes, folds.classes, at, seed, baseline)
        for method, estimates in folds.estimates.items()
    }
    verdict = judge(measures, folds)
    best = folds.estimates[verdict.method]
    label = None if at is None else folds.classes[at]
    # The log loss tells rare classes apart, which hardly move the Brier score.
    finite = measures[verdict.method].impossible == 0
    losses = log_losses if finite else squared_losses
    return Evaluation(
        name=name,
        target=target,
        X=X,
        folds=folds,
        positive=at,
        measures=measures,
        verdict=verdict,
        costs=matrix,
        decisions={}
        if matrix is None
        else {
            method: matrix.judge(estimates.p, estimates.bounds, folds.codes)
            for method, estimates in folds.estimates.items()
        },
        settings=settings,
        baseline=baseline,
        knowledge=auc_interval(
            folds.classes[folds.codes],
            best.p,
            groups=folds.groups,
            classes=folds.classes,
            pos_label=label,
        ),
        gain=difference_over_rows(
            losses(shares.p, folds.codes), losses(best.p, folds.codes), folds
        ),
        gain_in="log loss" if finite else "Brier score",
        constant=None if matrix is None else _saved(matrix, best, folds),
        names={**NAMES, **(names or {})},
        origin=origin,
        by={key: values[folds.rows] for key, values in (by or {}).items()},
        positive_reason=why,
        notes=[*notes, *folds.notes],
        seconds=0.0 if started is None else time.perf_counter() - started,
    )


def _saved(matrix: CostMatrix, best: MethodEstimates, folds: OutOfFold) -> Difference:
    """Return how much less decisions by probabilities cost than always the best decision."""
    costs = matrix.costs[folds.codes]
    always = int(costs.mean(axis=0).argmin())
    paid = matrix.paid(matrix.decide(best.p), folds.codes)
    return difference_over_rows(costs[:, always], paid, folds)


def check_positive(positive: Any, labels: NDArray[Any]) -> None:
    """Refuse a positive class that is none of the labels, or of more than two.

    Raises
    ------
    InputError
        If it is so.
    """
    if positive is None:
        return
    if str(positive) not in labels:
        shown = ", ".join(map(repr, map(str, labels[:8])))
        raise InputError(f"positive must be one of the classes ({shown}), got {str(positive)!r}")
    if len(labels) > 2:
        raise InputError(
            f"positive must be given for two classes only, got {len(labels)} classes: leave it out"
        )


def positive_index(positive: Any, folds: OutOfFold) -> tuple[int | None, str]:
    """Return the positive class of two, by default the rarer one, and why it is that."""
    if len(folds.classes) != 2:
        return None, ""
    if positive is not None:
        at = [str(label) for label in folds.classes].index(str(positive))
        return at, "as it was named"
    counts = np.bincount(folds.codes, minlength=2)
    if counts[0] == counts[1]:
        return 1, "both are as frequent, and it is the second in order; --positive names another"
    return int(counts.argmin()), "the rarer of the two; --positive names another"
