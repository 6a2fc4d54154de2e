"""The measures of Johansson et al. (2018), from the records, beside the printed ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray
from vennforest.metrics import brier_decomposition
from vennforest_experiments.comparison import Comparison, compare
from vennforest_experiments.papers.johansson2018.experiment import SETUPS, VENN
from vennforest_experiments.papers.protocol.reproduction import Values
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import ALL, BETTER

CLASSES: NDArray[np.intp] = np.arange(2)

Measures = dict[str, dict[str, dict[str, float]]]
"""By measure, setup and data set."""


def mean_measures(records: Mapping[Task, Record], datasets: Sequence[str]) -> Measures:
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


class Findings:
    """Measures beside the printed ones, ranked and tested.

    Parameters
    ----------
    measures : mapping
        By measure, setup and data set.
    datasets : sequence of str
        The data sets.
    """

    def __init__(self, measures: Measures, datasets: Sequence[str]) -> None:
        self.measures, self.datasets = measures, list(datasets)
        self.values = Values("johansson2018")
        for setup in SETUPS:
            for number, measure in (
                ("1", "confidence minus accuracy"),
                ("2", "reliability"),
                ("2", "variance"),
                ("2", "brier"),
                ("6", "accuracy"),
            ):
                self.values.add_column(number, setup, measure, measures[measure][setup])
        for setup in VENN:
            for measure in ("low", "high", "interval size", "accuracy"):
                self.values.add_column("4", setup, measure, measures[measure][setup])
        self.reliability = self._rank("2", "reliability", SETUPS, lower=True)
        self.variance = self._rank("2", "variance", SETUPS, lower=True)
        self.size = self._rank("4", "interval size", VENN, lower=True)
        self.venn_accuracy = self._rank("4", "accuracy", VENN, lower=False)
        self.accuracy = self._rank("6", "accuracy", SETUPS, lower=False)
        self._mark("3", self.reliability)
        self._mark("5", self.venn_accuracy)
        p = self.venn_accuracy.bergmann_hommel[VENN.index("VP-oob"), VENN.index("VAP-oob")]
        self.values.add("text", ALL, "VP-oob", "p against VAP-oob", float(p))

    def _rank(self, number: str, measure: str, setups: Sequence[str], *, lower: bool) -> Comparison:
        columns = {setup: self.measures[measure][setup] for setup in setups}
        comparison = compare(columns, lower_is_better=lower)
        self.values.add_ranks(number, measure, setups, comparison.mean_ranks)
        self.values.add(number, ALL, "", f"friedman p, {measure}", comparison.chi_square_p)
        return comparison

    def _mark(self, number: str, comparison: Comparison) -> None:
        better = set(comparison.better("bergmann-hommel"))
        for row in comparison.methods:
            for column in comparison.methods:
                if row != column:
                    wins = (row, column) in better
                    self.values.add(number, ALL, row, BETTER + column, float(wins))

    def mean(self, measure: str, setup: str) -> float:
        """Return the mean over the data sets."""
        return float(np.mean(list(self.measures[measure][setup].values())))

    def inside(self, setup: str, dataset: str) -> bool:
        """Whether the accuracy lies in the mean interval."""
        low, high, accuracy = (
            self.measures[name][setup][dataset] for name in ("low", "high", "accuracy")
        )
        return low <= accuracy <= high

    def printed(self, number: str, setup: str, measure: str, dataset: str) -> float:
        """Return the printed number, which every cell of these tables has."""
        value = self.values.get(number, dataset, setup, measure).published
        if value is None:
            raise KeyError((number, setup, measure, dataset))
        return value
