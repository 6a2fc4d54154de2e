"""Niculescu-Mizil & Caruana (2005), Predicting good probabilities with supervised learning.

Ten learners on the four of the paper's eight problems that are public, raw and calibrated by Platt
scaling, isotonic regression and Venn–Abers prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn import metrics

from vennforest._validation import FloatArray, InputError, IntArray, check_count
from vennforest.calibrators import IsotonicCalibration, PlattScaling, VennAbers
from vennforest_experiments.papers.niculescu2005.learners import LEARNERS, Model, train
from vennforest_experiments.papers.protocol.experiment import Experiment, PreparedData
from vennforest_experiments.papers.protocol.learners import one_thread
from vennforest_experiments.papers.protocol.problems import load_problem
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import Paper

METHODS = ("raw", "Platt", "isotonic", "Venn–Abers")
LOSSES = ("squared error", "log loss")

FIRST_SIZE = 32
"""The smallest calibration set of the learning curves."""

GRID = 51
"""The fitted calibration maps are drawn at this many raw estimates from 0 to 1."""

CLIP = 0.001
"""Estimates are clipped to this distance from 0 and 1 before their log loss is taken."""

Estimate = Callable[[FloatArray], FloatArray]
"""Maps a model's scores (n,) to probabilities (n,)."""


@dataclass(frozen=True, kw_only=True)
class Niculescu2005(Experiment):
    """Ten learners on four problems, trained on 4,000 cases and calibrated on another 1,000.

    Parameters
    ----------
    repeats : int
        Trials: random permutations of the cases. All of them are used for the learning curves, the
        first five for the comparison.
    train_cases, calibration_cases : int
        Number of cases for training, and for calibration and model selection.
    most_cases : int
        Size of the largest calibration set of the learning curves.
    settings_tried : int or None
        Number of settings tried per learner; None for all.
    """

    paper: ClassVar[Paper] = "niculescu2005"

    repeats: int = 10
    train_cases: int = 4000
    calibration_cases: int = 1000
    most_cases: int = 8192
    settings_tried: int | None = None

    def __post_init__(self) -> None:
        """Check the settings' types and ranges."""
        super().__post_init__()
        if self.folds != Experiment.folds:
            raise InputError(
                f"folds must be left out: the trials are random splits, got {self.folds}; "
                "their number is repeats"
            )
        check_count(self.train_cases, "train_cases", low=20)
        check_count(self.calibration_cases, "calibration_cases", low=10)
        check_count(self.most_cases, "most_cases", low=FIRST_SIZE)
        if self.settings_tried is not None:
            check_count(self.settings_tried, "settings_tried")

    def sizes(self) -> list[int]:
        """Return the calibration sets' sizes of the learning curves: 32, 64, … ``most_cases``."""
        steps = int(np.log2(self.most_cases / FIRST_SIZE))
        return [FIRST_SIZE * 2**i for i in range(steps + 1)]

    def tasks(self, datasets: Iterable[str]) -> list[Task]:
        """Return all tasks: one per trial, problem and learner; the learner is the fold."""
        chosen = list(datasets)
        return [
            Task(dataset, trial, learner)
            for trial in range(self.repeats)
            for dataset in chosen
            for learner in range(len(LEARNERS))
        ]

    def load(self, dataset: str) -> PreparedData:
        """Load and prepare a problem, which must leave cases for testing."""
        X, y = load_problem(self.paper, dataset, self.data_dir)
        needed = self.train_cases + max(self.calibration_cases, self.sizes()[-1])
        if len(y) <= needed:
            raise InputError(
                f"train_cases, calibration_cases and most_cases must leave cases of {dataset} "
                f"for testing, got {needed} of {len(y)}"
            )
        return PreparedData(X.to_numpy(dtype=np.float64), y)

    def run(self, task: Task) -> Record:
        """Train a learner with all settings; calibrate, select and test.

        The record holds

        - ``losses``: by method, for the setting that is best on the calibration cases,
          ``squared error``, ``log loss`` (estimates clipped) and ``infinite`` (whether log loss
          would be without clipping); ``settings``: by method, the setting with the smallest
          squared error;
        - for the one setting that is best before or after calibration: ``shown``, its name;
          ``slope`` of the outcomes' log-odds regressed on the raw estimates' log-odds; ``bins``: by
          method, count, mean estimate (null if empty) and fraction of positives in ten bins;
          ``fit``: by method, the calibrated values at 51 raw estimates from 0 to 1; ``curve``: by
          method, the squared error for each size of the calibration set.
        """
        X, y = self.data(task.dataset)
        order = np.random.default_rng(self.seed_of("split", *task[:2])).permutation(len(y))
        X, y = X[order], y[order]
        kind, first = LEARNERS[task.fold], self.train_cases
        held = slice(first, first + self.calibration_cases)
        is_flag = ((X == 0) | (X == 1)).all(axis=0).tolist()
        seed = self.seed_of("model", *task[:2], kind)
        with one_thread():
            models = train(kind, X[:first], y[:first], is_flag, seed, self.settings_tried)
            trials = [_Trial(model, X[held], y[held]) for model in models]
            tested: dict[str, FloatArray] = {}

            def rest(trial: _Trial) -> FloatArray:
                """Return the scores of all cases after the calibration cases, computed once."""
                name = trial.model.setting
                if name not in tested:
                    tested[name] = trial.model.score(X[held.stop :])
                return tested[name]

            record = self._compare(trials, rest, y[held.stop :])
            shown = min(trials, key=lambda t: min(t.errors[m] for m in METHODS[:3]))
            scores = np.concatenate([shown.scores, rest(shown)])
        return record | self._show(shown, scores, y[first:])

    def _compare(
        self, trials: Sequence[_Trial], rest: Callable[[_Trial], FloatArray], y: IntArray
    ) -> Record:
        losses: Record = {}
        settings: Record = {}
        for method in METHODS:
            best = min(trials, key=lambda t: t.errors[method])
            p = best.estimates[method](rest(best))
            losses[method] = {"squared error": squared_error(y, p)}
            settings[method] = best.model.setting
            best = min(trials, key=lambda t: t.log_losses[method])
            p = best.estimates[method](rest(best))
            losses[method]["log loss"] = log_loss(y, p)
            losses[method]["infinite"] = bool((np.where(y == 1, p, 1 - p) <= 0).any())
        return {"losses": losses, "settings": settings}

    def _show(self, shown: _Trial, scores: FloatArray, y: IntArray) -> Record:
        """Return one model's numbers for the figures, from all cases it was not trained on."""
        first = self.calibration_cases
        raw = shown.estimates["raw"](scores[first:])
        logit = PlattScaling(on="probability", targets="hard").fit(raw, y[first:], classes=[0, 1])
        low, width = shown.scale
        grid = low + width * np.linspace(0, 1, GRID)
        curve: dict[str, list[float]] = {method: [] for method in METHODS}
        for size in self.sizes():
            # Cases used for selecting the setting are never tested on.
            after = max(size, first)
            fitted = calibrations(scores[:size], y[:size], shown.scale)
            for method in METHODS:
                p = fitted[method](scores[after:])
                curve[method].append(squared_error(y[after:], p))
        shown_methods = METHODS[:3]
        return {
            "shown": shown.model.setting,
            "slope": float(logit.slope_[0] / logit.scale_[0]),
            "bins": {
                m: _bins(y[first:], shown.estimates[m](scores[first:])) for m in shown_methods
            },
            "fit": {m: shown.estimates[m](grid).tolist() for m in shown_methods[1:]},
            "curve": curve,
        }


class _Trial:
    """A model with its calibrators, and their losses on the calibration cases."""

    def __init__(self, model: Model, X: FloatArray, y: IntArray) -> None:
        self.model, self.scores = model, model.score(X)
        self.scale = (0.0, 1.0)
        if model.unbounded:
            low, high = float(self.scores.min()), float(self.scores.max())
            self.scale = (low, high - low if high > low else 1.0)
        self.estimates = calibrations(self.scores, y, self.scale)
        p = {method: estimate(self.scores) for method, estimate in self.estimates.items()}
        self.errors = {method: squared_error(y, one) for method, one in p.items()}
        self.log_losses = {method: log_loss(y, one) for method, one in p.items()}


def calibrations(
    scores: FloatArray, y: IntArray, scale: tuple[float, float]
) -> dict[str, Estimate]:
    """Return every method's map from scores to probabilities, fitted to calibration cases.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Scores of the calibration cases.
    y : ndarray of shape (n,)
        Their labels, 0 and 1; one class may be missing.
    scale : (float, float)
        Smallest score and range, with which raw scores are scaled to [0, 1].
    """
    low, width = scale
    platt = PlattScaling(on="score").fit(scores, y, classes=[0, 1])
    isotonic = IsotonicCalibration().fit(scores, y, classes=[0, 1])
    venn_abers = VennAbers(merge="log").fit(scores, y, classes=[0, 1])
    found: tuple[Estimate, ...] = (
        lambda s: np.clip((s - low) / width, 0, 1),
        lambda s: platt.predict_proba(s)[:, 1],
        lambda s: isotonic.predict_proba(s)[:, 1],
        lambda s: venn_abers.predict_proba(s)[:, 1],
    )
    return dict(zip(METHODS, found, strict=True))


def squared_error(y: IntArray, p: FloatArray) -> float:
    """Return the mean of ``(p - y)**2`` for labels 0 and 1, both of shape (n,)."""
    return float(metrics.brier_score_loss(y, p, labels=[0, 1]))


def log_loss(y: IntArray, p: FloatArray) -> float:
    """Return the mean log loss (natural logarithms) of estimates clipped to [.001, .999]."""
    return float(metrics.log_loss(y, np.clip(p, CLIP, 1 - CLIP), labels=[0, 1]))


def _bins(y: IntArray, p: FloatArray) -> Record:
    """Return count, mean estimate and fraction of positives in ten bins of equal width."""
    place = np.minimum((p * 10).astype(np.intp), 9)
    n = np.bincount(place, minlength=10)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(place, p, 10) / n
        share = np.bincount(place, y, 10) / n
    return {
        "n": n.tolist(),
        "estimate": [None if not k else float(v) for k, v in zip(n, mean, strict=True)],
        "share": [None if not k else float(v) for k, v in zip(n, share, strict=True)],
    }


EXPERIMENT = Niculescu2005
