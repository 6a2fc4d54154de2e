"""Models that were trained on the rows that calibrate them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import NearestNeighbors
from sklearn.utils import _safe_indexing

from vennforest._validation import FloatArray
from vennforest.auditing.columns import MIN_AUDITED_ROWS
from vennforest.auditing.finding import Finding
from vennforest.classifier import CalibratedClassifier
from vennforest.forest import leaves_rows_out
from vennforest.sources.checks import features_of
from vennforest.sources.estimators import split_pipeline

MAX_ROWS_OF_MODEL = 1_000
MOVE_DISTANCES = (1.0, 3.0)
N_MOVES = 4
STANDARD_ERRORS_OF_MEMORY = 4.0
"""A model is asked at so many rows and beside them, moved so often by these multiples of the
distance to the nearest row, and is more certain at rows by so many standard errors."""

MAX_DIFFERENCE_OF_RETRAINED = 0.1
"""Root mean square difference between a model and one trained again, relative to that between
models of other rows."""


def is_out_of_bag(estimator: FrozenEstimator, X: Any, y: NDArray[Any]) -> bool:
    """Return whether a frozen model is a forest trained on these rows, with out-of-bag scores."""
    if not leaves_rows_out(split_pipeline(estimator.estimator)[1]):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibrated = CalibratedClassifier(estimator, method="platt").fit(X, y)
    return calibrated.calibrate_on_ == "oob"


def find_training_rows(model: Any, X: Any, y: NDArray[Any]) -> Iterator[Finding]:
    """Yield a finding if a frozen model was trained on the rows that calibrate it."""
    if remembers(model, X, y):
        message = (
            "the model seems to have been trained on these rows: calibrate and evaluate on rows "
            "that it has not seen, or let vennforest train it: CalibratedClassifier(estimator) "
            "without FrozenEstimator"
        )
        yield Finding("training rows", "error", message)


def remembers(model: Any, X: Any, y: NDArray[Any]) -> bool:
    """Return whether a fitted classifier was trained on rows X (n, d) with labels y (n,).

    A flexible model's probability of the label peaks at a training row. The peaks are compared with
    those of a copy trained on half of the rows. If there are none, as in a linear model, the model
    is trained again on all rows and the probabilities are compared.
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(y))[:MAX_ROWS_OF_MODEL])
    if len(rows) < MIN_AUDITED_ROWS:
        return False
    examined, labels = _safe_indexing(X, rows), y[rows]
    half = rng.permutation(len(rows)) < len(rows) // 2
    index, p = np.flatnonzero(half), _probabilities_of(model, examined)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            copy = clone(model).fit(_safe_indexing(examined, index), labels[index])
            for distance in MOVE_DISTANCES:
                if tables := _moved(examined, distance):
                    peaks, of_copy = (_peaks(m, examined, tables, labels) for m in (model, copy))
                    if _are_of_training_rows(peaks, of_copy[half], of_copy[~half]):
                        return True
            retrained = clone(model).fit(X, y)
            p_copy, p_retrained = (_probabilities_of(m, examined) for m in (copy, retrained))
    except Exception:  # the model cannot be trained on so few rows, or refuses moved rows
        return False
    # A model of n other rows differs by (m / n) ** 0.5 times as much as the copy of m rows does.
    by_chance = np.sqrt(np.mean((p - p_copy) ** 2) * len(index) / len(y))
    difference = np.sqrt(np.mean((p - p_retrained) ** 2))
    has_values = len(np.unique(p[:, 0])) >= 5  # fewer could be equal by chance
    return bool(has_values and difference < MAX_DIFFERENCE_OF_RETRAINED * by_chance)


def _are_of_training_rows(
    peaks: FloatArray, in_training: FloatArray, in_new_rows: FloatArray
) -> bool:
    """Return whether a model's peaks are like those of a copy at the copy's training rows."""
    (mean, error), (high, high_error), (low, low_error) = (
        (np.nanmean(p), np.nanstd(p, ddof=1) / np.sqrt(np.isfinite(p).sum()))
        for p in (peaks, in_training, in_new_rows)
    )
    return bool(
        high - low > STANDARD_ERRORS_OF_MEMORY * np.hypot(high_error, low_error)
        and mean - low > STANDARD_ERRORS_OF_MEMORY * np.hypot(error, low_error)
        and mean - low > (high - low) / 3
    )


def _peaks(model: Any, X: Any, tables: list[Any], y: NDArray[Any]) -> FloatArray:
    """Return the label's probability at each row minus its mean at the moved rows, (n,)."""
    column = {label: j for j, label in enumerate(model.classes_.tolist())}
    label = np.array([column.get(name, -1) for name in y.tolist()])
    rows = np.arange(len(y))
    at_row = _probabilities_of(model, X)[rows, label]
    nearby = np.mean([_probabilities_of(model, moved)[rows, label] for moved in tables], axis=0)
    return np.where(label >= 0, at_row - nearby, np.nan)


def _probabilities_of(model: Any, X: Any) -> FloatArray:
    """Return the probabilities (n, k) of rows X (n, d) by a fitted classifier.

    Of a model of two classes without ``predict_proba``, the logistic of its decision values.
    """
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), np.float64)
    second = expit(model.decision_function(X))
    return np.column_stack([1 - second, second])


def _moved(X: Any, distance: float) -> list[Any]:
    """Return copies of X with rows moved by ``distance`` times that to their nearest row.

    Without columns of many different numbers, that many cells of each row are those of other rows.
    The list is empty for sparse tables.
    """
    if issparse(X) or len(getattr(X, "shape", ())) != 2:
        return []
    rng, n, columns = np.random.default_rng(1), len(X), features_of(X)
    measured = [
        j
        for j, column in enumerate(columns)
        if column.dtype.kind in "iuf" and len(np.unique(column[~np.isnan(column)])) > n / 4
    ]
    changes: list[dict[int, Any]] = []
    if measured:
        table = np.column_stack([columns[j].astype(np.float64) for j in measured])
        table = np.where(np.isnan(table), np.nanmedian(table, axis=0), table)
        spread = table.std(axis=0)
        scaled = table / spread
        nearest = NearestNeighbors(n_neighbors=2).fit(scaled).kneighbors(scaled)[0][:, 1:]
        for _ in range(N_MOVES // 2):
            step = rng.normal(size=table.shape)
            step *= distance * nearest / np.linalg.norm(step, axis=1, keepdims=True) * spread
            for move in (-step, step):
                moved = zip(measured, move.T, strict=True)
                changes.append({j: columns[j] + of_column for j, of_column in moved})
    for _ in range(0 if measured else N_MOVES):
        is_swapped = rng.random((len(columns), n)) < distance / len(columns)
        donors = np.where(is_swapped, rng.integers(0, n, is_swapped.shape), np.arange(n))
        changes.append({j: column[donors[j]] for j, column in enumerate(columns)})
    return [_with_columns(X, cells) for cells in changes]


def _with_columns(X: Any, cells: dict[int, Any]) -> Any:
    """Return a copy of a table (n, d) with new ``cells`` in some columns, by position."""
    if hasattr(X, "isetitem"):
        table = X.copy()
        for j, column in cells.items():
            table.isetitem(j, column)
        return table.astype({name: X.dtypes[name] for name in X.select_dtypes("category")})
    table = X.copy() if X.dtype.kind not in "iu" else X.astype(np.float64)
    for j, column in cells.items():
        table[:, j] = column
    return table
