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
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from vennforest._validation import FloatArray, InputError, IntArray, encode_labels, is_frame
from vennforest.classifier import CalibratedClassifier
from vennforest.multiprobability import Multiprobability
from vennforest.prediction import predict_together
from vennforest.sources import Subforest
from vennforest.tables import table_pipeline
from vennforest.tables.columns import as_pandas

RAW: str = "none"
"""The forest as it is: all trees, no calibration."""

Progress = Callable[[int, int], None]
"""Called after each fold with the number of folds done and of all."""


@dataclass(frozen=True, eq=False)
class MethodEstimates:
    """One method's probabilities of every row, by models that were not trained on it.

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
    """Estimates of all methods for every row.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Labels, sorted.
    codes : ndarray of shape (n,)
        Index of each row's class.
    fold : ndarray of shape (n,)
        The fold in which the row was predicted.
    rows : ndarray of shape (n,)
        The row's position in X.
    estimates : dict of str to MethodEstimates
        By method.
    importances : dict of str to float
        Of each column, the mean decrease of impurity, over all folds; they sum to 1.
    encodings : dict of str to str
        How each column became numbers, where X is a data frame: see ``TableEncoder``.
    missing : float or None
        Share of the cells that are missing, where X is a data frame.
    notes : list of str
        What was done about classes and folds that do not fit.
    """

    classes: NDArray[Any]
    codes: IntArray
    fold: IntArray
    rows: IntArray
    estimates: dict[str, MethodEstimates]
    importances: dict[str, float]
    encodings: dict[str, str]
    missing: float | None = None
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
    n_draws: int,
    seed: int,
    n_jobs: int | None,
    progress: Progress | None,
) -> OutOfFold:
    """Predict every row by all methods, with a forest that was not trained on it.

    What each column of a data frame holds is learnt from all rows, as ``vennforest fit`` does;
    everything else is learnt in each fold anew, with the same seed.
    """
    forest = RandomForestClassifier(n_trees, n_jobs=n_jobs, random_state=seed)
    estimator: Any = forest
    missing = None
    if is_frame(X):
        pipeline = table_pipeline(forest, random_state=seed)
        X, estimator = pipeline[0].fit_transform(as_pandas(X)), pipeline[1:]
        missing = float(X.isna().to_numpy().mean())
    codes, classes = encode_labels(y)
    if X.shape[0] != len(codes):
        raise InputError(f"y must have a label for each of {X.shape[0]} rows, got {len(codes)}")
    notes: list[str] = []
    rows, codes, classes = _without_singles(codes, classes, notes)
    n_folds = _fitting_folds(codes, classes, n_folds, notes)
    X, y = _safe_indexing(X, rows), classes[codes]
    fold = np.empty(len(codes), dtype=np.intp)
    gathered: list[tuple[IntArray, _Fold]] = []
    said: Counter[str] = Counter()
    for i, (train, test) in enumerate(_splits(codes, n_folds, seed)):
        fold[test] = i
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            model = CalibratedClassifier(
                estimator,
                method=next((method for method in methods if method != RAW), RAW),
                calibrate_on="oob",
                subforest=subforest,
                n_draws=n_draws,
                n_jobs=n_jobs,
                random_state=seed,
            ).fit(_safe_indexing(X, train), y[train])
            gathered.append((test, _judged(model, methods, _safe_indexing(X, test))))
        said.update({str(w.message) for w in caught if issubclass(w.category, UserWarning)})
        if progress is not None:
            progress(i + 1, n_folds)
    notes += [_in_folds(text, count, n_folds) for text, count in said.items()]
    return OutOfFold(
        classes,
        codes,
        fold,
        rows,
        {m: _pooled(m, gathered, classes, len(codes)) for m in gathered[0][1].estimates},
        _importances([one for _, one in gathered]),
        gathered[-1][1].encodings,
        missing,
        notes,
    )


def _splits(codes: IntArray, n_folds: int, seed: int) -> list[tuple[IntArray, IntArray]]:
    """Return the rows of each fold to train on and to predict."""
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=np.random.RandomState(seed))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        return list(splitter.split(np.empty(len(codes)), codes))


@dataclass(frozen=True, eq=False)
class _Fold:
    """What the models of one fold say of its rows, and how they were made."""

    estimates: dict[str, MethodEstimates]
    importances: dict[str, float]
    encodings: dict[str, str]


def _judged(model: CalibratedClassifier, methods: Sequence[str], X_new: Any) -> _Fold:
    """Predict new rows by every method, from one fitted model."""
    calibrated = [method for method in methods if method != RAW]
    models = [model, *(model.recalibrate(method) for method in calibrated[1:])]
    fitted = model.estimator_
    estimates: dict[str, MethodEstimates] = {
        RAW: MethodEstimates(fitted.predict_proba(X_new), None)
    }
    if calibrated:
        for method, (bounds, p) in zip(calibrated, predict_together(models, X_new), strict=True):
            estimates[method] = MethodEstimates(p, bounds)
    encoder = fitted[0] if isinstance(fitted, Pipeline) else None
    forest = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    sources = (
        [f"column {j}" for j in range(X_new.shape[1])] if encoder is None else encoder.sources_
    )
    gains = dict.fromkeys(sources, 0.0)
    for name, gain in zip(sources, forest.feature_importances_, strict=True):
        gains[name] += float(gain)
    return _Fold(estimates, gains, {} if encoder is None else dict(encoder.encodings_))


def _importances(folds: Sequence[_Fold]) -> dict[str, float]:
    """Return each column's share of the decrease of impurity over all folds, largest first."""
    gains: Counter[str] = Counter()
    for one in folds:
        gains.update(one.importances)
    total = sum(gains.values()) or 1.0
    return {name: gains[name] / total for name in sorted(gains, key=lambda name: -gains[name])}


def _pooled(
    method: str, gathered: list[tuple[IntArray, _Fold]], classes: NDArray[Any], n: int
) -> MethodEstimates:
    p = np.empty((n, len(classes)))
    for test, one in gathered:
        p[test] = one.estimates[method].p
    if gathered[0][1].estimates[method].bounds is None:
        return MethodEstimates(p, None)
    lower, upper = np.empty_like(p), np.empty_like(p)
    for test, one in gathered:
        bounds = one.estimates[method].bounds
        assert bounds is not None
        lower[test], upper[test] = bounds.lower, bounds.upper
    return MethodEstimates(p, Multiprobability(lower, upper, classes))


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
