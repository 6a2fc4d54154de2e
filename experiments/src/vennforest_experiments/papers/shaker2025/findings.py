"""The measures of Shaker & Hüllermeier (2025), from the records: means, ranks and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vennforest_experiments.comparison import Comparison, compare
from vennforest_experiments.papers.protocol.reproduction import Values
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.shaker2025.experiment import HELD_OUT, METHODS, OUT_OF_BAG
from vennforest_experiments.papers.shaker2025.synthetic import PROBLEMS

MEASURES: Mapping[str, bool] = {
    "accuracy": False,
    "brier": True,
    "log loss": True,
    "ece": True,
    "squared gap": True,
}
"""The measures, and whether the smallest value is best."""

TRUE_ERROR = "true error"

GROUPS: Mapping[str, tuple[str, ...]] = {
    "held out": HELD_OUT,
    "out of bag": (*HELD_OUT, *OUT_OF_BAG),
    "all": METHODS,
}
"""The methods that are ranked together: those of the paper, with those out of bag, with ours."""

Measures = dict[str, dict[str, dict[str, float]]]
"""By measure, method and data set."""


def mean_measures(records: Mapping[Task, Record], datasets: Sequence[str]) -> Measures:
    """Return every method's measures on every data set, averaged over the folds."""
    found: Measures = {}
    for dataset in datasets:
        folds = [record for task, record in records.items() if task.dataset == dataset]
        for method, first in folds[0].items():
            for name in first:
                mean = float(np.mean([fold[method][name] for fold in folds]))
                found.setdefault(name, {}).setdefault(method, {})[dataset] = mean
    return found


class Findings:
    """Measures and ranks beside the authors' figures; synthetic data by themselves.

    Parameters
    ----------
    measures : mapping
        By measure, method and data set.
    """

    def __init__(self, measures: Measures) -> None:
        self.measures = measures
        run = list(measures["brier"]["RF_d"])
        self.datasets = [d for d in run if d not in PROBLEMS]
        self.synthetic = [d for d in run if d in PROBLEMS]
        self.values = Values("shaker2025")
        self.comparisons: dict[tuple[str, str], Comparison] = {}
        for measure, lower in MEASURES.items():
            if self.datasets:
                self._add("each", measure, self.datasets)
                for group, methods in GROUPS.items():
                    self._rank(group, measure, methods, self.datasets, lower)
            if self.synthetic:
                self._add("synthetic", measure, self.synthetic)
        if self.synthetic:
            self._add("synthetic", TRUE_ERROR, self.synthetic)
            for measure in ("brier", "log loss", TRUE_ERROR):
                self._rank("synthetic", measure, METHODS, self.synthetic, True)

    def _add(self, table: str, measure: str, datasets: Sequence[str]) -> None:
        for method in METHODS:
            self.values.add_column(table, method, measure, self.column(measure, method, datasets))

    def _rank(
        self, group: str, measure: str, methods: Sequence[str], datasets: Sequence[str], lower: bool
    ) -> None:
        columns = {m: self.column(measure, m, datasets) for m in methods}
        comparison = compare(columns, lower_is_better=lower)
        self.comparisons[group, measure] = comparison
        self.values.add_ranks(group, measure, methods, comparison.mean_ranks)

    def column(self, measure: str, method: str, datasets: Sequence[str]) -> dict[str, float]:
        """Return a method's measure on some data sets."""
        return {d: self.measures[measure][method][d] for d in datasets}

    def ranks(self, group: str, measure: str) -> dict[str, float]:
        """Return mean ranks, the best first."""
        c = self.comparisons[group, measure]
        pairs = zip(c.methods, c.mean_ranks.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: pair[1]))

    def beaten(self, group: str, measure: str, method: str) -> list[str]:
        """Return which methods are significantly better than one (Nemenyi)."""
        pairs = self.comparisons[group, measure].better("nemenyi")
        return [better for better, worse in pairs if worse == method]
