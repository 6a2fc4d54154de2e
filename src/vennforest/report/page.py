"""The report as one HTML page: everything in it is computed here, the template only places it."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import re
from datetime import UTC, datetime
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vennforest._files import write_text
from vennforest._messages import harmless
from vennforest.report import answers, event, figures, numbers, sections
from vennforest.report.evaluation import versions
from vennforest.report.event import is_rare, levels
from vennforest.report.measures import Measures
from vennforest.report.numbers import decimals
from vennforest.report.predictions import BASELINE, RAW
from vennforest.report.subsets import subgroups, uncertain_rows, wrong_rows

if TYPE_CHECKING:
    import jinja2

    from vennforest.report.evaluation import Evaluation


OPTION, WHOLE = re.compile(r"(?<![\w-])--[a-z][a-z-]*"), r'<span class="option">\g<0></span>'
"""An option of the command line, and its element, inside which no line breaks."""

FOLDER = resources.files("vennforest.report").joinpath("templates")


def templates() -> jinja2.Environment:
    """Return the templates of pages, by the names of their files.

    Raises
    ------
    ImportError
        If jinja2 or matplotlib is not installed.
    """
    try:
        import jinja2
        import matplotlib  # noqa: F401
    except ImportError as missing:
        raise ImportError(
            "the page needs jinja2 and matplotlib: install them with pip install 'vennforest[all]'"
        ) from missing
    return jinja2.Environment(
        loader=jinja2.DictLoader(
            {
                file.name: file.read_text("utf-8")
                for file in FOLDER.iterdir()
                if file.name.endswith(".j2")
            }
        ),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def frame(command: str | None) -> dict[str, Any]:
    """Return what every page is rendered with; ``command`` is what was typed."""
    from markupsafe import Markup

    script = FOLDER.joinpath("page.js").read_text("utf-8")
    return {
        "script": Markup(script),
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "style": Markup(FOLDER.joinpath("page.css").read_text("utf-8")),
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "command": command,
        "versions": versions(),
    }


class Column(NamedTuple):
    """A measure in the table: ``best`` is 1 where more is better, -1 where less, 0 neither."""

    key: str
    title: str
    meaning: str
    best: int


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
    return [
        Column("log_loss", "Log loss", "mean of −ln of the observed class's probability", -1),
        Column("brier", "Brier score", brier, -1),
        Column(
            "brier_skill",
            "Brier skill",
            "1 minus the Brier score over that of the base rate; 0: no better",
            1,
        ),
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
            "pvalue",
            "p if calibrated",
            "of the tests of calibration (Spiegelhalter's and Kuiper's): small values reject "
            "calibration",
            0,
        ),
    ]


def more_columns(n_classes: int) -> list[Column]:
    """Return the measures of the second table."""
    summed = "" if n_classes == 2 else ", summed over the classes"
    return [
        Column("log_loss_skill", "Log-loss skill", "as the Brier skill, of the log loss", 1),
        Column(
            "reliability",
            "Reliability",
            "squared distance of estimates and observed shares over 100 bins (Murphy)" + summed,
            -1,
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


def comparison(evaluation: Evaluation, wanted: list[Column]) -> list[dict[str, Any]]:
    """Return the rows of a table of all methods, the baseline last, and some measures."""
    digits = {column.key: _digits(evaluation, column) for column in wanted}
    best = {column.key: _best(evaluation, column, digits[column.key]) for column in wanted}
    found = []
    for method, measures in {**evaluation.measures, BASELINE: evaluation.baseline}.items():
        base = method == BASELINE
        cells = []
        for column in wanted:
            value = getattr(measures, column.key)
            if base and column.key in ("brier_skill", "log_loss_skill"):
                value = 0.0
            if base and column.key in ("pvalue", "chance_error"):
                value = None
            cells.append(_cell(measures, column, value, digits[column.key], best[column.key], base))
        found.append(
            {
                "method": method,
                "name": evaluation.names[method],
                "cells": cells,
                "recommended": method == evaluation.verdict.method,
                "baseline": base,
            }
        )
    return found


def _cell(
    measures: Measures,
    column: Column,
    value: float | None,
    digits: int,
    best: str | None,
    base: bool,
) -> Cell:
    if value is None or math.isnan(value):
        return Cell("–", "")
    if math.isinf(value):
        impossible = (
            f"{numbers.rows(measures.impossible)} had probability 0; clipped as scikit-learn does "
            f"the log loss is {measures.log_loss_clipped:.3f}"
        )
        return Cell(*(("∞", "1e999") if value > 0 else ("−∞", "-1e999")), title=impossible)
    text = _text(value, digits)
    if column.key == "pvalue":
        text = "<0.001" if value < 0.001 else f"{value:.3f}"
    return Cell(text, repr(float(value)), text == best and not base)


def _values(evaluation: Evaluation, column: Column) -> list[float]:
    values = [getattr(m, column.key) for m in evaluation.measures.values()]
    return [v for v in values if v is not None and math.isfinite(v)]


def _digits(evaluation: Evaluation, column: Column) -> int:
    return decimals(_values(evaluation, column))


def _best(evaluation: Evaluation, column: Column, digits: int) -> str | None:
    values = _values(evaluation, column)
    if not column.best or len(evaluation.measures) < 2 or not values:
        return None
    best = _text(max(values) if column.best > 0 else min(values), digits)
    shared = [_text(value, digits) for value in values].count(best)
    return best if 2 * shared <= len(evaluation.measures) else None  # else it tells nothing


def _text(value: float, digits: int) -> str:
    """Return a number with a true minus, and none before a zero."""
    text = f"{value:.{digits}f}"
    return (text if float(text) else text.lstrip("-")).replace("-", "−")


def _signed(value: float, form: str = "%+.4f") -> str:
    """Return a number in a form with a true minus, and none before a zero."""
    text = form % value
    return (text if float(text) else text.lstrip("-")).replace("-", "−")


def class_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the rows of the table of classes."""
    folds = evaluation.folds
    counts = np.bincount(folds.codes, minlength=len(folds.classes))
    keys = class_methods(evaluation)
    predicted = {key: folds.estimates[key].p.argmax(axis=1) for key in keys}
    found_rows = []
    for j, label in enumerate(folds.classes):
        mine = folds.codes == j
        found = {}
        for key in keys:
            labelled = predicted[key] == j
            hits = int((labelled & mine).sum())
            found[key] = {
                "mean": float(folds.estimates[key].p[:, j].mean()),
                "recall": hits / int(mine.sum()) if mine.any() else None,
                "precision": hits / int(labelled.sum()) if labelled.any() else None,
            }
        found_rows.append(
            {
                "label": str(label),
                "n": int(counts[j]),
                "share": counts[j] / counts.sum(),
                "positive": j == evaluation.positive,
                "methods": [found[key] for key in keys],
            }
        )
    return found_rows


def class_methods(evaluation: Evaluation) -> list[str]:
    """Return the methods of the table of classes: the model as it is, and the recommended one."""
    keys = dict.fromkeys([RAW, evaluation.verdict.method])
    return [key for key in keys if key in evaluation.measures]


def render(evaluation: Evaluation, command: str | None = None, *, rows: bool = False) -> str:
    """Return the page.

    Parameters
    ----------
    evaluation : Evaluation
        What it is about.
    command : str, optional
        What to type to get it again.
    rows : bool
        Whether single rows are listed with their values.

    Raises
    ------
    ImportError
        If jinja2 or matplotlib is not installed.
    """
    environment = templates()
    from markupsafe import Markup, escape

    environment.filters.update(
        prob=lambda p: "–" if p is None else numbers.probability(p),
        share=lambda p: "–" if p is None else numbers.percent(p),
        count="{:,}".format,
        minus=_signed,
        options=lambda text: Markup(OPTION.sub(WHOLE, str(escape(text)))),
    )
    page: str = environment.get_template("page.html.j2").render(
        evaluation=evaluation,
        names=evaluation.names,
        raw=RAW,
        **frame(command),
        **_verdict(evaluation),
        **_tables(evaluation),
        uncertain=uncertain_rows(evaluation) if rows else None,
        wrong=wrong_rows(evaluation) if rows else None,
        **{name: _marked(value, Markup) for name, value in _pictures(evaluation).items()},
    )
    return harmless(page)


def _verdict(evaluation: Evaluation) -> dict[str, Any]:
    bounded = evaluation.bounded
    return {
        "advice": evaluation.advice(),
        "reasons": answers.reasons(evaluation) + answers.hidden_differences(evaluation),
        "figures": answers.key_figures(evaluation),
        "data": sections.data(evaluation),
        "how": sections.how(evaluation),
        "method_notes": sections.methods(evaluation),
        "recipe": sections.recipe(evaluation),
        "guarantee": None if bounded is None else sections.guarantee(evaluation),
        "bounds_meaning": None if bounded is None else answers.bounds_meaning(evaluation, bounded),
        "main_caption": sections.caption(evaluation),
        "checklist": sections.checklist(evaluation),
    }


def _tables(evaluation: Evaluation) -> dict[str, Any]:
    method, k = evaluation.verdict.method, len(evaluation.folds.classes)
    wanted, more = columns(k), more_columns(k)
    two = evaluation.positive is not None
    return {
        "columns": wanted,
        "table": comparison(evaluation, wanted),
        "more_columns": more,
        "more_table": comparison(evaluation, more),
        "against": sections.against(evaluation),
        "bounded": evaluation.bounded,
        "known": evaluation.confidence is not None,
        "levels": levels(evaluation, method),
        "classes": class_rows(evaluation),
        "class_methods": class_methods(evaluation),
        "decisions": sections.decisions(evaluation),
        "tops": event.tops_of(evaluation) if two else [],
        "ranking": event.ranking_rows(evaluation) if two else [],
        "thresholds": event.threshold_rows(evaluation, method) if two else [],
        "lines": event.line_rows(evaluation) if two else [],
        "subgroups": subgroups(evaluation),
        "rare": is_rare(evaluation),
    }


def _pictures(evaluation: Evaluation) -> dict[str, Any]:
    method, names = evaluation.verdict.method, evaluation.names
    bounded = evaluation.bounded
    two = evaluation.positive is not None
    return {
        "main_diagram": figures.calibration(evaluation),
        "diagrams": [
            figures.reliability(evaluation, key, names[key]) for key in evaluation.measures
        ],
        "intervals": None if bounded is None else figures.intervals(evaluation, bounded),
        "class_diagrams": [] if two else figures.classes(evaluation, names),
        "most_classes": figures.MOST_CLASSES,
        "ranking_curves": figures.ranking(evaluation) if two else [],
        "net_benefit": figures.net_benefit(evaluation, method) if two else None,
    }


def _marked(value: Any, markup: Any) -> Any:
    """Return pictures as text that is not escaped; labels beside them still are."""
    if isinstance(value, str):
        return markup(value)
    if isinstance(value, list):
        return [
            (one[0], markup(one[1])) if isinstance(one, tuple) else markup(one) for one in value
        ]
    return value


def write_page(
    evaluation: Evaluation,
    path: str | os.PathLike[str],
    command: str | None = None,
    *,
    rows: bool = False,
) -> None:
    """Write the page, whole or not at all."""
    write_text(path, render(evaluation, command, rows=rows))
