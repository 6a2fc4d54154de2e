"""Johansson, Löfström, Linusson & Boström (2018), Efficient Venn predictors using random forests.

Ten setups: raw forest, Platt, isotonic, Venn and Venn–Abers, each calibrated out of bag (``-oob``)
and on a third of the training set (``-cal``), over 22 data sets.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest._validation import FloatArray, check_count, check_option
from vennforest.calibrators import Calibrator, PlattScaling
from vennforest.metrics import brier_decomposition
from vennforest.papers.johansson2018.findings import report
from vennforest.papers.protocol.experiment import Experiment, Problem, Record, Task
from vennforest.papers.protocol.problems import load_problem
from vennforest.papers.protocol.reproduction import Reproduction
from vennforest.papers.published import Paper
from vennforest.sources import Holdout, OutOfBag, Source

Targets = Literal["smoothed", "hard"]

BOUNDED = ("VP", "VAP")
"""The methods that give intervals."""

CLASSES: NDArray[np.intp] = np.arange(2)


@dataclass(frozen=True, kw_only=True)
class Johansson2018(Experiment):
    """Ten setups on 22 data sets, 10 x 10-fold cross-validation.

    Parameters
    ----------
    trees : int
        Trees of each forest.
    platt : {"smoothed", "hard"}
        Targets of Platt scaling. The paper says "standard", and that a logistic regression model
        was learned, which has targets 0 and 1; the printed numbers fit these.
    as_published : bool
        Whether three data sets are taken with the faults of the authors' files, see
        `vennforest.datasets.prepare`.
    """

    paper: ClassVar[Paper] = "johansson2018"

    repeats: int = 10
    trees: int = 300
    platt: Targets = "hard"
    as_published: bool = True

    def __post_init__(self) -> None:
        """Refuse values that are none."""
        super().__post_init__()
        check_option(self.platt, Targets, "platt")
        check_count(self.trees, "trees")

    def load(self, dataset: str) -> Problem:
        """Load and prepare a data set; labels become 0 and 1, in sorted order."""
        X, y = load_problem(self.paper, dataset, self.data_dir, as_published=self.as_published)
        classes, codes = np.unique(y, return_inverse=True)
        if len(classes) != 2:
            raise ValueError(f"{dataset} must have two classes, got {len(classes)}")
        return Problem(X.to_numpy(dtype=np.float64), codes)

    def run(self, task: Task) -> Record:
        """Train two forests and return every setup's estimates for the fold's test objects.

        The record holds ``y``; under each setup's name ``p``, the probability of class 1; for
        Venn and Venn–Abers ``label`` (eq. 5), and ``low`` and ``high``, its interval (eq. 6).
        """
        X, y = self.problem(task.dataset)
        train, test = self.split(task)
        record: Record = {"y": y[test].tolist()}
        sources: dict[str, Source] = {"cal": Holdout(1 / 3, stratified=True), "oob": OutOfBag()}
        for source, calibrate_on in sources.items():
            # One forest for five methods.
            forest = RandomForestClassifier(self.trees)
            fitted = CalibratedClassifier(
                forest,
                method="none",
                calibrate_on=calibrate_on,
                random_state=self.seed_of(*task, source),
            )
            with warnings.catch_warnings():
                # With few trees some examples are out of bag for none: that is what few trees do.
                warnings.filterwarnings("ignore", ".*out of bag for no tree", UserWarning)
                fitted.fit(X[train], y[train])
            for name, method in self._methods().items():
                model = fitted.recalibrate(method, merge="midpoint")
                if name in BOUNDED:
                    bounds = model.predict_multiprobability(X[test])
                    low, high = bounds.of_label()
                    record[f"{name}-{source}"] = {
                        "label": bounds.labels().tolist(),
                        "low": low.tolist(),
                        "high": high.tolist(),
                    }
                else:
                    p = model.predict_proba(X[test])[:, 1]
                    record[f"{name}-{source}"] = {"p": p.tolist()}
        return record

    def _methods(self) -> dict[str, Calibrator | Literal["none", "isotonic", "venn", "venn-abers"]]:
        return {
            "RF": "none",
            "Platt": PlattScaling(targets=self.platt),
            "Iso": "isotonic",
            "VP": "venn",
            "VAP": "venn-abers",
        }

    def report(self, records: Mapping[Task, Record], datasets: Sequence[str]) -> Reproduction:
        """Make the paper's six tables, and say which of its conclusions hold."""
        return report(self, measure(records, datasets))


Measures = dict[str, dict[str, dict[str, float]]]
"""By measure, setup and data set."""


def measure(records: Mapping[Task, Record], datasets: Sequence[str]) -> Measures:
    """Return every setup's measures on every data set.

    Measures are taken over the pooled test estimates of a repeat, in which every object is
    tested once, and averaged over the repeats.
    """
    found: Measures = {}
    for dataset in datasets:
        pooled: dict[int, list[Record]] = {}
        for task, record in records.items():
            if task.dataset == dataset:
                pooled.setdefault(task.repeat, []).append(record)
        setups = [name for name in next(iter(pooled.values()))[0] if name != "y"]
        for setup in setups:
            repeats = [_measures(folds, setup) for folds in pooled.values()]
            for name in repeats[0]:
                mean = float(np.mean([one[name] for one in repeats]))
                found.setdefault(name, {}).setdefault(setup, {})[dataset] = mean
    return found


def _measures(folds: Sequence[Record], setup: str) -> dict[str, float]:
    """Return the measures of one setup over the folds of one repeat."""
    y: NDArray[np.intp] = np.concatenate([np.asarray(fold["y"], np.intp) for fold in folds])

    def pooled(name: str) -> FloatArray:
        return np.concatenate([np.asarray(fold[setup][name], np.float64) for fold in folds])

    out: dict[str, float] = {}
    if "p" in folds[0][setup]:
        p1 = pooled("p")
        out["accuracy"] = float(np.mean((p1 > 0.5) == y))
        out["confidence minus accuracy"] = float(np.maximum(p1, 1 - p1).mean()) - out["accuracy"]
    else:
        label, low, high = pooled("label"), pooled("low"), pooled("high")
        middle = (low + high) / 2
        p1 = np.where(label == 1, middle, 1 - middle)
        out["accuracy"] = float(np.mean(label == y))
        out["low"], out["high"] = float(low.mean()), float(high.mean())
        out["interval size"] = float((high - low).mean())
        out["confidence minus accuracy"] = float(middle.mean()) - out["accuracy"]
    p = np.column_stack([1 - p1, p1])
    terms = brier_decomposition(y, p, bins=100, classes=CLASSES)
    out["reliability"], out["variance"], out["brier"] = (
        terms.reliability,
        terms.sharpness,
        terms.brier,
    )
    return out


EXPERIMENT = Johansson2018
