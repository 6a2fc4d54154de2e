"""Stratified cross-validation in which one forest a fold serves every method."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import _safe_indexing

from vennforest._validation import FloatArray, InputError, IntArray, encode_labels
from vennforest.classifier import CalibratedClassifier
from vennforest.multiprobability import Multiprobability
from vennforest.prediction import predict_together
from vennforest.sources import Subforest
from vennforest.tables.vectorize import Vectorizer, is_frame, plain_frame

RAW: str = "none"
"""The forest as it is: all trees, no calibration."""

Progress = Callable[[int, int], None]
"""Told after each fold how many of how many are done."""


@dataclass(frozen=True, eq=False)
class Estimates:
    """What one method said of every object while it was not trained on it.

    Attributes
    ----------
    p : ndarray of shape (n, k)
        Probabilities.
    bounds : Multiprobability or None
        Lower and upper ones, where the method gives them.
    """

    p: FloatArray
    bounds: Multiprobability | None


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Estimates of all methods for every object.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Labels, sorted.
    codes : ndarray of shape (n,)
        Index of each object's class.
    fold : ndarray of shape (n,)
        In which fold the object was predicted.
    rows : ndarray of shape (n,)
        Where the object stands in X.
    estimates : dict of str to Estimates
        By method.
    importances : dict of str to float
        Of each column, the mean decrease of impurity, over all folds; they sum to 1.
    kinds : dict of str to str
        How each column was read, where X is a data frame.
    notes : list of str
        What was done about classes and folds that do not fit.
    """

    classes: NDArray[Any]
    codes: IntArray
    fold: IntArray
    rows: IntArray
    estimates: dict[str, Estimates]
    importances: dict[str, float]
    kinds: dict[str, str]
    notes: list[str] = field(default_factory=list)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1


def cross_validate(
    X: Any,
    y: Any,
    methods: Sequence[str],
    *,
    n_folds: int,
    n_trees: int,
    subforest: Subforest,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> OutOfFold:
    """Predict every object by all methods, with a forest that was not trained on it."""
    X = plain_frame(X) if is_frame(X) else X
    codes, classes = encode_labels(y)
    if X.shape[0] != len(codes):
        raise InputError(f"y must have a label for each of {X.shape[0]} rows, got {len(codes)}")
    notes: list[str] = []
    rows, codes, classes = _without_singles(codes, classes, notes)
    n_folds = _fitting_folds(codes, classes, n_folds, notes)
    X, y = _safe_indexing(X, rows), classes[codes]
    random = np.random.RandomState(seed)
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=random)
    fold = np.empty(len(codes), dtype=np.intp)
    gathered: list[tuple[IntArray, dict[str, Estimates]]] = []
    gains: dict[str, float] = {}
    kinds: dict[str, str] = {}
    said: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(splitter.split(np.empty(len(codes)), codes))
    for i, (train, test) in enumerate(splits):
        fold[test] = i
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            one = _one_fold(
                _safe_indexing(X, train),
                y[train],
                _safe_indexing(X, test),
                methods,
                RandomForestClassifier(n_trees, n_jobs=n_jobs),
                subforest,
                int(random.randint(2**31 - 1)),
                n_jobs,
            )
        said.update({str(w.message) for w in caught if issubclass(w.category, UserWarning)})
        gathered.append((test, one.estimates))
        for name, gain in one.importances.items():
            gains[name] = gains.get(name, 0.0) + gain
        kinds = one.kinds
        if progress is not None:
            progress(i + 1, n_folds)
    notes += [_in_folds(text, count, n_folds) for text, count in said.items()]
    total = sum(gains.values()) or 1.0
    return OutOfFold(
        classes,
        codes,
        fold,
        rows,
        {method: _pooled(method, gathered, classes, len(codes)) for method in gathered[0][1]},
        {name: gains[name] / total for name in sorted(gains, key=lambda name: -gains[name])},
        kinds,
        notes,
    )


@dataclass(frozen=True, eq=False)
class _Fold:
    estimates: dict[str, Estimates]
    importances: dict[str, float]
    kinds: dict[str, str]


def _one_fold(
    X: Any,
    y: NDArray[Any],
    X_new: Any,
    methods: Sequence[str],
    forest: RandomForestClassifier,
    subforest: Subforest,
    seed: int,
    n_jobs: int | None,
) -> _Fold:
    kinds: dict[str, str] = {}
    if is_frame(X):
        vectorizer = Vectorizer(seed)
        X, X_new = vectorizer.fit_transform(X, y), vectorizer.transform(X_new)
        sources, kinds = vectorizer.sources(), vectorizer.kinds()
    else:
        sources = [f"column {j}" for j in range(X.shape[1])]
    calibrated = [method for method in methods if method != RAW]
    model = CalibratedClassifier(
        forest,
        method=calibrated[0] if calibrated else RAW,
        calibrate_on="oob",
        subforest=subforest,
        n_jobs=n_jobs,
        random_state=seed,
    ).fit(X, y)
    models = [model, *(model.recalibrate(method) for method in calibrated[1:])]
    estimates: dict[str, Estimates] = {RAW: Estimates(model.estimator_.predict_proba(X_new), None)}
    if calibrated:
        for method, (bounds, p) in zip(calibrated, predict_together(models, X_new), strict=True):
            estimates[method] = Estimates(p, bounds)
    gains = dict.fromkeys(sources, 0.0)
    for name, gain in zip(sources, model.estimator_.feature_importances_, strict=True):
        gains[name] += float(gain)
    return _Fold(estimates, gains, kinds)


def _pooled(
    method: str,
    gathered: list[tuple[IntArray, dict[str, Estimates]]],
    classes: NDArray[Any],
    n: int,
) -> Estimates:
    p = np.empty((n, len(classes)))
    for test, estimates in gathered:
        p[test] = estimates[method].p
    if gathered[0][1][method].bounds is None:
        return Estimates(p, None)
    lower, upper = np.empty_like(p), np.empty_like(p)
    for test, estimates in gathered:
        bounds = estimates[method].bounds
        assert bounds is not None
        lower[test], upper[test] = bounds.lower, bounds.upper
    return Estimates(p, Multiprobability(lower, upper, classes))


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
            "y must hold at least two classes with two objects each, got "
            f"{int((~single).sum())} such"
        )
    names = _listed(classes[single])
    one = int(single.sum()) == 1
    notes.append(
        f"{'Class' if one else 'Classes'} {names} {'has' if one else 'have'} one object "
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
            f"No class has {n_folds} objects, the largest has {most}: "
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
            f"{'Class' if one else 'Classes'} with fewer objects than the {n_folds} folds: "
            f"{_listed(np.array(shown, dtype=object), quote=False)}. "
            f"{'It is' if one else 'They are'} kept: each object is predicted once, by a forest "
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
