"""Sources of one fold: a held-out part, the training set, a fitted model."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from vennforest._messages import warn
from vennforest._validation import IntArray, check_number, require
from vennforest.sources.data import Fold, TrainingData

MIN_EXAMPLES_OF_OTHER_CLASSES = 8
"""Examples beside the largest class below which a random split may train on one class."""


@dataclass(frozen=True)
class Holdout:
    """Train on one part of the data and calibrate on the rest.

    The part is drawn at random, so held-out examples and new ones are exchangeable. Johansson
    et al. (2018) and Niculescu-Mizil & Caruana (2005) calibrate in this way.

    Parameters
    ----------
    size : float or int
        Share (0 to 1) or number of the examples held out; of the groups, where there are groups.
    stratify : bool
        Whether both parts have the classes in the same shares. That gives up exactness: how many
        of a class are held out depends on the next label.
    """

    size: float | int = 1 / 3
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
        """Return one fold."""
        data = data.with_positive_weight()
        groups = data.groups
        n = len(data) if groups is None else int(groups.max()) + 1
        unit = "examples" if groups is None else "groups"
        if not 1 <= (n * self.size if self.size < 1 else self.size) <= n - 1:
            raise ValueError(
                f"holdout_size must leave {unit} on both sides of {n}, got {self.size!r}"
            )
        stratify = self.stratify or must_stratify(data, "the part held out")
        held = _held_out(data, self.size, stratify, random_state)
        train = np.setdiff1d(np.arange(len(data)), held)
        return [data.rows(held).fold(data.rows(train).fit(estimator))]

    def _check_state(self) -> None:
        check_number(self.size, "size", 0)
        require(isinstance(self.stratify, bool), "stratify must be a boolean")


def _held_out(
    data: TrainingData, size: float | int, stratify: bool, random_state: np.random.RandomState
) -> IntArray:
    """Return the examples held out, sorted."""
    groups = data.groups
    index = np.arange(len(data) if groups is None else int(groups.max()) + 1)
    split = partial(train_test_split, index, test_size=size, random_state=random_state)
    held: Any = None
    if stratify and groups is None and np.bincount(data.codes).min() >= 2:
        with suppress(ValueError):  # one part has fewer rows than there are classes
            held = split(stratify=data.codes)[1]
    held = split()[1] if held is None else held
    rows = np.sort(held) if groups is None else np.flatnonzero(np.isin(groups, held))
    return rows.astype(np.intp)


def must_stratify(data: TrainingData, part: str) -> bool:
    """Tell whether a random split risks a training part of one class, and warn where it does."""
    counts = np.bincount(data.codes, minlength=len(data.classes))
    n_others = int(counts.sum() - counts.max())
    if n_others >= MIN_EXAMPLES_OF_OTHER_CLASSES or data.groups is not None:
        return False
    warn(
        f"y contains {n_others} examples beside the largest class: {part} is stratified so no "
        "model is trained on one class alone, and the bounds are not exactly valid"
    )
    return True


@dataclass(frozen=True)
class Training:
    """Train on all the data and calibrate on the same data.

    The simplified Venn–Abers predictor and the direct method (Vovk & Petej 2014, sections 3 and
    5). Scores of examples that were trained on are better than those of new ones: no guarantee
    is valid (their Proposition 2).
    """

    def folds(self, estimator: Any, data: TrainingData, **settings: Any) -> list[Fold]:
        """Return one fold."""
        data = data.with_positive_weight()
        return [data.fold(data.fit(estimator))]

    def _check_state(self) -> None:
        require(not vars(self), "Training must have no attributes")


@dataclass(frozen=True)
class Frozen:
    """Calibrate a fitted model, which is not changed, on all the data."""

    def folds(self, estimator: Any, data: TrainingData, **settings: Any) -> list[Fold]:
        """Return one fold."""
        return [data.with_positive_weight().fold(estimator)]

    def _check_state(self) -> None:
        require(not vars(self), "Frozen must have no attributes")
