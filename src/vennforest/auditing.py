"""Search for faults of a model and its data that spoil calibrated probabilities."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import _safe_indexing, indexable
from sklearn.utils.validation import _num_samples, column_or_1d

from vennforest._validation import FloatArray, IntArray
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.classifier import named_estimators
from vennforest.forest import leaves_rows_out
from vennforest.metrics.monotonicity import falling_frequency
from vennforest.sources.checks import copied_rows, copies_message, features_of, is_measured_column
from vennforest.sources.data import nested_estimators, split_pipeline, transform_rows
from vennforest.sources.row_hashes import hash_rows, sketch_rows

MIN_AUDITED_ROWS = 40
MAX_AUDITED_ROWS = 5_000
"""Rows that steps are fitted to and columns are judged by; below the first nothing is reported."""

MAX_SAMPLED_ROWS = 500
N_NEIGHBORS = 20
"""Rows whose neighbours are searched for, and neighbours of each, among which its copies are."""

RELATIVE_DISTANCE_OF_COPIES = 0.1
MIN_COLUMNS = 3
"""Largest distance of a copy, relative to that of the nearest row that is none, and measured
columns from which that is no chance."""

MIN_SHARE_OF_COPIES = 0.02
MIN_SHARE_OF_SYNTHETIC = 0.05
MAX_P_VALUE_OF_COPIES = 1e-5
"""Shares of the sampled rows up to which nothing is reported, and the largest probability of as
clear copies in a table without any (one-sided binomial test)."""

COSINE_TOLERANCE = 1e-9
"""Difference of a cosine from -1 up to which a row lies on the line between two others."""

MIN_ERRORS_REMOVED = 0.98
MIN_AGREEMENT_OF_IDS = 0.98
"""Share of the errors of the most frequent class that a leaking column removes, and of pairs of
rows with one ID that have the same label."""

MAX_ROWS_OF_MODEL = 1_000
MOVE_DISTANCES = (1.0, 3.0)
N_MOVES = 4
STANDARD_ERRORS_OF_MEMORY = 4.0
"""A model is asked at so many rows and beside them, moved so often by these multiples of the
distance to the nearest row, and is more certain at rows by so many standard errors."""

MAX_DIFFERENCE_OF_RETRAINED = 0.1
"""Root mean square difference between a model and one trained again, relative to that between
models of other rows."""

DECLARING_PACKAGES = {"sklearn", "imblearn", "skrub", "vennforest"}
"""Packages whose steps declare in their tags whether they learn from labels."""


@dataclass(frozen=True, eq=False)
class Finding:
    """A fault of a model or its data.

    Attributes
    ----------
    kind : str
        ``"copies"``, ``"near-copies"``, ``"synthetic rows"``, ``"repeated ID"``,
        ``"leaking column"``, ``"training rows"``, ``"steps that see labels"`` or ``"falling
        frequency"``.
    severity : {"error", "warning"}
        ``"error"``: probabilities are wrong; ``"warning"``: they may be.
    message : str
        The fault and its remedy, in one or two sentences.
    rows : ndarray of shape (n_rows,) or None
        Indices of the rows concerned; None if the fault does not concern single rows. Of a large
        table only a sample of the rows is examined.
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
    labels = column_or_1d(y)
    X, labels, sample_weight, groups = indexable(X, labels, sample_weight, groups)
    are_new = _are_new(model, X)
    rows = np.arange(len(labels)) if sample_weight is None else np.flatnonzero(sample_weight)
    if len(rows) < len(labels):
        X = _safe_indexing(X, rows)
    group_codes = None if groups is None else np.unique(groups, return_inverse=True)[1][rows]
    return [
        finding if finding.rows is None else replace(finding, rows=rows[finding.rows])
        for finding in _findings(model, X, labels[rows], group_codes, are_new)
    ]


def _findings(
    model: Any, X: Any, y: NDArray[Any], groups: IntArray | None, are_new: bool
) -> Iterator[Finding]:
    """Yield the findings; all rows have positive weight, and ``are_new`` to a fitted model."""
    estimator = model
    if isinstance(model, CalibratedClassifier):
        estimator = model.estimator
        if hasattr(model, "classes_"):
            codes = np.searchsorted(model.classes_, model.calibration_y_)
            yield from _falling(model.calibration_scores_, codes, model.classes_)
        if are_new:
            found = (_training_rows(fitted, X, y) for fitted in model.estimators_)
            yield from islice(chain.from_iterable(found), 1)
            return
    estimators = list(named_estimators(estimator).values())
    frozen = [e for e in estimators if isinstance(e, FrozenEstimator)]
    for member in frozen:
        if not _is_out_of_bag(member, X, y):
            yield from _training_rows(member.estimator, X, y)
            if member is model and hasattr(member, "predict_proba"):
                codes, p = np.searchsorted(member.classes_, y), member.predict_proba(X)
                scores = p[:, 1] if p.shape[1] == 2 else p
                yield from _falling(scores, codes, member.classes_, groups)
    if len(frozen) == len(estimators):
        return
    codes = np.unique(y, return_inverse=True)[1]
    is_table = not issparse(X) and len(getattr(X, "shape", ())) < 3
    columns = features_of(X) if is_table else []
    yield from _copies(X, columns, codes, groups)
    if len(y) >= MIN_AUDITED_ROWS:
        names = getattr(X, "columns", range(len(columns)))
        yield from _audited_columns(dict(zip(names, columns, strict=True)), codes, groups)
    for member in estimators:
        if isinstance(member, Pipeline):
            yield from _steps(member, X, y)


def _are_new(model: Any, X: Any) -> bool:
    """Return whether rows X are others than those that a classifier was fitted to."""
    if not isinstance(model, CalibratedClassifier) or not hasattr(model, "classes_"):
        return False
    sketch = model._state.row_sketch
    return sketch is not None and not np.array_equal(sketch_rows(hash_rows(X)), sketch)


# --- rows: copies, near-copies, synthetic rows ---------------------------------------------------


def _copies(
    X: Any, columns: list[NDArray[Any]], codes: IntArray, groups: IntArray | None
) -> Iterator[Finding]:
    """Yield a finding if rows are copies or near-copies of others, or synthetic."""
    n = len(codes)
    copied = np.flatnonzero(copied_rows(X, hash_rows(X), groups))
    if len(copied):
        yield Finding("copies", "warning", copies_message(len(copied) / n), copied)
        return
    table, is_measured = _standardized(columns, n)
    n_measured = int(is_measured.sum())
    if n < MIN_AUDITED_ROWS or not table.shape[1] or 0 < n_measured < MIN_COLUMNS:
        return
    sampled = np.sort(np.random.default_rng(0).permutation(n)[:MAX_SAMPLED_ROWS])
    neighbors, distance = _neighbors(table, sampled, groups)
    synthetic = _between_two(table[:, is_measured], codes, sampled, neighbors, distance)
    if synthetic.mean() > MIN_SHARE_OF_SYNTHETIC:
        message = (
            f"about {synthetic.mean():.0%} of the examples lie exactly between two others of their "
            "class, as SMOTE makes them: probabilities would be those of a population with other "
            "class frequencies, and too certain. Fit to the original rows; a rare class needs no "
            "oversampling"
        )
        yield Finding("synthetic rows", "warning", message, sampled[synthetic])
        return
    is_next = distance * RELATIVE_DISTANCE_OF_COPIES > distance[:, :1]
    if not n_measured:
        # Cells of few categories have many equal rows: the next neighbour differs in three.
        is_next &= (table[neighbors] != table[sampled, None]).sum(axis=2) >= MIN_COLUMNS
        is_next[(distance > 0).argmax(axis=1) != is_next.argmax(axis=1)] = False
    rows = np.flatnonzero(is_next.any(axis=1))
    # Without copies either neighbour has the row's label as often (McNemar 1947).
    copy_agrees = codes[neighbors[rows, 0]] == codes[sampled[rows]]
    next_neighbor = neighbors[rows, is_next[rows].argmax(axis=1)]
    next_agrees = codes[next_neighbor] == codes[sampled[rows]]
    better, worse = int((copy_agrees & ~next_agrees).sum()), int((next_agrees & ~copy_agrees).sum())
    if better - worse <= MIN_SHARE_OF_COPIES * len(sampled):
        return
    if binomtest(better, better + worse, alternative="greater").pvalue < MAX_P_VALUE_OF_COPIES:
        message = (
            f"about {len(rows) / len(sampled):.0%} of the examples have a near-copy with their "
            "label: one trains where the other calibrates, so probabilities and bounds may be too "
            "certain. Pass groups= to keep the rows of one person or object together"
        )
        yield Finding("near-copies", "warning", message, sampled[rows])


def _neighbors(
    table: FloatArray, sampled: IntArray, groups: IntArray | None
) -> tuple[IntArray, FloatArray]:
    """Return the nearest rows of m sampled rows, and distances (NaN within a group), (m, k)."""
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
    table: FloatArray, codes: IntArray, sampled: IntArray, neighbors: IntArray, distance: FloatArray
) -> NDArray[np.bool_]:
    """Return a mask (m,) of sampled rows on the line between two neighbours of their class."""
    step = table[neighbors] - table[sampled, None]
    length = np.linalg.norm(step, axis=2)
    usable = (codes[neighbors] == codes[sampled, None]) & (length > 0) & ~np.isnan(distance)
    step /= np.where(length > 0, length, 1)[..., None]
    # Rows that differ in fewer columns lie on lines by chance.
    usable &= (np.abs(step) > COSINE_TOLERANCE).sum(axis=2) >= MIN_COLUMNS
    cosine = step @ step.transpose(0, 2, 1)
    is_straight = usable[:, :, None] & usable[:, None, :] & (cosine < COSINE_TOLERANCE - 1)
    return np.asarray(is_straight.any(axis=(1, 2)))


def _standardized(columns: list[NDArray[Any]], n: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return columns as standardised numbers (n, c), and a mask (c,) of continuous ones.

    Constant columns, and integers or text with a different value in every row, are left out.
    """
    standardized, is_measured = [np.empty((n, 0))], []
    for column in columns:
        numbers, measured = _as_numbers(column), is_measured_column(column)
        if column.dtype.kind not in "biufmM":
            # A normal number for each category, so equal cells stay equal.
            numbers = np.random.default_rng(0).normal(size=n)[numbers.astype(np.intp)]
        present = ~np.isnan(numbers)
        numbers = np.where(present, numbers, np.median(numbers[present]) if present.any() else 0)
        spread = numbers.std()
        if 0 < spread < np.inf and (measured or len(np.unique(numbers)) < n):
            standardized.append(((numbers - numbers.mean()) / spread)[:, None])
            is_measured.append(measured)
    return np.hstack(standardized), np.array(is_measured, dtype=bool)


def _as_numbers(column: NDArray[Any]) -> FloatArray:
    """Return a column (n,) as float64: codes for text, NaN for missing cells."""
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(np.int64))
    if column.dtype.kind in "biuf":
        return np.where(np.isfinite(column), column, np.nan).astype(np.float64)
    return np.unique(list(map(str, column.tolist())), return_inverse=True)[1].astype(np.float64)


# --- columns: repeated IDs, leaks ----------------------------------------------------------------


def _audited_columns(
    columns: dict[Any, NDArray[Any]], codes: IntArray, groups: IntArray | None
) -> Iterator[Finding]:
    """Yield a finding for each column that is a repeated ID or predicts the label on its own."""
    rows = np.sort(np.random.default_rng(0).permutation(len(codes))[:MAX_AUDITED_ROWS])
    codes = np.unique(codes[rows], return_inverse=True)[1]
    for name, column in columns.items():
        column = column[rows]
        if leaks_class(column, codes):
            message = (
                f"column {name!r} alone predicts the label almost without error: leave it out if "
                "it was recorded after the outcome"
            )
            yield Finding("leaking column", "warning", message)
        elif groups is None and repeats_ids(column, codes):
            message = (
                f"column {name!r} looks like a repeated ID, whose rows have one label each: pass "
                "it as groups= to keep the rows of one person or object together, and leave it out "
                "of X"
            )
            yield Finding("repeated ID", "warning", message)


def leaks_class(column: NDArray[Any], codes: IntArray) -> bool:
    """Return whether a small tree on a column (n,) predicts the class (n,) almost perfectly."""
    values, counts = _as_numbers(column), np.bincount(codes)
    n_errors = len(codes) - counts.max()
    if n_errors < 5 or counts.min() < 3:
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
    """Return whether a column (n,) is like an ID: many values, of few rows with one label each."""
    values, n = _as_numbers(column), len(codes)
    if column.dtype.kind in "bmM" or (values % 1 > 0).any():
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
    # Neighbouring values of a number that matters agree in their labels too.
    label = table.argmax(axis=1)
    return bool((label[1:] == label[:-1]).mean() < (1 + by_chance) / 2)


# --- models: trained on the rows, changed later --------------------------------------------------


def _falling(
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


def _is_out_of_bag(estimator: FrozenEstimator, X: Any, y: NDArray[Any]) -> bool:
    """Return whether a frozen model is a forest trained on these rows, with out-of-bag scores."""
    if not leaves_rows_out(split_pipeline(estimator.estimator)[1]):
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibrated = CalibratedClassifier(estimator, method="platt").fit(X, y)
    return calibrated.calibrate_on_ == "oob"


def _training_rows(model: Any, X: Any, y: NDArray[Any]) -> Iterator[Finding]:
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
    index = np.flatnonzero(half)
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
            p, p_copy, p_retrained = (
                _audited_probabilities(m, examined) for m in (model, copy, retrained)
            )
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
    at_row = _audited_probabilities(model, X)[rows, label]
    nearby = np.mean(
        [_audited_probabilities(model, moved)[rows, label] for moved in tables], axis=0
    )
    return np.where(label >= 0, at_row - nearby, np.nan)


def _audited_probabilities(model: Any, X: Any) -> FloatArray:
    """Return probabilities (n, k), or logistic transforms of two-class decision values."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X), np.float64)
    second = expit(model.decision_function(X))
    return np.column_stack([1 - second, second])


def _moved(X: Any, distance: float) -> list[Any]:
    """Return copies of X with rows moved by ``distance`` times that to their nearest row."""
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


# --- steps before the last -----------------------------------------------------------------------


def _steps(estimator: Pipeline, X: Any, y: NDArray[Any]) -> Iterator[Finding]:
    """Yield a finding if steps before a forest learn from labels and do not declare it."""
    steps, last = split_pipeline(estimator)
    packages = {
        type(part).__module__.split(".")[0] for step in steps for part in nested_estimators(step)
    }
    if packages <= DECLARING_PACKAGES or not leaves_rows_out(last):
        return
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MAX_AUDITED_ROWS])
    reason = sees_labels(estimator[:-1], _safe_indexing(X, rows), y[rows])
    if reason:
        names = ", ".join(type(step).__name__ for step in steps)
        message = (
            f"{reason} ({names}), which their tags do not say: scores out of bag have seen their "
            'own labels. Set target_tags.required in __sklearn_tags__, or use calibrate_on="cv"'
        )
        yield Finding("steps that see labels", "error", message)


def sees_labels(transformers: Pipeline, X: Any, y: NDArray[Any]) -> str | None:
    """Return how the features of transformers depend on labels, None if they do not."""
    with_labels, unlabelled = clone(transformers), clone(transformers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            features = _features(with_labels, X, y)
        except Exception:  # they cannot be fitted to so few rows
            return None
        if _num_samples(features[0]) != _num_samples(X):
            return "the steps before the ensemble change which rows there are"
        try:
            blind_features = _features(unlabelled, X, None)
        except Exception:
            return "the steps before the ensemble cannot be fitted without labels"
    if not all(map(_equal, features, blind_features)):
        return "the steps before the ensemble make other features with labels than without them"
    return None


def _features(transformers: Pipeline, X: Any, y: NDArray[Any] | None) -> tuple[Any, Any]:
    """Return the features of rows by ``fit_transform``, and those of the same as new rows."""
    of_training = transformers.fit_transform(X, y)
    return of_training, transform_rows(Pipeline([*transformers.steps, ("model", None)]), X)


def _equal(table: Any, blind_table: Any) -> bool:
    """Return whether two tables are equal, numbers up to a relative difference of 1e-6."""
    if type(table) is not type(blind_table) or np.shape(table) != np.shape(blind_table):
        return False
    is_sparse: bool = issparse(table)
    a, b = (np.asarray(t.toarray() if is_sparse else t) for t in (table, blind_table))
    if a.dtype.kind in "fiub" and b.dtype.kind in "fiub":
        return bool(np.allclose(a, b, rtol=1e-6, atol=0, equal_nan=True))
    return bool(np.all((a == b) | ((a != a) & (b != b))))
