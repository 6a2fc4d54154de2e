"""Boström (2008), Calibrating random forests.

Forests of classification trees (CT: the trees vote) and of probability estimation trees (PET: the
mean of their class distributions), each raw, by isotonic regression (``_I``), Platt scaling
(``_P``) and Boström's correction (``_R``), calibrated out of bag; all trees score new objects.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss

from vennforest import CalibratedClassifier
from vennforest._validation import FloatArray, IntArray, check_count, check_option
from vennforest.calibrators import (
    BostromScaling,
    Calibrator,
    IsotonicCalibration,
    PlattScaling,
    Uncalibrated,
)
from vennforest.forest import Membership
from vennforest.metrics import brier_score, weighted_auc
from vennforest.papers.bostrom2008.findings import FIGURE, report
from vennforest.papers.protocol.experiment import Experiment, Problem, Record, Task
from vennforest.papers.protocol.reproduction import Reproduction
from vennforest.papers.published import Paper

Estimation = Literal["training", "others", "bag"]
"""Which examples the class shares of a leaf are taken over."""

FORESTS: Mapping[str, Literal["hard", "soft"]] = {"CT": "hard", "PET": "soft"}


class TrainingSetForest(RandomForestClassifier):
    """A random forest whose leaves hold the class shares of all training examples in them.

    Boström (2008, section 3.1): "the entire set of training examples", with those that are out of
    bag for the tree. Leaves that are pure among the examples a tree was grown from are not pure
    then, which is what makes forests of PETs differ from forests of classification trees.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Grow the trees, then estimate the leaves' class shares anew (without weights)."""
        super().fit(X, y, sample_weight)
        codes, k = np.searchsorted(self.classes_, y), len(self.classes_)
        for tree in self.estimators_:
            leaf = tree.apply(X)
            value = tree.tree_.value  # a view: what is written to it is the tree's
            counts = np.bincount(leaf * k + codes, minlength=len(value) * k).reshape(-1, k)
            filled = counts.any(axis=1)  # leaves; inner nodes keep what they have
            value[filled, 0] = counts[filled] / counts[filled].sum(axis=1, keepdims=True)
        return self


@dataclass(frozen=True, kw_only=True)
class Bostrom2008(Experiment):
    """Eight methods on 34 data sets, stratified ten-fold cross-validation.

    Parameters
    ----------
    trees : int
        Trees of each forest.
    estimation : {"training", "others", "bag"}
        Which examples a leaf's class shares are taken over: all of the training set, as in the
        paper (section 3.1); the same, but for an out-of-bag score without the example that is
        scored, which the paper does not speak of; or those the tree was grown from.
    """

    paper: ClassVar[Paper] = "bostrom2008"

    trees: int = 100
    estimation: Estimation = "training"

    def __post_init__(self) -> None:
        """Refuse values that are none."""
        super().__post_init__()
        check_option(self.estimation, Estimation, "estimation")
        check_count(self.trees, "trees")

    def load(self, dataset: str) -> Problem:
        """Load and prepare a data set; labels become 0, 1, … in sorted order."""
        X, y = super().load(dataset)
        return Problem(X, np.unique(y, return_inverse=True)[1])

    def run(self, task: Task) -> Record:
        """Train one forest, calibrate it in every way, and return measures on the fold.

        The record holds for each method ``brier``, ``auc`` (None where the fold's test objects
        are of one class), ``accuracy`` and ``log loss``.
        """
        X, y = self.problem(task.dataset)
        train, test = self.split(task)
        classes = np.unique(y)
        record: Record = {}
        for name, p in self.estimates(X[train], y[train], X[test], self.seed_of(*task)).items():
            full = np.zeros((len(test), len(classes)))
            full[:, np.searchsorted(classes, np.unique(y[train]))] = p
            auc = weighted_auc(y[test], full, classes=classes)
            record[name] = {
                "brier": brier_score(y[test], full, classes=classes),
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
            # The same seed gives both kinds the same trees: only what a leaf says differs.
            fitted = CalibratedClassifier(
                forest,
                method="none",
                calibrate_on="oob",
                subforest="all",
                votes=votes,
                random_state=seed,
            )
            with warnings.catch_warnings():
                # With few trees some examples are out of bag for none: that is what few trees do.
                warnings.filterwarnings("ignore", ".*out of bag for no tree", UserWarning)
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

    def half(self) -> tuple[IntArray, dict[str, FloatArray]]:
        """Train on a random half of housevotes and return the other half's labels and estimates."""
        X, y = self.problem(FIGURE)
        order = np.random.RandomState(self.seed_of("figure 1")).permutation(len(y))
        train, test = order[: len(y) // 2], order[len(y) // 2 :]
        return y[test], self.estimates(X[train], y[train], X[test], self.seed_of("forest"))

    def report(self, records: Mapping[Task, Record], datasets: Sequence[str]) -> Reproduction:
        """Make the paper's table and figure, and say which of its conclusions hold."""
        return report(self, measure(records, datasets))


CALIBRATORS: Mapping[str, Calibrator] = {
    "": Uncalibrated(),
    "_I": IsotonicCalibration(),
    "_P": PlattScaling(targets="hard"),
    "_R": BostromScaling(),
}
"""What each ending of a method's name stands for."""


def scores_of_others(
    forest: TrainingSetForest, X: FloatArray, y: IntArray, votes: Literal["hard", "soft"]
) -> tuple[FloatArray, IntArray]:
    """Return out-of-bag scores in which an example does not count in its own leaves, and labels.

    Parameters
    ----------
    forest : TrainingSetForest
        Fitted to X and y.
    X : ndarray of shape (n, d)
    y : ndarray of shape (n,)
    votes : {"hard", "soft"}
        Votes of the leaves, or their class shares.

    Returns
    -------
    scores : ndarray of shape (m,) or (m, k)
        Of the examples that are out of bag for some tree.
    labels : ndarray of shape (m,)
    """
    codes, k = np.searchsorted(forest.classes_, y), len(forest.classes_)
    total, count = np.zeros((len(y), k)), np.zeros(len(y))
    free = Membership.from_forest(forest, len(y)).dense()
    for tree, out_of_bag in zip(forest.estimators_, free, strict=True):
        leaf = tree.apply(X)
        counts = np.bincount(leaf * k + codes, minlength=tree.tree_.node_count * k).reshape(-1, k)
        rows = np.flatnonzero(out_of_bag)
        others = counts[leaf[rows]]
        others[np.arange(len(rows)), codes[rows]] -= 1  # somebody is left: who grew the leaf
        if votes == "hard":
            total[rows, others.argmax(axis=1)] += 1
        else:
            total[rows] += others / others.sum(axis=1, keepdims=True)
        count[rows] += 1
    scored = np.flatnonzero(count)
    return as_scores(total[scored] / count[scored, None]), y[scored]


def as_scores(p: FloatArray) -> FloatArray:
    """Return probabilities (n, k) as scores: of the second class where there are two."""
    return np.ascontiguousarray(p[:, 1]) if p.shape[1] == 2 else p


Measures = dict[str, dict[str, dict[str, float]]]
"""By measure, method and data set."""


def measure(records: Mapping[Task, Record], datasets: Sequence[str]) -> Measures:
    """Return every method's measures on every data set, averaged over the folds."""
    found: Measures = {}
    for dataset in datasets:
        folds = [record for task, record in records.items() if task.dataset == dataset]
        for method, first in folds[0].items():
            for name in first:
                values = [v for fold in folds if (v := fold[method][name]) is not None]
                mean = float(np.mean(values)) if values else float("nan")
                found.setdefault(name, {}).setdefault(method, {})[dataset] = mean
    return found


EXPERIMENT = Bostrom2008
