"""The report as one HTML page: everything in it is computed here, the template only places it."""

from __future__ import annotations

import base64
import hashlib
import math
import os
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vennforest._files import write_text
from vennforest.report import figures, words
from vennforest.report.folds import RAW
from vennforest.report.recipe import recipe
from vennforest.report.rows import uncertain_rows, wrong_rows
from vennforest.report.words import NAMES

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

SCRIPT = """
for (const table of document.querySelectorAll("table.sortable")) {
  for (const head of table.tHead.rows[table.tHead.rows.length - 1].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0], at = head.cellIndex;
      const value = (row) => row.cells[at].dataset.value ?? row.cells[at].textContent.trim();
      const rows = [...body.rows].sort((a, b) => {
        const x = value(a), y = value(b), m = Number(x), n = Number(y);
        if (x === "" || y === "") return (x === "") - (y === "");
        const order = Number.isNaN(m) || Number.isNaN(n) ? x.localeCompare(y) : m - n || 0;
        return up ? order : -order;
      });
      body.append(...rows);
    });
  }
}
"""


class Column(NamedTuple):
    """A measure in the table: ``best`` is 1 where more is better, -1 where less, 0 neither."""

    key: str
    title: str
    meaning: str
    best: int
    digits: int = 3


class Cell(NamedTuple):
    """What a cell shows, what it is sorted by, and whether it is the best of its column."""

    text: str
    value: str
    best: bool = False
    title: str = ""


def columns(n_classes: int) -> list[Column]:
    """Return the measures of the table in their order, with what they mean."""
    binary = n_classes == 2
    brier = (
        "mean squared error of the positive class's probability"
        if binary
        else "mean squared distance between the vector of probabilities and what was observed, "
        "from 0 to 2"
    )
    event = "the positive class" if binary else "the confidence in the predicted label"
    auc = (
        "chance that a random positive row is ranked above a random negative one"
        if binary
        else "area under the ROC curve of each class against the rest, weighted by its share"
    )
    summed = "" if binary else ", summed over the classes"
    return [
        Column("log_loss", "Log loss", "mean of −ln of the observed class's probability", -1),
        Column("brier", "Brier score", brier, -1),
        Column("auc", "AUC", auc, 1),
        Column("accuracy", "Accuracy", "share of rows whose most probable class is right", 1),
        Column(
            "calibration_error",
            "Calibration error",
            f"expected calibration error of {event}: mean distance of estimate and observed share "
            "over 15 bins",
            -1,
        ),
        Column(
            "reliability",
            "Reliability",
            "squared distance of estimates and observed shares over 100 bins (Murphy)" + summed,
            -1,
            4,
        ),
        Column(
            "resolution",
            "Resolution",
            "squared distance of the bins' observed shares from the overall one" + summed,
            1,
        ),
        Column("sharpness", "Sharpness", "variance of the estimates" + summed, 0),
        Column("low", "Low", "mean lower bound of the predicted label", 0),
        Column("high", "High", "mean upper bound of the predicted label", 0),
        Column("size", "Size", "mean upper minus lower", 0),
        Column(
            "observed",
            "Observed",
            "share of labels with the largest lower bound that are "
            "right: expected between low and high but for chance",
            0,
        ),
    ]


def comparison(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the rows of the table of all methods and measures."""
    wanted = columns(len(evaluation.folds.classes))
    best = {column.key: _best(evaluation, column) for column in wanted}
    rows = []
    for method, measures in evaluation.measures.items():
        cells = []
        for column in wanted:
            value = getattr(measures, column.key)
            if value is None or math.isnan(value):
                cells.append(Cell("–", ""))
            elif math.isinf(value):
                cells.append(
                    Cell(
                        "∞",
                        "1e999",
                        title=f"{words.rows(measures.impossible)} had probability 0; clipped "
                        f"as scikit-learn does: {measures.log_loss_clipped:.3f}",
                    )
                )
            else:
                text = f"{value:.{column.digits}f}"
                cells.append(Cell(text, repr(float(value)), text == best[column.key]))
        rows.append(
            {
                "method": method,
                "name": NAMES[method],
                "cells": cells,
                "recommended": method == evaluation.verdict.method,
            }
        )
    return rows


def _best(evaluation: Evaluation, column: Column) -> str | None:
    if not column.best:
        return None
    values = [getattr(m, column.key) for m in evaluation.measures.values()]
    values = [v for v in values if v is not None and math.isfinite(v)]
    if not values:
        return None
    return f"{max(values) if column.best > 0 else min(values):.{column.digits}f}"


def class_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the rows of the table of classes."""
    folds = evaluation.folds
    counts = np.bincount(folds.codes, minlength=len(folds.classes))
    keys = list(dict.fromkeys([RAW, evaluation.verdict.method]))
    predicted = {key: folds.estimates[key].p.argmax(axis=1) for key in keys}
    rows = []
    for j, label in enumerate(folds.classes):
        mine = folds.codes == j
        found = {}
        for key in keys:
            said = predicted[key] == j
            hits = int((said & mine).sum())
            found[key] = {
                "mean": float(folds.estimates[key].p[:, j].mean()),
                "recall": hits / int(mine.sum()),
                "precision": hits / int(said.sum()) if said.any() else None,
            }
        rows.append(
            {
                "label": str(label),
                "n": int(counts[j]),
                "share": counts[j] / counts.sum(),
                "positive": j == evaluation.positive,
                "methods": [found[key] for key in keys],
            }
        )
    return rows


def render(evaluation: Evaluation, command: str | None = None) -> str:
    """Return the page.

    Parameters
    ----------
    evaluation : Evaluation
        What it is about.
    command : str, optional
        What to type to get it again.

    Raises
    ------
    ImportError
        If jinja2 or matplotlib is not installed.
    """
    try:
        import jinja2
        import matplotlib  # noqa: F401
        from markupsafe import Markup
    except ImportError as missing:
        raise ImportError(
            "the page needs jinja2 and matplotlib: install them with pip install 'vennforest[all]'"
        ) from missing
    folder = resources.files("vennforest.report")
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(folder.joinpath("page.html.j2").read_text("utf-8"))
    bounded = words.bounded_method(evaluation)
    page: str = template.render(
        evaluation=evaluation,
        names=NAMES,
        raw=RAW,
        script=Markup(SCRIPT),
        script_hash=base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode(),
        style=Markup(folder.joinpath("page.css").read_text("utf-8")),
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        command=command,
        summary=words.summary(evaluation),
        figures=words.key_figures(evaluation),
        data=words.data(evaluation),
        recipe=recipe(evaluation),
        guarantee=words.guarantee(evaluation),
        columns=columns(len(evaluation.folds.classes)),
        rows=comparison(evaluation),
        against=words.against(evaluation),
        diagrams=[
            Markup(figures.reliability(evaluation, method, NAMES[method]))
            for method in evaluation.measures
        ],
        bounded=bounded,
        intervals=None if bounded is None else Markup(figures.intervals(evaluation, bounded)),
        widths=None if bounded is None else Markup(figures.widths(evaluation, bounded)),
        levels=[] if bounded is None else words.levels(evaluation, bounded),
        classes=class_rows(evaluation),
        class_methods=list(dict.fromkeys([RAW, evaluation.verdict.method])),
        class_diagrams=[(label, Markup(svg)) for label, svg in figures.classes(evaluation, NAMES)]
        if len(evaluation.folds.classes) > 2
        else [],
        most_classes=figures.MOST_CLASSES,
        uncertain=uncertain_rows(evaluation),
        wrong=wrong_rows(evaluation),
        decisions=words.decisions(evaluation),
        versions=words.versions(),
    )
    return page


def write_page(
    evaluation: Evaluation, path: str | os.PathLike[str], command: str | None = None
) -> None:
    """Write the page, whole or not at all."""
    write_text(path, render(evaluation, command))
