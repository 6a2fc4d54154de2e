"""Faults of a model and its data that take a fit or a search to find."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from inspect import getclosurevars
from types import FunctionType, MethodType
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit
from scipy.stats import binomtest, ks_2samp
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples, column_or_1d

from vennforest._validation import FloatArray, IntArray
from vennforest.classifier import CalibratedClassifier
from vennforest.forest import leaves_rows_out
from vennforest.sources.checks import (
    columns_of,
    copied_rows,
    copies_message,
    is_measured_column,
    is_supervised,
)
from vennforest.sources.data import model_scores, parts_of, split_pipeline
from vennforest.sources.row_hashes import hash_rows

MIN_ROWS = 20
MAX_ROWS = 5_000
"""Rows that steps are fitted to and columns are judged by; below the first nothing is reported."""

MIN_ROWS_OF_MODEL = 40
MAX_ROWS_OF_MODEL = 1_000
"""Rows at which a fitted model is examined."""

MAX_SAMPLED_ROWS = 500
"""Rows whose neighbours are searched for."""

MAX_SEARCHED_CELLS = 200_000_000
"""Cells that the search for neighbours may visit; in larger tables fewer rows are sampled."""

N_NEIGHBORS = 20
"""Neighbours of each sampled row, among which its copies are."""

RELATIVE_DISTANCE_OF_COPIES = 0.1
"""Largest distance of a copy, relative to that of the nearest row that is none."""

RELATIVE_DISTANCE_IN_FEW_COLUMNS = 0.01
"""The same with one or two measured columns, in which chance brings rows as near as that."""

MIN_COLUMNS = 3
"""Measured columns from which the larger relative distance applies."""

MIN_SHARE_OF_COPIES = 0.02
MIN_SHARE_OF_SYNTHETIC = 0.05
"""Shares of the sampled rows up to which nothing is reported."""

MAX_P_VALUE_OF_COPIES = 1e-5
"""Probability of as clear copies in a table without any (one-sided binomial test)."""

COSINE_TOLERANCE = 1e-9
"""Difference of a cosine from -1 up to which a row lies on the line between two others."""

MIN_ERRORS_REMOVED = 0.98
"""Share of the errors of the most frequent class that a leaking column removes alone."""

MIN_AGREEMENT_OF_IDS = 0.98
"""Share of pairs of rows with one ID that have the same label."""

MOVE_DISTANCES = (1.0, 3.0)
"""How far rows are moved from a training row, in distances to its nearest neighbour."""

N_MOVES = 4
MIN_STANDARD_ERRORS = 4.0
"""Standard errors by which a model is more certain at rows than beside them."""

MAX_DIFFERENCE_OF_RETRAINED = 0.1
"""Root mean square difference between a model and one trained again, relative to that between
models of other rows."""

N_TREES_TO_COMPARE = 25
MAX_P_VALUE_OF_SCORES = 1e-3
"""Probability of as different scores of training rows and of new rows (Kolmogorov-Smirnov)."""

SIMPLE_STEPS = (
    "FunctionTransformer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "Normalizer",
    "RobustScaler",
    "SimpleImputer",
    "StandardScaler",
    "VarianceThreshold",
)
"""Steps of scikit-learn that learn one or two numbers a column, which one row hardly changes."""


@dataclass(frozen=True, eq=False)
class Finding:
    """One fault.

    Attributes
    ----------
    kind : str
        ``"copies"``, ``"near-copies"``, ``"synthetic rows"``, ``"repeated ID"``,
        ``"leaking column"``, ``"training rows"``, ``"steps that see labels"``,
        ``"steps that fit their rows"``, ``"frozen step"`` or ``"changed model"``.
    severity : {"error", "warning"}
        Whether probabilities are wrong, or may be.
    message : str
        A description of the fault and its remedy, in one sentence or two.
    rows : ndarray of shape (n_rows,) or None
        Indices of the rows concerned, of large tables among those examined; None: not of rows.
    """

    kind: str
    severity: Literal["error", "warning"]
    message: str
    rows: IntArray | None = None


def audit(
    model: Any,
    X: Any,
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> list[Finding]:
    """Look for faults of a model and its data that would spoil calibrated probabilities.

    It trains copies of the model or of its parts and compares rows, so it takes about as long as a
    few fits. ``fit`` itself makes only cheap checks.

    Parameters
    ----------
    model : classifier
        A `CalibratedClassifier`, fitted or not, or an estimator for one; a model that is already
        trained goes into ``FrozenEstimator``. With a fitted `CalibratedClassifier` and other rows
        than those given to its ``fit``, these are compared with its training rows.
    X : array-like, sparse matrix or data frame of shape (n, d)
        The rows given to ``fit``.
    y : array-like of shape (n,)
        Their labels.
    sample_weight : array-like of shape (n,), optional
        Weights; rows of weight zero are left out.
    groups : array-like of shape (n,), optional
        The group of each row; copies within a group are no fault.

    Returns
    -------
    list of Finding
        Empty without a fault.

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
    X, y, sample_weight, groups = indexable(X, column_or_1d(y), sample_weight, groups)
    labels: NDArray[Any] = np.asarray(y)
    group_codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    if sample_weight is None or (np.asarray(sample_weight) != 0).all():
        return _findings(model, X, labels, group_codes)
    rows = np.flatnonzero(np.asarray(sample_weight))
    group_codes = None if group_codes is None else group_codes[rows]
    return [
        finding if finding.rows is None else replace(finding, rows=rows[finding.rows])
        for finding in _findings(model, _safe_indexing(X, rows), labels[rows], group_codes)
    ]


def _findings(model: Any, X: Any, y: NDArray[Any], groups: IntArray | None) -> list[Finding]:
    """Return the findings of rows that all count."""
    findings: list[Finding] = []
    estimator = model
    if isinstance(model, CalibratedClassifier):
        estimator = model.estimator
        if hasattr(model, "classes_"):
            if len(model.oob_probability_) != len(y):
                return _training_rows(model.estimator_, X, y)
            findings += _changed(model, X)
    if isinstance(estimator, FrozenEstimator):
        return findings + _frozen(estimator, X, y)
    codes = np.unique(y, return_inverse=True)[1]
    findings += _copies(X, codes, groups)
    findings += _columns(X, codes, groups)
    if isinstance(estimator, Pipeline):
        findings += _steps(estimator, X, y)
    return findings


# --- rows: copies, near-copies, synthetic rows ---------------------------------------------------


def _copies(X: Any, codes: IntArray, groups: IntArray | None) -> list[Finding]:
    """Return a finding where rows are copies of others, or were made from others.

    A near-copy is at least ten times nearer than the nearest row that is none. It counts where it
    predicts the label better than the next neighbour does: without copies either neighbour has the
    label as often (McNemar 1947).
    """
    n = len(codes)
    copied = np.flatnonzero(copied_rows(X, hash_rows(X), groups))
    if len(copied):
        message = copies_message(len(copied) / n)
        return [Finding("copies", "warning", message, copied)]
    if n < MIN_ROWS or issparse(X):
        return []
    table, is_measured = _standardized(X, n)
    if not table.shape[1]:
        return []
    n_sampled = max(MIN_ROWS, min(MAX_SAMPLED_ROWS, MAX_SEARCHED_CELLS // table.size))
    sampled = np.sort(np.random.default_rng(0).permutation(n)[:n_sampled])
    neighbors, distance = _neighbors(table, sampled, groups)
    synthetic = _between_two(table[:, is_measured], codes, sampled, neighbors, distance)
    if synthetic.mean() > MIN_SHARE_OF_SYNTHETIC:
        message = (
            f"about {synthetic.mean():.0%} of the examples lie exactly between two others of their "
            "class, as SMOTE makes them: probabilities would be those of a population with other "
            "class frequencies, and too certain. Fit to the original rows; a rare class needs no "
            "oversampling"
        )
        return [Finding("synthetic rows", "warning", message, sampled[synthetic])]
    n_measured = int(is_measured.sum())
    near = (
        RELATIVE_DISTANCE_OF_COPIES
        if n_measured >= MIN_COLUMNS or not n_measured
        else RELATIVE_DISTANCE_IN_FEW_COLUMNS
    )
    is_next = distance * near > distance[:, :1]
    if not n_measured:
        # Cells of few categories have many equal rows: the next neighbour differs in three.
        is_next &= (table[neighbors] != table[sampled, None]).sum(axis=2) >= MIN_COLUMNS
        is_next[(distance > 0).argmax(axis=1) != is_next.argmax(axis=1)] = False
    rows = np.flatnonzero(is_next.any(axis=1))
    copy_agrees = codes[neighbors[rows, 0]] == codes[sampled[rows]]
    next_neighbor = neighbors[rows, is_next[rows].argmax(axis=1)]
    next_agrees = codes[next_neighbor] == codes[sampled[rows]]
    better, worse = int((copy_agrees & ~next_agrees).sum()), int((next_agrees & ~copy_agrees).sum())
    if better - worse <= MIN_SHARE_OF_COPIES * len(sampled):
        return []
    if binomtest(better, better + worse, alternative="greater").pvalue >= MAX_P_VALUE_OF_COPIES:
        return []
    message = (
        f"about {len(rows) / len(sampled):.0%} of the examples have a near-copy with their label: "
        "one trains where the other calibrates, so probabilities and bounds may be too certain. "
        "Pass groups= to keep the rows of one person or object together"
    )
    return [Finding("near-copies", "warning", message, sampled[rows])]


def _neighbors(
    table: FloatArray, sampled: IntArray, groups: IntArray | None
) -> tuple[IntArray, FloatArray]:
    """Return the nearest rows of each sampled row and their distances, (m, k), nearest first.

    Those of its own group have distance NaN and come last.
    """
    k = min(N_NEIGHBORS + 1, len(table))
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(table)
    neighbors = search.kneighbors(table[sampled], return_distance=False)
    # A row is its own neighbour, or one of its copies is: then the last is left out.
    is_self = neighbors == sampled[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    neighbors = neighbors[~is_self].reshape(len(sampled), k - 1)
    distance = np.linalg.norm(table[neighbors] - table[sampled, None], axis=2)
    if groups is not None:
        distance[groups[neighbors] == groups[sampled, None]] = np.nan
    order = np.argsort(distance, axis=1, kind="stable")
    return np.take_along_axis(neighbors, order, 1), np.take_along_axis(distance, order, 1)


def _between_two(
    table: FloatArray,
    codes: IntArray,
    sampled: IntArray,
    neighbors: IntArray,
    distance: FloatArray,
) -> NDArray[np.bool_]:
    """Return which sampled rows lie on a line between two neighbours of their class, (m,)."""
    if table.shape[1] < MIN_COLUMNS:
        return np.zeros(len(sampled), bool)
    step = table[neighbors] - table[sampled, None]
    length = np.linalg.norm(step, axis=2)
    usable = (codes[neighbors] == codes[sampled, None]) & (length > 0) & ~np.isnan(distance)
    step /= np.where(length > 0, length, 1)[..., None]
    # Rows that differ in fewer columns lie on lines by chance.
    usable &= (np.abs(step) > COSINE_TOLERANCE).sum(axis=2) >= MIN_COLUMNS
    cosine = step @ step.transpose(0, 2, 1)
    is_straight = usable[:, :, None] & usable[:, None, :] & (cosine < COSINE_TOLERANCE - 1)
    return np.asarray(is_straight.any(axis=(1, 2)))


def _standardized(X: Any, n: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the columns as standardised numbers (n, c), and which of them are measured (c,).

    A category becomes a normal number, so equal cells stay equal. Constant columns, and those of
    whole numbers or text that differ in every row, are left out.
    """
    columns, is_measured = [], []
    for column in columns_of(X):
        numbers = _as_numbers(column)
        if numbers is None or len(numbers) != n:
            continue
        measured = is_measured_column(column)
        if column.dtype.kind not in "biufmM":
            numbers = np.random.default_rng(0).normal(size=n)[numbers.astype(np.intp)]
        present = numbers[~np.isnan(numbers)]
        if not len(present):
            continue
        numbers = np.where(np.isnan(numbers), np.median(present), numbers)
        n_distinct, spread = len(np.unique(numbers)), numbers.std()
        if (n_distinct == n and not measured) or not 0 < spread < np.inf:
            continue
        columns.append((numbers - numbers.mean()) / spread)
        is_measured.append(measured)
    table = np.column_stack(columns) if columns else np.empty((n, 0))
    return np.ascontiguousarray(table), np.array(is_measured, dtype=bool)


def _as_numbers(column: NDArray[Any]) -> FloatArray | None:
    """Return a column (n,) as numbers: of text the number of each value; NaN where missing."""
    if column.ndim != 1:
        return None
    if column.dtype.kind in "mM":
        numbers = column.astype(np.int64).astype(np.float64)
        return np.where(np.isnat(column), np.nan, numbers)
    if column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        return np.where(np.isfinite(numbers), numbers, np.nan)
    codes: dict[Any, int] = {}
    try:
        return np.array([codes.setdefault(cell, len(codes)) for cell in column.tolist()], float)
    except TypeError:  # cells without a hash, such as lists
        return None


# --- columns: repeated IDs, leaks ----------------------------------------------------------------


def _columns(X: Any, codes: IntArray, groups: IntArray | None) -> list[Finding]:
    """Return a finding for each column that repeats an ID or predicts the label alone."""
    if issparse(X) or len(codes) < MIN_ROWS:
        return []
    rows = np.random.default_rng(0).permutation(len(codes))[:MAX_ROWS]
    if len(rows) < len(codes):
        X, codes = _safe_indexing(X, rows), np.unique(codes[rows], return_inverse=True)[1]
    names = list(X.columns) if hasattr(X, "columns") else range(len(columns_of(X)))
    findings = []
    for name, column in zip(names, columns_of(X), strict=True):
        values = _as_numbers(column)
        if values is None:
            continue
        if leaks(column, codes):
            message = (
                f"column {name!r} alone predicts the label almost without error: leave it out if "
                "it was recorded after the outcome"
            )
            findings.append(Finding("leaking column", "warning", message))
        elif groups is None and repeats_ids(column, codes):
            message = (
                f"column {name!r} looks like a repeated ID, whose rows have one label each: pass "
                "it as groups= to keep the rows of one person or object together, and leave it out "
                "of X"
            )
            findings.append(Finding("repeated ID", "warning", message))
    return findings


def leaks(column: NDArray[Any], codes: IntArray) -> bool:
    """Tell whether a column (n,) predicts the class (n,) alone, nearly without error.

    A small tree of this column is tried on three folds, and its errors are compared with those of
    the most frequent class. Text of many values is not tried.
    """
    values = _as_numbers(column)
    counts = np.bincount(codes)
    n_errors = len(codes) - counts.max()
    if values is None or n_errors < 5 or counts.min() < 3:
        return False
    if column.dtype.kind not in "biufmM" and len(np.unique(values)) > len(values) / 4:
        return False
    tree = DecisionTreeClassifier(max_leaf_nodes=4 * len(counts), random_state=0)
    limit = (1 - MIN_ERRORS_REMOVED) * n_errors
    cells = values[:, None]
    if (tree.fit(cells, codes).predict(cells) != codes).sum() > 1.5 * limit:
        return False
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return bool((cross_val_predict(tree, cells, codes, cv=folds) != codes).sum() <= limit)


def repeats_ids(column: NDArray[Any], codes: IntArray) -> bool:
    """Tell whether a column (n,) has many values in a few rows each, with one label each.

    A number that matters has such labels too, so rows of neighbouring values must not agree.
    """
    values = _as_numbers(column)
    n = len(codes)
    if values is None or column.dtype.kind in "bmM" or (values % 1 > 0).any():
        return False
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    if not max(20, n / 50) <= len(counts) <= 0.8 * n:
        return False
    table = np.zeros((len(counts), codes.max() + 1))
    np.add.at(table, (number, codes), 1)
    n_pairs = float((counts * (counts - 1)).sum())
    agreement = float((table * (table - 1)).sum()) / n_pairs
    by_chance = float(np.square(np.bincount(codes) / n).sum())
    if agreement < MIN_AGREEMENT_OF_IDS or n_pairs * (1 - by_chance) < 50:
        return False
    label = table.argmax(axis=1)
    return bool((label[1:] == label[:-1]).mean() < (1 + by_chance) / 2)


# --- models: trained on the rows, changed later --------------------------------------------------


def _frozen(estimator: FrozenEstimator, X: Any, y: NDArray[Any]) -> list[Finding]:
    """Return a finding where a frozen model is calibrated on rows that it was trained on."""
    if leaves_rows_out(split_pipeline(estimator.estimator)[1]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            calibrated = CalibratedClassifier(estimator, method="platt").fit(X, y)
        if calibrated.calibrate_on_ == "oob":
            return []
    return _training_rows(estimator.estimator, X, y)


def _training_rows(model: Any, X: Any, y: NDArray[Any]) -> list[Finding]:
    if not remembers(model, X, y):
        return []
    message = (
        "the model seems to have been trained on these rows: its probability of a row's own label "
        "is far higher at the row than beside it, or a copy trained on these rows gives the same "
        "probabilities. Calibrate and evaluate on rows that it has not seen, or let vennforest "
        "train it: CalibratedClassifier(estimator) without FrozenEstimator"
    )
    return [Finding("training rows", "error", message)]


def _changed(model: CalibratedClassifier, X: Any) -> list[Finding]:
    """Return a finding where models of a fitted classifier give other scores than at ``fit``."""
    if model.calibrate_on_ == "oob":
        return []
    for fold in model._state.folds:
        if fold.rows is None or len(model._state.folds) == 1 < len(model.estimators_):
            continue
        scores = model_scores(fold.model, _safe_indexing(X, fold.rows), model.classes_)
        if not np.allclose(scores, fold.scores, rtol=1e-6, atol=1e-9):
            message = (
                "the estimator gives other scores of the calibration examples than when they "
                "were calibrated, so it was fitted again or changed, or X has other rows: call "
                "fit again, or calibrate a copy of the estimator"
            )
            return [Finding("changed model", "error", message)]
    return []


def remembers(model: Any, X: Any, y: NDArray[Any]) -> bool:
    """Tell whether a fitted classifier was trained on rows X (n, d) with labels y (n,).

    The probability that a flexible model gives to the label of a training row peaks at the row.
    How far the peaks of a model exceed those of one that has not seen the rows is measured with a
    copy that is trained on half of them: the model was trained on the rows if it is a third of the
    way to the half that the copy saw. Models without peaks, such as linear ones, are trained again
    on all rows; one with the same probabilities was trained on them.
    """
    rng = np.random.default_rng(0)
    rows = np.sort(rng.permutation(len(y))[:MAX_ROWS_OF_MODEL])
    if len(rows) < MIN_ROWS_OF_MODEL:
        return False
    examined, labels = _safe_indexing(X, rows), y[rows]
    half = rng.permutation(len(rows)) < len(rows) // 2
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            rows_of_copy = np.flatnonzero(half)
            copy = clone(model).fit(_safe_indexing(examined, rows_of_copy), labels[rows_of_copy])
            if not issparse(X) and len(getattr(X, "shape", ())) == 2:
                for distance in MOVE_DISTANCES:
                    if _has_peaks_at_rows(model, copy, examined, labels, half, distance):
                        return True
            retrained = clone(model).fit(X, y)
            p, p_copy, p_retrained = (_probabilities(m, examined) for m in (model, copy, retrained))
    except Exception:  # a model that cannot be trained on so few rows, or takes no moved ones
        return False
    # Models of other rows differ as that of m of n rows does, times (m / n) ** .5.
    by_chance = np.sqrt(np.mean((p - p_copy) ** 2) * len(rows_of_copy) / len(y))
    difference = np.sqrt(np.mean((p - p_retrained) ** 2))
    has_values = len(np.unique(p[:, 0])) >= 5  # fewer could be equal by chance
    return bool(has_values and difference < MAX_DIFFERENCE_OF_RETRAINED * by_chance)


def _has_peaks_at_rows(
    model: Any, copy: Any, X: Any, y: NDArray[Any], half: NDArray[np.bool_], distance: float
) -> bool:
    """Tell whether a model's probability of the label peaks at rows, as the copy's at its half."""
    tables = list(_moved(X, distance))
    peak = _peaks(model, X, tables, y)
    of_copy = _peaks(copy, X, tables, y)
    (mean, error), (high, high_error), (low, low_error) = (
        (np.nanmean(p), np.nanstd(p, ddof=1) / np.sqrt(np.isfinite(p).sum()))
        for p in (peak, of_copy[half], of_copy[~half])
    )
    return bool(
        high - low > MIN_STANDARD_ERRORS * np.hypot(high_error, low_error)
        and mean - low > MIN_STANDARD_ERRORS * np.hypot(error, low_error)
        and mean - low > (high - low) / 3
    )


def _peaks(model: Any, X: Any, tables: list[Any], y: NDArray[Any]) -> FloatArray:
    """Return by how much the label's probability at each row exceeds that beside it, (n,).

    NaN where the model does not know the label.
    """
    column = {label: j for j, label in enumerate(model.classes_.tolist())}
    label = np.array([column.get(name, -1) for name in y.tolist()])
    rows = np.arange(len(y))
    at_row = _probabilities(model, X)[rows, label]
    nearby = np.mean([_probabilities(model, moved)[rows, label] for moved in tables], axis=0)
    return np.where(label >= 0, at_row - nearby, np.nan)


def _probabilities(model: Any, X: Any) -> FloatArray:
    """Return probabilities (n, k), or a logistic curve of the decision values of two classes."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), np.float64)
    second = expit(model.decision_function(X))
    return np.column_stack([1 - second, second])


def _moved(X: Any, distance: float) -> Iterator[Any]:
    """Yield tables whose rows are moved in the measured columns, in opposite pairs.

    The unit of distance is that to the nearest other row. Without measured columns as many cells
    are those of other rows.
    """
    rng = np.random.default_rng(1)
    columns = columns_of(X)
    measured = [
        j
        for j, column in enumerate(columns)
        if column.dtype.kind in "iuf" and len(np.unique(column[~np.isnan(column)])) > len(X) / 4
    ]
    is_frame = hasattr(X, "iloc")
    if measured:
        table = np.column_stack([columns[j].astype(np.float64) for j in measured])
        table = np.where(np.isnan(table), np.nanmedian(table, axis=0), table)
        spread = table.std(axis=0)
        scaled = table / spread
        nearest = NearestNeighbors(n_neighbors=2).fit(scaled).kneighbors(scaled)[0][:, 1:]
    for number in range(N_MOVES):
        moved = X.copy() if is_frame or X.dtype.kind not in "iu" else X.astype(np.float64)
        if measured:
            if number % 2 == 0:
                step = rng.normal(size=table.shape)
                step *= distance * nearest / np.linalg.norm(step, axis=1, keepdims=True) * spread
            for j, change in zip(measured, (step if number % 2 else -step).T, strict=True):
                if is_frame:
                    moved[moved.columns[j]] = X.iloc[:, j] + change
                else:
                    moved[:, j] = X[:, j] + change
        for _ in range(0 if measured else int(distance)):
            column_of, donor = (
                rng.integers(0, len(columns), len(X)),
                rng.integers(0, len(X), len(X)),
            )
            for j, column in enumerate(columns):
                rows = np.flatnonzero(column_of == j)
                (moved.iloc if is_frame else moved)[rows, j] = column[donor[rows]]
        yield moved


# --- steps before the last -----------------------------------------------------------------------


def _steps(estimator: Pipeline, X: Any, y: NDArray[Any]) -> list[Finding]:
    """Return a finding where steps of a pipeline learn from labels, or fit the rows they are given.

    Steps of scikit-learn declare whether they learn from labels, and ``fit`` reads that.
    """
    steps = split_pipeline(estimator)[0]
    names = ", ".join(type(step).__name__ for step in steps)
    remedy = "leave the step unfrozen, or fit the whole estimator and calibrate FrozenEstimator("
    remedy += "estimator) on rows that no part of it has seen"
    for part in [part for step in steps for part in parts_of(step)]:
        model = _model_in_function(part) if isinstance(part, FunctionTransformer) else None
        if model is not None:
            message = (
                f"a FunctionTransformer calls a fitted {type(model).__name__}, which may have seen "
                f"the labels of these rows: {remedy}"
            )
            return [Finding("frozen step", "error", message)]
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MAX_ROWS])
    X, y = _safe_indexing(X, rows), y[rows]
    frozen = {
        name: part.estimator
        for name, part in estimator.get_params(deep=True).items()
        if isinstance(part, FrozenEstimator)
    }
    reason = None
    parts = [part for step in (*steps, *frozen.values()) for part in (step, *parts_of(step))]
    if not all(map(_is_declared, parts)):
        reason = _quietly(sees_labels, estimator[:-1], X, y)
        thawed = clone(estimator).set_params(**{name: clone(frozen[name]) for name in frozen})
        if frozen and not reason and _quietly(sees_labels, thawed[:-1], X, y):
            message = f"a frozen step of {names} learns from labels: {remedy}"
            return [Finding("frozen step", "error", message)]
    if not leaves_rows_out(split_pipeline(estimator)[1]):
        return []
    if reason:
        message = (
            f"{reason} ({names}), which their tags do not say: scores out of bag have seen their "
            'own labels. Set target_tags.required in __sklearn_tags__, or use calibrate_on="cv"'
        )
        return [Finding("steps that see labels", "error", message)]
    if _quietly(fits_its_rows, estimator, X, y):
        message = (
            f"the steps before the ensemble ({names}) fit the rows that they are given: scores of "
            'these rows differ from those of new ones. Use calibrate_on="cv"'
        )
        return [Finding("steps that fit their rows", "error", message)]
    return []


def _quietly(test: Callable[..., Any], *args: Any) -> Any:
    """Return the result of a test without warnings, None where the model cannot be tested."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return test(*args)
    except Exception:
        return None


def _is_declared(step: Any) -> bool:
    """Tell whether a step comes from a package whose tags can be relied on."""
    module = type(step).__module__.split(".")[0]
    return module in ("sklearn", "imblearn", "skrub", "vennforest")


def sees_labels(transformers: Pipeline, X: Any, y: NDArray[Any]) -> str | None:
    """Return how labels reach the features that transformers make, None where they do not.

    The transformers are fitted with the labels and without them: equal features reveal no label.
    """
    with_labels, unlabelled = clone(transformers), clone(transformers)
    features = with_labels.fit_transform(X, y)
    if _num_samples(features) != _num_samples(X):
        return "the steps before the ensemble change which rows there are"
    try:
        blind_features = unlabelled.fit_transform(X, None)
    except Exception:
        return "the steps before the ensemble cannot be fitted without labels"
    is_equal = _equal(features, blind_features)
    for step, blind_step in zip(
        split_pipeline(with_labels)[0], split_pipeline(unlabelled)[0], strict=True
    ):
        features = step.transform(X)
        is_equal = is_equal and _equal(features, blind_step.transform(X))
        X = features
    if not is_equal:
        return "the steps before the ensemble make other features with labels than without them"
    return None


def _equal(a: Any, b: Any) -> bool:
    """Tell whether two tables contain the same, numbers to a relative difference of 1e-6."""
    if type(a) is not type(b) or getattr(a, "shape", None) != getattr(b, "shape", None):
        return False
    if hasattr(a, "columns") and list(a.columns) != list(b.columns):
        return False
    is_sparse: bool = issparse(a)
    left, right = (np.asarray(t.toarray() if is_sparse else t) for t in (a, b))
    if left.dtype.kind in "fiub" and right.dtype.kind in "fiub":
        return bool(np.allclose(left, right, rtol=1e-6, atol=0, equal_nan=True))
    return bool(np.all((left == right) | ((left != left) & (right != right))))


def fits_its_rows(estimator: Pipeline, X: Any, y: NDArray[Any]) -> bool:
    """Tell whether out-of-bag scores of rows that steps were fitted to differ from those of others.

    Encoders of nearly unique texts tell rows that they saw from new ones. Steps and a small
    ensemble are fitted to half of the rows, and scores of both halves by as many members compared.
    Scores and not features, since components of more columns than rows differ at no cost.
    """
    steps = split_pipeline(estimator)[0]
    if len(y) < 100 or all(
        type(step).__name__ in SIMPLE_STEPS and _is_declared(step) for step in steps
    ):
        return False
    in_training = np.random.default_rng(0).integers(0, 2, len(y)) == 0
    rows, new_rows = np.flatnonzero(in_training), np.flatnonzero(~in_training)
    small = clone(estimator)
    small[-1].set_params(n_estimators=min(N_TREES_TO_COMPARE, small[-1].n_estimators))
    model = CalibratedClassifier(
        small, method="none", calibrate_on="oob", subforest="exchangeable", random_state=0
    ).fit(_safe_indexing(X, rows), y[rows])
    scores = model.calibration_scores_
    new_scores = model.predict_proba(_safe_indexing(X, new_rows))
    if scores.ndim == 1:
        scores, new_scores = scores[:, None], new_scores[:, 1:]
    p_values = [ks_2samp(a, b).pvalue for a, b in zip(scores.T, new_scores.T, strict=True)]
    return bool(min(p_values) * len(p_values) < MAX_P_VALUE_OF_SCORES)


def _model_in_function(step: FunctionTransformer) -> Any:
    """Return a fitted supervised model that a function calls, None where there is none.

    It may be the owner of a method, an argument of a partial, or a variable of an outer scope.
    """
    values = [step.func, step.inverse_func, *(step.kw_args or {}).values()]
    while values:
        value = values.pop()
        if isinstance(value, BaseEstimator):
            if is_supervised(value) and any(name.endswith("_") for name in vars(value)):
                return value
        elif isinstance(value, partial):
            values += [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, MethodType):
            values.append(value.__self__)
        elif isinstance(value, FunctionType):
            scope = getclosurevars(value)
            values += scope.nonlocals.values()
            values += [v for v in scope.globals.values() if isinstance(v, BaseEstimator)]
    return None
