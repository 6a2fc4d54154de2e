"""Sources that score with a whole model: holdout, folds, the training set, a fitted model."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from numbers import Integral
from typing import Any, Unpack

import attrs
import joblib
import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    StratifiedGroupKFold,
    check_cv,
    train_test_split,
)

from vennforest._messages import warn
from vennforest._state import stored
from vennforest._validation import InputError, IntArray, number
from vennforest.sources.base import Drawn, Fold, ModelScorer, TrainingData, model_scores
from vennforest.sources.checks import check_folds

FEW = 8
"""With fewer examples than this beside the largest class, a random split may train on one class."""


BOOLEAN: Any = attrs.validators.instance_of((bool, np.bool_))


@stored("holdout")
@attrs.frozen
class Holdout:
    """Train on one part of the data and calibrate on the rest.

    The part is drawn at random, so held-out examples and new ones are exchangeable. Johansson
    et al. (2018) and Niculescu-Mizil & Caruana (2005) calibrate like this.

    Parameters
    ----------
    size : float or int
        Share (0 to 1) or number of the examples held out; of the groups, where there are groups.
    stratify : bool
        Whether both parts have the classes in the same shares. That gives up exactness: how many
        of a class are held out then says something of the next label.
    """

    size: float | int = attrs.field(default=1 / 3, validator=number(0))
    stratify: bool = attrs.field(default=False, validator=BOOLEAN)

    def folds(self, estimator: Any, data: TrainingData, **given: Unpack[Drawn]) -> list[Fold]:
        """Return one fold."""
        data = data.present()
        groups = data.groups
        n = len(data) if groups is None else int(groups.max()) + 1
        what = "examples" if groups is None else "groups"
        size = self.size
        if not 1 <= (size * n if size < 1 else size) <= n - 1:
            raise ValueError(f"holdout_size must leave {what} on both sides of {n}, got {size!r}")
        stratify = self.stratify or _must_stratify(data, "the part held out")
        held = _held_out(data, size, stratify, given["random_state"])
        train = np.setdiff1d(np.arange(len(data)), held)
        return [_part(data.rows(train).fit(estimator), data.rows(held))]


def _held_out(
    data: TrainingData, size: float | int, stratify: bool, random_state: np.random.RandomState
) -> IntArray:
    """Return the examples held out, sorted."""
    groups = data.groups
    index = np.arange(len(data) if groups is None else int(groups.max()) + 1)
    split = partial(train_test_split, index, test_size=size, random_state=random_state)
    held: Any = None
    if stratify and groups is None and np.bincount(data.codes).min() >= 2:
        with suppress(ValueError):  # fewer places than classes in one part
            held = split(stratify=data.codes)[1]
    held = split()[1] if held is None else held
    rows = np.sort(held) if groups is None else np.flatnonzero(np.isin(groups, held))
    return rows.astype(np.intp)


def _must_stratify(data: TrainingData, what: str) -> bool:
    """Tell whether a random split risks a training part of one class, and warn where it does."""
    counts = np.bincount(data.codes, minlength=len(data.classes))
    others = int(counts.sum() - counts.max())
    if others >= FEW or data.groups is not None:
        return False
    warn(
        f"y contains {others} examples beside the largest class: {what} is stratified so no "
        "model is trained on one class alone, and the bounds are not exactly valid"
    )
    return True


@stored("training")
@attrs.frozen
class Training:
    """Train on all the data and calibrate on the same data.

    The simplified Venn–Abers predictor and the direct method (Vovk & Petej 2014, sections 3 and
    5). Scores of examples that were trained on are better than those of new ones: no guarantee
    is valid (their Proposition 2).
    """

    def folds(self, estimator: Any, data: TrainingData, **given: Unpack[Drawn]) -> list[Fold]:
        """Return one fold."""
        data = data.present()
        return [attrs.evolve(_part(data.fit(estimator), data), rows=None)]


@stored("frozen")
@attrs.frozen
class Frozen:
    """Calibrate an already fitted model, which is not touched, on all the data."""

    def folds(self, estimator: Any, data: TrainingData, **given: Unpack[Drawn]) -> list[Fold]:
        """Return one fold."""
        return [_part(estimator, data.present())]


@stored("folds")
@attrs.frozen
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
        the rows as scikit-learn does it. That gives up exactness, as with `Holdout`.
    """

    cv: Any = 5
    ensemble: bool = attrs.field(default=True, validator=BOOLEAN)
    stratify: bool = attrs.field(default=False, validator=BOOLEAN)

    def folds(self, estimator: Any, data: TrainingData, **given: Unpack[Drawn]) -> list[Fold]:
        """Return one per split, or with ``ensemble=False`` one."""
        splitter = self._splitter(data, given["random_state"])
        splits = list(splitter.split(data.X, data.codes, **data.split_params))
        _check_groups(splits, data)
        return _fold_parts(estimator, data, splits, self.ensemble, given["n_jobs"])

    def _splitter(self, data: TrainingData, random_state: np.random.RandomState) -> Any:
        cv = 5 if self.cv is None else self.cv
        if not isinstance(cv, Integral) or self.stratify:
            if isinstance(cv, Integral) and data.groups is not None:
                return StratifiedGroupKFold(int(cv), shuffle=True, random_state=random_state)
            return check_cv(cv, data.codes, classifier=True)
        if data.groups is not None:
            return GroupKFold(int(cv), shuffle=True, random_state=random_state)
        if _must_stratify(data.present(), "each fold"):
            return check_cv(cv, data.codes, classifier=True)
        return KFold(int(cv), shuffle=True, random_state=random_state)


FEWEST = 0.45
"""Share of the rows below which a fold's model is much weaker than one of all: halves are not."""


def _check_groups(splits: list[tuple[IntArray, IntArray]], data: TrainingData) -> None:
    """Refuse splits that have a group on both sides."""
    groups = data.groups
    if groups is None:
        return
    for train, test in splits:
        both = np.intersect1d(groups[train], groups[test])
        if len(both):
            raise ValueError(
                "cv must keep every group on one side, got a splitter that parts "
                f"{len(both)} of them: give a number of folds, or GroupKFold"
            )


def _fold_parts(
    estimator: Any,
    data: TrainingData,
    splits: Iterable[tuple[IntArray, IntArray]],
    ensemble: bool,
    n_jobs: int | None,
) -> list[Fold]:
    pairs = [(_counting(train, data), _counting(test, data)) for train, test in splits]
    pairs = [(train, test) for train, test in pairs if len(test)]
    check_folds(pairs, ensemble)
    tested = np.concatenate([test for _, test in pairs]) if pairs else np.empty(0, np.intp)
    if not len(tested):
        raise InputError(
            "cv must leave examples out, got no test indices: a generator gives its splits once, "
            "so use a list or a splitter"
        )
    if not ensemble and len(np.unique(tested)) < len(tested):
        raise ValueError(
            "cv must leave each example out at most once with ensemble=False, "
            "got a splitter that repeats some: use ensemble=True"
        )
    trained_on = [train for train, _ in pairs]
    everyone = _counting(np.arange(len(data)), data)
    last = max(rows.max(initial=-1) for rows in (tested, *trained_on))
    if beyond := int((everyone > last).sum()):
        warn(
            f"cv leaves the last {beyond} of {len(everyone)} rows out of every fold: they neither "
            "train nor calibrate. Use the splits of these rows, or a splitter"
        )
    if not ensemble:
        trained_on.append(everyone)
    elif (fewest := min(map(len, trained_on))) < FEWEST * len(everyone):
        warn(
            f"cv trains one of {len(pairs)} models on {fewest} of {len(everyone)} rows, and "
            "probabilities are averages over these models: with ensemble=False one model of all "
            "rows predicts, as it should where folds follow time"
        )
    models = joblib.Parallel(n_jobs=n_jobs)(
        joblib.delayed(_fit_rows)(estimator, data, rows) for rows in trained_on
    )
    if len(models) > 1 and models[0] is models[1]:
        raise ValueError(
            'estimator must be copied by clone for calibrate_on="cv", got one whose clone is '
            "itself: every fold would be scored by a model that has seen all rows"
        )
    parts = [
        _part(model, data.rows(test))
        for model, (_, test) in zip(models[: len(pairs)], pairs, strict=True)
    ]
    if ensemble:
        return parts
    order = np.argsort(tested, kind="stable")
    pooled = data.rows(tested[order])
    scores = np.concatenate([part.scores for part in parts])[order]
    return [pooled.fold(models[-1], scores, ModelScorer(models[-1], data.classes))]


def _fit_rows(estimator: Any, data: TrainingData, rows: IntArray) -> Any:
    """Fit a clone to some rows, which are taken here: not those of all folds at once."""
    return data.rows(rows).fit(estimator)


def _counting(index: Any, data: TrainingData) -> IntArray:
    """Return which of the indexed examples have a weight above zero."""
    given = np.asarray(index)
    rows = np.flatnonzero(given) if given.dtype == bool else given.astype(np.intp)
    if len(rows) and (rows.min() < 0 or rows.max() >= len(data)):
        wrong = rows.min() if rows.min() < 0 else rows.max()
        raise InputError(
            f"cv must give row numbers from 0 to {len(data) - 1}, got {wrong}: give a splitter, "
            "or the splits of these rows"
        )
    return rows if data.weight is None else rows[data.weight[rows] > 0]


def _part(model: Any, data: TrainingData) -> Fold:
    scores = model_scores(model, data.X, data.classes)
    return data.fold(model, scores, ModelScorer(model, data.classes))
