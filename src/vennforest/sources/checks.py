"""Cheap checks of the data and the estimator given to ``fit``; `vennforest.audit` has others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_selection import SelectorMixin, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, get_tags

from vennforest._messages import shown, warn
from vennforest._validation import CodeArray, FloatArray, InputError, IntArray, without_arrow
from vennforest.sources.data import TrainingData
from vennforest.sources.estimators import nested_estimators, split_pipeline, without_frozen
from vennforest.sources.row_hashes import HashArray, as_array, hash_rows

MIN_ROWS_TO_COMPARE, MAX_SHARE_OF_COPIES = 20, 0.05
"""Copies are reported from so many rows on, and above this share of the rows, beyond chance."""

WEIGHT_TOLERANCE = 1e-9
"""Relative difference up to which the weights of a class count as equal."""

MISSING_LABELS = ("", "nan", "<na>", "nat", "null")
"""Labels, without case and spaces around them, that stand for a missing value."""


def check_training_data(
    estimators: Sequence[Any], data: TrainingData, hashes: HashArray, sources: Sequence[str]
) -> None:
    """Refuse or warn of faults of the estimators and the data that show before a fit."""
    _check_labels(data.classes)
    if data.weight is not None:
        _check_weights(data.codes, data.classes, data.weight)
    unfitted = [e for e in estimators if not isinstance(e, FrozenEstimator)]
    for estimator in estimators:
        _check_parts(estimator)
    if unfitted and "training" not in sources:
        share = float(copied_rows(data.X, hashes, data.groups).mean())
        if share:
            warn(copies_message(share))


# --- copies --------------------------------------------------------------------------------------


def copies_message(share: float) -> str:
    """Return the warning of a share of rows that are copies of others."""
    return (
        f"{share:.0%} of the rows are exact copies of other rows: one trains where the other "
        "calibrates, so probabilities and bounds may be too certain. Pass groups= to keep the rows "
        "of one person or object together, or weights in place of copies"
    )


def copied_rows(X: Any, hashes: HashArray, groups: IntArray | None = None) -> NDArray[np.bool_]:
    """Return which rows of X (n, d) are equal to another one, (n,); none where chance explains it.

    Equal rows of one group do not count. Rows of categories and whole numbers alone, among which
    equal ones are common, are not compared.
    """
    n = len(hashes)
    _, number, counts = np.unique(hashes, return_inverse=True, return_counts=True)
    copied: NDArray[np.bool_] = counts[number] > 1
    limit = MAX_SHARE_OF_COPIES * n
    if n < MIN_ROWS_TO_COMPARE or copied.sum() <= limit:
        return np.zeros(n, bool)
    if groups is not None:
        rows = np.unique(np.column_stack([number, groups]), axis=0)[:, 0]
        copied = np.bincount(rows)[number] > 1
    if hasattr(X, "tocsr"):
        columns, measured, expected = [], bool((X.data != np.floor(X.data)).any()), 0.0
    else:
        columns = features_of(X)
        measured, expected = any(map(is_measured_column, columns)), _equal_by_chance(columns)
    if not measured or copied.sum() - expected <= limit:
        return np.zeros(n, bool)
    return copied


def _equal_by_chance(columns: Sequence[NDArray[Any]]) -> float:
    """Return how many of n rows would equal another one if the columns were independent."""
    n = len(columns[0])
    log_probability = 0.0
    for column in columns:
        _, counts = np.unique(hash_rows(column.reshape(-1, 1)), return_counts=True)
        n_pairs = (counts * (counts - 1.0)).sum()
        if not n_pairs:
            return 0.0
        log_probability += np.log(n_pairs / (n * (n - 1)))
    # Two rows are equal with this probability, and a row equals one of n - 1 others:
    return float(n * -np.expm1(-(n - 1) * np.exp(log_probability)))


def features_of(X: Any) -> list[NDArray[Any]]:
    """Return the columns (n,) of an array or data frame (n, d), or of one column (n,)."""
    X = without_arrow(X)
    if hasattr(X, "columns"):  # whose names may occur twice
        cells = getattr(X, "iloc", X)
        return [np.asarray(cells[:, j]) for j in range(len(X.columns))]
    table = as_array(X)
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


# --- labels and weights --------------------------------------------------------------------------


def check_class_examples(
    codes: CodeArray, classes: NDArray[Any], weight: FloatArray | None, is_frozen: bool
) -> None:
    """Refuse labels of one class or none; warn of those of a frozen model without an example."""
    counts = np.bincount(codes if weight is None else codes[weight > 0], minlength=len(classes))
    missing = classes[counts == 0].tolist()
    if len(codes) and is_frozen and missing:
        warn(
            f"y has no example of {missing}, which the frozen model knows: nothing says how often "
            "they happen, so their probability is not calibrated. Calibrate on rows of every class"
        )
    elif len(classes) - len(missing) < 2:
        raise ValueError(
            "y must contain at least two classes with a weight above zero, got one class: "
            f"{shown(classes[counts > 0].tolist())}"
        )


def _check_labels(classes: NDArray[Any]) -> None:
    """Warn of labels that are spelled in several ways, or stand for a missing value."""
    spellings: dict[str, list[str]] = defaultdict(list)
    for label in classes.tolist():
        if isinstance(label, str):
            spellings[" ".join(label.split()).casefold()].append(label)
    ambiguous = [", ".join(map(repr, texts)) for texts in spellings.values() if len(texts) > 1]
    if ambiguous:
        warn(
            f"y has labels that differ only in case or spaces: {' and '.join(ambiguous[:3])}. "
            f"They count as {len(classes)} classes; correct them if they are meant to be the same"
        )
    for label in classes.tolist():
        if isinstance(label, str) and label.strip().casefold() in MISSING_LABELS:
            warn(
                f"y has a label that stands for a missing value: {label!r}. It counts as a class; "
                "leave out the rows without a label"
            )
            return


def _check_weights(codes: CodeArray, classes: NDArray[Any], weight: FloatArray) -> None:
    """Warn of weights (n,) that balance the classes."""
    counted = weight > 0
    codes, weight = codes[counted], weight[counted]
    present, codes, counts = np.unique(codes, return_inverse=True, return_counts=True)
    starts, in_order = np.cumsum(counts) - counts, weight[np.argsort(codes, kind="stable")]
    low, high = np.minimum.reduceat(in_order, starts), np.maximum.reduceat(in_order, starts)
    is_constant = (high - low <= WEIGHT_TOLERANCE * high).all() and counts.min() > 1
    if not is_constant or np.ptp(high) <= WEIGHT_TOLERANCE * high.max():
        return
    share = counts / counts.sum()
    weighted_share = np.bincount(codes, weight) / weight.sum()
    worst = int(np.abs(weighted_share - share).argmax())
    label = classes.tolist()[present[worst]]
    warn(
        f"sample_weight is constant within each class and differs between classes: probabilities "
        f"will be those of a population in which class {label!r} makes up "
        f"{weighted_share[worst]:.1%} of the cases and not {share[worst]:.1%}. Leave the weights "
        "out (calibration needs no balanced classes), or use with_prior for other class frequencies"
    )


# --- parts of the estimator ----------------------------------------------------------------------


def _check_parts(estimator: Any) -> None:
    """Refuse a supervised part that is not trained again, and a bag of others than classifiers."""
    is_frozen = isinstance(estimator, FrozenEstimator)
    for part in nested_estimators(without_frozen(estimator)):
        if isinstance(part, BaggingClassifier):
            member = split_pipeline(part.estimator)[1]
            kind = getattr(tags_of(member), "estimator_type", None)
            if kind not in (None, "classifier"):
                raise InputError(
                    "estimator must be a bag of classifiers, which give probabilities or votes, "
                    f"got a {type(part).__name__} over {type(member).__name__}, a {kind}: use a "
                    "classifier in it"
                )
        if is_frozen:  # trained on other rows as a whole
            continue
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
    tags = tags_of(part)
    return tags is not None and bool(tags.requires_fit and tags.target_tags.required)


def tags_of(part: Any) -> Tags | None:
    """Return the tags of an estimator, None without any."""
    with suppress(Exception):  # tags of other packages may fail
        return get_tags(part) if isinstance(part, BaseEstimator) else None
    return None


def steps_obstacle(estimator: Any) -> str | None:
    """Return why the steps before an ensemble rule out-of-bag scores out, None where none does."""
    if not isinstance(estimator, Pipeline):
        return None
    for step in split_pipeline(estimator)[0]:
        for part in [step, *nested_estimators(step)]:
            name = type(part).__name__
            if hasattr(part, "fit_resample"):
                return f"{name} changes which rows there are"
            if is_supervised(part):
                return f"{name} learns from the labels of all examples"
    cls = type(estimator)
    is_stepwise = cls.__module__.split(".")[0] in ("sklearn", "imblearn") or (
        cls.fit is Pipeline.fit and cls._fit is Pipeline._fit
    )
    return None if is_stepwise else f"{cls.__name__} fits its steps in a way of its own"
