"""Shaker & Hüllermeier (2025), Random forest calibration.

Forests with default settings, with more trees, curtailed and tuned, as they are; the tuned one
calibrated on a held-out part of the training set, as in the paper, and out of bag on all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedKFold

from vennforest._validation import FloatArray, IntArray, check_count
from vennforest.calibrators import (
    BetaCalibration,
    BostromScaling,
    Calibrator,
    IsotonicCalibration,
    PlattScaling,
    PooledCalibration,
    VennAbers,
)
from vennforest.metrics import calibration_error
from vennforest_experiments.papers.protocol.experiment import Experiment, PreparedData, two_classes
from vennforest_experiments.papers.protocol.problems import load_problem
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import Paper
from vennforest_experiments.papers.shaker2025.forest import Cut, read, tune
from vennforest_experiments.papers.shaker2025.synthetic import PROBLEMS, draw

FORESTS = ("RF_d", "RF_opt", "RF_large", "CT")
"""Forests as they are: default, tuned, with more trees, curtailed."""

CALIBRATORS: Mapping[str, Calibrator] = {
    "Platt": PlattScaling(on="score"),
    "ISO": IsotonicCalibration(),
    "Beta": BetaCalibration(targets="hard"),
    "VA": VennAbers("brier"),
    "PPA": BostromScaling(),
}
"""The paper's calibrators, by their names there."""

HELD_OUT = (*FORESTS, *CALIBRATORS)
OUT_OF_BAG = tuple(f"{name} oob" for name in CALIBRATORS)
OURS = ("default RF_d", "default RF_opt", "default RF_large")
"""The library's default, out of bag, on three of the forests."""

METHODS = (*HELD_OUT, *OUT_OF_BAG, *OURS)

BINS = 20


@dataclass(frozen=True, kw_only=True)
class Shaker2025(Experiment):
    """Seventeen methods on 29 data sets of two classes and eight synthetic ones, cross-validated.

    Parameters
    ----------
    trees : int
        Number of trees per forest.
    large : int
        How many times as many the large forest has.
    rows : int
        How many rows of a data set are used, at most: the first ones of a shuffle. Synthetic data
        have as many.
    tested : int
        How many of the folds are run.
    """

    paper: ClassVar[Paper] = "shaker2025"
    free: ClassVar[frozenset[str]] = Experiment.free | {"tested"}

    folds: int = 5
    trees: int = 100
    large: int = 3
    rows: int = 1000
    tested: int = 2

    def __post_init__(self) -> None:
        """Check the settings' types and ranges."""
        super().__post_init__()
        check_count(self.folds, "folds", low=3)
        check_count(self.trees, "trees")
        check_count(self.large, "large", low=2)
        check_count(self.rows, "rows", low=10)
        check_count(self.tested, "tested")

    def datasets(self) -> tuple[str, ...]:
        """Return the names of the data sets, real ones first."""
        return (*super().datasets(), *PROBLEMS)

    def tasks(self, datasets: Iterable[str]) -> list[Task]:
        """Return the first folds of every data set, fold by fold."""
        chosen, folds = list(datasets), range(min(self.tested, self.folds))
        return [Task(d, r, fold) for r in range(self.repeats) for fold in folds for d in chosen]

    def load(self, dataset: str) -> PreparedData:
        """Load and prepare a data set, or draw it; labels become 0 and 1, in sorted order."""
        if dataset in PROBLEMS:
            return PreparedData(*self.drawn(dataset)[:2])
        X, y = two_classes(dataset, *load_problem(self.paper, dataset, self.data_dir))
        order = np.random.default_rng(self.seed_of("rows", dataset)).permutation(len(y))
        return PreparedData(X[order[: self.rows]], y[order[: self.rows]])

    def drawn(self, dataset: str) -> tuple[FloatArray, IntArray, FloatArray]:
        """Return a synthetic problem's objects, labels, and probabilities of label 1."""
        return _drawn(self, dataset)

    def run(self, task: Task) -> Record:
        """Grow and calibrate the forests, and return the fold's measures.

        The record holds for each method ``accuracy``, ``brier``, ``log loss``, ``ece`` and
        ``squared gap``, and for synthetic data ``true error``, the mean squared distance from the
        true probability; for RF_opt also ``leaf`` and ``depth``, what was chosen (0: unlimited).
        """
        X, y = self.data(task.dataset)
        train, test = self.split(task)
        record: Record = {}
        for name, p in self.estimates(X[train], y[train], X[test], task, record).items():
            record.setdefault(name, {}).update(measures(y[test], p))
            if task.dataset in PROBLEMS:
                truth = self.drawn(task.dataset)[2][test]
                record[name]["true error"] = float(np.mean((p[:, 1] - truth) ** 2))
        return record

    def estimates(
        self, X: FloatArray, y: IntArray, X_new: FloatArray, task: Task, record: Record
    ) -> dict[str, FloatArray]:
        """Return each method's probabilities (m, 2) for new objects; note what was chosen."""
        seed = self.seed_of("forest", *task)
        whole = tune(X, y, X_new, self.trees, seed)
        record["RF_opt"] = {"leaf": whole.leaf, "depth": whole.depth or 0}
        # The first trees of the large forest are those of the default one.
        forest = whole.forest.set_params(warm_start=True, n_estimators=self.trees * self.large)
        (large,) = read(forest.fit(X, y), X, X_new, [Cut()])
        found = {"RF_d": whole.plain.new, "RF_opt": whole.tuned.new, "RF_large": large.new}
        found["CT"] = whole.curtailed.new
        rest, held = self.halves(y, task)
        part = tune(X[rest], y[rest], np.concatenate([X[held], X_new]), self.trees, seed).tuned.new
        for name, calibrator in CALIBRATORS.items():
            found[name] = calibrated(calibrator, part[: len(held)], y[held], part[len(held) :])
        for name, calibrator in CALIBRATORS.items():
            found[f"{name} oob"] = calibrated(calibrator, whole.tuned.own, y, whole.tuned.new)
        for name, scores in zip(OURS, (whole.plain, whole.tuned, large), strict=True):
            found[name] = calibrated(PooledCalibration(), scores.own, y, scores.new)
        return found

    def halves(self, y: IntArray, task: Task) -> tuple[IntArray, IntArray]:
        """Return which training objects train, and which, as many as are tested, calibrate."""
        seed = self.seed_of("calibration", *task)
        splitter = StratifiedKFold(self.folds - 1, shuffle=True, random_state=seed)
        rest, held = next(iter(splitter.split(np.zeros(len(y)), y)))
        return rest, held


@lru_cache(maxsize=64)
def _drawn(experiment: Shaker2025, dataset: str) -> tuple[FloatArray, IntArray, FloatArray]:
    return draw(dataset, experiment.rows, experiment.seed_of("synthetic", dataset))


def calibrated(
    calibrator: Calibrator, scores: FloatArray, y: IntArray, new: FloatArray
) -> FloatArray:
    """Fit a calibrator to scores (n, 2), NaN rows left out, and return probabilities (m, 2)."""
    known = ~np.isnan(scores[:, 1])
    model: Calibrator = clone(calibrator).fit(scores[known, 1], y[known], classes=np.arange(2))
    return model.predict_proba(new[:, 1])


def measures(y: IntArray, p: FloatArray) -> dict[str, float]:
    """Return the measures of probabilities (n, 2) of labels 0 and 1."""
    classes = np.arange(2)
    return {
        "accuracy": float(np.mean(p.argmax(axis=1) == y)),
        "brier": float(brier_score_loss(y, p, labels=classes)),
        "log loss": float(log_loss(y, p, labels=classes)),
        "ece": calibration_error(y, p, bins=BINS, classes=classes),
        "squared gap": squared_gap(y, p[:, 1]),
    }


def squared_gap(y: IntArray, p: FloatArray) -> float:
    """Return what the authors' code calls ECE.

    The mean, over bins of equal width that are not empty, of the squared difference of a bin's
    mean estimate and its share of positives; a bin counts the same however few objects it has.
    """
    bins = np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], p)
    counts = np.bincount(bins, minlength=BINS)
    difference = np.bincount(bins, weights=p - y, minlength=BINS)[counts > 0]
    return float(np.mean((difference / counts[counts > 0]) ** 2))


EXPERIMENT = Shaker2025
