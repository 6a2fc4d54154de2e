"""The report as one HTML page: data frames become tables of text, which templates place."""

from __future__ import annotations

import base64
import hashlib
import math
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from vennforest._messages import harmless
from vennforest.report import figures, numbers
from vennforest.report.event import cost_threshold
from vennforest.report.measures import BASELINE, RAW
from vennforest.report.subgroups import sentence
from vennforest.report.words import shown_methods

if TYPE_CHECKING:
    import jinja2
    import pandas as pd

    from vennforest.report.evaluation import Evaluation

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
"""An option of the command line, inside which no line breaks."""

FOLDER = resources.files("vennforest.report").joinpath("templates")
LIBRARIES = ("vennforest", "scikit-learn", "numpy", "scipy", "numba", "pandas", "skrub")
KIND_NAMES = {
    "number": "numbers",
    "category": "categories",
    "text": "text of many values",
    "date": "dates",
}
"""What a reader calls the ways in which columns become numbers."""


class Column(NamedTuple):
    """A column of a table.

    ``form`` is how `written` writes its values; ``best`` is 1 where the largest value is best, -1
    where the smallest is; ``interval``: the columns ``key_low`` and ``key_high`` stand beside it.
    """

    key: str
    title: str
    form: str
    meaning: str = ""
    best: int = 0
    interval: bool = False


class Cell(NamedTuple):
    """The text of a cell, what it is sorted by, its interval, and whether it is the best."""

    text: str
    value: Any = ""
    interval: str = ""
    is_best: bool = False


class Table(NamedTuple):
    """Titles of columns, and rows: a name, a class of the style sheet, and cells."""

    heading: str
    columns: Sequence[Column]
    rows: list[tuple[str, str, list[Cell]]]


def written(value: Any, form: str, digits: int = 3) -> str:
    """Return a value as text: a count, percent, probability, p-value, number, or text."""
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
    text = f"{value:,.{2 if form == 'short' else digits}f}"
    return (text if float(text.replace(",", "")) else text.lstrip("-")).replace("-", "−")


def table(
    frame: pd.DataFrame,
    columns: Sequence[Column],
    heading: str,
    names: Sequence[str],
    styles: Mapping[Any, str] | None = None,
) -> Table:
    """Return a data frame as text, with a name for each row, and styles by its index."""
    columns = [column for column in columns if column.key in frame]
    cells = [_cells(frame, column) for column in columns]
    classes = [(styles or {}).get(label, "") for label in frame.index]
    rows = zip(names, classes, map(list, zip(*cells, strict=True)), strict=True)
    return Table(heading, columns, list(rows))


def _cells(frame: pd.DataFrame, column: Column) -> list[Cell]:
    values = frame[column.key].tolist()
    if column.form == "text":
        return [Cell(written(value, "text"), written(value, "text")) for value in values]
    is_method = frame.index != BASELINE
    finite = [v for v, m in zip(values, is_method, strict=True) if m and math.isfinite(v)]
    digits = numbers.decimals(finite)
    best = ""
    if column.best and is_method.sum() > 1 and finite:
        best = written(max(finite) if column.best > 0 else min(finite), column.form, digits)
        texts = [written(value, column.form, digits) for value in finite]
        if 2 * texts.count(best) > len(values):
            best = ""  # shared by most, it says nothing
    cells = []
    for i, value in enumerate(values):
        text = written(value, column.form, digits)
        interval = ""
        if column.interval and math.isfinite(frame[f"{column.key}_low"].iloc[i]):
            ends = (frame[f"{column.key}_{end}"].iloc[i] for end in ("low", "high"))
            low, high = (written(end, column.form, digits) for end in ends)
            interval = f"{low}–{high}" if "−" not in low + high else f"{low} to {high}"
        key = "" if value != value else repr(float(value)).replace("inf", "1e999")
        cells.append(Cell(text, key, interval, bool(is_method[i]) and text == best))
    return cells


def templates() -> jinja2.Environment:
    """Return the templates of pages, by the names of their files."""
    try:
        import jinja2
        import matplotlib  # noqa: F401
    except ImportError as missing:
        raise ImportError(
            "the page needs jinja2 and matplotlib: install them with pip install 'vennforest[all]'"
        ) from missing
    from markupsafe import Markup, escape

    files = [file for file in FOLDER.iterdir() if file.name.endswith(".j2")]
    environment = jinja2.Environment(
        loader=jinja2.DictLoader({file.name: file.read_text("utf-8") for file in files}),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    whole = r'<span class="option">\g<0></span>'
    environment.filters["options"] = lambda text: Markup(OPTION.sub(whole, str(escape(text))))
    return environment


def frame_of_page(command: str) -> dict[str, Any]:
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


def versions() -> dict[str, str]:
    """Return the version of Python and of each library that the numbers depend on."""
    installed = {"Python": platform.python_version()}
    for library in LIBRARIES:
        try:
            installed[library] = metadata.version(library)
        except metadata.PackageNotFoundError:
            continue
    return installed


def render(evaluation: Evaluation, advised: str = "", command: str = "") -> str:
    """Return the page; see `Evaluation.to_html`."""
    environment = templates()
    from markupsafe import Markup

    comparison, source, names = evaluation.comparison, evaluation.source, evaluation.source.names
    two, best = comparison.positive is not None, names[comparison.method]
    methods = shown_methods(comparison, source)
    diagrams = [] if two else figures.classes(comparison, dict(names))
    columns = evaluation.settings.get("columns", {})
    kinds: dict[str, list[str]] = {}
    for column, kind in columns.items():
        kinds.setdefault(KIND_NAMES.get(kind, "without a value"), []).append(column)
    page: str = environment.get_template("report.html.j2").render(
        **frame_of_page(command),
        evaluation=evaluation,
        verdict=evaluation.verdict,
        advised=advised,
        source=source,
        comparison=comparison,
        settings=evaluation.settings,
        best=best,
        names=names,
        how=_how(evaluation),
        reasons=list(evaluation.verdict.reasons.items()),
        errors=[
            (
                f"the {source.raw_name}" if method == RAW else names[method],
                colour,
                numbers.points(comparison.measures[method].calibration_error),
            )
            for method, colour in zip(methods, ("blue", "orange", "green", "pink"), strict=False)
        ],
        picture=Markup(figures.calibration(comparison, methods, dict(names))),
        n_rows=f"{comparison.n:,}",
        methods=_methods_table(evaluation),
        meanings=[c for c in _measures(two) if c.meaning],
        impossible=[
            (names[method], f"{m.impossible:,}", f"{m.log_loss_clipped:.3f}")
            for method, m in comparison.measures.items()
            if m.impossible
        ],
        differences=_differences_table(evaluation),
        levels=_levels_table(evaluation),
        line=_line_table(evaluation) if two else None,
        thresholds=_thresholds_table(evaluation),
        net_benefit=Markup(figures.net_benefit(comparison, best)) if two else None,
        classes=_classes_table(evaluation),
        class_diagrams=[(label, Markup(diagram)) for label, diagram in diagrams],
        max_class_diagrams=figures.MAX_CLASS_DIAGRAMS,
        costs=_costs_tables(evaluation),
        subgroups=_subgroups(evaluation),
        kinds=sorted(kinds.items(), key=lambda item: -len(item[1])),
    )
    return harmless(page)


def _how(evaluation: Evaluation) -> str:
    """Return in a few words how rows were predicted."""
    k, noun = evaluation.comparison.predictions.n_folds, evaluation.source.noun
    return {
        "folds": f"{k}-fold cross-validation, {noun}",
        "time": f"{k} folds in order of time, {noun}",
        "model": "predicted by a fitted model",
        "given": "probabilities as given, nothing was trained",
    }[evaluation.source.kind]


def _measures(is_binary: bool) -> list[Column]:
    event = "the positive class" if is_binary else "the confidence in the predicted label"
    brier = "mean squared error of the positive class's probability"
    auc = "chance that a random positive row is ranked above a random negative one"
    if not is_binary:
        brier = "mean squared distance of the vectors of probabilities and outcomes, from 0 to 2"
        auc = "area under the ROC curve of each class against the rest, weighted by its share"
    error = f"mean distance of estimate and observed share over 15 bins, of {event}"
    tests = "of the tests of calibration (Spiegelhalter's and Kuiper's): small values reject it"
    return [
        Column("log_loss", "Log loss", "number", "mean of −ln of the observed class's p", -1),
        Column("brier", "Brier score", "number", brier, -1),
        Column("brier_skill", "Brier skill", "number", "1 − score / score of the base rate", 1),
        Column("auc", "AUC", "number", auc, 1),
        Column(
            "accuracy", "Accuracy", "number", "share of most probable classes that are right", 1
        ),
        Column("calibration_error", "Calibration error", "number", error, -1),
        Column("pvalue", "p if calibrated", "pvalue", tests),
    ]


def _chosen(evaluation: Evaluation) -> dict[str, str]:
    return {evaluation.comparison.method: "chosen", BASELINE: "baseline"}


def _methods_table(evaluation: Evaluation) -> Table:
    frame = evaluation.methods.copy()
    frame.loc[BASELINE, "pvalue"] = np.nan
    frame.loc[BASELINE, "brier_skill"] = 0.0
    columns = _measures(evaluation.comparison.positive is not None)
    return table(frame, columns, "Method", frame["name"].tolist(), _chosen(evaluation))


def _differences_table(evaluation: Evaluation) -> Table | None:
    against = evaluation.comparison.choice.against
    if not against:
        return None
    import pandas as pd

    rows = []
    for gap in against.values():
        shown, margin = numbers.with_margin(abs(gap.mean), gap.margin)
        sign = "+" if gap.mean > 0 else "−" if gap.mean < 0 else ""
        worse = "worse" if gap.mean > 0 else "better"
        verdict = worse if gap.clear else "no difference beyond chance"
        rows.append([gap.loss, f"{sign}{shown} ± {margin}", verdict])
    columns = [Column("loss", "Measure", "text"), Column("size", "Difference", "text")]
    columns.append(Column("verdict", "Verdict", "text"))
    frame = pd.DataFrame(rows, columns=[column.key for column in columns])
    return table(frame, columns, "Method", [evaluation.source.names[m] for m in against])


OBSERVED = Column("observed", "Observed, 95% interval", "probability", interval=True)


def _levels_table(evaluation: Evaluation) -> Table:
    frame = evaluation.levels.dropna(axis="columns", how="all")
    columns = [
        Column("n", "Rows", "count"),
        OBSERVED,
        Column("bound_low", "Lower bound", "probability"),
        Column("bound_high", "Upper bound", "probability"),
        Column("confidence_low", "95% from", "probability"),
        Column("confidence_high", "to", "probability"),
    ]
    names = [numbers.probability(p) for p in frame["expected"]]
    return table(frame, columns, "Mean probability", names)


def _line_table(evaluation: Evaluation) -> Table:
    frame = evaluation.methods.loc[shown_methods(evaluation.comparison, evaluation.source)]
    columns = [
        Column("observed_expected", "Observed / expected", "short", interval=True),
        Column("intercept", "Intercept", "short", interval=True),
        Column("slope", "Slope", "short", interval=True),
    ]
    return table(frame, columns, "Method", frame["name"].tolist(), _chosen(evaluation))


def _thresholds_table(evaluation: Evaluation) -> Table | None:
    frame, comparison = evaluation.thresholds, evaluation.comparison
    if frame is None:
        return None
    columns = [
        Column("flagged", "Flagged", "percent"),
        Column("sensitivity", "Sensitivity", "percent"),
        Column("specificity", "Specificity", "percent"),
        Column("positive_value", "Positive pred. value", "percent"),
        Column("negative_value", "Negative pred. value", "percent"),
        Column("sure_yes", "Sure yes", "count"),
        Column("open", "Open", "count"),
        Column("sure_no", "Sure no", "count"),
    ]
    costs = comparison.costs
    tie = cost_threshold(None if costs is None else costs.matrix, comparison.positive)
    names = [
        numbers.percent(threshold) + (" (your costs)" if threshold == tie else "")
        for threshold in frame.index
    ]
    return table(frame, columns, "Threshold", names, {tie: "chosen"})


def _classes_table(evaluation: Evaluation) -> Table:
    columns = [Column("n", "Rows", "count"), Column("share", "Share", "probability")]
    for method in evaluation.comparison.raw_and_best:
        name = evaluation.source.names[method]
        for key, title in (
            ("mean", "Mean probability"), ("recall", "Recall"), ("precision", "Precision"),
        ):  # fmt: skip
            columns.append(Column(f"{key}_{method}", f"{title}, {name}", "probability"))
    return table(evaluation.classes, columns, "Class", evaluation.classes.index.tolist())


def _costs_tables(evaluation: Evaluation) -> tuple[Table, Table] | None:
    """Return the matrix of costs, and what decisions cost by each method and without one."""
    costs = evaluation.comparison.costs
    if costs is None:
        return None
    import pandas as pd

    matrix, labels = costs.matrix, evaluation.classes.index.tolist()
    frame = pd.DataFrame(matrix.costs, index=labels, columns=range(len(matrix.decisions)))
    given = frame.map(lambda cost: f"{cost:,.12g}")
    titles = [Column(j, name, "text") for j, name in enumerate(matrix.decisions)]  # type: ignore[arg-type]
    always = {f"Always “{d}”": c for d, c in zip(matrix.decisions, costs.of_constants, strict=True)}
    means = {**costs.mean, **always}
    texts = numbers.alike(means.values(), 0.0)
    expected = numbers.alike([*costs.expected.values(), *means.values()], 0.0)
    paid = pd.DataFrame({"mean": texts, "expected": "–"}, index=list(means))
    paid.loc[list(costs.expected), "expected"] = expected[: len(costs.expected)]
    columns = [Column("mean", "Mean cost", "text"), Column("expected", "Expected cost", "text")]
    names = [evaluation.source.names.get(key, key) for key in paid.index]
    styles = {**dict.fromkeys(always, "baseline"), **_chosen(evaluation)}
    return (
        table(given, titles, "Observed", labels),
        table(paid, columns, "Method", names, styles),
    )


def _subgroups(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return table, sentence and picture of the subgroups by each column."""
    frame = evaluation.subgroups
    if frame is None:
        return []
    from markupsafe import Markup

    n_tested = int(frame["pvalue"].notna().sum())
    columns = [
        Column("n", "Rows", "count"),
        Column("expected", "Mean probability", "probability"),
        OBSERVED,
        Column("auc", "AUC", "short", interval=True),
        Column("brier", "Brier score", "probability"),
        Column("adjusted", "p if calibrated, adjusted", "pvalue"),
    ]
    sections = []
    for number, (column, part) in enumerate(frame.groupby(level="column", sort=False)):
        parts = part.droplevel("column")
        names = parts.index.tolist()
        period = parts["period"].iloc[0]
        picture = None
        if period:
            dated = parts[parts.index != "missing"]
            label = evaluation.comparison.label
            picture = figures.over_periods(
                f"time-{number}",
                dated.index.tolist(),
                dated[["observed", "observed_low", "observed_high"]].to_numpy(),
                "Share predicted right" if label is None else f"Share of “{label}”",
                f"Observed and expected by {period}",
                dated["expected"].tolist(),
            )
        sections.append(
            {
                "column": column,
                "period": period,
                "sentence": sentence(part, n_tested),
                "picture": picture and Markup(picture),
                "table": table(parts, columns, period.capitalize() or str(column), names),
            }
        )
    return sections
