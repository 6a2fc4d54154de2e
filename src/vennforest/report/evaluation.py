"""The result of evaluating methods on one data set, and how it comes from predictions."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._files import write_text
from vennforest._messages import nearest
from vennforest._validation import InputError
from vennforest.calibrators import METHODS
from vennforest.calibrators.intervals import ConfidenceIntervals
from vennforest.decisions import CostMatrix, Decisions
from vennforest.metrics import AucInterval, auc_interval
from vennforest.report.measures import (
    BASELINE,
    RAW,
    Difference,
    Measures,
    MethodEstimates,
    OutOfFold,
    Verdict,
    difference_over_rows,
    judge,
    log_losses,
    measure,
    squared_losses,
)

if TYPE_CHECKING:
    import pandas as pd

    from vennforest.report.answers import Advice


def method_names() -> dict[str, str]:
    """Return what a reader calls each method."""
    names = {name: method.title for name, method in METHODS.items()}
    return {**names, RAW: "Raw forest", BASELINE: "Base rate"}


def compared_methods() -> tuple[str, ...]:
    """Return the methods that a report compares."""
    return tuple(METHODS)


Origin = Literal["folds", "time", "test", "model", "given", "scores"]
"""Where the predictions come from.

``"folds"``: cross-validation; ``"time"``: folds that train on the past; ``"test"``: a model of the
other rows; ``"model"``: a fitted model; ``"given"``: probabilities that the table contains;
``"scores"``: its scores, calibrated over folds.
"""

TOLERANCE = 0.02
"""Miscalibration that does not matter unless another is given."""

LIBRARIES = ("vennforest", "scikit-learn", "numpy", "scipy", "numba", "pandas", "skrub")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Out-of-fold predictions of several methods for one data set, and what is measured of them.

    Attributes
    ----------
    name, target : str
        What the data set is called, and what is predicted.
    X : data frame or array of shape (n_rows, d), or None
        The features as they came; None where predictions were given.
    folds : OutOfFold
        The predictions of n rows.
    positive : int or None
        Index of the positive class of two, for a ``positive_reason``; None with more.
    measures, baseline : dict of str to Measures, Measures
        By method; and those of always predicting the class frequencies.
    verdict : Verdict
        Which method to use here, and how the others compare.
    costs, decisions : CostMatrix or None, dict of str to Decisions
        What decisions cost, and by method what they did; empty without costs.
    settings : dict
        What was run: folds, trees, seed.
    discrimination : AucInterval
        How well the recommended method ranks.
    gain : Difference
        The baseline's loss minus the recommended method's: of the log loss, or, where that is
        infinite, the Brier score.
    saved : Difference or None
        The cost of the best constant decision minus that of the recommended method's.
    names : dict of str to str
        What a reader calls each method.
    origin : str
        Where the predictions come from.
    by : dict of str to ndarray of shape (n,)
        Values whose rows are looked at separately.
    tolerance : float
        Miscalibration that does not matter, in (0, 1).
    suspects : dict of str to str
        Columns to check first: ``"leak"`` (one that alone predicts the label almost without
        error), ``"id"`` (one that names who is in several rows) or ``"text"`` (numbers that are
        read as text).
    notes, seconds : list of str, float
        What was left out or done differently, one sentence each; how long it took.
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
    discrimination: AucInterval
    gain: Difference
    saved: Difference | None = None
    names: dict[str, str] = field(default_factory=method_names)
    origin: Origin = "folds"
    by: dict[str, NDArray[Any]] = field(default_factory=dict)
    positive_reason: str = ""
    tolerance: float = TOLERANCE
    suspects: dict[str, str] = field(default_factory=dict)
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
    def raw_and_best(self) -> list[str]:
        """The model as it is, if it is among the methods, and the recommended one."""
        return [key for key in dict.fromkeys([RAW, self.verdict.method]) if key in self.measures]

    @property
    def best(self) -> MethodEstimates:
        """What the recommended method estimates."""
        return self.folds.estimates[self.verdict.method]

    @property
    def bounded(self) -> str | None:
        """The recommended method where it has bounds."""
        return None if self.best.bounds is None else self.verdict.method

    @property
    def confidence(self) -> ConfidenceIntervals | None:
        """Confidence intervals of the recommended method at .95; None where they are not known."""
        return self.best.confidence

    @property
    def observed(self) -> NDArray[Any]:
        """The observed labels, shape (n,)."""
        return self.folds.classes[self.folds.codes]

    def advice(self) -> Advice:
        """Return what to do next, in one sentence, with the command for it."""
        from vennforest.report.answers import advice

        return advice(self)

    def headline(self) -> list[str]:
        """Return what the page says first: what to do, and the reasons."""
        from vennforest.report.answers import reasons

        return [self.advice().sentence, *(f"{about}: {text}" for about, text in reasons(self))]

    def _repr_html_(self) -> str:
        from vennforest.report.page import render

        page = render(self).replace("&", "&amp;").replace('"', "&quot;")
        return (
            f'<iframe srcdoc="{page}" style="width:100%;height:80vh;border:1px solid #ccc" '
            'title="Report" sandbox="allow-scripts"></iframe>'
        )

    def to_html(
        self, path: str | os.PathLike[str], *, rows: bool = False, command: str | None = None
    ) -> None:
        """Write the report as one HTML file that needs nothing else.

        Parameters
        ----------
        path : path-like
            Written whole or not at all.
        rows : bool
            Whether single rows are listed with their values: the most uncertain ones, and the most
            confident mistakes.
        command : str, optional
            What to type to get the same again.

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed.
        OSError
            If the file cannot be written.
        """
        from vennforest.report.page import render

        write_text(path, render(self, command, rows=rows))

    def summary(self) -> dict[str, Any]:
        """Return what the page says, as numbers and text that JSON can contain.

        Infinite numbers and NaN are None; ``impossible`` says where a log loss is infinite.
        """
        labels = [str(label) for label in self.folds.classes]
        counts = np.bincount(self.folds.codes, minlength=len(labels))
        result: dict[str, Any] = for_json(
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
                "advice": asdict(self.advice()),
                "verdict": self.headline(),
                "recommended": self.verdict.method,
                "tolerance": self.tolerance,
                "auc": asdict(self.discrimination),
                "gain": _compared(self.gain),
                "baseline": asdict(self.baseline),
                "rule": self.verdict.rule,
                "against": {method: _compared(gap) for method, gap in self.verdict.against.items()},
                "methods": {method: asdict(values) for method, values in self.measures.items()},
                "decisions": {method: asdict(values) for method, values in self.decisions.items()},
                "notes": self.notes,
                "seconds": round(self.seconds, 2),
                "versions": versions(),
            }
        )
        return result


def versions() -> dict[str, str]:
    """Return the version of Python and of each library that the numbers depend on."""
    found = {"Python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return found


def _compared(gap: Difference) -> dict[str, Any]:
    return {"loss": gap.loss, **asdict(gap), "clear": gap.clear}


def for_json(value: Any) -> Any:
    """Return what JSON can contain: None in place of infinite numbers and NaN."""
    if isinstance(value, dict):
        return {str(key): for_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(item) for item in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value


class About(TypedDict, total=False):
    """Keyword arguments that every evaluation takes, see ``report``."""

    by: Mapping[str, ArrayLike] | None
    costs: Any
    tolerance: float | None
    name: str
    target: str
    notes: Sequence[str]


def check_about(door: str, about: Mapping[str, Any]) -> None:
    """Refuse a keyword that no evaluation takes, and a wrong tolerance, before anything runs."""
    unknown = set(about) - set(About.__annotations__)
    if unknown:
        raise TypeError(f"{door}() got an unexpected keyword argument {min(unknown)!r}")
    tolerance = about.get("tolerance")
    if tolerance is not None and not 0 < tolerance < 1:
        raise InputError(f"tolerance must lie in (0, 1), got {tolerance}")


def assemble(
    folds: OutOfFold,
    origin: Origin,
    random_state: int,
    about: About,
    *,
    X: Any = None,
    positive: Any = None,
    noun: str = "model",
    settings: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
    remarks: Sequence[str] = (),
    suspects: Mapping[str, str] | None = None,
    n_rows: int | None = None,
    started: float | None = None,
) -> Evaluation:
    """Measure predictions and compare them.

    Values of ``by`` are of all rows of X (``n_rows``, where more than were predicted); ``noun``
    made the predictions; ``remarks`` come after the given notes.
    """
    of_by = {}
    for key, values in (about.get("by") or {}).items():
        column = np.asarray(values, dtype=object)
        wanted = (len(folds.codes) if n_rows is None else n_rows,)
        if column.shape != wanted:
            raise InputError(f"by must have shape {wanted} for {key!r}, got {column.shape}")
        of_by[str(key)] = column[folds.rows]
    check_positive(positive, folds.classes.astype(str))
    at, why = _positive_index(positive, folds)
    tolerance, costs = about.get("tolerance"), about.get("costs")
    if tolerance is None:
        # 2 percentage points; of a rarer class than one in ten a fifth of its share.
        tolerance = TOLERANCE if at is None else min(TOLERANCE, (folds.codes == at).mean() / 5)
    shares = folds.baseline()

    def measured(estimates: MethodEstimates, baseline: Measures | None) -> Measures:
        y = folds.codes, folds.classes
        return measure(estimates, *y, at, int(random_state), baseline, folds.groups)

    baseline = measured(shares, None)
    measures = {method: measured(one, baseline) for method, one in folds.estimates.items()}
    verdict = judge(measures, folds, tolerance)
    best = folds.estimates[verdict.method]
    decisions: dict[str, Decisions] = {}
    matrix = saved = None
    if costs is not None:
        matrix = CostMatrix.read(costs, folds.classes)
        decisions = {
            method: matrix.judge(one.p, one.bounds, folds.codes)
            for method, one in folds.estimates.items()
        }
        of_rows = matrix.costs[folds.codes]
        always = of_rows[:, int(of_rows.mean(axis=0).argmin())]
        paid = matrix.paid(matrix.decide(best.p), folds.codes)
        saved = difference_over_rows(always, paid, folds)
    # The log loss tells rare classes apart, which hardly move the Brier score.
    finite = measures[verdict.method].impossible == 0
    losses = log_losses if finite else squared_losses
    gain = difference_over_rows(losses(shares.p, folds.codes), losses(best.p, folds.codes), folds)
    return Evaluation(
        name=about.get("name", "data"),
        target=about.get("target", "label"),
        X=X,
        folds=folds,
        positive=at,
        measures=measures,
        verdict=verdict,
        costs=matrix,
        decisions=decisions,
        settings={
            "random_state": int(random_state),
            "noun": noun,
            "methods": list(folds.estimates),
            **(settings or {}),
        },
        baseline=baseline,
        discrimination=auc_interval(
            folds.classes[folds.codes],
            best.p,
            groups=folds.groups,
            classes=folds.classes,
            pos_label=None if at is None else folds.classes[at],
        ),
        gain=gain if finite else replace(gain, loss="Brier score"),
        saved=saved,
        names={**method_names(), **(names or {})},
        origin=origin,
        by=of_by,
        positive_reason=why,
        tolerance=float(tolerance),
        suspects=dict(suspects or {}),
        notes=[*about.get("notes", ()), *remarks, *folds.notes],
        seconds=0.0 if started is None else time.perf_counter() - started,
    )


def check_positive(positive: Any, labels: NDArray[Any]) -> None:
    """Refuse a positive class that is none of the labels, or of more than two."""
    if positive is None:
        return
    if str(positive) not in labels:
        shown = ", ".join(map(repr, map(str, labels[:8])))
        near = nearest(positive, labels)
        raise InputError(
            f"positive must be one of the classes ({shown}), got {str(positive)!r}{near}"
        )
    if len(labels) > 2:
        raise InputError(
            f"positive must be given for two classes only, got {len(labels)} classes: leave it out"
        )


def _positive_index(positive: Any, folds: OutOfFold) -> tuple[int | None, str]:
    """Return the positive class of two, by default the rarer one, and why it is that."""
    if len(folds.classes) != 2:
        return None, ""
    if positive is not None:
        at = [str(label) for label in folds.classes].index(str(positive))
        return at, "as it was named"
    counts = np.bincount(folds.codes, minlength=2)
    if counts[0] == counts[1]:
        return 1, "both are as frequent, and it is the second in order; --positive names another"
    return int(counts.argmin()), "the rarer of the two; --positive names another"
