"""Cross-validation: one model in each fold predicts the other rows by all methods."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from vennforest._validation import FloatArray, InputError, IntArray, encode_labels, is_frame
from vennforest.auditing import audit
from vennforest.calibrators import METHODS
from vennforest.calibrators.base import has_bounds
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.prediction import predict_together
from vennforest.multiprobability import Multiprobability
from vennforest.report.estimators import errors_named, make_estimator
from vennforest.report.measures import RAW, MethodEstimates, Predictions
from vennforest.report.splits import forward, possible_folds, shuffled, without_single_rows
from vennforest.tables import TableEncoder, table_pipeline
from vennforest.tables.columns import as_pandas

Progress = Callable[[int, int], None]
"""Called after each fold with the numbers of folds done and of all."""


@dataclass(frozen=True, eq=False)
class Training:
    """What is trained in each fold.

    ``estimator`` is a name, a classifier or None (the default forest); ``methods`` are the methods
    to compare; ``types`` and ``missing`` say how columns of a data frame are read.
    """

    estimator: Any
    methods: Sequence[str]
    n_folds: int
    n_trees: int
    seed: int
    n_jobs: int | None
    types: Mapping[str, str] | None = None
    missing: Sequence[str] | None = None

    @property
    def name(self) -> str | None:
        """The name of the estimator; None: the default forest, or a classifier of the user."""
        return self.estimator if isinstance(self.estimator, str) else None

    def classifier(self, is_table: bool) -> CalibratedClassifier:
        """Return the unfitted classifier, which reads the columns of a data frame first.

        Its method is one with bounds, if there is one: others would stratify inner folds.
        """
        estimator = self.estimator
        if estimator is None or self.name is not None:
            estimator = make_estimator(self.name, self.n_trees, self.seed, self.n_jobs)
        if is_table:
            estimator = table_pipeline(
                estimator,
                random_state=self.seed,
                types=None if self.types is None else dict(self.types),
                missing=None if self.missing is None else list(self.missing),
            )
        calibrated = [method for method in self.methods if method != RAW]
        bounded = [method for method in calibrated if has_bounds(METHODS[method])]
        method = next(iter([*bounded, *calibrated]), RAW)
        return CalibratedClassifier(
            estimator, method=method, n_jobs=self.n_jobs, random_state=self.seed
        )


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Predictions of all rows, where calibration scores came from, and how columns were read."""

    predictions: Predictions
    calibrate_on: str
    calibrate_on_reason: str
    encodings: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def cross_validate(
    training: Training,
    X: Any,
    y: Any,
    groups: IntArray | None = None,
    time: FloatArray | None = None,
    progress: Progress | None = None,
) -> CrossValidation:
    """Predict every row by all methods, with a model that was not trained on it.

    The types of columns are learnt from all rows, as ``vennforest fit`` does; everything else from
    the training rows of a fold.
    """
    model = training.classifier(is_frame(X))
    if is_frame(X):
        pipeline: Any = model.estimator
        frame = as_pandas(X)
        X = pipeline[0].fit(frame).transform(frame)
        model = model.set_params(estimator=pipeline[1:])
    codes, classes = encode_labels(y)
    if X.shape[0] != len(codes):
        raise InputError(f"y must have a label for each of {X.shape[0]} rows, got {len(codes)}")
    notes: list[str] = []
    rows, codes, classes = without_single_rows(codes, classes, notes)
    if time is not None:
        has_time = np.isfinite(time[rows])
        if not has_time.all():
            notes.append(f"{int((~has_time).sum()):,} rows have no time and are left out.")
        rows, codes = rows[has_time], codes[has_time]
    groups = None if groups is None else groups[rows]
    X = _safe_indexing(X, rows)
    if time is not None:
        splits = forward(codes, time[rows], groups, training.n_folds)
    else:
        n_folds = possible_folds(codes, classes, training.n_folds, notes)
        splits = shuffled(codes, groups, n_folds, training.seed)
    notes += audit_notes(model, X, codes, groups)
    fold = np.full(len(codes), -1, dtype=np.intp)
    parts: dict[str, list[tuple[IntArray, IntArray, MethodEstimates]]] = {}
    warned: Counter[str] = Counter()
    for i, (train, test) in enumerate(splits):
        fold[test] = i
        present, labels = np.unique(codes[train]), classes[codes[train]]
        fit_groups = {} if groups is None else {"groups": groups[train]}
        with errors_named(training.name), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            fitted = clone(model).fit(_safe_indexing(X, train), labels, **fit_groups)
            for method, estimates in _predicted(
                fitted, training.methods, _safe_indexing(X, test)
            ).items():
                parts.setdefault(method, []).append((test, present, estimates))
        texts = [_rounded(str(w.message)) for w in caught if issubclass(w.category, UserWarning)]
        absent = np.delete(classes, present).astype(str).tolist()
        texts += [f"no row to train on is of class {c!r}, which gets probability 0" for c in absent]
        warned.update(list(dict.fromkeys(texts)))
        if progress is not None:
            progress(i + 1, len(splits))
    n_splits = len(splits)
    notes += [
        f"In {'every fold' if n == n_splits else f'{n} of {n_splits} folds'}: {text.rstrip('.')}."
        for text, n in warned.items()
    ]
    kept = np.flatnonzero(fold >= 0)
    if len(kept) < len(fold):
        notes.append(
            f"{len(fold) - len(kept):,} of {len(fold):,} rows only train: no model of other rows "
            "predicts them."
        )
    encoder = fitted.estimators_[0][0] if isinstance(fitted.estimators_[0], Pipeline) else None
    predictions = Predictions(
        classes,
        codes[kept],
        fold[kept],
        rows[kept],
        {method: pool_folds(some, len(codes), classes, kept) for method, some in parts.items()},
        None if groups is None else np.unique(groups[kept], return_inverse=True)[1],
        float(np.mean([len(test) / len(train) for train, test in splits])),
    )
    return CrossValidation(
        predictions,
        fitted.calibrate_on_,
        fitted.calibrate_on_reason_,
        dict(encoder.encodings_) if isinstance(encoder, TableEncoder) else {},
        notes,
    )


def audit_notes(
    model: CalibratedClassifier, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None
) -> list[str]:
    """Return sentences on the findings of an audit, without those made when a table is read."""
    findings = audit(clone(model), X, y, groups=groups)
    return [
        f"{finding.message[:1].upper()}{finding.message[1:]}."
        for finding in findings
        if finding.kind not in ("copies", "leaking column", "repeated ID")
    ]


def _rounded(warning: str) -> str:
    """Return a warning with its percentage rounded to fives, the same in all folds."""
    return re.sub(r"about (\d+)%", lambda m: f"about {5 * round(int(m[1]) / 5)}%", warning)


def _predicted(
    model: CalibratedClassifier, methods: Sequence[str], X: Any
) -> dict[str, MethodEstimates]:
    """Return the estimates of every method from one fitted model."""
    raw: FloatArray = np.mean([e.predict_proba(X) for e in model.estimators_], axis=0)
    estimates = {RAW: MethodEstimates(raw)}
    calibrated = [method for method in methods if method != RAW]
    if not calibrated:
        return estimates
    models = [
        model if method == model.method else model.recalibrate(method) for method in calibrated
    ]
    # The interval depends on the scores, which are the same for all methods.
    interval = model.predict_confidence(X)
    for method, (bounds, p) in zip(calibrated, predict_together(models, X), strict=True):
        ends = np.minimum(interval.lower, p), np.maximum(interval.upper, p)
        estimates[method] = MethodEstimates(p, bounds, ends)
    return estimates


def pool_folds(
    parts: Sequence[tuple[IntArray, IntArray, MethodEstimates]],
    n: int,
    classes: NDArray[Any],
    kept: Any = slice(None),
) -> MethodEstimates:
    """Return one method's estimates of n rows from the rows, classes and estimates of each fold.

    A class that a fold did not train on has probability 0 there, and the interval [0, 1].
    """
    p, lower, upper, low = np.zeros((4, n, len(classes)))
    high = np.ones((n, len(classes)))
    for rows, columns, estimates in parts:
        cells = np.ix_(rows, columns)
        p[cells], bounds, confidence = estimates.p, estimates.bounds, estimates.confidence
        if bounds is not None:
            lower[cells], upper[cells] = bounds.lower, bounds.upper
        if confidence is not None:
            low[cells], high[cells] = confidence
    return MethodEstimates(
        p[kept],
        None if bounds is None else Multiprobability(lower[kept], upper[kept], classes),
        None if confidence is None else (low[kept], high[kept]),
    )
