"""Cross-validation: which rows train, which are predicted, one model per fold for all methods."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from vennforest._messages import listed
from vennforest._validation import FloatArray, InputError, IntArray, encode_labels, is_frame
from vennforest.auditing import audit
from vennforest.calibrators import METHODS
from vennforest.calibrators.base import has_bounds
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.prediction import predict_together
from vennforest.monitoring.stream import as_numbers
from vennforest.multiprobability import Multiprobability
from vennforest.report.learners import Learner
from vennforest.report.measures import RAW, MethodEstimates, OutOfFold
from vennforest.sources import is_bagged
from vennforest.sources.checks import spelled_twice
from vennforest.tables import TableEncoder, table_pipeline
from vennforest.tables.cells import Column
from vennforest.tables.columns import as_pandas

Progress = Callable[[int, int], None]
"""Called after each fold with the number of folds done and of all."""

Split = tuple[IntArray, IntArray]
"""Rows to train on and rows to predict."""


def pooled(
    parts: Sequence[tuple[IntArray, IntArray, MethodEstimates]],
    n: int,
    classes: NDArray[Any],
    kept: Any = slice(None),
) -> MethodEstimates:
    """Return one method's predictions of n rows from those of each fold's rows and classes.

    A class that a fold did not train on has probability 0 there, and the interval [0, 1].
    """
    p, lower, upper, low = np.zeros((4, n, len(classes)))
    high = np.ones((n, len(classes)))
    for rows, columns, found in parts:
        at = np.ix_(rows, columns)
        p[at], bounds, known = found.p, found.bounds, found.confidence
        if bounds is not None:
            lower[at], upper[at] = bounds.lower, bounds.upper
        if known is not None:
            low[at], high[at] = known.lower, known.upper
    if bounds is not None:
        bounds = Multiprobability(lower[kept], upper[kept], classes)
    if known is not None:
        known = replace(known, lower=low[kept], upper=high[kept], classes=classes, widened=None)
    return MethodEstimates(p[kept], bounds, known)


def cross_validate(
    X: Any,
    y: Any,
    methods: Sequence[str],
    *,
    learner: Learner,
    n_folds: int,
    n_trees: int,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None,
    groups: IntArray | None = None,
    time: FloatArray | None = None,
    test: NDArray[np.bool_] | None = None,
    types: Mapping[str, str] | None = None,
    markers: Sequence[str] | None = None,
) -> tuple[OutOfFold, str]:
    """Predict every row by all methods, with a model that was not trained on it.

    What columns contain is learnt from all rows (to train), as ``vennforest fit`` does; all else
    from the rows of a fold. Returned besides is where calibration scores came from.
    """
    estimator: Any = learner.make(n_trees, seed, n_jobs)
    missing = None
    if is_frame(X):
        frame = as_pandas(X)
        known = slice(None) if test is None else ~test
        pipeline = table_pipeline(
            estimator,
            random_state=seed,
            types=None if types is None else dict(types),
            missing=None if markers is None else list(markers),
        )
        X, estimator = pipeline[0].fit(frame[known]).transform(frame), pipeline[1:]
        missing = float((X if test is None else X[test]).isna().to_numpy().mean())
    codes, classes = encode_labels(y)
    if X.shape[0] != len(codes):
        raise InputError(f"y must have a label for each of {X.shape[0]} rows, got {len(codes)}")
    notes: list[str] = []
    rows, codes, classes = _without_singles(codes, classes, notes)
    if time is not None:
        timed = np.isfinite(time[rows])
        if not timed.all():
            notes.append(f"{int((~timed).sum()):,} rows have no time and are left out.")
        rows, codes = rows[timed], codes[timed]
    groups = None if groups is None else groups[rows]
    X = _safe_indexing(X, rows)
    if test is not None:
        tested = np.flatnonzero(~test[rows]), np.flatnonzero(test[rows])
        splits = _usable([tested], codes, groups)
    elif time is not None:
        splits = forward(codes, time[rows], groups, n_folds)
    else:
        splits = shuffled(codes, groups, _fitting_folds(codes, classes, n_folds, notes), seed)
    unfitted = CalibratedClassifier(
        estimator,
        method=_first(methods),
        n_jobs=n_jobs,
        random_state=seed,
    )
    notes += audit_notes(unfitted, X, codes, groups)
    fold = np.full(len(codes), -1, dtype=np.intp)
    parts: dict[str, list[tuple[IntArray, IntArray, MethodEstimates]]] = {}
    gains: Counter[str] = Counter()
    warned: Counter[str] = Counter()
    unseen: Counter[str] = Counter()
    for i, (train, held) in enumerate(splits):
        fold[held] = i
        present, labels = np.unique(codes[train]), classes[codes[train]]
        own = {} if groups is None else {"groups": groups[train]}
        with learner.errors_named(), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            model = clone(unfitted).fit(_safe_indexing(X, train), labels, **own)
            found = _predicted(model, methods, _safe_indexing(X, held))
        for method, one in found.items():
            parts.setdefault(method, []).append((held, present, one))
        texts = (_rounded(one) for one in caught if issubclass(one.category, UserWarning))
        warned.update(list(dict.fromkeys(texts)))  # in this order, which a set has not
        unseen.update(np.delete(classes, present).astype(str).tolist())
        gains.update(_importances(model, X.shape[1]))
        if model.calibrate_on_ != "oob" and groups is None and is_bagged(estimator):
            warned[f"calibrated on inner folds, since {model.calibrate_on_reason_}"] += 1
        if progress is not None:
            progress(i + 1, len(splits))
    k = len(splits)
    notes += [
        f"In {'every fold' if n == k else f'{n} of {k} folds'}: {text.rstrip('.')}."
        for text, n in warned.items()
    ]
    notes += [
        f"In {n} of {k} folds no row to train on is of class {label!r}, whose probability is 0 "
        "there."
        for label, n in unseen.items()
    ]
    kept = np.flatnonzero(fold >= 0)
    if len(kept) < len(fold) and test is None:
        notes.append(
            f"{len(fold) - len(kept):,} of {len(fold):,} rows only train: no model of other rows "
            "predicts them."
        )
    total = sum(gains.values()) or 1.0
    encoder = _encoder(model.estimators_[0])
    out = OutOfFold(
        classes,
        codes[kept],
        fold[kept],
        rows[kept],
        {method: pooled(some, len(codes), classes, kept) for method, some in parts.items()},
        {name: gains[name] / total for name in sorted(gains, key=lambda name: -gains[name])},
        {} if encoder is None else dict(encoder.encodings_),
        missing,
        notes,
        None if groups is None else np.unique(groups[kept], return_inverse=True)[1],
        float(np.mean([len(held) / len(train) for train, held in splits])),
    )
    return out, model.calibrate_on_


def audit_notes(
    model: CalibratedClassifier, X: Any, y: NDArray[Any], groups: NDArray[Any] | None = None
) -> list[str]:
    """Return sentences for what an audit finds, but for what reading the table has said."""
    findings = audit(clone(model), X, y, groups=groups)
    return [
        f"{finding.message[:1].upper()}{finding.message[1:]}."
        for finding in findings
        if finding.kind not in ("copies", "leaking column", "repeated ID")
    ]


def _rounded(warning: warnings.WarningMessage) -> str:
    """Return a warning's text with its share rounded, the same for all folds."""

    def rounded(found: re.Match[str]) -> str:
        return f"about {5 * round(int(found[1]) / 5)}%"

    return re.sub(r"about (\d+)%", rounded, str(warning.message))


def _first(methods: Sequence[str]) -> str:
    """Return the method that the model of a fold is fitted with, whose scores serve all others.

    One with bounds where there is one: with others inner folds would be stratified.
    """
    calibrated = [method for method in methods if method != RAW]
    bounded = [method for method in calibrated if has_bounds(METHODS[method])]
    return next(iter([*bounded, *calibrated]), RAW)


def _predicted(
    model: CalibratedClassifier, methods: Sequence[str], X_new: Any
) -> dict[str, MethodEstimates]:
    """Predict new rows by every method, from one fitted model."""
    calibrated = [method for method in methods if method != RAW]
    models = [
        model if method == model.method else model.recalibrate(method) for method in calibrated
    ]
    found = {RAW: MethodEstimates(_raw(model, X_new), None)}
    if not calibrated:
        return found
    # What is known of a frequency depends on the scores, which all methods share.
    known = model.predict_confidence(X_new)
    for method, (bounds, p) in zip(calibrated, predict_together(models, X_new), strict=True):
        found[method] = MethodEstimates(p, bounds, known.widen(p))
    return found


def _raw(model: CalibratedClassifier, X_new: Any) -> FloatArray:
    """Return the mean probabilities of the uncalibrated models, one a fold."""
    raw = [estimator.predict_proba(X_new) for estimator in model.estimators_]
    mean: FloatArray = raw[0] if len(raw) == 1 else np.mean(raw, axis=0)
    return mean


def _encoder(fitted: Any) -> TableEncoder | None:
    first = fitted[0] if isinstance(fitted, Pipeline) else None
    return first if isinstance(first, TableEncoder) else None


def _importances(model: CalibratedClassifier, n_columns: int) -> Counter[str]:
    """Return each column's decrease of impurity in a fitted model; none where it has none."""
    gains: Counter[str] = Counter()
    for fitted in model.estimators_:
        encoder = _encoder(fitted)
        last = fitted[-1] if isinstance(fitted, Pipeline) else fitted
        sources = [f"column {j}" for j in range(n_columns)] if encoder is None else encoder.sources_
        shares = np.asarray(getattr(last, "feature_importances_", []), np.float64)
        if len(shares) == len(sources):
            for name, gain in zip(sources, shares.tolist(), strict=True):
                gains[name] += gain / len(model.estimators_)
    return gains


def _without_singles(
    codes: IntArray, classes: NDArray[Any], notes: list[str]
) -> tuple[IntArray, IntArray, NDArray[Any]]:
    """Leave out classes with one member: it cannot both train and be predicted."""
    single = np.bincount(codes, minlength=len(classes)) < 2
    if (~single).sum() < 2:
        raise InputError(
            f"y must have two classes with two rows each, got {int((~single).sum())} such"
        )
    if single.any():
        names = listed(classes[single].astype(str).tolist(), 5)
        notes.append(f"Left out: {names}. One row cannot both train a model and be predicted.")
    rows = np.flatnonzero(~single[codes])
    place = np.cumsum(~single) - 1
    return rows, place[codes[rows]].astype(np.intp), classes[~single]


def _fitting_folds(codes: IntArray, classes: NDArray[Any], n_folds: int, notes: list[str]) -> int:
    """Return how many folds there can be, and note what becomes of rare classes."""
    counts = np.bincount(codes, minlength=len(classes))
    most = int(counts.max())
    if most < n_folds:
        notes.append(
            f"No class has {n_folds} rows, the largest has {most}: {most} folds instead of "
            f"{n_folds}."
        )
        n_folds = most
    rare = [
        f"{label} ({count})"
        for label, count in zip(classes, counts, strict=True)
        if count < n_folds
    ]
    if rare:
        notes.append(
            f"Fewer rows than the {n_folds} folds: {listed(rare, 5, str)}. Each of these rows is "
            "predicted once, by a model trained on the others. Measures are taken over the pooled "
            "predictions, and no fold needs every class."
        )
    return n_folds


def shuffled(codes: IntArray, groups: IntArray | None, n_folds: int, seed: int) -> list[Split]:
    """Return shuffled folds, stratified by class; groups are kept together."""
    nothing, random = np.empty(len(codes)), np.random.RandomState(seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        if groups is None:
            splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random)
            return list(splitter.split(nothing, codes))
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise InputError(f"groups must be at least two, got {n_groups}")
        grouped = StratifiedGroupKFold(min(n_folds, n_groups), shuffle=True, random_state=random)
        return _usable(list(grouped.split(nothing, codes, groups)), codes, groups)


def forward(
    codes: IntArray, time: FloatArray, groups: IntArray | None, n_folds: int
) -> list[Split]:
    """Return folds predicted from the rows before them, with rows of one time together."""
    moments, at = np.unique(time, return_inverse=True)
    if len(moments) < 2:
        raise InputError("time must have at least two different times, got one")
    reached = np.cumsum(np.bincount(at)) / len(time)
    parts = min(n_folds + 1, len(moments))
    # The part of a moment is where the middle of its rows lies.
    middle = reached - np.bincount(at) / len(time) / 2
    number = np.minimum((middle * parts).astype(np.intp), parts - 1)
    part = np.unique(number, return_inverse=True)[1][at]
    numbers = range(1, int(part.max()) + 1)
    found = [(np.flatnonzero(part < i), np.flatnonzero(part == i)) for i in numbers]
    return _usable(found, codes, groups)


def _usable(splits: Sequence[Split], codes: IntArray, groups: IntArray | None) -> list[Split]:
    """Leave out folds that are empty or would train on fewer than two classes with two rows.

    Rows of a group that is predicted do not train.
    """
    kept = []
    for train, test in splits:
        if groups is not None:
            train = train[~np.isin(groups[train], groups[test])]
        if len(test) and (np.bincount(codes[train], minlength=1) >= 2).sum() >= 2:
            kept.append((train, test))
    if not kept:
        raise InputError(
            "the rows to train on must have two classes with two rows each, got fewer in every fold"
        )
    return kept


def are_missing(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which values (n,) are None, NaN, NA or NaT, or text of spaces alone."""

    def missing(value: Any) -> bool:
        if value is None or (isinstance(value, str) and not value.strip()):
            return True
        try:
            return bool(value != value)
        except (TypeError, ValueError):  # NA
            return True

    return np.array([missing(value) for value in values.tolist()], dtype=bool)


def members_of(groups: ArrayLike | None, n: int, notes: list[str]) -> IntArray | None:
    """Return the number of each row's group, its own if it has none, and note how many."""
    if groups is None:
        return None
    values = np.asarray(groups, dtype=object)
    if values.shape != (n,):
        raise InputError(f"groups must have shape ({n},), got {values.shape}")
    missing = are_missing(values)
    if missing.any():
        notes.append(f"{int(missing.sum()):,} rows without a group count as a group each.")
    # Names that differ by spaces at their ends are one.
    if twice := spelled_twice(np.unique([str(v).strip() for v in values[~missing].tolist()])):
        notes.append(
            f"Groups differ only in case or spaces: {twice}. They count as different groups, whose "
            "rows may be on both sides of a split."
        )
    names = np.array([f"{type(v).__name__} {v}".strip() for v in values.tolist()], dtype=object)
    names[missing] = [f"row {i}" for i in np.flatnonzero(missing)]
    numbers: IntArray = np.unique(names.astype(str), return_inverse=True)[1].astype(np.intp)
    return numbers


def moments(column: Any, name: str) -> NDArray[Any]:
    """Return the times of a column (n,) as numbers, or as dates; NaN and NaT where missing."""
    import pandas as pd

    cells = Column(pd.Series(column), name)
    kind, written = cells.infer()
    if kind not in ("number", "date"):
        raise InputError(
            f"the times {name!r} must be numbers or dates in one format, got {kind}: write dates "
            "as 2021-01-25, or declare their format with --types"
        )
    read = cells.read(kind, written)
    return read.astype("datetime64[us]" if read.dtype.kind == "M" else np.float64)


def times(column: Any, name: str) -> FloatArray:
    """Return the times of a column (n,) as numbers, NaN where missing: see `moments`."""
    return as_numbers(moments(column, name))
