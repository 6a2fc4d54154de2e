"""Johansson, Löfström, Linusson & Boström (2018), Efficient Venn predictors using random forests.

Ten setups on 22 data sets: raw forest, Platt scaling, isotonic regression, Venn and Venn–Abers
prediction, each calibrated out of bag (``-oob``) and on a third of the training set (``-cal``).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest._validation import check_count, check_option
from vennforest.calibrators import Calibrator, PlattScaling
from vennforest.calibrators.newton import Targets
from vennforest_experiments.papers.protocol.experiment import Experiment, PreparedData, two_classes
from vennforest_experiments.papers.protocol.problems import load_problem
from vennforest_experiments.papers.protocol.store import Record, Task
from vennforest_experiments.papers.published import Paper

METHODS = ("RF", "Platt", "Iso", "VP", "VAP")
SOURCES: Mapping[str, Literal["holdout", "oob"]] = {"cal": "holdout", "oob": "oob"}
"""Where calibration scores come from: a held-out part of the training set, or out of bag."""

SETUPS = tuple(f"{method}-{source}" for method in METHODS for source in SOURCES)

BOUNDED = ("VP", "VAP")
"""The methods that give intervals."""

VENN = tuple(f"{method}-{source}" for method in BOUNDED for source in SOURCES)


@dataclass(frozen=True, kw_only=True)
class Johansson2018(Experiment):
    """Ten setups on 22 data sets, 10 x 10-fold cross-validation.

    Parameters
    ----------
    trees : int
        Number of trees per forest.
    platt : {"smoothed", "hard"}
        Targets of Platt scaling. The paper says "standard", and that a logistic regression model
        was learned, which has targets 0 and 1; the printed numbers agree with these.
    as_published : bool
        Whether three data sets have the errors of the authors' files, see
        `vennforest_experiments.papers.protocol.problems.prepare`.
    """

    paper: ClassVar[Paper] = "johansson2018"

    repeats: int = 10
    trees: int = 300
    platt: Targets = "hard"
    as_published: bool = True

    def __post_init__(self) -> None:
        """Check the settings' types and ranges."""
        super().__post_init__()
        check_option(self.platt, Targets, "platt")
        check_count(self.trees, "trees")

    def load(self, dataset: str) -> PreparedData:
        """Load and prepare a data set; labels become 0 and 1, in sorted order."""
        X, y = load_problem(self.paper, dataset, self.data_dir, as_published=self.as_published)
        return two_classes(dataset, X, y)

    def run(self, task: Task) -> Record:
        """Train two forests and return every setup's estimates for the fold's test objects.

        The record holds ``y`` and, under each setup's name, ``p``, the probability of class 1; for
        Venn and Venn–Abers instead ``label`` (eq. 5) and its interval, ``low`` to ``high`` (eq. 6).
        """
        X, y = self.data(task.dataset)
        train, test = self.split(task)
        record: Record = {"y": y[test].tolist()}
        for source, calibrate_on in SOURCES.items():
            # One forest for five methods.
            forest = RandomForestClassifier(self.trees)
            fitted = CalibratedClassifier(
                forest,
                method="none",
                calibrate_on=calibrate_on,
                holdout_size=1 / 3,
                subforest="exchangeable" if calibrate_on == "oob" else "all",
                random_state=self.seed_of(*task, source),
            )
            with warnings.catch_warnings():
                # With few trees it is expected that some examples are out of bag for none.
                warnings.filterwarnings("ignore", ".*out of bag for no tree", UserWarning)
                warnings.filterwarnings("ignore", ".*exact copies", UserWarning)
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
            "Platt": PlattScaling(targets=self.platt, on="score"),
            "Iso": "isotonic",
            "VP": "venn",
            "VAP": "venn-abers",
        }


EXPERIMENT = Johansson2018
