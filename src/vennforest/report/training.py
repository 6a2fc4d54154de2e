"""Cross-validation: the model of each fold predicts the held-out rows by all methods."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from vennforest._messages import as_sentence
from vennforest._validation import FloatArray, IntArray, encode_labels, is_frame
from vennforest.auditing import audit
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.prediction import (
    group_codes_of,
    intervals_at,
    predict_scores,
    scores_of_rows,
)
from vennforest.multiprobability import Multiprobability
from vennforest.report.alternatives import BLEND, predict_by_others
from vennforest.report.measures import RAW, MethodEstimates, Predictions
from vennforest.report.splits import forward, one_site_out, shuffled, without_single_rows
from vennforest.tables.columns import as_pandas

Progress = Callable[[int, int], None]
"""Called after each fold with the numbers of folds done and of all."""

CONFIDENCE_LEVEL = 0.95

COUNTS = re.compile(r"\d[\d,]* of \d[\d,]*")
"""Counts out of a total, in which the warnings of folds differ."""

TABLE_FINDINGS = ("copies", "leaking column", "repeated ID")
"""Kinds of findings that reading a table has reported already."""


def cross_validate(
    model: CalibratedClassifier,
    methods: Sequence[str],
    X: Any,
    y: Any,
    *,
    seed: int,
    n_folds: int,
    groups: IntArray | None,
    time: FloatArray | None,
    site: FloatArray | None,
    classifiers: Mapping[str, Any],
    notes: list[str],
    progress: Progress | None,
) -> tuple[Predictions, CalibratedClassifier]:
    """Predict every row by all methods, with a model that was not trained on it.

    The types of columns are inferred from all rows, as in ``vennforest fit``; everything else is
    learnt from the training rows of a fold. ``site`` (n,) has codes, NaN where missing, and
    ``classifiers`` are some to train beside the model, by name. Returns the predictions and the
    model of the last fold, and appends to ``notes``.
    """
    if is_frame(X):
        pipeline: Any = model.estimator
        frame = as_pandas(X)
        X = pipeline[0].fit(frame).transform(frame)
        model = clone(model).set_params(estimator=pipeline[1:])
    codes, classes = encode_labels(y, n=X.shape[0])
    rows, codes, classes = without_single_rows(codes, classes, notes)
    for name, values in {"time": time, "site": site}.items():
        has_value = np.ones(len(rows), bool) if values is None else np.isfinite(values[rows])
        if not has_value.all():
            notes.append(f"{int((~has_value).sum()):,} rows have no {name} and are left out.")
        rows, codes = rows[has_value], codes[has_value]
    groups = None if groups is None else groups[rows]
    X = _safe_indexing(X, rows)
    if time is not None:
        splits = forward(codes, time[rows], groups, n_folds)
    elif site is not None:
        splits = one_site_out(codes, site[rows], groups)
    else:
        largest = int(np.bincount(codes).max())
        if largest < n_folds:
            notes.append(f"No class has {n_folds} rows: {largest} folds instead of {n_folds}.")
        splits = shuffled(codes, groups, min(n_folds, largest), seed, notes)
    notes += audit_notes(model, X, codes, groups)
    fold = np.full(len(codes), -1, dtype=np.intp)
    parts: dict[str, list[tuple[IntArray, IntArray, MethodEstimates]]] = defaultdict(list)
    compared_parts, classifiers = parts.copy(), dict(classifiers)
    warned: list[str] = []
    for i, (train, test) in enumerate(splits):
        fold[test] = i
        present, labels = np.unique(codes[train]), classes[codes[train]]
        n_groups = 0 if groups is None else len(np.unique(groups[train]))
        fit_groups = {"groups": groups[train]} if groups is not None and n_groups > 1 else {}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            X_train, X_test = _safe_indexing(X, train), _safe_indexing(X, test)
            start = perf_counter()
            fitted = clone(model).fit(X_train, labels, **fit_groups)
            seconds = perf_counter() - start
            predicted = _predicted(fitted, methods, X_test)
        training = X_train, labels, fit_groups
        compared = predict_by_others(fitted, seconds, classifiers, training, X_test, notes)
        for of_model, some in ((parts, predicted), (compared_parts, compared)):
            for name, estimates in some.items():
                of_model[name].append((test, present, estimates))
        texts = [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
        absent = np.delete(classes, present).astype(str).tolist()
        if n_groups == 1:
            texts.append("the rows to train on are of one group, so calibration splits its rows")
        texts += [f"no row to train on is of class {c!r}, which gets probability 0" for c in absent]
        warned += texts
        if progress is not None:
            progress(i + 1, len(splits))
    notes += notes_of_folds(warned)
    tested = np.flatnonzero(fold >= 0)
    if len(tested) < len(fold):
        notes.append(
            f"{len(fold) - len(tested):,} of {len(fold):,} rows only train: no model of other rows "
            "predicts them."
        )
    predictions = Predictions(
        classes,
        codes[tested],
        fold[tested],
        rows[tested],
        {method: pool_folds(some, len(codes), classes, tested) for method, some in parts.items()},
        None if groups is None else np.unique(groups[tested], return_inverse=True)[1],
        float(np.mean([len(test) / len(train) for train, test in splits])),
        compared={
            name: pool_folds(some, len(codes), classes, tested)
            for name, some in compared_parts.items()
            if classifiers and name in ("", *classifiers, BLEND)
        },
    )
    return predictions, fitted


def notes_of_folds(warned: Sequence[str]) -> list[str]:
    """Return the warnings of folds as notes; of those that differ in `COUNTS` alone the first."""
    alike: dict[str, list[str]] = defaultdict(list)
    for text in warned:
        alike[COUNTS.sub("", text)].append(text)
    return [
        as_sentence(f"In folds{', for example' * (len(set(texts)) > 1)}: {texts[0]}")
        for texts in alike.values()
    ]


def audit_notes(
    model: CalibratedClassifier, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None
) -> list[str]:
    """Return sentences on the findings of an audit, without those made when a table is read."""
    findings = audit(clone(model), X, y, groups=groups)
    return [
        as_sentence(finding.message) for finding in findings if finding.kind not in TABLE_FINDINGS
    ]


def _predicted(
    model: CalibratedClassifier, methods: Sequence[str], X: Any
) -> dict[str, MethodEstimates]:
    """Return the estimates of every method from one fitted model, which scores the rows once."""
    state = model._state
    raw: FloatArray = np.mean([e.predict_proba(X) for e in model.estimators_], axis=0)
    estimates = {RAW: MethodEstimates(raw)}
    scored, codes = scores_of_rows(state, X, by_all=True), group_codes_of(state, X)
    # Intervals depend on the scores alone: each method's are widened by its own probabilities.
    intervals = intervals_at(state, scored, codes, CONFIDENCE_LEVEL)
    for method in methods:
        if method == RAW:
            continue
        recalibrated = model if method == model.method else model.recalibrate(method)
        bounds, p = predict_scores(recalibrated._state, scored, codes)
        estimates[method] = MethodEstimates(p, bounds, intervals.widen(p))
    return estimates


def pool_folds(
    parts: Sequence[tuple[IntArray, IntArray, MethodEstimates]],
    n: int,
    classes: NDArray[Any],
    rows: IntArray,
) -> MethodEstimates:
    """Pool the estimates of one method over the folds.

    A part has the rows, classes and estimates of one fold. Returned are ``rows`` of all n rows. A
    class that a fold was not trained on has probability 0 there, and the interval [0, 1].
    """
    p, lower, upper, low = np.zeros((4, n, len(classes)))
    high = np.ones((n, len(classes)))
    for rows_of_fold, columns, estimates in parts:
        cells = np.ix_(rows_of_fold, columns)
        p[cells], bounds, confidence = estimates.p, estimates.bounds, estimates.confidence
        if bounds is not None:
            lower[cells], upper[cells] = bounds.lower, bounds.upper
        if confidence is not None:
            low[cells], high[cells] = confidence.lower, confidence.upper
    return MethodEstimates(
        p[rows],
        None if bounds is None else Multiprobability(lower[rows], upper[rows], classes),
        None
        if confidence is None
        else replace(confidence, lower=low[rows], upper=high[rows], classes=classes, widened=None),
        sum(estimates.seconds for _, _, estimates in parts),
    )
