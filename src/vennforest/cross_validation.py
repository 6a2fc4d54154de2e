"""Bounds for rows of a data set by models that were trained on the others."""

from __future__ import annotations

from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import check_consistent_length, column_or_1d

from vennforest._messages import warn
from vennforest._validation import FloatArray, IntArray, check_weights, encode_labels
from vennforest.classifier.fitted import predict_once
from vennforest.multiprobability import Multiprobability


def cross_val_multiprobability(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    cv: Any = 5,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Multiprobability:
    """Return bounds for every row, each by a model that was trained and calibrated on other folds.

    As scikit-learn's ``cross_val_predict``, for ``predict_multiprobability``. Such bounds judge a
    method on data at hand: with ``vennforest.metrics.interval_summary(y, bounds)``, say.

    Parameters
    ----------
    model : CalibratedClassifier or TransductiveClassifier
        Fitted or not; it is cloned, and stays as it was.
    X, y, sample_weight
        As of its ``fit``.
    groups : array-like of shape (n,), optional
        For the splitter, and for the model's ``fit``, so its calibration too keeps groups
        together.
    cv : int, splitter or iterable, default=5
        As everywhere in scikit-learn, where an integer means stratified folds; with ``groups`` an
        integer means ``StratifiedGroupKFold``. Every row must be tested exactly once.
    n_jobs : int, optional
        Folds fitted at once.

    Returns
    -------
    Multiprobability
        Bounds of shape (n, k), in the order of the rows; those of a class that was not in the
        training folds are 0 and 1, and a warning says so.

    Raises
    ------
    ValueError
        If the splitter does not test every row once, and whatever ``fit`` raises.
    AttributeError
        If the model's method gives no bounds.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from vennforest import CalibratedClassifier, cross_val_multiprobability
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(LogisticRegression(max_iter=9000), random_state=0)
    >>> bounds = cross_val_multiprobability(model, X[:, :5], y, cv=3)
    >>> bounds.lower.shape
    (569, 2)
    """
    model.predict_multiprobability  # noqa: B018  # refuses a method without bounds before any work
    X, y = indexable(X, y)
    labels = column_or_1d(y)
    codes, classes = encode_labels(labels)
    given = None if groups is None else column_or_1d(groups)
    check_consistent_length(X, labels, given)
    weight = check_weights(sample_weight, len(labels))
    splits = list(_splitter(cv, codes, given).split(X, codes, given))
    tested = np.concatenate([_numbers(test) for _, test in splits])
    if not np.array_equal(np.sort(tested), np.arange(len(labels))):
        raise ValueError(
            "cv must test every row exactly once, got a splitter that leaves out or repeats some: "
            "use KFold, StratifiedKFold or GroupKFold"
        )
    found = joblib.Parallel(n_jobs=n_jobs)(
        joblib.delayed(_fit_and_predict)(
            model, X, labels, given, weight, _numbers(train), _numbers(test)
        )
        for train, test in splits
    )
    lower, upper = np.zeros((len(labels), len(classes))), np.ones((len(labels), len(classes)))
    missing: set[Any] = set()
    widened = np.zeros(len(labels), dtype=bool)
    for (_, test), (known, bounds) in zip(splits, found, strict=True):
        at = np.ix_(_numbers(test), np.searchsorted(classes, known))
        lower[at], upper[at] = bounds.lower, bounds.upper
        widened[_numbers(test)] = False if bounds.widened is None else bounds.widened
        missing |= set(classes.tolist()) - set(known.tolist())
    if missing:
        warn(
            f"some training folds lack the classes {sorted(missing, key=str)}: bounds there are 0 "
            "and 1"
        )
    return Multiprobability(lower, upper, classes, widened if widened.any() else None)


def _splitter(cv: Any, codes: IntArray, groups: NDArray[Any] | None) -> Any:
    if groups is not None and (cv is None or isinstance(cv, int | np.integer)):
        return StratifiedGroupKFold(5 if cv is None else int(cv))
    return check_cv(cv, codes, classifier=True)


def _numbers(index: Any) -> IntArray:
    """Return the numbers of the rows that a splitter gives as numbers or booleans."""
    array = np.asarray(index)
    return np.flatnonzero(array) if array.dtype == bool else array.astype(np.intp)


def _fit_and_predict(
    model: Any,
    X: Any,
    y: NDArray[Any],
    groups: NDArray[Any] | None,
    weight: FloatArray | None,
    train: IntArray,
    test: IntArray,
) -> tuple[NDArray[Any], Multiprobability]:
    params = {} if groups is None else {"groups": groups[train]}
    if weight is not None:
        params["sample_weight"] = weight[train]
    fitted = clone(model).fit(_safe_indexing(X, train), y[train], **params)
    bounds, _ = predict_once(fitted, _safe_indexing(X, test))
    assert bounds is not None  # asked for before any work
    return fitted.classes_, bounds
