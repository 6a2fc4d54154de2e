"""Cross-validation in which one model per fold serves every method."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from vennforest._validation import FloatArray, InputError, IntArray, encode_labels, is_frame
from vennforest.calibrators import METHODS
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.fitted import predict_together
from vennforest.classifier.intervals import ForestSpread, forest_spread
from vennforest.multiprobability import Multiprobability
from vennforest.report.learners import FOREST, LEARNERS, Learner, made
from vennforest.report.predictions import RAW, MethodEstimates, OutOfFold
from vennforest.report.splits import apart, forward, shuffled
from vennforest.sources import Subforest
from vennforest.tables import TableEncoder, table_pipeline
from vennforest.tables.columns import as_pandas

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[int, int], None]
"""Called after each fold with the number of folds done and of all."""


def cross_validate(
    X: Any,
    y: Any,
    methods: Sequence[str],
    *,
    learner: Learner,
    n_folds: int,
    n_trees: int,
    subforest: Subforest,
    n_draws: int,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None,
    groups: IntArray | None = None,
    time: FloatArray | None = None,
    test: NDArray[np.bool_] | None = None,
    types: dict[str, str] | None = None,
    markers: list[str] | None = None,
) -> tuple[OutOfFold, str]:
    """Predict every row by all methods, with a model that was not trained on it.

    What each column of a data frame holds is learnt from all rows, as ``vennforest fit`` does (from
    those to train on, where ``test`` names others); everything else is learnt in each fold anew,
    with the same seed. Returned besides is where calibration scores came from.
    """
    estimator: Any = made(learner, n_trees, seed, n_jobs)
    missing = None
    if is_frame(X):
        X, estimator, missing = _read_columns(X, estimator, test, seed, types, markers)
    codes, classes = encode_labels(y)
    if X.shape[0] != len(codes):
        raise InputError(f"y must have a label for each of {X.shape[0]} rows, got {len(codes)}")
    notes: list[str] = []
    rows, codes, classes = _without_singles(codes, classes, notes)
    rows, codes = _with_time(rows, codes, time, notes)
    groups = None if groups is None else groups[rows]
    table = _Rows(_safe_indexing(X, rows), codes, classes, groups)
    if test is not None:
        splits = apart(test[rows], groups, codes)
    elif time is not None:
        splits = forward(codes, time[rows], groups, n_folds)
    else:
        splits = shuffled(codes, groups, _fitting_folds(codes, classes, n_folds, notes), seed)
    unfitted = CalibratedClassifier(
        estimator,
        method=_first(methods),
        calibrate_on="oob" if learner is LEARNERS[FOREST] and groups is None else "auto",
        ensemble=False,
        subforest=subforest,
        n_draws=n_draws,
        n_jobs=n_jobs,
        random_state=seed,
    )
    fold = np.full(len(codes), -1, dtype=np.intp)
    gathered: list[tuple[IntArray, _Fold]] = []
    for i, (train, held) in enumerate(splits):
        fold[held] = i
        gathered.append((held, _predicted(unfitted, methods, table, train, held, learner)))
        if progress is not None:
            progress(i + 1, len(splits))
    notes += _notes_on_folds([one for _, one in gathered])
    kept = np.flatnonzero(fold >= 0)
    if len(kept) < len(fold) and test is None:
        notes.append(
            f"{len(fold) - len(kept):,} of {len(fold):,} rows only train: no model of other rows "
            "predicts them."
        )
    members = None if groups is None else np.unique(groups[kept], return_inverse=True)[1]
    found = OutOfFold(
        classes,
        codes[kept],
        fold[kept],
        rows[kept],
        {m: _pooled(m, gathered, classes, len(codes), kept) for m in gathered[0][1].estimates},
        _importances([one for _, one in gathered]),
        gathered[-1][1].encodings,
        missing,
        notes,
        members,
        float(np.mean([len(held) / len(train) for train, held in splits])),
        ForestSpread.mean([one.forest for _, one in gathered]),
    )
    return found, gathered[-1][1].calibrate_on


def _read_columns(
    X: Any,
    estimator: Any,
    test: NDArray[np.bool_] | None,
    seed: int,
    types: dict[str, str] | None,
    markers: list[str] | None,
) -> tuple[pd.DataFrame, Any, float]:
    """Return a data frame's cells as they are read, what is fitted to them, and what is missing.

    What each column holds is learnt from the rows to train on, where ``test`` names the others; of
    these it is that cells are missing.
    """
    pipeline = table_pipeline(estimator, random_state=seed, types=types, missing=markers)
    frame = as_pandas(X)
    read = pipeline[0].fit(frame if test is None else frame[~test]).transform(frame)
    missing = (read if test is None else read[test]).isna().to_numpy().mean()
    return read, pipeline[1:], float(missing)


def _notes_on_folds(folds: Sequence[_Fold]) -> list[str]:
    """Return what was warned of, and which classes were missing, with the number of folds."""
    n = len(folds)
    texts = Counter(text for one in folds for text in one.warned)
    unseen = Counter(label for one in folds for label in one.unseen)
    return [
        *(_in_folds(text, count, n) for text, count in texts.items()),
        *(
            f"In {count} of {n} folds no row to train on is of class {label!r}, whose "
            "probability is 0 there."
            for label, count in unseen.items()
        ),
    ]


def _with_time(
    rows: IntArray, codes: IntArray, time: FloatArray | None, notes: list[str]
) -> tuple[IntArray, IntArray]:
    """Leave out rows without a time."""
    if time is None:
        return rows, codes
    known = np.isfinite(time[rows])
    if not known.all():
        notes.append(f"{int((~known).sum()):,} rows have no time and are left out.")
    return rows[known], codes[known]


def _same_for_all(warning: warnings.WarningMessage) -> str:
    """Return a warning's text with its share rounded, so that folds say the same."""

    def rounded(found: re.Match[str]) -> str:
        return f"about {5 * round(int(found[1]) / 5)}%"

    return re.sub(r"about (\d+)%", rounded, str(warning.message))


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows that folds are made of; each array of shape (n,) or (n, d)."""

    X: Any
    codes: IntArray
    classes: NDArray[Any]
    groups: IntArray | None


@dataclass(frozen=True, eq=False)
class _Fold:
    """What the models of one fold say of its rows, and how they were made."""

    estimates: dict[str, MethodEstimates]
    importances: dict[str, float]
    encodings: dict[str, str]
    calibrate_on: str = "oob"
    warned: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    forest: ForestSpread | None = None

    def with_all(self, present: IntArray, classes: NDArray[Any]) -> _Fold:
        """Return it with a column for each class; those not trained on have probability 0."""

        def filled(table: FloatArray) -> FloatArray:
            if len(present) == len(classes):
                return table
            whole = np.zeros((len(table), len(classes)))
            whole[:, present] = table
            return whole

        estimates = {}
        for method, one in self.estimates.items():
            bounds = one.bounds
            if bounds is not None:
                bounds = Multiprobability(filled(bounds.lower), filled(bounds.upper), classes)
            confidence = one.confidence
            if confidence is not None:
                upper = np.ones((len(one.p), len(classes)))  # of a class not seen nothing is known
                upper[:, present] = confidence.upper
                confidence = replace(
                    confidence, lower=filled(confidence.lower), upper=upper, classes=classes
                )
            estimates[method] = MethodEstimates(filled(one.p), bounds, confidence)
        return replace(self, estimates=estimates)


def _predicted(
    unfitted: CalibratedClassifier,
    methods: Sequence[str],
    rows: _Rows,
    train: IntArray,
    held: IntArray,
    learner: Learner,
) -> _Fold:
    """Train on some rows, and predict others by every method."""
    present, numbers = np.unique(rows.codes[train], return_inverse=True)
    labels = numbers if learner.numbered else rows.classes[rows.codes[train]]
    own = {} if rows.groups is None else {"groups": rows.groups[train]}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model = clone(unfitted).fit(_safe_indexing(rows.X, train), labels, **own)
        found = _judged(model, methods, _safe_indexing(rows.X, held))
    texts = {_same_for_all(one) for one in caught if issubclass(one.category, UserWarning)}
    return replace(
        found.with_all(present, rows.classes),
        calibrate_on=model.calibrate_on_,
        warned=tuple(sorted(texts)),
        unseen=tuple(map(str, np.delete(rows.classes, present).tolist())),
    )


def _first(methods: Sequence[str]) -> str:
    """Return the method that the model of a fold is fitted with, whose scores serve all others.

    One with bounds where there is one: for others inner folds are stratified, with which bounds
    are not exact, and which would not be those of the recommended method by itself.
    """
    calibrated = [method for method in methods if method != RAW]
    bounded = [method for method in calibrated if METHODS[method].bounds]
    return next(iter([*bounded, *calibrated]), RAW)


def _judged(model: CalibratedClassifier, methods: Sequence[str], X_new: Any) -> _Fold:
    """Predict new rows by every method, from one fitted model."""
    calibrated = [method for method in methods if method != RAW]
    models = [
        model if method == model.method else model.recalibrate(method) for method in calibrated
    ]
    fitted = model.estimator_
    estimates: dict[str, MethodEstimates] = {
        RAW: MethodEstimates(fitted.predict_proba(X_new), None)
    }
    spread = None
    if calibrated:
        # What is known of a frequency depends on the scores, which all methods share.
        known = model.predict_confidence(X_new)
        for method, (bounds, p) in zip(calibrated, predict_together(models, X_new), strict=True):
            estimates[method] = MethodEstimates(p, bounds, known.widen(p))
        # Steps, as those of Venn's bounds, say nothing of it: the first method with a smooth map.
        spread = next((s for one in models if (s := forest_spread(one._state, X_new))), None)
    first = fitted[0] if isinstance(fitted, Pipeline) else None
    encoder = first if isinstance(first, TableEncoder) else None
    forest = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    sources = (
        [f"column {j}" for j in range(X_new.shape[1])] if encoder is None else encoder.sources_
    )
    shares = np.asarray(getattr(forest, "feature_importances_", []), np.float64)
    gains: dict[str, float] = {}
    if len(shares) == len(sources):
        gains = dict.fromkeys(sources, 0.0)
        for name, gain in zip(sources, shares, strict=True):
            gains[name] += float(gain)
    encodings: dict[str, str] = {} if encoder is None else dict(encoder.encodings_)
    return _Fold(estimates, gains, encodings, forest=spread)


def _importances(folds: Sequence[_Fold]) -> dict[str, float]:
    """Return each column's share of the decrease of impurity over all folds, largest first."""
    gains: Counter[str] = Counter()
    for one in folds:
        gains.update(one.importances)
    total = sum(gains.values()) or 1.0
    return {name: gains[name] / total for name in sorted(gains, key=lambda name: -gains[name])}


def _pooled(
    method: str,
    gathered: list[tuple[IntArray, _Fold]],
    classes: NDArray[Any],
    n: int,
    kept: IntArray,
) -> MethodEstimates:
    p = np.empty((n, len(classes)))
    for test, one in gathered:
        p[test] = one.estimates[method].p
    first = gathered[0][1].estimates[method]
    bounds, confidence = first.bounds, first.confidence
    if bounds is not None:
        bounds = Multiprobability(*_ends("bounds", method, gathered, p, kept), classes)
    if confidence is not None:
        lower, upper = _ends("confidence", method, gathered, p, kept)
        confidence = replace(confidence, lower=lower, upper=upper, widened=None)
    return MethodEstimates(p[kept], bounds, confidence)


def _ends(
    what: str,
    method: str,
    gathered: list[tuple[IntArray, _Fold]],
    p: FloatArray,
    kept: IntArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the lower and the upper ends of a method's intervals, of the rows that are kept."""
    lower, upper = np.empty_like(p), np.empty_like(p)
    for test, one in gathered:
        found = getattr(one.estimates[method], what)
        lower[test], upper[test] = found.lower, found.upper
    return lower[kept], upper[kept]


def _without_singles(
    codes: IntArray, classes: NDArray[Any], notes: list[str]
) -> tuple[IntArray, IntArray, NDArray[Any]]:
    """Leave out classes with one member: it cannot both train and be predicted."""
    counts = np.bincount(codes, minlength=len(classes))
    if len(classes) < 2:
        raise InputError(f"y must hold at least two classes, got one: {str(classes[0])!r}")
    single = counts < 2
    if not single.any():
        return np.arange(len(codes)), codes, classes
    if (~single).sum() < 2:
        raise InputError(
            f"y must hold at least two classes with two rows each, got {int((~single).sum())} such"
        )
    names = _listed(classes[single])
    one = int(single.sum()) == 1
    notes.append(
        f"{'Class' if one else 'Classes'} {names} {'has' if one else 'have'} one row "
        f"{'' if one else 'each '}and {'is' if one else 'are'} left out: "
        "it cannot both train a forest and be predicted."
    )
    rows = np.flatnonzero(~single[codes])
    place = np.cumsum(~single) - 1
    return rows, place[codes[rows]].astype(np.intp), classes[~single]


def _fitting_folds(codes: IntArray, classes: NDArray[Any], n_folds: int, notes: list[str]) -> int:
    """Return how many folds there can be, and say what becomes of rare classes."""
    counts = np.bincount(codes, minlength=len(classes))
    most = int(counts.max())
    if most < n_folds:
        notes.append(
            f"No class has {n_folds} rows, the largest has {most}: "
            f"{most} folds instead of {n_folds}."
        )
        n_folds = most
    rare = counts < n_folds
    if rare.any():
        one = int(rare.sum()) == 1
        shown = [
            f"{label} ({count})" for label, count in zip(classes[rare], counts[rare], strict=True)
        ]
        notes.append(
            f"{'Class' if one else 'Classes'} with fewer rows than the {n_folds} folds: "
            f"{_listed(np.array(shown, dtype=object), quote=False)}. "
            f"{'It is' if one else 'They are'} kept: each row is predicted once, by a forest "
            "trained on the others, and all measures are taken over the pooled predictions, so "
            "that no fold needs every class."
        )
    return n_folds


def _listed(names: NDArray[Any], most: int = 5, *, quote: bool = True) -> str:
    shown = ", ".join(repr(str(name)) if quote else str(name) for name in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def _in_folds(text: str, count: int, n_folds: int) -> str:
    where = "every fold" if count == n_folds else f"{count} of {n_folds} folds"
    return f"In {where}: {text.rstrip('.')}."
