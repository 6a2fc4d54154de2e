"""Search for faults of a model and its data that spoil calibrated probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, indexable

from vennforest._class_columns import class_probabilities
from vennforest._messages import shown
from vennforest._validation import (
    FloatArray,
    IntArray,
    check_order,
    check_weights,
    count_rows,
    encode_groups,
    encode_labels,
    without_arrow,
)
from vennforest.auditing.columns import MIN_AUDITED_ROWS, find_faulty_columns
from vennforest.auditing.copies import find_near_copies
from vennforest.auditing.finding import Finding
from vennforest.auditing.memory import find_training_rows, is_out_of_bag
from vennforest.auditing.steps import find_steps_that_see_labels
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.parameters import classes_of_frozen, named_estimators
from vennforest.metrics.monotonicity import falling_frequency
from vennforest.sources.checks import (
    check_class_examples,
    copied_rows,
    copies_message,
    features_of,
)
from vennforest.sources.row_hashes import hash_rows, sketch_rows


def audit(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> list[Finding]:
    """Look for faults of a model and its data that would spoil calibrated probabilities.

    Copies of the model or of its steps are trained, which takes about as long as a few fits.

    Parameters
    ----------
    model : classifier
        A `CalibratedClassifier`, fitted or not, or an estimator for one. A model that is already
        trained is wrapped in ``FrozenEstimator``. If a fitted `CalibratedClassifier` was fitted to
        other rows than ``X``, it is tested whether its estimator was trained on ``X``.
    X : array-like, sparse matrix or data frame of shape (n, d)
        The rows of ``fit``.
    y : array-like of shape (n,)
        Their labels.
    sample_weight : array-like of shape (n,), optional
        Weights; rows of weight zero are left out.
    groups : array-like of shape (n,), optional
        The group of each row; copies within a group are not reported.

    Returns
    -------
    list of Finding
        The faults; an empty list if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier, audit
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> audit(CalibratedClassifier(), X, y)
    []
    >>> findings = audit(CalibratedClassifier(), np.vstack([X, X]), np.tile(y, 2))
    >>> [finding.kind for finding in findings]
    ['copies']
    """
    check_order(X, y=y, sample_weight=sample_weight, groups=groups)
    known_classes = _known_classes(model)
    codes, classes = encode_labels(y, known_classes, count_rows(X, low=1))
    X = indexable(without_arrow(X))[0]
    labels = classes[codes]
    is_fitted = isinstance(model, CalibratedClassifier) and hasattr(model, "classes_")
    sketch, are_new = model._state.row_sketch if is_fitted else None, False
    if sketch is not None:
        are_new = not np.array_equal(sketch_rows(model._state.hash_as_read(X)), sketch)
    weight = check_weights(sample_weight, len(labels))
    if not are_new:
        check_class_examples(codes, classes, weight, known_classes is not None)
    rows = np.arange(len(labels)) if weight is None else np.flatnonzero(weight)
    if len(rows) < len(labels):
        X = _safe_indexing(X, rows)
    group_codes = encode_groups(groups, labels)
    group_codes = None if group_codes is None else group_codes[rows]
    return [
        finding if finding.rows is None else replace(finding, rows=rows[finding.rows])
        for finding in find_faults(model, X, labels[rows], group_codes, are_new)
    ]


def find_faults(
    model: Any,
    X: Any,
    y: NDArray[Any],
    groups: IntArray | None,
    are_new: bool = False,
    is_screened: bool = False,
) -> Iterator[Finding]:
    """Yield the findings; all rows have positive weight, and ``are_new`` to a fitted model.

    Equal rows and faulty columns are left out if the table ``is_screened``: reading it and fitting
    report these.
    """
    estimator = model
    if isinstance(model, CalibratedClassifier):
        estimator = model.estimator
        if hasattr(model, "classes_"):
            codes = np.searchsorted(model.classes_, model.calibration_y_)
            yield from find_falling_frequency(model.calibration_scores_, codes, model.classes_)
        if are_new:
            findings = (find_training_rows(fitted, X, y) for fitted in model.estimators_)
            yield from islice(chain.from_iterable(findings), 1)
            return
    estimators = list(named_estimators(estimator).values())
    frozen = [e for e in estimators if isinstance(e, FrozenEstimator)]
    for member in frozen:
        if not is_out_of_bag(member, X, y):
            yield from find_training_rows(member.estimator, X, y)
            if member is model and hasattr(member, "predict_proba"):
                p, classes = class_probabilities(member, X)
                codes, scores = np.searchsorted(classes, y), p[:, 1] if len(classes) == 2 else p
                yield from find_falling_frequency(scores, codes, classes, groups)
    if len(frozen) == len(estimators):
        return
    codes = np.unique(y, return_inverse=True)[1]
    is_table = not issparse(X) and len(getattr(X, "shape", ())) < 3
    columns = features_of(X) if is_table else []
    copied = np.flatnonzero(copied_rows(X, hash_rows(X), groups))
    if not len(copied):
        yield from find_near_copies(columns, codes, groups)
    elif not is_screened:
        yield Finding("copies", "warning", copies_message(len(copied) / len(y)), copied)
    if not is_screened and len(y) >= MIN_AUDITED_ROWS:
        names = getattr(X, "columns", range(len(columns)))
        yield from find_faulty_columns(names, columns, codes, groups)
    for member in estimators:
        if isinstance(member, Pipeline):
            yield from find_steps_that_see_labels(member, X, y)


def _known_classes(model: Any) -> NDArray[Any] | None:
    """Return the labels of a model that is trained, else None; refuse what is no classifier."""
    if isinstance(model, CalibratedClassifier):
        if hasattr(model, "classes_"):
            return model.classes_
        model = model.estimator
    estimators = named_estimators(model)
    for estimator in estimators.values():
        if hasattr(estimator, "__sklearn_tags__") and not is_classifier(estimator):
            raise TypeError(f"model must be a classifier, got {shown(estimator)}")
    return classes_of_frozen(estimators)


def find_falling_frequency(
    scores: FloatArray, codes: IntArray, classes: NDArray[Any], groups: IntArray | None = None
) -> Iterator[Finding]:
    """Yield a finding if the frequency of a class falls as its score rises."""
    if fall := falling_frequency(scores, codes, groups):
        label = classes.tolist()[1 if scores.ndim == 1 else fall.column]
        message = (
            f"the frequency of {label!r} {fall}: confidence intervals, bounds and maps that never "
            "fall assume that it rises. Check the model where it is so, or calibrate such groups "
            "of objects apart with by="
        )
        yield Finding("falling frequency", "warning", message)
