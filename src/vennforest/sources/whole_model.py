"""Sources that score with a whole model: holdout, folds, the training set, a fitted model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import joblib
import numpy as np
from sklearn.model_selection import KFold, check_cv, train_test_split

from vennforest._validation import CodeArray, IntArray
from vennforest.sources.base import ModelScorer, Part, TrainingData, model_scores


@dataclass(frozen=True)
class Holdout:
    """Train on one part of the data and calibrate on the rest.

    Johansson et al. (2018) and Niculescu-Mizil & Caruana (2005) calibrate like this.

    Parameters
    ----------
    size : float or int
        Share (0 to 1) or number of the examples held out.
    stratified : bool
        False: the part is drawn at random, as the guarantee of Venn prediction needs. True: it
        holds every class in its share, where each has two examples or more; with the class counts
        fixed a new example is no longer exchangeable with those held out, and the guarantee holds
        nearly, the less the fewer examples there are.

    Notes
    -----
    A draw that would train on one class alone is repeated, since most models refuse that.
    """

    size: float | int = 1 / 3
    stratified: bool = False

    def parts(
        self,
        estimator: Any,
        data: TrainingData,
        *,
        seed: int,
        random_state: np.random.RandomState,
        n_jobs: int | None,
    ) -> list[Part]:
        """Return one part.

        Raises
        ------
        ValueError
            If one side of the split would be empty.
        """
        data = data.present()
        n, size = len(data), self.size
        if not 1 <= (size * n if size < 1 else size) <= n - 1:
            raise ValueError(f"holdout_size must leave examples on both sides of {n}, got {size!r}")
        index = np.arange(n)

        def draw() -> list[tuple[IntArray, IntArray]]:
            if self.stratified and np.bincount(data.codes, minlength=len(data.classes)).min() > 1:
                with suppress(ValueError):  # fewer places than classes in one part
                    return [
                        train_test_split(
                            index,
                            test_size=size,
                            stratify=data.codes,
                            random_state=random_state,
                        )
                    ]
            return [train_test_split(index, test_size=size, random_state=random_state)]

        ((train, held),) = _until_trainable(draw, data.codes)
        train, held = np.sort(train), np.sort(held)
        return [_part(data.rows(train).fit(estimator), data.rows(held))]


@dataclass(frozen=True)
class Training:
    """Train on all the data and calibrate on the same data.

    The simplified Venn–Abers predictor and the direct method (Vovk & Petej 2014, sections 3 and
    5). Scores of examples that were trained on are better than those of new ones: no guarantee
    holds (their Proposition 2).
    """

    def parts(
        self,
        estimator: Any,
        data: TrainingData,
        *,
        seed: int,
        random_state: np.random.RandomState,
        n_jobs: int | None,
    ) -> list[Part]:
        """Return one part."""
        data = data.present()
        return [_part(data.fit(estimator), data)]


@dataclass(frozen=True)
class Frozen:
    """Calibrate an already fitted model, which is not touched, on all the data."""

    def parts(
        self,
        estimator: Any,
        data: TrainingData,
        *,
        seed: int,
        random_state: np.random.RandomState,
        n_jobs: int | None,
    ) -> list[Part]:
        """Return one part."""
        return [_part(estimator, data.present())]


@dataclass(frozen=True)
class Folds:
    """Train a model a fold and score the examples left out of it.

    Parameters
    ----------
    cv : int, splitter or iterable
        A number of folds drawn at random, as the guarantee of Venn prediction needs: not
        stratified, and shuffled, also if the rows are in the order of their classes. Otherwise as
        everywhere in scikit-learn: ``StratifiedKFold`` fixes the class counts of every fold, under
        which the guarantee holds nearly, the less the fewer examples there are.
    ensemble : bool
        True: a model and a calibration set a fold. False: the scores of all folds make one
        calibration set, and one model is trained on all the data.
    """

    cv: Any = 5
    ensemble: bool = True

    def parts(
        self,
        estimator: Any,
        data: TrainingData,
        *,
        seed: int,
        random_state: np.random.RandomState,
        n_jobs: int | None,
    ) -> list[Part]:
        """Return a part a fold, or with ``ensemble=False`` one.

        Raises
        ------
        ValueError
            If the folds leave nobody out, or without ``ensemble`` somebody twice.
        """
        if self.cv is None or isinstance(self.cv, Integral):
            random = KFold(
                5 if self.cv is None else int(self.cv), shuffle=True, random_state=random_state
            )
            splits = _until_trainable(lambda: list(random.split(data.codes)), data.codes)
        else:
            splitter = check_cv(self.cv, data.codes, classifier=True)
            splits = list(splitter.split(data.X, data.codes, **data.split_params))
        return _fold_parts(estimator, data, splits, self.ensemble, n_jobs)


DRAWS = 100
"""How often a split is drawn anew before the model is left to refuse what it cannot train on."""


def _until_trainable(
    draw: Callable[[], list[tuple[IntArray, IntArray]]], codes: CodeArray
) -> list[tuple[IntArray, IntArray]]:
    """Draw splits until each trains on two classes or more, where there are two."""
    splits = draw()
    for _ in range(DRAWS if (codes != codes[0]).any() else 0):
        if all((codes[train] != codes[train[0]]).any() for train, _ in splits):
            break
        splits = draw()
    return splits


def _fold_parts(
    estimator: Any,
    data: TrainingData,
    splits: Iterable[tuple[IntArray, IntArray]],
    ensemble: bool,
    n_jobs: int | None,
) -> list[Part]:
    pairs = [(_counting(train, data), _counting(test, data)) for train, test in splits]
    pairs = [(train, test) for train, test in pairs if len(test)]
    tested = np.concatenate([test for _, test in pairs]) if pairs else np.empty(0, np.intp)
    if not len(tested):
        raise ValueError("cv must leave examples out, got no test indices")
    if not ensemble and len(np.unique(tested)) < len(tested):
        raise ValueError(
            "cv must leave each example out at most once with ensemble=False, "
            "got a splitter that repeats some: use ensemble=True"
        )
    trained_on = [train for train, _ in pairs]
    if not ensemble:
        trained_on.append(_counting(np.arange(len(data)), data))
    models = joblib.Parallel(n_jobs=n_jobs)(
        joblib.delayed(_fit_rows)(estimator, data, rows) for rows in trained_on
    )
    parts = [
        _part(model, data.rows(test))
        for model, (_, test) in zip(models[: len(pairs)], pairs, strict=True)
    ]
    if ensemble:
        return parts
    order = np.argsort(tested, kind="stable")
    pooled = data.rows(tested[order])
    return [
        Part(
            models[-1],
            np.concatenate([part.scores for part in parts])[order],
            pooled.codes,
            pooled.weight,
            ModelScorer(models[-1], data.classes),
        )
    ]


def _fit_rows(estimator: Any, data: TrainingData, rows: IntArray) -> Any:
    # The rows are taken here, so that the folds need not all be held at once.
    return data.rows(rows).fit(estimator)


def _counting(index: Any, data: TrainingData) -> IntArray:
    """Return which of the indexed examples have a weight above zero."""
    given = np.asarray(index)
    rows = np.flatnonzero(given) if given.dtype == bool else given.astype(np.intp)
    return rows if data.weight is None else rows[data.weight[rows] > 0]


def _part(model: Any, data: TrainingData) -> Part:
    scores = model_scores(model, data.X, data.classes)
    return Part(model, scores, data.codes, data.weight, ModelScorer(model, data.classes))
