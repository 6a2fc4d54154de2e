"""The result of an evaluation: data frames, a verdict, and a page of them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._files import write_text
from vennforest._messages import nearest
from vennforest._validation import InputError
from vennforest.calibrators import METHODS
from vennforest.classifier import CalibratedClassifier
from vennforest.decisions import CostMatrix
from vennforest.report.comparison import Comparison, classes_frame, compare, methods_frame
from vennforest.report.event import cost_threshold, thresholds
from vennforest.report.measures import BASELINE, RAW, Predictions
from vennforest.report.subgroups import subgroups
from vennforest.report.words import Source, Verdict, verdict

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_TOLERANCE = 0.02

METHOD_NAMES = {
    **{name: method.title for name, method in METHODS.items()},
    RAW: "Raw forest",
    BASELINE: "Base rate",
}
"""What a reader calls each method."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Methods that predicted the same rows, their measures, and a verdict.

    ``print(evaluation)`` shows a few lines; in a notebook it shows itself as the page.

    Attributes
    ----------
    verdict : Verdict
        ``action``, ``sentence``, the recommended ``method`` and the ``reasons``.
    methods : data frame
        The measures: a row for each method and the baseline, a column for each measure.
    levels : data frame
        Expected and observed by the recommended method, a row for each level of probability.
    thresholds : data frame or None
        What flagging rows at thresholds does; None with more than two classes.
    classes : data frame
        Frequency, mean probability, recall and precision of each class.
    subgroups : data frame or None
        Calibration and errors of parts of the rows; None unless asked for.
    probabilities : dict of str to ndarray of shape (n, k)
        By method, of the rows ``rows`` of X.
    rows : ndarray of shape (n,)
        Indices of the predicted rows.
    model : CalibratedClassifier or None
        The recommended model, not fitted; None where nothing was trained.
    notes : list of str
        What was left out or done differently, a sentence each.
    """

    name: str
    comparison: Comparison
    source: Source
    verdict: Verdict
    methods: pd.DataFrame
    levels: pd.DataFrame
    classes: pd.DataFrame
    thresholds: pd.DataFrame | None
    subgroups: pd.DataFrame | None
    positive_reason: str
    model: CalibratedClassifier | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def probabilities(self) -> dict[str, NDArray[Any]]:
        """Probabilities (n, k) of each method."""
        estimates = self.comparison.predictions.estimates
        return {method: of_method.p for method, of_method in estimates.items()}

    @property
    def rows(self) -> NDArray[Any]:
        """Indices of the predicted rows."""
        return self.comparison.predictions.rows

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
            'title="Report" sandbox="allow-scripts"></iframe>'
        )

    def to_html(
        self, path: str | os.PathLike[str], *, advised: str = "", command: str = ""
    ) -> None:
        """Write the report as one HTML file that needs nothing else.

        Parameters
        ----------
        path : path-like
        advised : str
            What to type to follow the verdict.
        command : str
            What was typed to get this page.

        Raises
        ------
        ImportError
            If jinja2 or matplotlib is not installed.
        OSError
            If the file cannot be written; an old one stays as it was.
        """
        from vennforest.report.page import render

        write_text(path, render(self, advised, command))

    def summary(self) -> dict[str, Any]:
        """Return the numbers and the verdict as JSON can contain them: None for inf and NaN."""
        comparison, classes = self.comparison, self.classes
        label = comparison.label
        frames = {"levels": self.levels, "thresholds": self.thresholds}
        tables = {
            name: frame.reset_index().to_dict("records")
            for name, frame in {**frames, "subgroups": self.subgroups}.items()
            if frame is not None
        }
        summary: dict[str, Any] = for_json(
            {
                "name": self.name,
                "target": self.source.target,
                "rows": comparison.n,
                "classes": dict(zip(classes.index, classes["n"].tolist(), strict=True)),
                "positive": None if label is None else str(label),
                "verdict": asdict(self.verdict),
                "tolerance": comparison.tolerance,
                "auc": asdict(comparison.auc),
                "gain": asdict(comparison.gain),
                "methods": self.methods.to_dict("index"),
                **tables,
                "settings": self.settings,
                "notes": self.notes,
                "seconds": round(self.seconds, 2),
            }
        )
        return summary


def for_json(value: Any) -> Any:
    """Return what JSON can contain: None in place of infinite numbers and NaN."""
    if isinstance(value, dict):
        return {str(key): for_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


@dataclass(frozen=True, eq=False)
class Options:
    """What ``evaluate`` and ``check`` both take."""

    positive: Any
    by: Mapping[str, ArrayLike] | None
    costs: Any
    tolerance: float | None
    name: str
    notes: Sequence[str]
    random_state: int

    def __post_init__(self) -> None:
        """Refuse a wrong tolerance before anything runs."""
        if self.tolerance is not None and not 0 < self.tolerance < 1:
            raise InputError(f"tolerance must lie in (0, 1), got {self.tolerance}")


def assemble(
    predictions: Predictions,
    source: Source,
    options: Options,
    n_rows: int,
    notes: Sequence[str],
    settings: Mapping[str, Any],
    started: float,
    model: CalibratedClassifier | None = None,
) -> Evaluation:
    """Compare methods, and put what is found into frames and words.

    ``n_rows`` is the number of rows given, of which some may not have been predicted.
    """
    check_positive(options.positive, predictions.classes)
    positive, why = _positive(options.positive, predictions)
    tolerance = options.tolerance
    if tolerance is None:
        # 2 percentage points; of a rarer class than one in ten a fifth of its share.
        share = 1.0 if positive is None else float((predictions.codes == positive).mean())
        tolerance = min(DEFAULT_TOLERANCE, share / 5)
    matrix = None if options.costs is None else CostMatrix.read(options.costs, predictions.classes)
    comparison = compare(predictions, positive, matrix, tolerance, options.random_state)
    by = {name: _by_values(name, values, n_rows) for name, values in (options.by or {}).items()}
    by = {name: values[predictions.rows] for name, values in by.items()}
    tie = cost_threshold(matrix, positive)
    method, words = comparison.method, verdict(comparison, source)
    if model is not None:
        model = model.set_params(method=method)
        if words.on_folds:
            model = model.set_params(calibrate_on="cv")
    return Evaluation(
        name=options.name,
        comparison=comparison,
        source=source,
        verdict=words,
        methods=methods_frame(comparison, dict(source.names)),
        levels=comparison.levels(),
        classes=classes_frame(comparison),
        thresholds=None if positive is None else thresholds(predictions, method, positive, tie),
        subgroups=subgroups(by, predictions, method, positive) if by else None,
        positive_reason=why,
        model=model,
        settings={"random_state": options.random_state, **settings},
        notes=[*options.notes, *notes],
        seconds=time.perf_counter() - started,
    )


def _by_values(name: str, values: ArrayLike, n_rows: int) -> NDArray[Any]:
    column = np.asarray(values, dtype=object)
    if column.shape != (n_rows,):
        raise InputError(f"by must have shape ({n_rows},) for {name!r}, got {column.shape}")
    return column


def check_positive(positive: Any, classes: NDArray[Any]) -> None:
    """Refuse a positive class that is none of the labels, or of more than two."""
    if positive is None:
        return
    labels = [str(label) for label in classes]
    if str(positive) not in labels:
        shown = ", ".join(map(repr, labels[:8]))
        raise InputError(
            f"positive must be one of the classes ({shown}), got {str(positive)!r}"
            f"{nearest(positive, labels)}"
        )
    if len(labels) > 2:
        raise InputError(
            f"positive must be given for two classes only, got {len(labels)} classes: leave it out"
        )


def _positive(positive: Any, predictions: Predictions) -> tuple[int | None, str]:
    """Return the positive class of two, by default the rarer one, and why it is that."""
    if len(predictions.classes) != 2:
        return None, ""
    if positive is not None:
        return [str(label) for label in predictions.classes].index(str(positive)), "as named"
    counts = np.bincount(predictions.codes, minlength=2)
    if counts[0] == counts[1]:
        return 1, "both are as frequent, and it is the second in order; --positive names another"
    return int(counts.argmin()), "the rarer of the two; --positive names another"
