"""Prediction sets of stated error: conformal prediction from the calibration scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_inside,
    check_scores,
    check_weights,
    encode_labels,
)
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.fitted import in_place, rows_of
from vennforest.decisions.thresholds import KEPT_APART
from vennforest.sources import whole_scores

AGREEING = 0.6
"""Share of the folds that must reject a label for a proven error: of .6, .8 and 1 the one with the
smallest sets in ``benchmarks/cross_conformal.py``, whatever the data valid."""


def combined(p: FloatArray) -> FloatArray:
    """Return a p-value for K of any dependence, along the first axis: their j-th times K / j."""
    k = len(p)
    j = int(np.ceil(AGREEING * k - 1e-9))
    found: FloatArray = np.minimum(1.0, np.sort(p, axis=0)[j - 1] * k / j)
    return found


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """For each object the labels that it may well have.

    Attributes
    ----------
    contains : ndarray of shape (m, k), bool
        Which labels are in the set of each object. A set may be empty: no label goes well with
        such a score.
    p_values : ndarray of shape (m, k)
        Of each label, in (0, 1]; the set contains those above the error.
    error : float
        The stated error, in (0, 1).
    classes : ndarray of shape (k,)
        The label of each column.
    """

    contains: NDArray[np.bool_]
    p_values: FloatArray
    error: float
    classes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.contains)

    @property
    def size(self) -> IntArray:
        """Number of labels in each set, shape (m,)."""
        return np.asarray(self.contains.sum(axis=1))

    def labels(self) -> list[NDArray[Any]]:
        """Return the labels in each set, m arrays."""
        return [self.classes[row] for row in self.contains]


def conformal_p_values(
    scores: ArrayLike,
    y: ArrayLike,
    new_scores: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    class_conditional: bool = True,
    boundary: float = 0.5,
) -> FloatArray:
    """Return the conformal p-value of every label for new scores.

    How well a label goes with an object is the label's score. The p-value of a label is the share
    of examples, the new object with that label among them, with which theirs goes no better:
    ``(1 + #{i : s_i(y_i) <= s(y)}) / (1 + n)``, i over the calibration examples of label y, or over
    all of them (Vovk, Gammerman & Shafer 2005, section 2.2 and, by class, 4.5).

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, k)
        Calibration scores: of the second class, or one column per class.
    y : array-like of shape (n,)
        Their labels.
    new_scores : array-like of shape (m,) or (m, k)
    sample_weight : array-like of shape (n,), optional
        Counts of repeated observations.
    classes : array-like of shape (k,), optional
        Every class, when some may be missing from ``y``.
    class_conditional : bool, default=True
        As of `prediction_sets`: whether a label is compared with examples of that label alone.
    boundary : float, default=0.5
        With one column of scores, that which speaks for neither class: .5 for probabilities, 0 for
        decision values. Only with ``class_conditional=False`` it matters.

    Returns
    -------
    ndarray of shape (m, k)
        In (0, 1]; 1 for a label without calibration examples.

    Raises
    ------
    ValueError
        If scores are not finite, shapes do not fit, or there are fewer than two classes.

    Examples
    --------
    >>> conformal_p_values([0.1, 0.3, 0.4, 0.6, 0.8, 0.9], [0, 0, 0, 1, 1, 1], [0.2, 0.7])
    array([[0.75, 0.25],
           [0.25, 0.5 ]])
    """
    old, new = check_scores(scores), check_scores(new_scores, "new_scores")
    check_consistent_length(old, y)
    codes, labels = encode_labels(y, classes)
    weight = check_weights(sample_weight, len(old))
    k = len(labels)
    if k < 2:
        raise InputError(
            "y must contain at least two classes (or name them with classes=), got one"
        )
    middle = 0.0 if class_conditional else boundary  # taking it off may round
    own, tried = _by_label(old, k, middle), _by_label(new, k, middle)
    return _p_values([_counts(own, codes, weight, tried, class_conditional)])


def prediction_sets(
    model: Any,
    X: Any,
    error: float = 0.1,
    *,
    class_conditional: bool = True,
    proven: bool = False,
) -> PredictionSets:
    """Return for each row the labels that it may well have, with a stated error.

    Parameters
    ----------
    model : CalibratedClassifier
        Fitted. Its calibration scores are used; its method, its prior and its bounds are not.
    X : array-like, sparse matrix or data frame of shape (m, d)
        Rows as the estimator takes them.
    error : float, default=0.1
        In (0, 1): the chance that a set lacks the true label.
    class_conditional : bool, default=True
        Whether the error is valid for the objects of every class by themselves, whatever the shares
        of the classes are among new objects; otherwise for all objects together, in smaller sets.
    proven : bool, default=False
        Over folds: whether the error is at most as stated by a theorem, in larger sets.

    Raises
    ------
    NotFittedError
        Before ``fit``.
    ValueError
        If the error does not lie between 0 and 1, or ``proven`` is asked for where nothing is.

    Notes
    -----
    The chance to miss the true label is at most ``error`` exactly where calibration scores are of
    examples kept apart from training and new ones are exchangeable with them: ``"holdout"``, a
    frozen model. With folds p-values are those of cross-conformal prediction (Vovk 2015): the
    chance is at most about twice the error, and near it in measurements (Barber et al. 2021).
    With ``proven`` each of K folds has a p-value of its own, and of these the j-th smallest times
    K / j counts, j being 3/5 of K: at most the error, however the folds depend on each other
    (Vovk & Wang 2020). Out of bag new objects are scored by all trees, which is not proved. With
    ``by`` all this is valid within every group.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from vennforest import CalibratedClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CalibratedClassifier(random_state=0).fit(X[::2], y[::2])
    >>> sets = prediction_sets(model, X[1::2], error=0.05)
    >>> sets.labels()[25:28]
    [array([1]), array([1]), array([1])]
    """
    error = check_inside(error, "error")
    if not isinstance(model, CalibratedClassifier):
        raise InputError(
            f"model must be a CalibratedClassifier, got {type(model).__name__}: for the scores of "
            "other models there is conformal_p_values"
        )
    check_is_fitted(model, "classes_")
    if proven:
        _check_proven(model._state)
    k = len(model.classes_)

    def values(parts: Any, rows: Any) -> FloatArray:
        every = []
        for part in parts:
            centred = not class_conditional and hasattr(part.estimator, "predict_proba")
            boundary = 0.5 if centred else 0.0
            own, tried = (
                _by_label(scores, k, boundary) for scores in (part.scores, whole_scores(part, rows))
            )
            codes = part.codes.astype(np.intp)
            every.append(_counts(own, codes, part.weight, tried, class_conditional))
        if proven:
            return combined(np.stack([_p_values([counts]) for counts in every]))
        return _p_values(every)

    pieces = [(sub.rows, values(sub.folds, rows_of(sub, X))) for sub in model._state.sub_models(X)]
    rows = [rows for rows, _ in pieces if rows is not None]
    p = in_place(rows, [p for _, p in pieces]) if rows else pieces[0][1]
    return PredictionSets(p > error, p, error, model.classes_)


def _counts(
    own: FloatArray,
    codes: IntArray,
    weight: FloatArray | None,
    tried: FloatArray,
    class_conditional: bool,
) -> tuple[FloatArray, FloatArray]:
    """Return how many examples go no better with their label (m, k), and how many there are (k,).

    Of each label tried for each object; ``own`` (n, k) and ``tried`` (m, k) are from `_by_label`.
    """
    of_true = own[np.arange(len(own)), codes]
    counted = np.ones(len(own)) if weight is None else weight
    no_better, total = np.empty(tried.shape), np.empty(tried.shape[1])
    for j in range(len(total)):
        mine = codes == j if class_conditional else np.ones(len(own), bool)
        order = np.argsort(of_true[mine], kind="stable")
        sums = np.append(0.0, np.cumsum(counted[mine][order]))
        no_better[:, j] = sums[np.searchsorted(of_true[mine][order], tried[:, j], "right")]
        total[j] = sums[-1]
    return no_better, total


def _p_values(counts: list[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Return p-values (m, k) of counts of parts together; the new object is one example more."""
    no_better, total = (np.sum(one, axis=0) for one in zip(*counts, strict=True))
    return np.asarray((no_better + 1) / (total + 1))


def _by_label(scores: FloatArray, k: int, boundary: float) -> FloatArray:
    """Return how well each of k labels goes with the scores, (n, k)."""
    if k == 2 and (scores.ndim == 1 or scores.shape[1] == 1):
        own = scores.reshape(-1) - boundary
        return np.column_stack([-own, own])
    if scores.ndim != 2 or scores.shape[1] != k:
        raise InputError(f"scores must have a column for each of {k} classes, got {scores.shape}")
    return scores


def _check_proven(fitted: Any) -> None:
    """Refuse sources by which new objects are scored by another model than examples."""
    apart = KEPT_APART if len(fitted.folds) == 1 else ("cv",)
    if fitted.calibrate_on not in apart:
        raise InputError(
            "proven must be False where new objects are scored by other trees or models than "
            f'calibration examples, got a model with calibrate_on="{fitted.calibrate_on}"'
            f"{' and ensemble=False' if fitted.calibrate_on == 'cv' else ''}: use "
            'calibrate_on="cv" or "holdout"'
        )
