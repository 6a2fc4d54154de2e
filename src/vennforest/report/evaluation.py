"""What a cross-validation of all methods on one data set came to."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from numbers import Integral
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import METHODS
from vennforest.report.costs import CostMatrix
from vennforest.report.folds import RAW, OutOfFold, Progress, cross_validate
from vennforest.report.measures import Measures, measure
from vennforest.report.verdict import Verdict, judge
from vennforest.sources import Subforest
from vennforest.tables.vectorize import is_frame

if TYPE_CHECKING:
    import pandas as pd

NAMES: dict[str, str] = {method.name: method.title for method in METHODS.values()}
"""What a reader calls each method."""

ALL_METHODS = tuple(NAMES)

LIBRARIES = ("vennforest", "scikit-learn", "numpy", "scipy", "numba", "pandas", "skrub")


@dataclass(frozen=True)
class Decisions:
    """What the decisions by one method's probabilities cost.

    Attributes
    ----------
    mean_cost : float
        Mean cost of the decisions, given what was observed.
    expected_cost : float
        What the probabilities promised it to be.
    settled : float or None
        Share of decisions that are the same wherever the probability lies between its bounds;
        None where there are none.
    settled_cost, unsettled_cost : float or None
        Mean cost among those, and among the others; None where there are none.
    """

    mean_cost: float
    expected_cost: float
    settled: float | None = None
    settled_cost: float | None = None
    unsettled_cost: float | None = None


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


def evaluate(
    X: Any,
    y: ArrayLike,
    *,
    methods: Sequence[str] | None = None,
    n_folds: int = 10,
    n_trees: int = 300,
    subforest: Subforest = "exchangeable",
    positive: Any = None,
    costs: Any = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    name: str = "data",
    target: str = "label",
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Evaluation:
    """Cross-validate methods of calibration on one data set, with one forest a fold for all.

    Every object is predicted once, by a forest of the other folds whose out-of-bag scores
    calibrate every method. All measures are taken over the pooled predictions of all folds.

    Parameters
    ----------
    X : data frame, array or sparse matrix of shape (n, d)
        Columns of a data frame may hold text, dates and missing cells: skrub's
        ``TableVectorizer`` is fitted inside the folds. Arrays go to the forest as they are.
    y : array-like of shape (n,)
        Labels.
    methods : sequence of str, optional
        As in ``CalibratedClassifier``; by default all. The raw forest, ``"none"``, is always among
        them: all its trees and no calibration.
    n_folds : int
        Number of folds, from 2 on; fewer where no class has as many objects.
    n_trees : int
        Trees of each forest.
    subforest : {"exchangeable", "random", "all"}
        As in ``CalibratedClassifier``.
    positive : label, optional
        Of two classes the one that measures and pictures speak of; by default the second.
    costs : CostMatrix, array-like, dict, str or path, optional
        What decisions cost, see ``CostMatrix.read``.
    random_state : int
        Seeds folds, forests and draws.
    n_jobs : int, optional
        Threads.
    name, target : str
        What the data set and the labels are called.
    notes : sequence of str
        What to say of the data, one sentence each.
    progress : callable, optional
        Called after each fold with the number of folds done and of all.

    Returns
    -------
    Evaluation

    Raises
    ------
    ValueError
        If an argument is not as above, there are fewer than two classes with two objects each, or
        a column holds numbers that are infinite.
    ImportError
        If X is a data frame and skrub is not installed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> evaluation = evaluate(X, y, n_folds=3, n_trees=30, methods=["venn-abers"])
    >>> evaluation.verdict.method
    'venn-abers'
    """
    started = time.perf_counter()
    chosen = _check_methods(methods)
    _check_count(n_folds, 2, "n_folds")
    _check_count(n_trees, 1, "n_trees")
    _check_count(random_state, 0, "random_state")
    if n_jobs == 0:
        raise InputError("n_jobs must be a number of processors, or -1 for all, got 0")
    if subforest not in get_args(Subforest):
        raise InputError(f"subforest must be one of {list(get_args(Subforest))}, got {subforest!r}")
    labels = np.unique(np.asarray(y).ravel().astype(str))
    _check_positive(positive, labels)
    if not is_frame(X) and not hasattr(X, "shape"):
        X = np.asarray(X)
    folds = cross_validate(
        X,
        y,
        chosen,
        n_folds=int(n_folds),
        n_trees=int(n_trees),
        subforest=subforest,
        seed=int(random_state),
        n_jobs=n_jobs,
        progress=progress,
    )
    at = _positive_index(positive, folds)
    matrix = None if costs is None else CostMatrix.read(costs, folds.classes)
    measures = {
        method: measure(estimates, folds.codes, folds.classes, at, int(random_state))
        for method, estimates in folds.estimates.items()
    }
    return Evaluation(
        name=name,
        target=target,
        X=X,
        folds=folds,
        positive=at,
        measures=measures,
        verdict=judge(measures, folds),
        costs=matrix,
        decisions={} if matrix is None else _decide(folds, matrix),
        settings={
            "n_folds": folds.n_folds,
            "n_trees": int(n_trees),
            "subforest": subforest,
            "random_state": int(random_state),
            "methods": list(folds.estimates),
        },
        notes=[*notes, *folds.notes],
        seconds=time.perf_counter() - started,
    )


def _check_methods(methods: Sequence[str] | None) -> tuple[str, ...]:
    if methods is None:
        return ALL_METHODS
    if isinstance(methods, str):
        methods = [methods]
    unknown = [method for method in methods if method not in ALL_METHODS]
    if unknown:
        raise InputError(f"methods must be among {list(ALL_METHODS)}, got {unknown[0]!r}")
    return tuple(method for method in ALL_METHODS if method in methods or method == RAW)


def _check_count(value: Any, least: int, name: str) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be an integer >= {least}, got {value!r}")


def _check_positive(positive: Any, labels: Any) -> None:
    if positive is None:
        return
    if str(positive) not in labels:
        shown = ", ".join(map(repr, map(str, labels[:8])))
        raise InputError(f"positive must be one of the classes ({shown}), got {str(positive)!r}")
    if len(labels) > 2:
        raise InputError(
            f"positive must be given for two classes only, got {len(labels)} classes: leave it out"
        )


def _positive_index(positive: Any, folds: OutOfFold) -> int | None:
    if len(folds.classes) != 2:
        return None
    if positive is None:
        return 1
    return [str(label) for label in folds.classes].index(str(positive))


def _decide(folds: OutOfFold, costs: CostMatrix) -> dict[str, Decisions]:
    results = {}
    for method, estimates in folds.estimates.items():
        decided = costs.decide(estimates.p)
        paid = costs.paid(decided, folds.codes)
        promised = np.take_along_axis(estimates.p @ costs.costs, decided[:, None], axis=1)
        plain = Decisions(float(paid.mean()), float(promised.mean()))
        if estimates.bounds is not None:
            same = costs.settled(decided, estimates.bounds)
            plain = Decisions(
                plain.mean_cost,
                plain.expected_cost,
                settled=float(same.mean()),
                settled_cost=_mean(paid[same]),
                unsettled_cost=_mean(paid[~same]),
            )
        results[method] = plain
    return results


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if len(values) else None


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
