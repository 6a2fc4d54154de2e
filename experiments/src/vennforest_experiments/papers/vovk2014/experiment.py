"""Vovk & Petej (2014), Venn–Abers predictors.

Six classifiers on nine data sets, each raw (W), with Venn–Abers prediction (VA), its simplified
form (SVA) and direct isotonic regression (DIR).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from vennforest import CalibratedClassifier
from vennforest._validation import FloatArray, IntArray, check_count, check_option
from vennforest.calibrators import IsotonicCalibration, PlattScaling
from vennforest.calibrators.newton import Targets
from vennforest.counts import ScoreCounts
from vennforest_experiments.datasets import load
from vennforest_experiments.papers.protocol.experiment import Experiment, PreparedData, two_classes
from vennforest_experiments.papers.protocol.learners import Density, one_thread
from vennforest_experiments.papers.protocol.problems import load_problem, problems
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import Paper
from vennforest_experiments.papers.vovk2014.classifiers import CLASSIFIERS, classifier
from vennforest_experiments.transductive import TransductiveClassifier

METHODS = ("W", "VA", "SVA", "DIR")
COLUMNS = tuple(f"{method} ({kind})" for kind in CLASSIFIERS for method in METHODS)

PLAIN = 0
"""The fold of a task for W, SVA and DIR of all classifiers; fold 1 + i is VA of classifier i."""


class DirectIsotonic(IsotonicCalibration):
    """Isotonic calibration read at the nearest calibration score, of two the smaller (DIR)."""

    def _fit(self, counts: ScoreCounts) -> None:
        super()._fit(counts)
        for j, column in enumerate(counts.columns()):
            knots, scores = self.knots_[j], column.scores
            following = scores[np.searchsorted(scores, knots, side="right")]
            middle = knots / 2 + following / 2  # halves, since the sum of two may overflow
            self.knots_[j] = np.clip(middle, knots, np.nextafter(following, -np.inf))


@dataclass(frozen=True, kw_only=True)
class Vovk2014(Experiment):
    """Six classifiers and four calibration methods on nine data sets, random splits.

    Parameters
    ----------
    repeats : int
        Random splits for W, SVA and DIR.
    transductive_repeats : int
        Different random splits for VA; at most ``repeats``.
    folds : int
        Parts of the permuted data: the last is the test set, the others are the training set. The
        paper's fraction is missing from the available text; 3 is used instead.
    platt : {"hard", "smoothed"}
        Targets of the SVM's sigmoid; Weka has hard ones.
    density : {"kernel", "normal"}
        How naïve Bayes estimates densities: by kernels, which agree with the printed numbers, or
        by normal densities, Weka's default.
    """

    paper: ClassVar[Paper] = "vovk2014"
    free: ClassVar[frozenset[str]] = Experiment.free | {"transductive_repeats"}

    repeats: int = 100
    transductive_repeats: int = 16
    folds: int = 3
    platt: Targets = "hard"
    density: Density = "kernel"

    def __post_init__(self) -> None:
        """Check the settings' types and ranges."""
        super().__post_init__()
        check_option(self.platt, Targets, "platt")
        check_option(self.density, Density, "density")
        check_count(self.transductive_repeats, "transductive_repeats")

    def tasks(self, datasets: Iterable[str]) -> list[Task]:
        """Return all tasks: one per split for W, SVA and DIR, per split and classifier for VA."""
        chosen = list(datasets)
        plain = [Task(dataset, r, PLAIN) for r in range(self.repeats) for dataset in chosen]
        slow = [
            Task(dataset, r, fold)
            for r in range(min(self.transductive_repeats, self.repeats))
            for dataset in chosen
            for fold in range(1, 1 + len(CLASSIFIERS))
        ]
        return plain + slow

    def load(self, dataset: str) -> PreparedData:
        """Load and prepare a data set; labels become 0 and 1, in sorted order."""
        X, y = load_problem(self.paper, dataset, self.data_dir)
        return two_classes(dataset, X, y)

    def split(self, task: Task) -> tuple[IntArray, IntArray]:
        """Return the task's training and test indices; VA has splits of its own."""
        n = len(self.data(task.dataset).y)
        kind = "plain" if task.fold == PLAIN else "transductive"
        seed = self.seed_of("split", task.dataset, task.repeat, kind)
        order = np.random.default_rng(seed).permutation(n)
        first = round(n * (self.folds - 1) / self.folds)
        return order[:first], order[first:]

    def run(self, task: Task) -> Record:
        """Train, calibrate and return the losses.

        The record holds, by method and classifier (``"SVA (NB)"``), ``log loss`` (null if it is
        infinite) and ``root mean square error``.
        """
        y = self.data(task.dataset).y
        train, test = self.split(task)
        kinds = CLASSIFIERS if task.fold == PLAIN else (CLASSIFIERS[task.fold - 1],)
        record: Record = {}
        with one_thread(), warnings.catch_warnings():
            # Few iterations and separable data are intended.
            warnings.simplefilter("ignore", ConvergenceWarning)
            for kind in kinds:
                X, n_values = mixed_table(self, task.dataset)
                if kind in ("J", "JB"):
                    X = self.data(task.dataset).X
                seed = self.seed_of("model", *task[:2], kind)
                model = classifier(kind, n_values, self.density)
                estimates = self._plain if task.fold == PLAIN else _transductive
                for method, p in estimates(model, X[train], y[train], X[test], seed).items():
                    record[f"{method} ({kind})"] = losses(y[test], *p)
        return record

    def _plain(
        self, model: Any, X: FloatArray, y: IntArray, X_new: FloatArray, seed: int
    ) -> dict[str, tuple[FloatArray, ...]]:
        """Return W, SVA and DIR: for each the estimates that `losses` takes."""
        svm = not hasattr(model, "predict_proba")
        fitted = CalibratedClassifier(
            model,
            method=PlattScaling(targets=self.platt, on="score") if svm else "none",
            calibrate_on="training",
            random_state=seed,
        ).fit(X, y)
        if svm:
            # The same sigmoid mirrored: 1 - p would lose probabilities below 1e-16.
            mirrored = PlattScaling(targets=self.platt, on="score").fit(
                fitted.calibration_scores_, 1 - y
            )
            raw = fitted.predict_proba(X_new)[:, 1]
            rest = mirrored.predict_proba(fitted.estimator_.decision_function(X_new))[:, 1]
        else:
            rest, raw = fitted.estimator_.predict_proba(X_new).T
        direct = fitted.recalibrate(DirectIsotonic()).predict_proba(X_new)
        simplified = fitted.recalibrate("venn-abers", merge="log").predict_multiprobability(X_new)
        return {
            "W": (raw, raw, rest),
            "SVA": (simplified.merge("log")[:, 1], simplified.merge("brier")[:, 1]),
            "DIR": (direct[:, 1], direct[:, 1]),
        }


@lru_cache(maxsize=16)
def mixed_table(experiment: Vovk2014, dataset: str) -> tuple[FloatArray, tuple[int, ...]]:
    """Return a data set with nominal columns as codes, and how many values each column has.

    Returns
    -------
    X : ndarray of shape (n, d)
        NaN for a missing cell.
    n_values : tuple of int, length d
        0 for a numeric column.
    """
    frame = load(problems(experiment.paper)[dataset], experiment.data_dir).X
    columns, n_values = [], []
    for name in frame.columns:
        column = frame[name]
        if column.dtype == "category":
            codes = column.cat.codes.to_numpy(dtype=np.float64)
            columns.append(np.where(codes < 0, np.nan, codes))
            n_values.append(len(column.cat.categories))
        else:
            columns.append(column.to_numpy(dtype=np.float64))
            n_values.append(0)
    return np.column_stack(columns), tuple(n_values)


def _transductive(
    model: Any, X: FloatArray, y: IntArray, X_new: FloatArray, seed: int
) -> dict[str, tuple[FloatArray, FloatArray]]:
    """Return VA (Algorithm 1): the estimates for log loss and for square loss."""
    fitted = TransductiveClassifier(model, random_state=seed).fit(X, y)
    bounds = fitted.predict_multiprobability(X_new)
    return {"VA": (bounds.merge("log")[:, 1], bounds.merge("brier")[:, 1])}


def losses(
    y: IntArray, p_log: FloatArray, p_square: FloatArray, rest: FloatArray | None = None
) -> dict[str, float | None]:
    """Return mean log error (eq. 12, natural logarithms; None: infinite) and RMSE (eq. 13).

    Parameters
    ----------
    y : ndarray of shape (n,)
        Labels 0 and 1.
    p_log, p_square : ndarray of shape (n,)
        Estimates of the probability of 1, for log loss and for square loss.
    rest : ndarray of shape (n,), optional
        Estimates of the probability of 0 for log loss, if known more precisely than as
        ``1 - p_log``.
    """
    given = np.where(y == 1, p_log, 1 - p_log if rest is None else rest)
    infinite = bool((given <= 0).any())
    return {
        "log loss": None if infinite else float(-np.log(given).mean()),
        "root mean square error": float(np.sqrt(np.mean((p_square - y) ** 2))),
    }


EXPERIMENT = Vovk2014
