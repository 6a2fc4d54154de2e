"""Boström (2008), Calibrating random forests.

Forests of classification trees (CT: the trees vote) and of probability estimation trees (PET: the
mean of their class distributions), each raw and calibrated out of bag by isotonic regression
(``_I``), Platt scaling (``_P``) and Boström's correction (``_R``); all trees score new objects.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import brier_score_loss, log_loss

from vennforest import CalibratedClassifier
from vennforest._validation import FloatArray, IntArray, check_count, check_option
from vennforest.calibrators import (
    BostromScaling,
    Calibrator,
    IsotonicCalibration,
    PlattScaling,
    Uncalibrated,
)
from vennforest.metrics import auc_interval
from vennforest.sources import Fold, TrainingData
from vennforest.sources.out_of_bag import out_of_bag_fold
from vennforest_experiments.papers.bostrom2008.forest import (
    TrainingSetForest,
    as_scores,
    scores_of_others,
)
from vennforest_experiments.papers.protocol.experiment import Experiment, PreparedData
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import Paper

Estimation = Literal["training", "others", "bag"]
"""The examples from which a leaf's class distribution is estimated."""

FORESTS: Mapping[str, Literal["hard", "soft"]] = {"CT": "hard", "PET": "soft"}
"""How the trees of each kind of forest vote."""

CALIBRATORS: Mapping[str, Calibrator] = {
    "": Uncalibrated(),
    "_I": IsotonicCalibration(),
    "_P": PlattScaling(targets="hard", on="score"),
    "_R": BostromScaling(),
}
"""The calibrator of each method, by the ending of the method's name."""

METHODS = tuple(kind + ending for kind in FORESTS for ending in CALIBRATORS)

FIGURE = "vote"
"""The data set of Figure 1, housevotes."""


@dataclass(frozen=True)
class OutOfBag:
    """Out-of-bag scores of a forest whose leaves need not be filled by its bags."""

    votes: Literal["hard", "soft"] = "soft"
    verify: bool = True

    def folds(
        self, estimator: Any, data: TrainingData, *, seed: int, n_jobs: int | None, **settings: Any
    ) -> list[Fold]:
        """Return one fold."""
        return out_of_bag_fold(estimator, data, "all", self.votes, seed, n_jobs, self.verify)


@dataclass(frozen=True, kw_only=True)
class Bostrom2008(Experiment):
    """Eight methods on 34 data sets, stratified ten-fold cross-validation.

    Parameters
    ----------
    trees : int
        Number of trees per forest.
    estimation : {"training", "others", "bag"}
        The examples from which a leaf's class distribution is estimated: the whole training set,
        as in the paper (section 3.1); the same, but for an out-of-bag score without the example
        being scored, which the paper does not mention; or those the tree was grown from.
    """

    paper: ClassVar[Paper] = "bostrom2008"

    trees: int = 100
    estimation: Estimation = "training"

    def __post_init__(self) -> None:
        """Check the settings' types and ranges."""
        super().__post_init__()
        check_option(self.estimation, Estimation, "estimation")
        check_count(self.trees, "trees")

    def load(self, dataset: str) -> PreparedData:
        """Load and prepare a data set; labels become 0, 1, … in sorted order."""
        X, y = super().load(dataset)
        return PreparedData(X, np.unique(y, return_inverse=True)[1])

    def run(self, task: Task) -> Record:
        """Train one forest, calibrate it with every method, and return the fold's measures.

        The record holds for each method ``brier``, ``auc`` (None if the fold's test objects are
        of one class), ``accuracy`` and ``log loss``.
        """
        X, y = self.data(task.dataset)
        train, test = self.split(task)
        classes = np.unique(y)
        record: Record = {}
        for name, p in self.estimates(X[train], y[train], X[test], self.seed_of(*task)).items():
            full = np.zeros((len(test), len(classes)))
            full[:, np.searchsorted(classes, np.unique(y[train]))] = p
            auc = auc_interval(y[test], full, classes=classes).value
            record[name] = {
                "brier": brier_score_loss(y[test], full, labels=classes, scale_by_half=False),
                "auc": None if np.isnan(auc) else auc,
                "accuracy": float(np.mean(full.argmax(axis=1) == y[test])),
                "log loss": float(log_loss(y[test], full, labels=classes)),
            }
        return record

    def estimates(
        self, X: FloatArray, y: IntArray, X_new: FloatArray, seed: int
    ) -> dict[str, FloatArray]:
        """Return each method's probabilities (m, k) of the classes in y for new objects."""
        forest = (RandomForestClassifier if self.estimation == "bag" else TrainingSetForest)(
            self.trees
        )
        out = {}
        for kind, votes in FORESTS.items():
            # The same seed gives both kinds the same trees: only how leaves vote differs.
            fitted = CalibratedClassifier(
                forest,
                method="none",
                # Leaves that count every training example are what the paper is about.
                calibrate_on=OutOfBag(votes, verify=self.estimation == "bag"),
                random_state=seed,
            )
            with warnings.catch_warnings():
                # With few trees it is expected that some examples are out of bag for none.
                warnings.filterwarnings("ignore", ".*out of bag for no tree", UserWarning)
                warnings.filterwarnings("ignore", ".*exact copies", UserWarning)
                fitted.fit(X, y)
            if self.estimation == "others":
                # The same forest and the same scores of new objects; other calibration scores.
                scores, labels = scores_of_others(fitted.estimator_, X, y, votes)
                new = as_scores(fitted.predict_proba(X_new))
                for ending, calibrator in CALIBRATORS.items():
                    own = clone(calibrator).fit(scores, labels, classes=fitted.classes_)
                    out[kind + ending] = own.predict_proba(new)
                continue
            for ending, calibrator in CALIBRATORS.items():
                out[kind + ending] = fitted.recalibrate(calibrator).predict_proba(X_new)
        return out

    def figure_1(self) -> dict[str, FloatArray]:
        """Train on a random half of housevotes and return the other half's probabilities."""
        X, y = self.data(FIGURE)
        order = np.random.RandomState(self.seed_of("figure 1")).permutation(len(y))
        train, test = order[: len(y) // 2], order[len(y) // 2 :]
        return self.estimates(X[train], y[train], X[test], self.seed_of("forest"))


EXPERIMENT = Bostrom2008
