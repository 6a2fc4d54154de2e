"""Checks of the data, the estimator and the folds given to ``fit``: cheap and deterministic.

Each looks at what is declared: shapes, labels, weights, indices, tags of scikit-learn, and one hash
a row. What takes a fit or a search to find is looked for by `vennforest.audit`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_selection import SelectorMixin, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier
from sklearn.utils import get_tags

from vennforest._messages import warn
from vennforest._validation import (
    CodeArray,
    FloatArray,
    InputError,
    IntArray,
    warn_of_small_weights,
)
from vennforest.sources.base import TrainingData, parts_of, transformers_of
from vennforest.sources.row_hashes import hash_rows

MIN_ROWS_TO_COMPARE = 20
"""Rows below which copies are not looked for."""

MAX_SHARE_OF_COPIES = 0.05
"""Share of rows with a copy, beyond what chance gives, up to which nothing is reported."""

MAX_SHARE_OF_KNOWN_ROWS = 0.05
"""Share of the rows of a table for early stopping that may be rows of X."""

MIN_EXAMPLES_PER_FOLD = 2
"""Mean number of calibration examples in a fold with a calibrator of its own."""

WEIGHT_TOLERANCE = 1e-9
"""Relative difference up to which the weights of a class count as equal."""

SEMI_SUPERVISED = (SelfTrainingClassifier, LabelPropagation, LabelSpreading)
"""Estimators for which the label -1 means that a row has none."""

MISSING_LABELS = ("", "nan", "<na>", "nat", "null")
"""Labels, without case and spaces around them, that stand for a missing value."""

THRESHOLD_CLASSIFIERS = (FixedThresholdClassifier, TunedThresholdClassifierCV)


def check_training_data(estimator: Any, data: TrainingData, source: str) -> None:
    """Refuse or warn of faults of the estimator and the data that show before a fit.

    ``source`` is the name of the source of calibration scores.
    """
    _check_parts(estimator)
    _check_labels(estimator, data.classes)
    _check_group_names(data)
    _check_early_stopping(data.X, data.fit_params)
    _check_weights(data.codes, data.classes, data.weight)
    _check_thresholds(estimator)
    if source != "training" and not isinstance(estimator, FrozenEstimator):
        warn_of_copies(data.X, data.groups)


def check_frozen(data: TrainingData) -> None:
    """Warn of groups for a frozen model, which has no folds to keep them together."""
    groups = data.groups
    if groups is not None and len(np.unique(groups)) < len(groups):
        warn(
            "groups has no effect with a frozen model: rows of one group calibrate as if they were "
            "independent, so bounds and intervals may be too narrow. Calibrate on one row of each "
            "group"
        )


def warn_of_copies(X: Any, groups: IntArray | None = None) -> None:
    """Warn where many rows of X (n, d) are exact copies of rows in other groups (n,)."""
    try:
        share = float(copied_rows(X, groups).mean())
    except (AttributeError, KeyError, TypeError, ValueError):  # a table without rows to hash
        return
    if share:
        warn(copies_message(share))


def copies_message(share: float) -> str:
    """Return the warning of a share of rows that are copies of others."""
    return (
        f"{share:.0%} of the rows are exact copies of other rows: one trains where the other "
        "calibrates, so probabilities and bounds may be too certain. Pass groups= to keep the rows "
        "of one person or object together, or weights in place of copies"
    )


def copied_rows(X: Any, groups: IntArray | None = None) -> NDArray[np.bool_]:
    """Return which rows of X (n, d) are equal to another one, (n,); none where chance explains it.

    With groups (n,), numbered from 0, equal rows of one group do not count. Rows of categories and
    whole numbers alone, among which equal ones are common, are not compared.
    """
    hashes = hash_rows(X)
    n = len(hashes)
    _, number, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    copied: NDArray[np.bool_] = counts[number] > 1
    limit = MAX_SHARE_OF_COPIES * n
    if n < MIN_ROWS_TO_COMPARE or copied.sum() <= limit:
        return np.zeros(n, bool)
    if groups is not None:
        rows = np.unique(np.column_stack([number, groups]), axis=0)[:, 0]
        copied = np.bincount(rows)[number] > 1
    is_sparse: bool = issparse(X)
    if is_sparse:
        is_measured = bool((X.data != np.floor(X.data)).any())
        expected = 0.0
    else:
        columns = columns_of(X)
        is_measured = any(map(is_measured_column, columns))
        expected = _equal_rows_by_chance(columns)
    if not is_measured or copied.sum() - expected <= limit:
        return np.zeros(n, bool)
    return copied


def _equal_rows_by_chance(columns: Sequence[NDArray[Any]]) -> float:
    """Return how many of n rows would equal another one if the columns were independent.

    Two rows are equal with the product of the columns' probabilities of equal cells, so a row
    equals one of the n - 1 others with a probability of about 1 - exp(-(n - 1) times that).
    """
    n = len(columns[0])
    log_probability = 0.0
    for column in columns:
        _, counts = np.unique(hash_rows(column.reshape(-1, 1)), return_counts=True)
        n_pairs = (counts * (counts - 1.0)).sum()
        if not n_pairs:
            return 0.0
        log_probability += np.log(n_pairs / (n * (n - 1)))
    return float(n * -np.expm1(-(n - 1) * np.exp(log_probability)))


def columns_of(X: Any) -> list[NDArray[Any]]:
    """Return the columns (n,) of an array or data frame (n, d), or of one column (n,)."""
    if hasattr(X, "columns"):
        return [np.asarray(X[name]) for name in X.columns]
    table = np.asarray(X)
    return [table] if table.ndim < 2 else list(table.T)


def is_measured_column(column: NDArray[Any]) -> bool:
    """Tell whether a column (n,) contains fractions, with different values in most rows."""
    if column.dtype.kind == "O":
        try:
            column = column.astype(np.float64)
        except (TypeError, ValueError):
            return False
    if column.ndim != 1 or column.dtype.kind != "f":
        return False
    present = column[np.isfinite(column)]
    return bool((present != np.floor(present)).any() and len(np.unique(column)) > len(column) / 4)


def _check_labels(estimator: Any, classes: NDArray[Any]) -> None:
    """Refuse labels that the estimator would misread; warn of misspelled and missing ones."""
    parts = list(parts_of(estimator))
    if -1 in classes.tolist() and any(isinstance(part, SEMI_SUPERVISED) for part in parts):
        raise InputError(
            "y must have a label in every row, got -1, which semi-supervised estimators take for "
            "'not labelled' and which would become a class of its own: fit the semi-supervised "
            "estimator to all rows first, then calibrate FrozenEstimator(model) on labelled rows "
            "that it has not seen"
        )
    is_numbered = any(getattr(part, "numbers_labels", False) for part in parts)
    numbers = list(range(len(classes)))
    for part in parts:
        needs_numbers = type(part).__module__.startswith("xgboost.") and not is_numbered
        if needs_numbers and classes.tolist() != numbers:
            raise InputError(
                f"y must be the whole numbers from 0 to {len(classes) - 1} for "
                f"{type(part).__name__}, got labels such as {classes.tolist()[0]!r}: "
                "use sklearn.preprocessing.LabelEncoder().fit_transform(y)"
            )
    spellings = spelled_twice(classes)
    if spellings:
        warn(
            f"y has labels that differ only in case or spaces: {spellings}. They count as "
            f"{len(classes)} classes; correct them if they are meant to be the same"
        )
    for label in classes.tolist():
        if isinstance(label, str) and label.strip().casefold() in MISSING_LABELS:
            warn(
                f"y has a label that stands for a missing value: {label!r}. It counts as a class; "
                "leave out the rows without a label"
            )
            return


def spelled_twice(names: NDArray[Any]) -> str:
    """Return examples of texts that differ only in case or spaces; empty where none do."""
    spellings: dict[str, list[str]] = defaultdict(list)
    for name in names.tolist():
        if isinstance(name, str):
            spellings[" ".join(name.split()).casefold()].append(name)
    ambiguous = [same for same in spellings.values() if len(same) > 1]
    return " and ".join(", ".join(map(repr, same)) for same in ambiguous[:3])


def _check_group_names(data: TrainingData) -> None:
    """Warn of groups whose names differ only in case or spaces."""
    if data.split_params.get("groups") is None:
        return
    names = np.asarray(data.split_params["groups"])
    spellings = spelled_twice(np.unique(names.astype(str))) if names.dtype.kind in "OUST" else ""
    if spellings:
        warn(
            f"groups differ only in case or spaces: {spellings}. They count as different groups, "
            "whose rows may be on both sides of a split; correct them if they are meant to be the "
            "same"
        )


def check_order(X: Any, **aligned: Any) -> None:
    """Refuse masked cells, and warn where X and its labels have different orders of one index."""
    for name, values in {"X": X, **aligned}.items():
        if isinstance(values, np.ma.MaskedArray) and np.ma.getmaskarray(values).any():
            raise InputError(
                f"{name} must have no masked cells, whose hidden values would be used, got some: "
                "use filled(np.nan), or leave the rows out"
            )
    index: Any = getattr(X, "index", None)
    for name, values in aligned.items():
        other: Any = getattr(values, "index", None)
        if not hasattr(index, "equals") or not hasattr(other, "equals") or index.equals(other):
            continue
        if len(index) == len(other) and index.is_unique and index.isin(other).all():
            warn(
                f"{name} has the index of X in another order, and rows are matched by their place: "
                f"use {name}.loc[X.index] if the index names the rows"
            )


def _check_early_stopping(X: Any, fit_params: Mapping[str, Any]) -> None:
    """Warn of calibration rows that the estimator's ``fit`` is given for early stopping."""
    tables = [(name, table) for name, value in fit_params.items() for table in _tables(value)]
    if not tables:
        return
    hashes = hash_rows(X)
    for name, table in tables:
        if table.shape[1:] != np.shape(X)[1:]:
            continue
        share = np.isin(hash_rows(table), hashes).mean()
        if share > MAX_SHARE_OF_KNOWN_ROWS:
            warn(
                f"{name} has rows of X ({share:.0%} of its rows): a model that was chosen by rows "
                "that calibrate it is too certain on them. Give rows that are not in X, or let the "
                "estimator hold rows of its own out"
            )


def _tables(value: Any) -> Iterator[Any]:
    """Yield the tables (m, d) in an argument of ``fit``, such as ``[(X, y)]``."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _tables(item)
    elif len(getattr(value, "shape", ())) == 2 and value.shape[0] and value.shape[1] > 1:
        yield value


def _check_weights(codes: CodeArray, classes: NDArray[Any], weight: FloatArray | None) -> None:
    """Warn of weights (n,) that are constant within each class and differ, or that sum to little.

    Such weights balance the classes. A weight counts as repeated observations, so probabilities
    become those of a population with the weighted class frequencies.
    """
    if weight is None:
        return
    warn_of_small_weights(float(weight.sum()), int(np.count_nonzero(weight)))
    k = len(classes)
    low, high = np.full(k, np.inf), np.zeros(k)
    counted = weight > 0
    np.minimum.at(low, codes[counted], weight[counted])
    np.maximum.at(high, codes[counted], weight[counted])
    present = high > 0
    is_constant = (high[present] - low[present] <= WEIGHT_TOLERANCE * high[present]).all()
    has_several = np.bincount(codes[counted], minlength=k)[present].min() > 1
    if not (is_constant and has_several and np.ptp(high[present]) > WEIGHT_TOLERANCE * high.max()):
        return
    share = np.bincount(codes[counted], minlength=k) / counted.sum()
    weighted_share = np.bincount(codes, weight, minlength=k) / weight.sum()
    code = int(np.abs(weighted_share - share).argmax())
    warn(
        f"sample_weight is constant within each class and differs between classes: probabilities "
        f"will be those of a population in which class {classes[code]!r} makes up "
        f"{weighted_share[code]:.1%} of the cases and not {share[code]:.1%}. Leave the weights out "
        "(calibration needs no balanced classes), or use with_prior for other class frequencies"
    )


def _check_parts(estimator: Any) -> None:
    """Refuse a supervised part that cannot be trained again, and one that changes X in place."""
    for part in parts_of(estimator):
        if isinstance(part, TransformerMixin) and getattr(part, "copy", True) is False:
            raise InputError(
                "estimator must leave X as it is, because X is read more than once, got "
                f"{type(part).__name__}(copy=False): use copy=True"
            )
    if isinstance(estimator, FrozenEstimator):
        return
    for part in parts_of(estimator):
        if isinstance(part, FrozenEstimator) and is_supervised(part.estimator):
            name = f"a frozen {type(part.estimator).__name__} in {type(estimator).__name__}"
        elif isinstance(cv := getattr(part, "cv", None), str) and cv == "prefit":
            name = f'{type(part).__name__}(cv="prefit")'
        else:
            continue
        raise InputError(
            "estimator must consist of parts that can be trained again, because each fold or bag "
            f"leaves rows out, got {name}: leave the part unfrozen, or fit the whole estimator and "
            "calibrate FrozenEstimator(estimator) on rows that no part of it has seen"
        )


def is_supervised(part: Any) -> bool:
    """Tell whether an estimator says in its tags, or as a selection, that it learns from labels."""
    if isinstance(part, SelectorMixin):  # whose tags leave it open
        return not isinstance(part, VarianceThreshold)
    if not isinstance(part, BaseEstimator):
        return False
    try:
        tags = get_tags(part)
    except Exception:  # tags of other packages may fail
        return False
    return bool(tags.requires_fit and tags.target_tags.required)


def steps_obstacle(estimator: Any) -> str | None:
    """Return why the steps before an ensemble rule out-of-bag scores out, None where none does.

    Steps declare it: by ``fit_resample``, by scikit-learn's tag ``target_tags.required``, or as
    selections of features.
    """
    if not isinstance(estimator, Pipeline):
        return None
    for step in parts_of(transformers_of(estimator)):
        name = type(step).__name__
        if hasattr(step, "fit_resample"):
            return f"{name} changes which rows there are"
        if is_supervised(step):
            return f"{name} learns from the labels of all examples"
    cls = type(estimator)
    is_stepwise = cls.__module__.split(".")[0] in ("sklearn", "imblearn") or (
        cls.fit is Pipeline.fit and cls._fit is Pipeline._fit
    )
    return None if is_stepwise else f"{cls.__name__} fits its steps in a way of its own"


def _check_thresholds(estimator: Any) -> None:
    """Warn of a decision threshold inside, which calibrated probabilities do not keep."""
    for part in parts_of(estimator):
        if isinstance(part, THRESHOLD_CLASSIFIERS):
            name = type(part).__name__
            warn(
                f"the threshold of {name} has no effect: predict returns the most probable class. "
                f"Put the calibrated classifier inside {name}, or use vennforest.decisions"
            )
            return


def check_folds(folds: Sequence[tuple[IntArray, IntArray]], ensemble: bool) -> None:
    """Refuse folds that score rows twice or train on them, or with too few rows to calibrate.

    ``folds`` are pairs of row indices (train, test); ``ensemble`` is whether each fold has a
    calibrator of its own.
    """
    for _, test in folds:
        if len(np.unique(test)) < len(test):
            raise InputError(
                "cv must score a row at most once in a fold, got a fold that repeats some: "
                "use a splitter of scikit-learn, or a number of folds"
            )
    overlap = max((len(np.intersect1d(train, test)) for train, test in folds), default=0)
    if overlap:
        raise InputError(
            f"cv must not score rows that it trains on, got a fold with {overlap} such rows: "
            "use a splitter of scikit-learn, or a number of folds"
        )
    n_scored = sum(len(test) for _, test in folds)
    if ensemble and len(folds) > 1 and n_scored < MIN_EXAMPLES_PER_FOLD * len(folds):
        raise InputError(
            f"cv must leave at least {MIN_EXAMPLES_PER_FOLD} examples in a fold with "
            f"ensemble=True, whose calibrator learns the classes from them, got {n_scored} in "
            f"{len(folds)} folds: use ensemble=False or fewer folds"
        )
