"""Cross-validation: the model of each fold predicts the held-out rows by all methods."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from vennforest._class_columns import class_probabilities
from vennforest._files import one_line
from vennforest._messages import as_sentence, counted
from vennforest._validation import FloatArray, InputError, IntArray, encode_labels, is_frame
from vennforest.auditing.audit import find_faults
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.classifier import blend_classifiers
from vennforest.classifier.prediction import intervals_at, predict_scores, score_rows
from vennforest.forest import leaves_rows_out
from vennforest.multiprobability import Multiprobability
from vennforest.report.measures import BLEND, RAW, MethodEstimates, Predictions
from vennforest.report.splits import Design, without_single_rows

TrainingRows = tuple[Any, NDArray[Any], Mapping[str, Any]]
"""Rows X, their labels (n,), and ``groups`` (n,) where there are some, for ``fit``."""

Progress = Callable[[int, int], None]
"""Called after each fold with the numbers of folds done and of all."""

CONFIDENCE_LEVEL = 0.95

COUNTS = re.compile(r"\d[\d,]* of \d[\d,]*")
"""Counts out of a total, in which the warnings of folds differ."""

FoldEstimates = tuple[IntArray, IntArray, Mapping[str, MethodEstimates]]
"""The rows that a fold predicted, the codes of its training rows, and its estimates by name."""


def cross_validate(
    model: CalibratedClassifier,
    methods: Sequence[str],
    X: Any,
    y: Any,
    design: Design,
    *,
    classifiers: Mapping[str, Any],
    notes: list[str],
    progress: Progress | None,
    weight: FloatArray | None = None,
) -> tuple[Predictions, CalibratedClassifier, dict[str, str]]:
    """Predict every row by all methods, with a model that was not trained on it.

    The types of columns are inferred from all rows, as in ``vennforest fit``; everything else is
    learnt from the training rows of a fold, the encoder of a table once for all models where the
    scores that calibrate are out of bag. ``classifiers``, by name, are trained on the same folds
    for comparison. Rows and labels are (n, d) and (n,); a few may be left out, which ``notes`` then
    says. Returns the predictions, the model of the last fold, and the encoding of each column.
    """
    encoder: Any = None
    if is_frame(X):
        columns, encoder, classifier = (step for _, step in model.estimator.steps)
        X = columns.fit(X).transform(X)
        model = clone(model).set_params(estimator=model.estimator[1:])
    codes, classes = encode_labels(y, n=X.shape[0])
    rows, codes, classes = without_single_rows(codes, classes, notes)
    has_place = (
        np.ones(len(rows), bool) if design.values is None else np.isfinite(design.values[rows])
    )
    if not has_place.all():
        noun = "time" if design.kind == "time" else "site"
        notes.append(f"Left out: {counted(int((~has_place).sum()))} without a {noun}.")
    if weight is not None:
        if (weight == 0).any():
            raise InputError("sample_weight must be above 0, got 0: leave these rows out")
        weight = weight[rows[has_place]]
    rows, codes = rows[has_place], codes[has_place]
    X, y = _safe_indexing(X, rows), classes[codes]
    groups = None if design.groups is None else design.groups[rows]
    splits = design.splits(rows, codes, groups, notes)
    notes += audit_notes(model, X, codes, groups)
    # Out-of-bag scores are by a model of all training rows of a fold, as its encoder is.
    is_shared = encoder is not None and groups is None and leaves_rows_out(classifier)
    if is_shared:
        model = clone(model).set_params(estimator=classifier)
    fold = np.full(len(codes), -1, dtype=np.intp)
    of_folds: list[FoldEstimates] = []
    classifiers, warned = dict(classifiers), list[str]()
    for i, (train, test) in enumerate(splits):
        fold[test] = i
        present, group = np.unique(codes[train]), None if groups is None else groups[train]
        is_one_group = group is not None and np.ptp(group) == 0
        fit_options: dict[str, Any] = {} if group is None or is_one_group else {"groups": group}
        if weight is not None:
            fit_options["sample_weight"] = weight[train]
        X_train, X_test = _safe_indexing(X, train), _safe_indexing(X, test)
        if is_shared:
            encoder = clone(encoder).fit(X_train)
            X_train, X_test = encoder.transform(X_train), encoder.transform(X_test)
        training = X_train, y[train], fit_options
        fitted, seconds, estimates = _fit_and_predict(model, methods, training, X_test, warned)
        compared = predict_by_others(fitted, seconds, classifiers, training, X_test, notes)
        of_folds.append((test, present, {**estimates, **compared}))
        if is_one_group:
            warned.append("the rows to train on are of one group, so calibration splits its rows")
        absent = np.delete(classes, present).astype(str).tolist()
        warned += [
            f"no row to train on is of class {c!r}, which gets probability 0" for c in absent
        ]
        if progress is not None:
            progress(i + 1, len(splits))
    notes += notes_of_folds(warned)
    if encoder is not None and not is_shared:
        encoder = fitted.estimators_[0][0]
    tested = np.flatnonzero(fold >= 0)
    if len(tested) < len(fold):
        notes.append(
            f"{len(fold) - len(tested):,} of {len(fold):,} rows only train: no model of other rows "
            "predicts them."
        )
    trained_in_all = ["", *classifiers, BLEND] if classifiers else []

    def pooled(names: Iterable[str]) -> dict[str, MethodEstimates]:
        return {name: pool_folds(of_folds, name, len(codes), classes, tested) for name in names}

    predictions = Predictions(
        classes,
        codes[tested],
        fold[tested],
        rows[tested],
        pooled(estimates),
        None if groups is None else np.unique(groups[tested], return_inverse=True)[1],
        None if weight is None else weight[tested],
        float(np.mean([len(test) / len(train) for train, test in splits])),
        compared=pooled(trained_in_all),
    )
    return predictions, fitted, {} if encoder is None else dict(encoder.encodings_)


def _fit_and_predict(
    model: CalibratedClassifier,
    methods: Sequence[str],
    training: TrainingRows,
    X_new: Any,
    warned: list[str],
) -> tuple[CalibratedClassifier, float, dict[str, MethodEstimates]]:
    """Return the model fitted to training rows, its seconds, and each method's estimates.

    The estimates are of the rows ``X_new``; the texts of warnings are appended to ``warned``.
    """
    X, y, groups = training
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        start = perf_counter()
        fitted = clone(model).fit(X, y, **groups)
        seconds = perf_counter() - start
        estimates = _predicted(fitted, methods, X_new)
    warned += [str(w.message) for w in caught if issubclass(w.category, UserWarning)]
    return fitted, seconds, estimates


def predict_by_others(
    model: CalibratedClassifier,
    seconds: float,
    classifiers: dict[str, Any],
    training: TrainingRows,
    X_new: Any,
    notes: list[str],
) -> dict[str, MethodEstimates]:
    """Return probabilities of new rows by calibrated classifiers, by name.

    The first is ``model``, which was fitted in ``seconds`` and has no name here, the last one their
    blend. A classifier that fails is taken out, with a note; nothing without classifiers.
    """
    if not classifiers:
        return {}
    X, y, groups = training
    fitted = {"": model}
    estimates = {"": _timed(model, seconds, X_new)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, classifier in list(classifiers.items()):
            start, estimator = perf_counter(), clone(classifier)
            if isinstance(model.estimator, Pipeline):  # behind the same transformers
                steps = [*model.estimator.steps[:-1], ("classifier", estimator)]
                estimator = Pipeline(steps)
            try:
                compared = clone(model).set_params(estimator=estimator).fit(X, y, **groups)
                estimates[name] = _timed(compared, perf_counter() - start, X_new)
                fitted[name] = compared
            except Exception as error:  # the report is about another model
                del classifiers[name]
                notes.append(f"The {name} is not compared: {one_line(error)}.")
        if len(fitted) > 1:
            start = perf_counter()
            blend = blend_classifiers(fitted, X, y)
            total = perf_counter() - start + sum(e.seconds for e in estimates.values())
            estimates[BLEND] = _timed(blend, total, X_new)
    return estimates


def _timed(model: Any, seconds: float, X: Any) -> MethodEstimates:
    """Return the probabilities of rows by a model that was fitted in some seconds.

    The second of two predictions is timed: the first one prepares the model.
    """
    p = model.predict_proba(X)
    start = perf_counter()
    model.predict_proba(X)
    return MethodEstimates(p, seconds=seconds, predict_seconds=perf_counter() - start)


def notes_of_folds(warned: Sequence[str]) -> list[str]:
    """Return the warnings of folds as notes; of those that differ in `COUNTS` alone the first."""
    by_form: dict[str, list[str]] = defaultdict(list)
    for text in warned:
        by_form[COUNTS.sub("", text)].append(text)
    return [
        as_sentence(f"In folds{', for example' * (len(set(texts)) > 1)}: {texts[0]}")
        for texts in by_form.values()
    ]


def audit_notes(
    model: CalibratedClassifier, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None
) -> list[str]:
    """Return sentences on the findings of an audit, without those made when a table is read."""
    findings = find_faults(clone(model), X, y, groups, is_screened=True)
    return [as_sentence(finding.message) for finding in findings]


def _predicted(
    model: CalibratedClassifier, methods: Sequence[str], X: Any
) -> dict[str, MethodEstimates]:
    """Return the estimates of every method from one fitted model, which scores the rows once."""
    state = model._state
    raw: FloatArray = np.mean([class_probabilities(e, X)[0] for e in model.estimators_], axis=0)
    estimates = {RAW: MethodEstimates(raw)}
    scored, codes = score_rows(state, X, score_all=True)
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
    folds: Sequence[FoldEstimates], name: str, n: int, classes: NDArray[Any], rows: IntArray
) -> MethodEstimates:
    """Pool the estimates of one method, or model, over the folds.

    Returned are ``rows`` of all n rows. A class that a fold was not trained on has probability 0
    there, and the interval [0, 1].
    """
    p, lower, upper, low = np.zeros((4, n, len(classes)))
    high = np.ones((n, len(classes)))
    for rows_of_fold, columns, by_name in folds:
        cells, estimates = np.ix_(rows_of_fold, columns), by_name[name]
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
        sum(by_name[name].seconds for *_, by_name in folds),
        sum(by_name[name].predict_seconds for *_, by_name in folds),
    )
