"""The result of an evaluation: data frames, a verdict, and a page of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from vennforest._files import write_text
from vennforest._messages import not_one_of, shown
from vennforest._validation import InputError, IntArray
from vennforest.calibrators import METHODS
from vennforest.classifier import CalibratedClassifier
from vennforest.decisions import CostMatrix
from vennforest.report.breakdown import level_edges, levels, subgroups, thresholds
from vennforest.report.comparison import Comparison, classes_frame, compare, methods_frame
from vennforest.report.measures import BASELINE, RAW, Predictions
from vennforest.report.section import Section
from vennforest.report.verdict import Verdict, judge
from vennforest.report.words import Origin

DEFAULT_TOLERANCE = 0.02

DEFINITIONS = {
    "event": "the positive class; with more than two classes, that the most probable one is right",
    "log_loss": "mean of -ln of the observed class's probability",
    "brier": "mean squared error of the event's probability; with more classes of the vector, 0-2",
    "brier_skill": "1 - brier / that of the class shares",
    "intervals": "level 95%: of means Student's over rows or groups; of shares Wilson's, with "
    "groups for rows over the design effect (Korn & Graubard 1998); of AUC DeLong's, in its "
    "log-odds; of intercept and slope Wald's, with groups from the sandwich variance",
    "auc": "area under the ROC curve; with more classes one-vs-rest, weighted by their shares",
    "calibration_error": "mean distance of mean p and share of the event over 15 bins (0, 1/15], …",
    "chance_error": "mean calibration_error of labels drawn from the probabilities; chance_limit: "
    "95% quantile",
    "mean_error": "distance of mean p and share of the event beyond one standard deviation",
    "pvalue": "twice the smaller one of the tests of Spiegelhalter and Kuiper; with groups three "
    "times the smallest of these and a test of intercept and slope, for dependent rows",
    "overconfidence": "mean of the largest p, minus accuracy",
    "observed_expected": "events / sum of p; the interval is symmetric in the logarithm",
    "intercept": "logistic regression of the event with offset logit p, rows of p 0 or 1 left out",
    "slope": "coefficient of logit p in a logistic regression of the event, same rows",
    "ici": "mean distance of p and a logistic regression on a natural spline of logit p; e50, e90, "
    "emax: its quantiles",
    "levels": "rows by p of the event, from each edge of level_edges to below the next",
    "thresholds": "rows are flagged if p >= threshold; sure_yes, open, sure_no: by 95% intervals",
    "net_benefit": "TP / n - FP / n * threshold / (1 - threshold); gain: less that of flagging all",
    "grades": "exact binomial and Jeffreys tests, adjusted by Holm; intervals by Clopper & Pearson",
}
"""Definitions of the numbers in a summary."""

METHOD_NAMES = {
    **{name: method.title for name, method in METHODS.items()},
    RAW: "Raw forest",
    BASELINE: "Base rate",
}
"""Titles of methods."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Methods that predicted the same rows, their measures, and a verdict.

    ``print(evaluation)`` shows a few lines; in a notebook it shows itself as the page.

    Attributes
    ----------
    verdict : Verdict
        ``action``, ``sentence``, the recommended ``method`` and the ``reasons``.
    methods, levels, classes : data frame
        The measures of each method and of the baseline; expected and observed by the recommended
        method at each level of probability; recall and precision of each class.
    thresholds, subgroups : data frame or None
        The effects of flagging rows at thresholds, with two classes; calibration and errors of
        parts of the rows, where there is a ``by``.
    model : CalibratedClassifier or None
        The recommended model, not fitted; None where nothing was trained.
    sections : tuple of Section
        Further questions about the probabilities.
    notes : list of str
        Sentences on what was left out or done differently.
    """

    name: str
    comparison: Comparison
    origin: Origin
    verdict: Verdict
    methods: pd.DataFrame
    levels: pd.DataFrame
    classes: pd.DataFrame
    thresholds: pd.DataFrame | None
    subgroups: pd.DataFrame | None
    model: CalibratedClassifier | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sections: tuple[Section, ...] = ()

    @property
    def probabilities(self) -> dict[str, NDArray[Any]]:
        """Probabilities (n, k) of the predicted rows, by method."""
        return {method: e.p for method, e in self.comparison.predictions.estimates.items()}

    @property
    def rows(self) -> NDArray[Any]:
        """Indices of the predicted rows in X, of shape (n,)."""
        return self.comparison.predictions.rows

    def with_sections(self, sections: Iterable[Section]) -> Evaluation:
        """Return the evaluation with more sections, whose findings the verdict takes."""
        sections = (*self.sections, *sections)
        verdict = judge(self.comparison, self.origin, self.levels, sections)
        return replace(self, sections=sections, verdict=verdict)

    def __repr__(self) -> str:
        """Return the verdict and the main measures of all methods."""
        columns = ["name", "log_loss", "brier", "auc", "calibration_error", "pvalue"]
        table = self.methods[columns].to_string(index=False, float_format="%.4f")
        counts = f"{self.comparison.n:,} rows, {len(self.classes)} classes"
        return f"{self.name}: {counts}\n{self.verdict.sentence}\n\n{table}"

    def _repr_html_(self) -> str:
        from vennforest.report.page import render

        page = render(self).replace("&", "&amp;").replace('"', "&quot;")
        return (
            f'<iframe srcdoc="{page}" style="width:100%;height:80vh;border:1px solid #ccc" '
            'title="Report" sandbox></iframe>'
        )

    def to_html(
        self, path: str | os.PathLike[str], *, advised: str = "", command: str = ""
    ) -> None:
        """Write the report as one self-contained HTML file.

        ``advised`` is the command that the verdict recommends, and ``command`` the one that made
        the page. If the file cannot be written, an existing one is kept.
        """
        from vennforest.report.page import render

        write_text(path, render(self, advised, command))

    def to_figures(
        self,
        folder: str | os.PathLike[str],
        *,
        width: float | None = None,
        limits: tuple[float, float] | None = None,
    ) -> list[str]:
        """Write the pictures for a paper to a folder, which is created if its parent exists.

        ``calibration``, ``decision-curve`` (of two classes) and ``intervals`` (of methods with
        bounds), each as SVG, PDF and PNG, with a CSV of what is drawn, ``width`` millimetres
        wide (by default 122). ``limits`` are where the axes of the first two begin and end, by
        default where the data do. Returns their names.
        """
        from vennforest.report.figures import write_pictures

        return write_pictures(self, Path(folder), width, limits)

    def to_text(self) -> str:
        """Return methods and results in about 300 words of Markdown, in the order of TRIPOD+AI."""
        from vennforest.report.methods_text import methods_text

        return methods_text(self)

    def summary(self) -> dict[str, Any]:
        """Return the numbers and the verdict as a dict for JSON, with None for inf and NaN."""
        comparison, label = self.comparison, self.comparison.predictions.label
        frames = {name: getattr(self, name) for name in ("levels", "thresholds", "subgroups")}
        summary: dict[str, Any] = for_json(
            {
                "name": self.name,
                "target": self.origin.target,
                "rows": comparison.n,
                "classes": self.classes["n"].to_dict(),
                "positive": None if label is None else str(label),
                "verdict": asdict(self.verdict),
                "tolerance": comparison.tolerance,
                "auc": asdict(comparison.auc),
                "gain": asdict(comparison.gain),
                "methods": self.methods.to_dict("index"),
                **{
                    name: frame.reset_index().to_dict("records")
                    for name, frame in frames.items()
                    if frame is not None
                },
                "sections": {
                    section.anchor: {
                        "sentences": list(section.sentences),
                        "table": None
                        if section.frame is None
                        else section.frame.reset_index().to_dict("records"),
                    }
                    for section in self.sections
                },
                "settings": self.settings,
                "notes": self.notes,
                "level_edges": level_edges(comparison.predictions.is_rare),
                "definitions": DEFINITIONS,
            }
        )
        return summary


def for_json(value: Any) -> Any:
    """Convert a value for JSON, with None in place of infinite numbers and NaN."""
    if isinstance(value, dict):
        return {str(key): for_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of predictions: the arguments that `evaluate` and `check` share."""

    name: str
    positive: Any = None
    by: Mapping[str, ArrayLike] | None = None
    costs: Any = None
    tolerance: float | None = None
    thresholds: Sequence[float] | None = None
    random_state: int = 0

    def check(self, classes: NDArray[Any]) -> None:
        """Raise an error unless ``positive`` is one of two classes, and the others in (0, 1)."""
        labels = [str(label) for label in classes]
        if self.positive is not None and str(self.positive) not in labels:
            raise not_one_of("positive", labels, str(self.positive))
        if self.positive is not None and len(labels) > 2:
            raise InputError(
                f"positive must be given for two classes only, got {len(labels)} classes"
            )
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise InputError(f"tolerance must lie in (0, 1), got {self.tolerance}")
        at = self.thresholds
        if at is not None and (len(labels) > 2 or not all(0 < threshold < 1 for threshold in at)):
            raise InputError(f"thresholds must be of two classes and in (0, 1), got {shown([*at])}")

    def with_positive(self, predictions: Predictions) -> Predictions:
        """Return predictions with the positive one of two classes, by default the rarer one."""
        if len(predictions.classes) != 2:
            return predictions
        counts = np.bincount(predictions.codes, minlength=2)
        positive = 1 if counts[0] == counts[1] else int(counts.argmin())
        if self.positive is not None:
            labels = [str(label) for label in predictions.classes]
            positive = labels.index(str(self.positive))
        return replace(predictions, positive=positive)

    def columns(self, rows: IntArray, n: int) -> dict[str, NDArray[Any]]:
        """Return the columns ``by`` of some of the n rows."""
        columns = {}
        for name, values in (self.by or {}).items():
            array = np.asarray(values, dtype=object)
            if array.shape != (n,):
                raise InputError(f"by must have shape ({n},) for {name!r}, got {array.shape}")
            columns[name] = array[rows]
        return columns


def assemble(
    predictions: Predictions,
    origin: Origin,
    question: Question,
    n_rows: int,
    *,
    notes: Sequence[str],
    settings: Mapping[str, Any],
    model: CalibratedClassifier | None = None,
) -> Evaluation:
    """Compare methods, and put the results into frames and words.

    ``n_rows`` is the number of rows given, of which some may not have been predicted.
    """
    question.check(predictions.classes)
    predictions = question.with_positive(predictions)
    tolerance = question.tolerance
    if tolerance is None:
        # 2 percentage points; of a rarer class than one in ten a fifth of its share.
        share = 1.0 if predictions.share is None else predictions.share
        tolerance = min(DEFAULT_TOLERANCE, share / 5)
    columns = question.columns(predictions.rows, n_rows)
    costs, seed = question.costs, question.random_state
    matrix = None if costs is None else CostMatrix.read(costs, predictions.classes)
    comparison = compare(predictions, matrix, tolerance, seed, with_line=question.tolerance is None)
    frame, is_binary = levels(comparison), predictions.positive is not None
    verdict = judge(comparison, origin, frame)
    if model is not None:
        model.set_params(method=comparison.method)
        if verdict.on_folds:
            model.set_params(calibrate_on="cv")
    return Evaluation(
        name=question.name,
        comparison=comparison,
        origin=origin,
        verdict=verdict,
        methods=methods_frame(comparison, dict(origin.names)),
        levels=frame,
        classes=classes_frame(comparison),
        thresholds=thresholds(comparison, question.thresholds) if is_binary else None,
        subgroups=subgroups(columns, comparison) if columns else None,
        model=model,
        settings={"random_state": seed, **settings},
        notes=list(notes),
    )
