"""The measures of Boström (2008), from the records: means, ranks and tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from vennforest._validation import FloatArray
from vennforest_experiments.comparison import Comparison, compare
from vennforest_experiments.papers.bostrom2008.experiment import METHODS, Bostrom2008
from vennforest_experiments.papers.protocol.reproduction import Values
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import ALL, BETTER

CONTROL = "PET_R"

RANKED: Mapping[str, tuple[tuple[str, ...], bool]] = {
    "brier": (METHODS, True),
    "auc": (METHODS, False),
    # Boström's correction does not change accuracy: raw forests would only be ranked twice.
    "accuracy": (tuple(m for m in METHODS if m not in ("CT", "PET")), False),
    "log loss": (METHODS, True),
}
"""For each measure the ranked methods, and whether the smallest value is best."""

Measures = dict[str, dict[str, dict[str, float]]]
"""By measure, method and data set."""


def mean_measures(records: Mapping[Task, Record], datasets: Sequence[str]) -> Measures:
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


class Findings:
    """Measures beside the printed ones, ranked and tested.

    Parameters
    ----------
    experiment : Bostrom2008
        The experiment that was run.
    measures : mapping
        By measure, method and data set.
    """

    def __init__(self, experiment: Bostrom2008, measures: Measures) -> None:
        self.experiment, self.measures = experiment, measures
        self.datasets = list(measures["brier"][CONTROL])
        self.values = Values("bostrom2008")
        self.comparisons: dict[str, Comparison] = {}
        for measure, (methods, lower) in RANKED.items():
            for method in METHODS:
                self.values.add_column("1", method, measure, measures[measure][method])
            # A data set on which no fold could be measured is left out of the ranking.
            columns = {
                m: {d: v for d, v in measures[measure][m].items() if not np.isnan(v)}
                for m in methods
            }
            comparison = compare(columns, lower_is_better=lower, control=CONTROL)
            self.comparisons[measure] = comparison
            self.values.add_ranks("1", measure, methods, comparison.mean_ranks)
            self.values.add("text", ALL, "", f"friedman p, {measure}", comparison.chi_square_p)
        brier = self.comparisons["brier"]
        self.values.add(
            "text",
            ALL,
            "",
            "bonferroni-dunn critical difference",
            brier.critical_difference("bonferroni-dunn"),
        )
        beaten = {worse for better, worse in brier.better("bonferroni-dunn") if better == CONTROL}
        for method in METHODS:
            if method != CONTROL:
                measure = f"{BETTER}{method}, brier"
                self.values.add("text", ALL, CONTROL, measure, float(method in beaten))
        self.beaten = beaten

    def ranks(self, measure: str) -> dict[str, float]:
        """Return mean ranks, the best first."""
        c = self.comparisons[measure]
        pairs = zip(c.methods, c.mean_ranks.tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: pair[1]))

    @cached_property
    def figure_1(self) -> dict[str, FloatArray]:
        """Each method's probabilities in Figure 1, whose data set must be among those run."""
        return self.experiment.figure_1()
