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
from vennforest.report.measures import BASELINE
from vennforest.report.section_words import (
    MAX_LISTED,
    SECTIONS,
    Columns,
    subgroup_sentences,
)
from vennforest.report.words import Words, shown_methods

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation
    from vennforest.report.findings import Findings

FOLDER = resources.files("vennforest.report").joinpath("templates")
LIBRARIES = ("scikit-learn", "numpy", "scipy", "numba")

MEASURES = (
    ("log_loss", "Log loss", "number"), ("brier", "Brier score", "number"),
    ("brier_skill", "Brier skill", "number"), ("auc", "AUC", "number"),
    ("accuracy", "Accuracy", "number"), ("calibration_error", "Calibration error", "number"),
    ("pvalue", "p if calibrated", "pvalue"),
)  # fmt: skip
INTERVALS = MEASURES[:4]

MAX_UNFOLDED = 6
"""Most methods whose measures are all shown at once."""

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
    ("net_benefit", "Net benefit", "number"), ("gain", "Gain over all or none", "number"),
    ("sure_yes", "Sure yes", "count"), ("open", "Open", "count"), ("sure_no", "Sure no", "count"),
)  # fmt: skip
CLASSES = (
    ("n", "Rows", "count"), ("share", "Share", "probability"),
    ("mean", "Mean probability", "probability"), ("pvalue", "p if calibrated, adjusted", "pvalue"),
    ("recall", "Recall", "probability"), ("precision", "Precision", "probability"),
)  # fmt: skip
SUBGROUPS = (
    ("n", "Rows", "count"), ("expected", "Mean probability", "probability"),
    ("observed", "Observed, 95% interval", "probability"),
    ("observed_expected", "Observed / expected", "short"), ("slope", "Slope", "short"),
    ("auc", "AUC", "short"),
    ("brier", "Brier score", "probability"), ("adjusted", "p if calibrated, adjusted", "pvalue"),
)  # fmt: skip


def to_text(value: Any, form: str, decimals: int = 3) -> str:
    """Return a value as text.

    Forms are "count", "percent", "probability", "pvalue", "number", "short" and "text".
    """
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
    findings, predictions = evaluation.findings, evaluation.predictions
    words, names = Words(findings), dict(findings.origin.names)
    is_binary, best, frame = findings.positive is not None, words.name, findings.methods
    methods, levels, thresholds = shown_methods(findings), findings.levels, findings.thresholds
    frame = frame.assign(pvalue=frame["pvalue"].drop(BASELINE))
    folded: Any = (
        []
        if len(frame) <= MAX_UNFOLDED
        else frame.index.difference([*methods, BASELINE], sort=False)
    )
    tie = None if findings.decision is None or findings.costs is None else findings.decision
    sections = []
    for name, view in SECTIONS.items():
        if (section := findings.sections.get(name)) is not None:
            picture, part, columns = view.picture(words, section), section.frame, view.columns
            form = "short" if name == "predictors" else "probability"
            parts = section.numbers.get("parts", ())
            columns = [*columns, *((key, key.capitalize(), form) for key in parts)]
            sections.append({
                "anchor": name,
                "title": view.title,
                "sentences": view.sentences(words, section, MAX_LISTED),
                "picture": None if picture is None else figures.draw(name, picture),
                "table": None if part is None else table(part, columns, part.index),
                "heading": None if part is None else part.index.name,
            })  # fmt: skip
    return render_page(
        "report.html.j2",
        command,
        f=findings,
        verdict=evaluation.verdict,
        advised=advised,
        best=best,
        reasons=list(evaluation.verdict.reasons.items()),
        pictures={
            name: figures.draw(name, picture)
            for name, picture in figures.pictures(findings, predictions).items()
        },
        methods=table(frame.drop(folded), MEASURES, frame["name"].drop(folded), ends=False),
        folded=table(frame.loc[folded], MEASURES, frame.loc[folded, "name"], ends=False),
        loss_range=[numbers.fixed(v, 3) for v in frame.loc[folded, "log_loss"].agg(["min", "max"])]
        if len(folded)
        else None,
        intervals=table(frame.drop(BASELINE), INTERVALS, frame["name"].drop(BASELINE)),
        has_log_axes=(findings.share or 1) < figures.LOG_SHARE,
        differences=_differences(findings),
        levels=table(levels, LEVELS, [numbers.probability(p) for p in levels["expected"]]),
        certain={
            names[m]: int(n)
            for m in methods
            if (n := frame.to_dict("index")[m].get("certain", 0)) > 0
        },
        line=table(frame.loc[methods], LINE, frame.loc[methods, "name"]) if is_binary else None,
        distances=_distances_sentence(frame.loc[findings.method]) if is_binary else None,
        thresholds=None
        if thresholds is None
        else table(  # intervals of the predictive values too would not fit: they are in the JSON
            thresholds.filter(regex="^(?!.*value_)"),
            THRESHOLDS,
            [
                numbers.probability(t)
                + " (your costs)"
                * (tie is not None and tie["by"] == "costs" and t == tie["threshold"])
                for t in thresholds.index
            ],
        ),
        classes=table(findings.classes, CLASSES, findings.classes.index),
        class_diagrams={} if is_binary else figures.classes(findings, predictions),
        costs=None if findings.costs is None else _costs_table(findings),
        subgroups=_subgroups(words),
        sections=sections,
    )


def _distances_sentence(measures: Any) -> str | None:
    """Return a clause on the distances from the smooth curve; None where there is no curve."""
    names = {"ici": "mean (ICI)", "e50": "median (E50)", "e90": "90% quantile (E90)"}
    texts = [
        f"{words} {numbers.points(measures[name])} ({numbers.points(measures[f'{name}_low'])} to "
        f"{numbers.points(measures[f'{name}_high'])}; by chance "
        f"{numbers.points(measures[f'{name}_by_chance'])})"
        for name, words in (names | {"emax": "largest (Emax)"}).items()
    ]
    return ", ".join(texts) if math.isfinite(measures["ici"]) else None


def _differences(findings: Findings) -> pd.DataFrame:
    """Return how much each other method's loss differs from the recommended one's, as text."""
    rows = []
    for gap in findings.differences.values():
        sign = "+" if gap.mean > 0 else "−" if gap.mean < 0 else ""
        worse = "worse" if gap.mean > 0 else "better"
        result = worse if gap.clear else "no difference beyond chance"
        rows.append((gap.loss, f"{sign}{numbers.with_margin(gap.mean, gap.margin)}", result))
    titles, names = ["Measure", "Difference", "Verdict"], findings.origin.names
    return pd.DataFrame(rows, columns=titles, index=[names[m] for m in findings.differences])


def _costs_table(findings: Findings) -> pd.DataFrame:
    """Return the costs of decisions by each method and of constant decisions, as text."""
    costs, names = findings.costs, findings.origin.names
    assert costs is not None
    means = {names[method]: cost for method, cost in costs.mean.items()}
    constants = zip(costs.matrix.decisions, costs.of_constants, strict=True)
    means |= {f"Always “{decision}”": cost for decision, cost in constants}
    return pd.DataFrame({"Mean cost": numbers.amounts(means.values())}, index=list(means))


def _subgroups(words: Words) -> list[dict[str, Any]]:
    """Return table, sentence and picture of the subgroups by each column."""
    frame, label = words.f.subgroups, words.f.positive
    sections = []
    for number, (column, text) in enumerate(subgroup_sentences(words).items()):
        assert frame is not None
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
