"""Scores of rows kept apart from training: by cross-validation, or of a held-out part."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    check_cv,
    train_test_split,
)

from vennforest._messages import shown, warn
from vennforest._validation import CodeArray, InputError, IntArray
from vennforest.sources.data import Fold, TrainingData
from vennforest.sources.estimators import share_steps

MIN_EXAMPLES_OF_OTHER_CLASSES = 8
"""Examples beside the largest class below which a random split may train on one class."""

MIN_EXAMPLES_PER_FOLD = 2
"""Mean number of calibration examples in a fold with a calibrator of its own."""

MIN_SHARE_TRAINED_ON = 0.45
"""Share of the rows below which a fold's model is much weaker than one of all: halves are not."""

Split = tuple[IntArray, IntArray]
"""Rows to train on and rows to calibrate on."""


def held_out_fold(
    estimator: Any, data: TrainingData, size: float | int, random_state: RandomState
) -> list[Fold]:
    """Train on one part of the data and calibrate on the rest.

    The part is drawn at random, so held-out examples and new ones are exchangeable (Johansson et
    al. 2018; Niculescu-Mizil & Caruana 2005); where it is stratified, only approximately.
    ``size`` is its share, below 1, or its number of examples, or of groups where there are any.
    """
    data = data.with_positive_weight()
    groups = data.groups
    n = len(data) if groups is None else int(groups.max()) + 1
    if not 1 <= (n * size if size < 1 else size) <= n - 1:
        unit = "examples" if groups is None else "groups"
        raise ValueError(f"holdout_size must leave {unit} on both sides of {n}, got {shown(size)}")
    index, held_index = np.arange(n), None
    options: dict[str, Any] = {"test_size": size, "random_state": random_state}
    if groups is None and must_stratify(data, "the part held out"):
        with suppress(ValueError):  # a class of one example, or more classes than rows in a part
            held_index = train_test_split(index, stratify=data.codes, **options)[1]
    if held_index is None:
        held_index = train_test_split(index, **options)[1]
    is_held = np.isin(index if groups is None else groups, held_index)
    model = data.rows(np.flatnonzero(~is_held)).fit(estimator)
    return [data.rows(np.flatnonzero(is_held)).fold(model)]


def must_stratify(data: TrainingData, part: str) -> bool:
    """Tell whether a random split risks a training part of one class, and warn where it does."""
    is_other = data.codes != np.bincount(data.codes, minlength=len(data.classes)).argmax()
    unit = "examples" if data.groups is None else "groups with examples"
    n_others = int(is_other.sum()) if data.groups is None else len(set(data.groups[is_other]))
    if n_others >= MIN_EXAMPLES_OF_OTHER_CLASSES:
        return False
    warn(
        f"y contains {n_others} {unit} beside the largest class: {part} is stratified so no "
        "model is trained on one class alone, and bounds are not exactly valid"
    )
    return True


def cross_validation_folds(
    estimator: Any, data: TrainingData, settings: Any, random_state: RandomState
) -> list[Fold]:
    """Train a model per fold and score the examples left out of it.

    ``settings`` has the parameters ``cv``, ``ensemble`` and ``n_jobs`` of a classifier. Without
    ``ensemble`` the scores of all folds make one calibration set, and one model is trained on all
    the data.
    """
    ensemble = bool(settings.ensemble)
    splits = _splits(data, _splitter(data, settings.cv, random_state))
    all_rows = np.arange(len(data)) if data.weight is None else np.flatnonzero(data.weight > 0)
    _check_splits(splits, len(all_rows), ensemble)
    training_sets = [train for train, _ in splits]
    _check_fold_classes(training_sets, data.codes, data.classes)
    if not ensemble:
        training_sets.append(all_rows)
    fitted = joblib.Parallel(n_jobs=settings.n_jobs)(
        joblib.delayed(_fit_rows)(estimator, data, rows) for rows in training_sets
    )
    models = [model for model, _ in fitted]
    for text, category in dict.fromkeys(pair for _, caught in fitted for pair in caught):
        warnings.warn(text, category, stacklevel=3)
    folds = [
        data.rows(test).fold(model)
        for model, (_, test) in zip(models[: len(splits)], splits, strict=True)
    ]
    if ensemble:
        share_steps(models)
        return folds
    scored = np.concatenate([test for _, test in splits])
    order = np.argsort(scored, kind="stable")
    scores = np.concatenate([fold.scores for fold in folds])[order]
    return [data.rows(scored[order]).fold(models[-1], scores)]


def _fit_rows(
    estimator: Any, data: TrainingData, rows: IntArray
) -> tuple[Any, list[tuple[str, type[Warning]]]]:
    """Return a model of some rows, and its warnings, which a worker process would print."""
    # Rows are copied in the worker: not those of all folds at once.
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = data.rows(rows).fit(estimator)
    return model, [(str(warning.message), warning.category) for warning in caught]


def _splitter(data: TrainingData, cv: Any, random_state: RandomState) -> Any:
    """Return the splitter that ``cv`` stands for; a number of folds are drawn at random.

    The folds are the same for all methods: stratified ones would make bounds inexact, and a method
    judged or replaced on other folds would be another model.
    """
    if not (cv is None or isinstance(cv, Integral)):
        return check_cv(cv, data.codes, classifier=True)
    kind: Any = KFold if data.groups is None else GroupKFold
    max_folds, of_rows = len(data), "rows"
    if must_stratify(data.with_positive_weight(), "each fold"):
        kind = StratifiedKFold if data.groups is None else StratifiedGroupKFold
        max_folds, of_rows = int(np.bincount(data.codes).max()), "rows of the largest class"
    n_folds = 5 if cv is None else int(cv)
    if n_folds > max_folds:
        raise InputError(f"cv must be at most the number of {of_rows}, {max_folds}, got {n_folds}")
    if data.groups is not None:
        n_folds = at_most_groups(n_folds, data.with_positive_weight().groups, warn)
    return kind(n_folds, shuffle=True, random_state=random_state)


def at_most_groups(n_folds: int, groups: Any, tell: Callable[[str], Any]) -> int:
    """Return the number of folds, limited to the number of distinct ``groups`` (n,).

    If that is below ``n_folds``, ``tell`` is called with a sentence that says so.
    """
    n_groups = len(np.unique(groups))
    if n_groups < 2:
        raise InputError(
            f"groups must be at least two, got {n_groups}: no fold can be kept apart from the rest"
        )
    if n_groups < n_folds:
        tell(f"there are {n_groups} groups: {n_groups} folds instead of {n_folds}")
    return min(n_folds, n_groups)


def _splits(data: TrainingData, splitter: Any) -> list[Split]:
    """Return the splits as row numbers of positive weight; folds without any are left out."""
    n, groups = len(data), data.groups
    splits = []
    for parts in splitter.split(data.X, data.codes, **data.split_params):
        sides = []
        for part in map(np.asarray, parts):  # indices or masks
            rows = np.flatnonzero(part) if part.dtype == bool else part.astype(np.intp)
            if len(wrong := rows[(rows < 0) | (rows >= n)]):
                raise InputError(f"cv must give row numbers from 0 to {n - 1}, got {wrong[0]}")
            sides.append(rows)
        train, test = sides
        if groups is not None and (n_split := len(np.intersect1d(groups[train], groups[test]))):
            raise ValueError(
                "cv must keep every group on one side, got a splitter that parts "
                f"{n_split} of them: give a number of folds, or GroupKFold"
            )
        if data.weight is not None:
            train, test = train[data.weight[train] > 0], test[data.weight[test] > 0]
        if len(test):
            splits.append((train, test))
    return splits


def _check_fold_classes(
    training_sets: Sequence[IntArray], codes: CodeArray, classes: NDArray[Any]
) -> None:
    """Refuse a fold that trains on one class; warn of the classes that a fold's model never sees.

    Classes without any row in the training sets together are not missed.
    """
    trained_on = [np.bincount(codes[rows], minlength=len(classes)) > 0 for rows in training_sets]
    for occurs in trained_on:
        if occurs.sum() < 2:
            raise InputError(
                "cv must leave two classes or more to train on in every fold, got a fold with "
                f"{shown(classes[occurs].tolist())} alone: use StratifiedKFold, or fewer folds"
            )
    is_missed = np.any(trained_on, axis=0) & ~np.all(trained_on, axis=0)
    if is_missed.any():
        n_folds = sum(bool((is_missed & ~occurs).any()) for occurs in trained_on)
        warn(
            f"cv leaves {n_folds} of {len(trained_on)} folds without a training row of class "
            f"{shown(classes[is_missed].tolist())}: their models give it no probability. Use "
            "StratifiedKFold, fewer folds or other groups"
        )


def _check_splits(splits: Sequence[Split], n_rows: int, ensemble: bool) -> None:
    """Refuse splits that score rows twice, train on them or leave too few to calibrate on."""
    if not splits:
        raise InputError(
            "cv must leave examples out, got no test indices: use a list where a generator ended"
        )
    for train, test in splits:
        if len(np.unique(test)) < len(test):
            raise InputError("cv must score a row at most once in a fold, got a repeated row")
        if n_shared := len(np.intersect1d(train, test)):
            raise InputError(
                f"cv must not score rows that it trains on, got a fold with {n_shared} such rows"
            )
    scored = np.concatenate([test for _, test in splits])
    if not ensemble and len(np.unique(scored)) < len(scored):
        raise ValueError(
            "cv must leave each example out at most once with ensemble=False, got some twice: use "
            "ensemble=True"
        )
    if ensemble and len(splits) > 1 and len(scored) < MIN_EXAMPLES_PER_FOLD * len(splits):
        raise InputError(
            f"cv must leave at least {MIN_EXAMPLES_PER_FOLD} examples in a fold with "
            f"ensemble=True, got {len(scored)} in {len(splits)} folds: use ensemble=False or fewer "
            "folds"
        )
    smallest = min(len(train) for train, _ in splits)
    if ensemble and smallest < MIN_SHARE_TRAINED_ON * n_rows:
        warn(
            f"cv trains one of {len(splits)} models on {smallest} of {n_rows} rows, and "
            "all are averaged: with ensemble=False one model of all rows predicts"
        )
