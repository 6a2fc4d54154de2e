"""The losses of Niculescu-Mizil & Caruana (2005), averaged over trials and problems."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vennforest._validation import FloatArray
from vennforest_experiments.papers.niculescu2005.experiment import LOSSES, METHODS, Niculescu2005
from vennforest_experiments.papers.niculescu2005.learners import LEARNERS
from vennforest_experiments.papers.protocol.reproduction import Values
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import MEAN

COMPARED = 5
"""Number of trials that the comparison averages over."""


@dataclass(frozen=True)
class TrialMeans:
    """Losses, learning curves and slopes, averaged over trials or problems.

    Attributes
    ----------
    datasets : sequence of str
        The p problems.
    sizes : sequence of int
        Sizes of the calibration sets in the learning curves.
    losses : mapping
        By learner, method and loss: means over the problems, shape (trials,).
    by_problem : mapping
        By learner, method and loss: means over the trials, shape (p,).
    curves : mapping
        By learner and method: mean squared errors over the problems, shape (sizes, trials).
    slopes : mapping
        By learner: mean slopes over the trials, shape (p,).
    """

    datasets: Sequence[str]
    sizes: Sequence[int]
    losses: Mapping[tuple[str, str, str], FloatArray]
    by_problem: Mapping[tuple[str, str, str], FloatArray]
    curves: Mapping[tuple[str, str], FloatArray]
    slopes: Mapping[str, FloatArray]

    def mean(self, kind: str, method: str, loss: str = "squared error") -> float:
        """Return a mean over trials and problems."""
        return float(self.losses[kind, method, loss].mean())

    def best(self, kind: str, loss: str = "squared error") -> float:
        """Return the smaller of the losses after Platt scaling and isotonic regression."""
        return min(self.mean(kind, "Platt", loss), self.mean(kind, "isotonic", loss))

    def gain(self, kind: str, loss: str = "squared error") -> float:
        """Return the fraction by which the better calibration reduces the raw loss."""
        return 1 - self.best(kind, loss) / self.mean(kind, "raw", loss)

    def curve(self, kind: str, method: str, size: int) -> float:
        """Return the mean squared error with a calibration set of that size."""
        return float(self.curves[kind, method][self.sizes.index(size)].mean())


def trial_means(
    experiment: Niculescu2005, records: Mapping[Task, Record], datasets: Sequence[str]
) -> TrialMeans:
    """Average the records of all trials."""
    trials = range(experiment.repeats)
    compared = trials[:COMPARED]

    def table(among: Iterable[int], kind: str, *path: str) -> FloatArray:
        """Return a number of each record, at the path, by trial (first axis) and problem."""
        fold = LEARNERS.index(kind)
        rows = [[_at(records[Task(d, t, fold)], path) for d in datasets] for t in among]
        return np.array(rows, np.float64)

    losses, by_problem, curves, slopes = {}, {}, {}, {}
    for kind in LEARNERS:
        for method in METHODS:
            for loss in LOSSES:
                found = table(compared, kind, "losses", method, loss)
                losses[kind, method, loss] = found.mean(axis=1)
                by_problem[kind, method, loss] = found.mean(axis=0)
            curves[kind, method] = table(trials, kind, "curve", method).mean(axis=1).T
        slopes[kind] = table(compared, kind, "slope").mean(axis=0)
    return TrialMeans(list(datasets), experiment.sizes(), losses, by_problem, curves, slopes)


def _at(record: Record, path: Iterable[str]) -> Any:
    found: Any = record
    for name in path:
        found = found[name]
    return found


class Findings:
    """The averages, and every number beside the printed one."""

    def __init__(
        self, experiment: Niculescu2005, records: Mapping[Task, Record], datasets: Sequence[str]
    ) -> None:
        self.experiment, self.datasets, self.sizes = experiment, datasets, experiment.sizes()
        self.means = trial_means(experiment, records, datasets)
        self.values = Values("niculescu2005")
        self._add_values()

    def _add_values(self) -> None:
        add = self.values.add
        for name in self.datasets:
            X, y = self.experiment.data(name)
            add(
                "2",
                name,
                "",
                "attributes, one-hot" if name == "ADULT" else "attributes",
                X.shape[1],
            )
            add("2", name, "", "training cases", self.experiment.train_cases)
            used = self.experiment.train_cases + self.experiment.calibration_cases
            add("2", name, "", "test cases", len(y) - used)
            add("2", name, "", "percent positive", 100 * float(np.mean(y)))
        for (kind, method, loss), column in self.means.by_problem.items():
            for name, value in zip(self.datasets, column, strict=True):
                add("figure 8", name, f"{kind} {method}", loss, value)
        for (kind, method, loss), trials in self.means.losses.items():
            add("figure 8", MEAN, f"{kind} {method}", loss, float(trials.mean()))
            spread = float(trials.std(ddof=1)) if len(trials) > 1 else float("nan")
            add("figure 8", MEAN, f"{kind} {method}", f"{loss}, standard deviation", spread)
        for (kind, method), curve in self.means.curves.items():
            for size, value in zip(self.sizes, curve.mean(axis=1), strict=True):
                measure = f"squared error, {size} cases"
                add("figure 7", MEAN, f"{kind} {method}", measure, float(value))
        for kind, slopes in self.means.slopes.items():
            for name, value in zip(self.datasets, slopes, strict=True):
                add("figures 1–6", name, kind, "slope", value)
