"""The result of an evaluation: findings, a verdict, and views of both."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from platform import python_version
from typing import Any

import pandas as pd
from numpy.typing import NDArray

from vennforest._files import write_text, written_whole
from vennforest._messages import counted
from vennforest._program import __version__
from vennforest.calibrators import METHODS
from vennforest.classifier import CalibratedClassifier
from vennforest.report import figures
from vennforest.report.findings import Findings, Origin, Question, find
from vennforest.report.measures import BASELINE, RAW, Predictions
from vennforest.report.page import render
from vennforest.report.sections import Section
from vennforest.report.verdict import Verdict, judge
from vennforest.report.words import paragraphs, templates

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
    findings : Findings
        All numbers.
    verdict : Verdict
        ``action``, ``sentence``, the recommended ``method`` and the ``reasons``.
    predictions : Predictions
        The probabilities of all methods for the same rows.
    methods, levels, classes : data frame
        The measures of each method and of the baseline; expected and observed by the recommended
        method at each level of probability; recall, precision and calibration of each class.
    thresholds, subgroups : data frame or None
        The effects of flagging rows at thresholds, with two classes; calibration and errors of
        parts of the rows, where there is a ``by``.
    sections : dict of str to Section
        What further questions found: sites, grades, segments, updates, other models.
    notes : list of str
        Sentences on what was left out or done differently.
    model : CalibratedClassifier or None
        The recommended model, not fitted; None where nothing was trained.
    """

    findings: Findings
    verdict: Verdict
    predictions: Predictions
    model: CalibratedClassifier | None = None

    @property
    def methods(self) -> pd.DataFrame:
        """Measures of each method and of the baseline."""
        return self.findings.methods

    @property
    def levels(self) -> pd.DataFrame:
        """Expected and observed by level of probability."""
        return self.findings.levels

    @property
    def classes(self) -> pd.DataFrame:
        """Share, mean probability, recall, precision and test of each class."""
        return self.findings.classes

    @property
    def thresholds(self) -> pd.DataFrame | None:
        """The effects of flagging rows; None without a positive class."""
        return self.findings.thresholds

    @property
    def subgroups(self) -> pd.DataFrame | None:
        """Calibration and errors of parts of the rows; None if no column divides them."""
        return self.findings.subgroups

    @property
    def sections(self) -> Mapping[str, Section]:
        """What further questions found."""
        return self.findings.sections

    @property
    def notes(self) -> Sequence[str]:
        """Sentences on what was left out or done differently."""
        return self.findings.notes

    @property
    def probabilities(self) -> dict[str, NDArray[Any]]:
        """Probabilities (n, k) of the predicted rows, by method."""
        return {method: e.p for method, e in self.predictions.estimates.items()}

    @property
    def rows(self) -> NDArray[Any]:
        """Indices of the predicted rows in X, of shape (n,)."""
        return self.predictions.rows

    def __repr__(self) -> str:
        """Return the verdict and the main measures of all methods."""
        columns = ["name", "log_loss", "brier", "auc", "calibration_error", "pvalue"]
        table = self.methods[columns].to_string(index=False, float_format="%.4f")
        counts = f"{counted(self.findings.rows)}, {len(self.classes)} classes"
        return f"{self.findings.name}: {counts}\n{self.verdict.sentence}\n\n{table}"

    def _repr_html_(self) -> str:
        page = render(self).replace("&", "&amp;").replace('"', "&quot;")
        return (
            f'<iframe srcdoc="{page}" style="width:100%;height:80vh;border:1px solid #ccc" '
            'title="Report" sandbox></iframe>'
        )

    def to_html(
        self,
        path: str | os.PathLike[str],
        *,
        advised: Mapping[str, str] | None = None,
        command: str = "",
        inputs: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Write the report as one self-contained HTML file.

        ``advised`` are the commands that the verdict recommends, by what each is for, ``command``
        is the one that made the page, and ``inputs`` are the files that it read, with their
        ``path`` and ``sha256``. If the file cannot be written, an existing one is kept.
        """
        write_text(path, render(self, advised, command, inputs))

    def to_figures(
        self,
        folder: str | os.PathLike[str],
        *,
        width: float | None = None,
        limits: tuple[float, float] | None = None,
    ) -> list[str]:
        """Write the pictures for a paper to a folder, which is created if its parent exists.

        ``calibration``, ``decision-curve`` (of two classes), ``intervals`` (of methods with
        bounds), ``sites`` (a forest plot) and ``grades``, each as SVG, PDF and PNG, with a CSV of
        what is drawn, ``width`` millimetres wide (by default 122, of the last two 229). ``limits``
        are where the axes of the first two begin and end, by default where the data do. Returns
        their names.
        """
        available, folder = figures.pictures(self.findings, self.predictions, limits), Path(folder)
        folder.mkdir(exist_ok=True)
        for name, picture in available.items():
            files = figures.encode(name, picture, figures.ENDINGS[:-1], width)
            for ending, content in files.items():
                with written_whole(folder / f"{name}.{ending}") as part:
                    part.write_bytes(content)
            if picture.data is not None:
                write_text(folder / f"{name}.csv", picture.data.to_csv(index=False))
        return list(available)

    def to_text(self, inputs: Sequence[Mapping[str, Any]] = ()) -> str:
        """Return methods and results as Markdown, in the order of TRIPOD+AI.

        ``inputs`` are the files with their ``path`` and ``sha256``, which it names.
        """
        scikit_learn = metadata.version("scikit-learn")
        software = f"vennforest {__version__}, scikit-learn {scikit_learn}, Python "
        text = templates().get_template("paper.md.j2")
        parts = paragraphs(
            text.render(f=self.findings, software=software + python_version(), inputs=inputs)
        )
        return "\n\n".join(parts) + "\n"

    def summary(self) -> dict[str, Any]:
        """Return the findings and the verdict as a dict for JSON, with None for inf and NaN."""
        return {**self.findings.summary(), "verdict": asdict(self.verdict)}


def assemble(
    predictions: Predictions,
    origin: Origin,
    question: Question,
    n_rows: int,
    *,
    model: CalibratedClassifier | None = None,
    **run: Any,
) -> Evaluation:
    """Answer a question about predictions; see `find`. ``model`` becomes the recommended one."""
    predictions = question.with_positive(predictions)
    findings = find(predictions, origin, question, n_rows, **run)
    verdict = judge(findings)
    if model is not None:
        model.set_params(method=findings.method)
        if verdict.on_folds:
            model.set_params(calibrate_on="cv")
    return Evaluation(findings, verdict, predictions, model)
