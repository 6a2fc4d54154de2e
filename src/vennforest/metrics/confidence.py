"""Confidence in the predicted label against accuracy, and the weighted area under the ROC curve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score

from vennforest._validation import FloatArray
from vennforest.metrics._inputs import check_estimates


def confidence_errors(
    y: ArrayLike, p: ArrayLike, *, classes: ArrayLike | None = None, pos_label: Any = None
) -> FloatArray:
    """Return every observation's confidence in its predicted label, minus 1 where it is right.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any dtype.
    p : array-like of shape (n,) or (n, k)
        Probability of the positive class, or of every class in sorted order; in [0, 1]. The
        predicted label is the most probable one, the first of equals.
    classes : array-like of shape (k,), optional
        Every class, when some may be missing from ``y``.
    pos_label : label, optional
        The class that ``p`` of shape (n,) is the probability of; by default the second of two.

    Returns
    -------
    ndarray of shape (n,)
        In [-1, 1].

    Raises
    ------
    ValueError
        As ``brier_decomposition``.
    """
    problem = check_estimates(y, p, classes=classes, pos_label=pos_label).of_predicted()
    return problem.p - problem.outcome


def confidence_minus_accuracy(
    y: ArrayLike,
    p: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the mean confidence in the predicted label minus the accuracy.

    Above 0 the estimates are too optimistic, below 0 too pessimistic (Johansson et al. 2018,
    Table 1).

    Parameters
    ----------
    y, p, classes, pos_label
        As in ``confidence_errors``, whose mean this is.
    sample_weight : array-like of shape (n,), optional
        Non-negative; a weight of 2 is the observation twice.

    Returns
    -------
    float
        In [-1, 1].

    Raises
    ------
    ValueError
        As ``brier_decomposition``.

    Examples
    --------
    >>> round(confidence_minus_accuracy([0, 0, 1, 1], [0.1, 0.6, 0.8, 0.9]), 3)
    0.05
    """
    problem = check_estimates(
        y, p, sample_weight=sample_weight, classes=classes, pos_label=pos_label
    ).of_predicted()
    return float(np.average(problem.p - problem.outcome, weights=problem.weight))


def weighted_auc(
    y: ArrayLike,
    p: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the area under the ROC curve; of many classes the mean weighted by their shares.

    scikit-learn's ``roc_auc_score``, for two classes that of the positive one. For more it is
    Σ_j share_j · AUC_j, each class against the rest (Fawcett 2006, total AUC, as in Boström 2008);
    a class that is missing from ``y`` has share 0, where ``roc_auc_score`` warns, raises or gives
    NaN.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any dtype.
    p : array-like of shape (n,) or (n, k)
        Probability of the positive class, or of every class in sorted order; in [0, 1].
    sample_weight : array-like of shape (n,), optional
        Non-negative; a weight of 2 is the observation twice.
    classes : array-like of shape (k,), optional
        Every class, when some may be missing from ``y``.
    pos_label : label, optional
        The positive class; by default the second of two.

    Returns
    -------
    float
        In [0, 1]; NaN where ``y`` holds one class only, since no pair can be ranked.

    Raises
    ------
    ValueError
        As ``brier_decomposition``.
    """
    estimates = check_estimates(
        y, p, sample_weight=sample_weight, classes=classes, pos_label=pos_label
    )
    total, area = 0.0, 0.0
    for problem in estimates.additive():
        if problem.outcome.all():
            return float("nan")
        if not problem.outcome.any():
            continue
        share = float(problem.weight @ problem.outcome)
        area += share * float(
            roc_auc_score(problem.outcome, problem.p, sample_weight=problem.weight)
        )
        total += share
    return area / total if total else float("nan")
