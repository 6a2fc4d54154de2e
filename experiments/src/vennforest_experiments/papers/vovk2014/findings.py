"""The losses of Vovk & Petej (2014), from the records: means and ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from vennforest_experiments.papers.protocol.reproduction import Values
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.vovk2014.classifiers import CLASSIFIERS
from vennforest_experiments.papers.vovk2014.experiment import COLUMNS, METHODS

MEASURES = {"log loss": "1", "root mean square error": "2"}
"""The losses, each with the number of its table."""

Losses = Mapping[str, Mapping[str, Mapping[str, float]]]
"""By measure, column and data set."""


def mean_losses(records: Mapping[Task, Record], datasets: Sequence[str]) -> Losses:
    """Return the mean of each loss over the splits, infinite if any of them is."""
    kept: dict[tuple[str, str, str], list[float]] = {}
    for task, record in records.items():
        for column, found in record.items():
            for measure, value in found.items():
                number = math.inf if value is None else float(value)
                kept.setdefault((measure, column, task.dataset), []).append(number)
    return {
        measure: {
            column: {d: float(np.mean(kept[measure, column, d])) for d in datasets}
            for column in COLUMNS
        }
        for measure in MEASURES
    }


def ranked(column: Mapping[str, float]) -> list[tuple[str, str, float]]:
    """Return (method, classifier, loss) of the four methods, the best first.

    Each method is ranked by its smallest loss over the classifiers. ``column`` maps ``"SVA (NB)"``
    and so on to losses.
    """
    best = []
    for method in METHODS:
        loss, place = min((column[f"{method} ({k})"], i) for i, k in enumerate(CLASSIFIERS))
        best.append((method, CLASSIFIERS[place], loss))
    return sorted(best, key=lambda one: one[2])


class Findings:
    """The mean losses beside the printed ones, and the methods' ranks."""

    def __init__(self, losses: Losses, datasets: Sequence[str]) -> None:
        self.losses, self.datasets = losses, list(datasets)
        self.values = Values("vovk2014")
        for measure, number in MEASURES.items():
            for column in COLUMNS:
                for d in self.datasets:
                    self.values.add(number, d, column, measure, losses[measure][column][d])
        self.ranks = {
            (measure, d): ranked({c: losses[measure][c][d] for c in COLUMNS})
            for measure in MEASURES
            for d in self.datasets
        }
        for (measure, d), order in self.ranks.items():
            for place, (method, kind, _) in enumerate(order[:3], 1):
                self.values.add("3", d, f"{method} ({kind})", f"{measure} rank", place)
