"""The result of cross-validating all methods on one data set."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest.calibrators import METHODS
from vennforest.decisions import CostMatrix, Decisions
from vennforest.report.folds import RAW, OutOfFold
from vennforest.report.measures import Measures
from vennforest.report.verdict import Verdict

if TYPE_CHECKING:
    import pandas as pd

NAMES: dict[str, str] = {name: method.title for name, method in METHODS.items()}
NAMES[RAW] = "Raw forest"
"""What a reader calls each method; all trees without calibration are the forest as it is."""

# "pooled" alone gives the probability that "venn-abers" gives with bounds.
ALL_METHODS = tuple(name for name in NAMES if name != "pooled")

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
    X : data frame or array of shape (n_rows, d)
        The features as they came.
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
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def table(self) -> pd.DataFrame:
        """Return the measures, a row for each method and a column for each measure."""
        import pandas as pd

        return pd.DataFrame.from_dict(
            {method: asdict(values) for method, values in self.measures.items()}, orient="index"
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
                    "columns": int(self.X.shape[1]),
                    "classes": dict(zip(labels, counts.tolist(), strict=True)),
                    "positive": None if self.positive is None else labels[self.positive],
                },
                "settings": self.settings,
                "recommended": self.verdict.method,
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
