"""The result of cross-validating all methods on one data set."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from vennforest.calibrators import METHODS
from vennforest.decisions import CostMatrix, Decisions
from vennforest.metrics import AucInterval
from vennforest.report.measures import Difference, Measures
from vennforest.report.predictions import BASELINE, RAW, OutOfFold
from vennforest.report.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

NAMES: dict[str, str] = {name: method.title for name, method in METHODS.items()}
NAMES[RAW] = "Raw forest"
NAMES[BASELINE] = "Shares alone"
"""What a reader calls each method; all trees without calibration are the forest as it is."""

# "pooled" alone gives the probability that "venn-abers" gives with bounds.
ALL_METHODS = tuple(name for name in METHODS if name != "pooled")

Origin = Literal["folds", "time", "test", "model", "given", "scores"]
"""Where the predictions come from.

``"folds"``: cross-validation; ``"time"``: folds that train on the past; ``"test"``: a model of the
other rows; ``"model"``: a fitted model; ``"given"``: probabilities that the table holds;
``"scores"``: its scores, calibrated over folds.
"""

LIBRARIES = ("vennforest", "scikit-learn", "numpy", "scipy", "numba", "pandas", "skrub")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Out-of-fold predictions of several methods for one data set, and what is measured of them.

    Attributes
    ----------
    name : str
        What the data set is called.
    target : str
        What is predicted.
    X : data frame or array of shape (n_rows, d), or None
        The features as they came; None where predictions were given.
    folds : OutOfFold
        The predictions.
    positive : int or None
        Index of the positive class of two; None with more.
    measures : dict of str to Measures
        By method.
    verdict : Verdict
        Which method to use here, and how the others compare.
    costs : CostMatrix or None
        What decisions cost.
    decisions : dict of str to Decisions
        By method; empty without costs.
    settings : dict
        What was run: folds, trees, subforest, seed.
    notes : list of str
        What was left out or done differently, one sentence each.
    seconds : float
        How long it took.
    baseline : Measures
        Of the share of each class, said to every row.
    knowledge : AucInterval
        How well the recommended method ranks.
    gain : Difference
        The baseline's loss minus the recommended method's; above 0 where it helps.
    gain_in : str
        Which loss that is: the log loss, or, where that is infinite, the Brier score.
    constant : Difference or None
        The cost of the best constant decision minus that of the recommended method's.
    names : dict of str to str
        What a reader calls each method.
    origin : str
        Where the predictions come from.
    by : dict of str to ndarray of shape (n,)
        Values whose rows are looked at separately.
    positive_reason : str
        Why that is the positive class.
    """

    name: str
    target: str
    X: Any
    folds: OutOfFold
    positive: int | None
    measures: dict[str, Measures]
    verdict: Verdict
    costs: CostMatrix | None
    decisions: dict[str, Decisions]
    settings: dict[str, Any]
    baseline: Measures
    knowledge: AucInterval
    gain: Difference
    gain_in: str = "log loss"
    constant: Difference | None = None
    names: dict[str, str] = field(default_factory=lambda: dict(NAMES))
    origin: Origin = "folds"
    by: dict[str, NDArray[Any]] = field(default_factory=dict)
    positive_reason: str = ""
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def table(self) -> pd.DataFrame:
        """Return the measures: a row for each method and the baseline, a column per measure."""
        import pandas as pd

        every = {BASELINE: self.baseline, **self.measures}
        return pd.DataFrame.from_dict(
            {method: asdict(values) for method, values in every.items()}, orient="index"
        )

    @property
    def label(self) -> Any:
        """The positive class of two; None with more."""
        return None if self.positive is None else self.folds.classes[self.positive]

    @property
    def of_rows(self) -> NDArray[Any]:
        """The observed labels, shape (n,)."""
        return self.folds.classes[self.folds.codes]

    def headline(self) -> list[str]:
        """Return what the page asks first, each with the answer's first sentence."""
        from vennforest.report.words import summary

        return [f"{item['question']} {item['lead']}" for item in summary(self)]

    def _repr_html_(self) -> str:
        from vennforest.report.page import render

        page = render(self).replace("&", "&amp;").replace('"', "&quot;")
        return (
            f'<iframe srcdoc="{page}" style="width:100%;height:80vh;border:1px solid #ccc" '
            'title="Report" sandbox="allow-scripts"></iframe>'
        )

    def to_html(self, path: str | os.PathLike[str], *, command: str | None = None) -> None:
        """Write the report as one HTML file that needs nothing else.

        Parameters
        ----------
        path : path-like
            Written whole or not at all.
        command : str, optional
            What to type to get the same again.

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed.
        OSError
            If the file cannot be written.
        """
        from vennforest.report.page import write_page

        write_page(self, path, command)

    def summary(self) -> dict[str, Any]:
        """Return what the page says, as numbers and text that JSON can hold.

        Infinite numbers and NaN are None; ``impossible`` says where a log loss is infinite.
        """
        labels = [str(label) for label in self.folds.classes]
        counts = np.bincount(self.folds.codes, minlength=len(labels))
        said: dict[str, Any] = _for_json(
            {
                "data": {
                    "name": self.name,
                    "target": self.target,
                    "rows": len(self.folds.codes),
                    "columns": None if self.X is None else int(self.X.shape[1]),
                    "classes": dict(zip(labels, counts.tolist(), strict=True)),
                    "positive": None if self.positive is None else labels[self.positive],
                },
                "settings": self.settings,
                "origin": self.origin,
                "verdict": self.headline(),
                "recommended": self.verdict.method,
                "auc": asdict(self.knowledge),
                "gain": {"loss": self.gain_in, **asdict(self.gain), "clear": self.gain.clear},
                "baseline": asdict(self.baseline),
                "rule": self.verdict.rule,
                "against": {
                    method: {"loss": self.verdict.by[method], **asdict(gap), "clear": gap.clear}
                    for method, gap in self.verdict.against.items()
                },
                "methods": {method: asdict(values) for method, values in self.measures.items()},
                "decisions": {method: asdict(values) for method, values in self.decisions.items()},
                "notes": self.notes,
                "seconds": round(self.seconds, 2),
                "versions": versions(),
            }
        )
        return said


def versions() -> dict[str, str]:
    """Return the version of Python and of each library that the numbers depend on."""
    found = {"Python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def _for_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _for_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_for_json(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
