"""Cross-validation: a model per fold scores the examples that it was not trained on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, check_cv

from vennforest._messages import warn
from vennforest._validation import InputError, IntArray, require
from vennforest.sources.data import Fold, TrainingData
from vennforest.sources.holdout import must_stratify

MIN_EXAMPLES_PER_FOLD = 2
"""Mean number of calibration examples in a fold with a calibrator of its own."""

MIN_SHARE_TRAINED_ON = 0.45
"""Share of the rows below which a fold's model is much weaker than one of all: halves are not."""

Split = tuple[IntArray, IntArray]
"""Rows to train on and rows to calibrate on."""


@dataclass(frozen=True)
class Folds:
    """Train a model per fold and score the examples left out of it.

    Parameters
    ----------
    cv : int, splitter or iterable
        A number of folds drawn at random, of whole groups where there are groups; else as
        everywhere in scikit-learn.
    ensemble : bool
        True: a model and a calibration set per fold. False: the scores of all folds make one
        calibration set, and one model is trained on all the data.
    stratify : bool
        With a number of folds: whether all have the classes in the same shares, in the order of
        the rows as in scikit-learn. That gives up exactness, as with `Holdout`.
    """

    cv: Any = 5
    ensemble: bool = True
    stratify: bool = False

    def folds(
        self,
        estimator: Any,
        data: TrainingData,
        *,
        seed: int,
        random_state: np.random.RandomState,
        n_jobs: int | None,
    ) -> list[Fold]:
        """Return one fold per split, or with ``ensemble=False`` one."""
        splitter = self._splitter(data, random_state)
        splits = list(splitter.split(data.X, data.codes, **data.split_params))
        _check_groups(splits, data)
        splits = [(_counted(train, data), _counted(test, data)) for train, test in splits]
        splits = [(train, test) for train, test in splits if len(test)]
        check_folds(splits, self.ensemble)
        self._check_rows(splits, data)
        training_sets = [train for train, _ in splits]
        if not self.ensemble:
            training_sets.append(_counted(np.arange(len(data)), data))
        models = joblib.Parallel(n_jobs=n_jobs)(
            joblib.delayed(_fit_rows)(estimator, data, rows) for rows in training_sets
        )
        if len(models) > 1 and models[0] is models[1]:
            raise ValueError(
                'estimator must be copied by clone for calibrate_on="cv", got one whose clone is '
                "itself: every fold would be scored by a model that has seen all rows"
            )
        parts = [
            data.rows(test).fold(model)
            for model, (_, test) in zip(models[: len(splits)], splits, strict=True)
        ]
        if self.ensemble:
            return parts
        scored = np.concatenate([test for _, test in splits])
        order = np.argsort(scored, kind="stable")
        scores = np.concatenate([part.scores for part in parts])[order]
        return [data.rows(scored[order]).fold(models[-1], scores)]

    def _check_state(self) -> None:
        is_split = self.cv is None or isinstance(self.cv, Integral | Iterable)
        require(is_split or hasattr(self.cv, "split"), "cv must be folds or a splitter")
        for name in ("ensemble", "stratify"):
            require(isinstance(getattr(self, name), bool), f"{name} must be a boolean")

    def _splitter(self, data: TrainingData, random_state: np.random.RandomState) -> Any:
        cv = 5 if self.cv is None else self.cv
        if not isinstance(cv, Integral) or self.stratify:
            if isinstance(cv, Integral) and data.groups is not None:
                return StratifiedGroupKFold(int(cv), shuffle=True, random_state=random_state)
            return check_cv(cv, data.codes, classifier=True)
        if data.groups is not None:
            return GroupKFold(int(cv), shuffle=True, random_state=random_state)
        if must_stratify(data.with_positive_weight(), "each fold"):
            return check_cv(cv, data.codes, classifier=True)
        return KFold(int(cv), shuffle=True, random_state=random_state)

    def _check_rows(self, splits: Sequence[Split], data: TrainingData) -> None:
        """Refuse splits that calibrate on no row or twice; warn of rows and models left behind."""
        scored = np.concatenate([test for _, test in splits]) if splits else np.empty(0, np.intp)
        if not len(scored):
            raise InputError(
                "cv must leave examples out, got no test indices: a generator gives its splits "
                "once, so use a list or a splitter"
            )
        if not self.ensemble and len(np.unique(scored)) < len(scored):
            raise ValueError(
                "cv must leave each example out at most once with ensemble=False, "
                "got a splitter that repeats some: use ensemble=True"
            )
        all_rows = _counted(np.arange(len(data)), data)
        last = max(int(rows.max(initial=-1)) for split in splits for rows in split)
        if n_beyond := int((all_rows > last).sum()):
            warn(
                f"cv leaves the last {n_beyond} of {len(all_rows)} rows out of every fold: they "
                "neither train nor calibrate. Use the splits of these rows, or a splitter"
            )
        smallest = min(len(train) for train, _ in splits)
        if self.ensemble and smallest < MIN_SHARE_TRAINED_ON * len(all_rows):
            warn(
                f"cv trains one of {len(splits)} models on {smallest} of {len(all_rows)} rows, and "
                "probabilities are averages over these models: with ensemble=False one model of "
                "all rows predicts, as it should where folds follow time"
            )


def _fit_rows(estimator: Any, data: TrainingData, rows: IntArray) -> Any:
    """Fit a clone to some rows, copied in the worker: not those of all folds at once."""
    return data.rows(rows).fit(estimator)


def _counted(index: Any, data: TrainingData) -> IntArray:
    """Return which of the indexed examples have a weight above zero."""
    index = np.asarray(index)
    rows = np.flatnonzero(index) if index.dtype == bool else index.astype(np.intp)
    if len(rows) and (rows.min() < 0 or rows.max() >= len(data)):
        wrong = rows.min() if rows.min() < 0 else rows.max()
        raise InputError(
            f"cv must give row numbers from 0 to {len(data) - 1}, got {wrong}: give a splitter, "
            "or the splits of these rows"
        )
    return rows if data.weight is None else rows[data.weight[rows] > 0]


def _check_groups(splits: Iterable[tuple[Any, Any]], data: TrainingData) -> None:
    """Refuse splits that have a group on both sides."""
    groups = data.groups
    if groups is None:
        return
    for train, test in splits:
        n_split = len(np.intersect1d(groups[train], groups[test]))
        if n_split:
            raise ValueError(
                "cv must keep every group on one side, got a splitter that parts "
                f"{n_split} of them: give a number of folds, or GroupKFold"
            )


def check_folds(splits: Sequence[Split], ensemble: bool) -> None:
    """Refuse folds that score rows twice or train on them, or with too few rows to calibrate.

    ``ensemble`` is whether each fold has a calibrator of its own.
    """
    for _, test in splits:
        if len(np.unique(test)) < len(test):
            raise InputError(
                "cv must score a row at most once in a fold, got a fold that repeats some: "
                "use a splitter of scikit-learn, or a number of folds"
            )
    n_shared = max((len(np.intersect1d(train, test)) for train, test in splits), default=0)
    if n_shared:
        raise InputError(
            f"cv must not score rows that it trains on, got a fold with {n_shared} such rows: "
            "use a splitter of scikit-learn, or a number of folds"
        )
    n_scored = sum(len(test) for _, test in splits)
    if ensemble and len(splits) > 1 and n_scored < MIN_EXAMPLES_PER_FOLD * len(splits):
        raise InputError(
            f"cv must leave at least {MIN_EXAMPLES_PER_FOLD} examples in a fold with "
            f"ensemble=True, whose calibrator learns the classes from them, got {n_scored} in "
            f"{len(splits)} folds: use ensemble=False or fewer folds"
        )
