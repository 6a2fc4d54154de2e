"""The report as one HTML page: data frames become frames of text, which a template places."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

import pandas as pd

from vennforest._messages import harmless, needed
from vennforest._program import __version__
from vennforest.report import figures, numbers
from vennforest.report.breakdown import sentences_by_column
from vennforest.report.measures import BASELINE, names_of_tests
from vennforest.report.section import Columns, Section
from vennforest.report.words import shown_methods

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

FOLDER = resources.files("vennforest.report").joinpath("templates")
LIBRARIES = ("scikit-learn", "numpy", "scipy", "numba")

MEASURES = (
    ("log_loss", "Log loss", "number"), ("brier", "Brier score", "number"),
    ("brier_skill", "Brier skill", "number"), ("auc", "AUC", "number"),
    ("accuracy", "Accuracy", "number"), ("calibration_error", "Calibration error", "number"),
    ("pvalue", "p if calibrated", "pvalue"),
)  # fmt: skip
INTERVALS = MEASURES[:4]
LINE = (
    ("observed_expected", "Observed / expected", "short"), ("intercept", "Intercept", "short"),
    ("slope", "Slope", "short"),
)  # fmt: skip
LEVELS = (
    ("n", "Rows", "count"), ("observed", "Observed, 95% interval", "probability"),
    ("bound_low", "Lower bound", "probability"), ("bound_high", "Upper bound", "probability"),
    ("confidence_low", "95% from", "probability"), ("confidence_high", "to", "probability"),
)  # fmt: skip
THRESHOLDS = (
    ("flagged", "Flagged", "percent"), ("sensitivity", "Sensitivity", "percent"),
    ("specificity", "Specificity", "percent"),
    ("positive_value", "Positive pred. value", "percent"),
    ("negative_value", "Negative pred. value", "percent"),
    ("net_benefit", "Net benefit", "number"), ("gain", "Gain over flagging all", "number"),
    ("sure_yes", "Sure yes", "count"), ("open", "Open", "count"), ("sure_no", "Sure no", "count"),
)  # fmt: skip
CLASSES = (
    ("n", "Rows", "count"), ("share", "Share", "probability"),
    ("mean", "Mean probability", "probability"), ("recall", "Recall", "probability"),
    ("precision", "Precision", "probability"),
)  # fmt: skip
SUBGROUPS = (
    ("n", "Rows", "count"), ("expected", "Mean probability", "probability"),
    ("observed", "Observed, 95% interval", "probability"), ("auc", "AUC", "short"),
    ("brier", "Brier score", "probability"), ("adjusted", "p if calibrated, adjusted", "pvalue"),
)  # fmt: skip


def to_text(value: Any, form: str, decimals: int = 3) -> str:
    """Return a value as text in one of the forms of `Section`."""
    if value is None or value != value:
        return "–"
    if form == "text":
        return str(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if form == "count":
        return f"{round(value):,}"
    if form == "percent":
        return numbers.percent(value)
    if form == "probability":
        return numbers.probability(value)
    if form == "pvalue":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    return numbers.fixed(value, 2 if form == "short" else decimals)


def table(
    frame: pd.DataFrame, columns: Columns, names: Iterable[str], ends: bool = True
) -> pd.DataFrame:
    """Return columns of a data frame as text, with their intervals, by titles and names of rows.

    ``key_low`` and ``key_high`` are the ``ends`` of the interval of ``key``.
    """
    texts = {}
    for key, title, form in columns:
        if key not in frame:
            continue
        values = frame[key].drop(BASELINE, errors="ignore") if form == "number" else ()
        decimals = numbers.common_decimals(values)
        cells = [to_text(value, form, decimals) for value in frame[key]]
        if ends and f"{key}_low" in frame:
            pairs = zip(frame[f"{key}_low"], frame[f"{key}_high"], strict=True)
            for i, (low, high) in enumerate(pairs):
                if math.isfinite(low):
                    cells[i] += (
                        f" ({to_text(low, form, decimals)}\u00a0to\u00a0"
                        f"{to_text(high, form, decimals)})"
                    )
        texts[title] = cells
    return pd.DataFrame(texts, index=list(names))


@cache
def _templates(jinja2: Any) -> Any:
    """Return the environment of the templates, each of which is compiled once."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("vennforest.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_page(template: str, command: str, **variables: Any) -> str:
    """Return a page from a template; ``command`` is the one that made it."""
    environment = _templates(needed("jinja2", "pages"))
    page: str = environment.get_template(template).render(
        style=FOLDER.joinpath("page.css").read_text("utf-8"),
        when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        command=command,
        versions={"Python": platform.python_version(), "vennforest": __version__}
        | {library: metadata.version(library) for library in LIBRARIES},
        **variables,
    )
    return harmless(page)


def render(evaluation: Evaluation, advised: str = "", command: str = "") -> str:
    """Return the page; see `Evaluation.to_html`."""
    needed("matplotlib", "pages")
    comparison, origin, frame = evaluation.comparison, evaluation.origin, evaluation.methods
    predictions, names = comparison.predictions, dict(origin.names)
    is_binary, best = predictions.positive is not None, names[comparison.method]
    methods = shown_methods(comparison, origin)
    colours = zip(methods, ("blue", "orange", "green", "pink"), strict=False)
    errors = {
        (origin.in_sentence(m), colour): numbers.points(comparison.measures[m].calibration_error)
        for m, colour in colours
    }
    costs, thresholds, levels = comparison.costs, evaluation.thresholds, evaluation.levels
    return render_page(
        "report.html.j2",
        command,
        evaluation=evaluation,
        advised=advised,
        best=best,
        tests=names_of_tests(predictions),
        reasons=list(evaluation.verdict.reasons.items()),
        errors=errors,
        pictures={
            name: figures.draw(name, picture)
            for name, picture in figures.pictures(evaluation).items()
        },
        methods=table(
            frame.assign(pvalue=frame["pvalue"].drop(BASELINE)), MEASURES, frame["name"], ends=False
        ),
        intervals=table(frame.drop(BASELINE), INTERVALS, frame["name"].drop(BASELINE)),
        has_log_axes=(predictions.share or 1) < figures.LOG_SHARE,
        others=[names[m] for m in methods[1:]],
        differences=_differences(evaluation),
        levels=table(levels, LEVELS, [numbers.probability(p) for p in levels["expected"]]),
        certain={
            names[m]: int(n)
            for m in methods
            if (n := frame.to_dict("index")[m].get("certain", 0)) > 0
        },
        line=table(frame.loc[methods], LINE, frame.loc[methods, "name"]) if is_binary else None,
        distances=_distances_sentence(frame.loc[comparison.method]) if is_binary else None,
        thresholds=None
        if thresholds is None
        else table(  # intervals of the predictive values too would not fit: they are in the JSON
            thresholds.filter(regex="^(?!.*value_)"),
            THRESHOLDS,
            [
                numbers.percent(t) + " (your costs)" * (t == comparison.tie)
                for t in thresholds.index
            ],
        ),
        classes=table(evaluation.classes, CLASSES, evaluation.classes.index),
        class_diagrams={} if is_binary else figures.classes(comparison, evaluation.origin),
        costs=None if costs is None else _costs_table(evaluation),
        subgroups=[] if evaluation.subgroups is None else _subgroups(evaluation),
        sections=[(section, *_rendered(section)) for section in evaluation.sections],
    )


def _rendered(section: Section) -> tuple[pd.DataFrame | None, str | None]:
    """Return the table of a section as text, and its picture."""
    frame, picture = section.frame, section.picture
    image = None if picture is None else figures.draw(section.anchor, picture)
    return None if frame is None else table(frame, section.columns, frame.index), image


def _distances_sentence(measures: Any) -> str | None:
    """Return a clause on the distances from the smooth curve; None where there is no curve."""
    names = {"ici": "mean (ICI)", "e50": "median (E50)", "e90": "90% quantile (E90)"}
    texts = [
        f"{words} {numbers.points(measures[name])} ({numbers.points(measures[f'{name}_low'])} to "
        f"{numbers.points(measures[f'{name}_high'])})"
        for name, words in (names | {"emax": "largest (Emax)"}).items()
    ]
    return ", ".join(texts) if math.isfinite(measures["ici"]) else None


def _differences(evaluation: Evaluation) -> pd.DataFrame:
    """Return how much each other method's loss differs from the recommended one's, as text."""
    against, names = evaluation.comparison.against, evaluation.origin.names
    rows = []
    for gap in against.values():
        sign = "+" if gap.mean > 0 else "−" if gap.mean < 0 else ""
        worse = "worse" if gap.mean > 0 else "better"
        result = worse if gap.clear else "no difference beyond chance"
        rows.append((gap.loss, f"{sign}{numbers.with_margin(gap.mean, gap.margin)}", result))
    titles = ["Measure", "Difference", "Verdict"]
    return pd.DataFrame(rows, columns=titles, index=[names[method] for method in against])


def _costs_table(evaluation: Evaluation) -> pd.DataFrame:
    """Return the costs of decisions by each method and of constant decisions, as text."""
    costs, names = evaluation.comparison.costs, evaluation.origin.names
    assert costs is not None
    means = {names[method]: cost for method, cost in costs.mean.items()}
    constants = zip(costs.matrix.decisions, costs.of_constants, strict=True)
    means |= {f"Always “{decision}”": cost for decision, cost in constants}
    return pd.DataFrame({"Mean cost": numbers.amounts(means.values())}, index=list(means))


def _subgroups(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return table, sentence and picture of the subgroups by each column."""
    frame, label = evaluation.subgroups, evaluation.comparison.predictions.label
    assert frame is not None
    sections = []
    for number, (column, text) in enumerate(sentences_by_column(frame).items()):
        parts: Any = frame.xs(column)
        section = {"column": column, "period": parts["period"].iloc[0], "picture": None}
        if section["period"]:
            dated = parts[parts.index != "missing"]
            picture = figures.rates(
                dated.index.tolist(),
                dated[["observed", "observed_low", "observed_high"]].to_numpy(),
                "Share predicted right" if label is None else f"Share of “{label}”",
                f"Observed and expected by {section['period']}",
                dated["expected"].tolist(),
            )
            section["picture"] = figures.draw(f"time-{number}", picture)
        sections.append(section | {"sentence": text, "table": table(parts, SUBGROUPS, parts.index)})
    return sections
