"""The report as one HTML page: everything in it is computed here, the template only places it."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from datetime import UTC, datetime
from importlib import resources
from pprint import pformat
from typing import TYPE_CHECKING, Any, NamedTuple

from vennforest._messages import harmless
from vennforest._validation import is_frame
from vennforest.report import answers, event, figures, numbers
from vennforest.report.evaluation import versions
from vennforest.report.learners import FOREST, LEARNERS
from vennforest.report.measures import BASELINE, RAW
from vennforest.report.numbers import alike, with_margin
from vennforest.report.subsets import most_split_on, subgroups, uncertain_rows, wrong_rows

if TYPE_CHECKING:
    import jinja2

    from vennforest.report.evaluation import Evaluation


OPTION, WHOLE = re.compile(r"(?<![\w-])--[a-z][a-z-]*"), r'<span class="option">\g<0></span>'
"""An option of the command line, and its element, inside which no line breaks."""

FOLDER = resources.files("vennforest.report").joinpath("templates")


def templates() -> jinja2.Environment:
    """Return the templates of pages, by the names of their files."""
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


def columns(n_classes: int) -> list[Column]:
    """Return the measures of the table in their order, with what they mean."""
    if n_classes == 2:
        event = "the positive class"
        brier = "mean squared error of the positive class's probability"
        auc = "chance that a random positive row is ranked above a random negative one"
    else:
        event = "the confidence in the predicted label"
        brier = (
            "mean squared distance between the vector of probabilities and what was observed, "
            "from 0 to 2"
        )
        auc = "area under the ROC curve of each class against the rest, weighted by its share"
    skill = "1 minus the Brier score over that of the base rate; 0: no better"
    error = (
        f"expected calibration error of {event}: mean distance of estimate and observed share "
        "over 15 bins"
    )
    tests = "of the tests of calibration (Spiegelhalter's and Kuiper's): small values reject it"
    return [
        Column("log_loss", "Log loss", "mean of −ln of the observed class's probability", -1),
        Column("brier", "Brier score", brier, -1),
        Column("brier_skill", "Brier skill", skill, 1),
        Column("auc", "AUC", auc, 1),
        Column("accuracy", "Accuracy", "share of rows whose most probable class is right", 1),
        Column("calibration_error", "Calibration error", error, -1),
        Column("pvalue", "p if calibrated", tests, 0),
    ]


def comparison(evaluation: Evaluation, wanted: list[Column]) -> dict[str, tuple[Cell, ...]]:
    """Return the row of each method in the table of all, the baseline last."""
    cells = [_cells(evaluation, column) for column in wanted]
    return dict(zip([*evaluation.measures, BASELINE], zip(*cells, strict=True), strict=True))


def _cells(evaluation: Evaluation, column: Column) -> list[Cell]:
    """Return the cells of one measure: of every method, and of the baseline."""
    found = [getattr(m, column.key) for m in evaluation.measures.values()]
    finite = [value for value in found if math.isfinite(value)]
    digits, best = numbers.decimals(finite), ""
    if column.best and len(found) > 1 and finite:
        best = _minus(max(finite) if column.best > 0 else min(finite), digits)
        if 2 * [_minus(value, digits) for value in finite].count(best) > len(found):
            best = ""  # shared by most, it says nothing
    cells = []
    for value in found:
        if math.isnan(value):
            cells.append(Cell("–", ""))
        elif math.isinf(value):
            cells.append(Cell("∞", "1e999") if value > 0 else Cell("−∞", "-1e999"))
        else:
            text = _minus(value, digits)
            if column.key == "pvalue":
                text = "<0.001" if value < 0.001 else f"{value:.3f}"
            cells.append(Cell(text, repr(float(value)), text == best))
    base = 0.0 if column.key == "brier_skill" else getattr(evaluation.baseline, column.key)
    none = column.key == "pvalue" or not math.isfinite(base)
    return [*cells, Cell("–", "") if none else Cell(_minus(base, digits), repr(float(base)))]


def _minus(value: float, digits: int) -> str:
    """Return a number with a true minus, and none before a zero."""
    text = f"{value:.{digits}f}"
    return (text if float(text) else text.lstrip("-")).replace("-", "−")


def class_rows(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return the rows of the table of classes."""
    folds = evaluation.folds
    tables = [folds.estimates[key].p for key in evaluation.raw_and_best]
    found = []
    for j, label in enumerate(folds.classes):
        mine = folds.codes == j
        methods = []
        for p in tables:
            labelled = p.argmax(axis=1) == j
            hits = int((labelled & mine).sum())
            recall = hits / int(mine.sum()) if mine.any() else None
            precision = hits / int(labelled.sum()) if labelled.any() else None
            mean = float(p[:, j].mean())
            methods.append({"mean": mean, "recall": recall, "precision": precision})
        n, share = int(mine.sum()), float(mine.mean())
        found.append({"label": str(label), "n": n, "share": share, "methods": methods})
    return found


def how(evaluation: Evaluation) -> str:
    """Return in a few words how rows were predicted."""
    settings = evaluation.settings
    k = evaluation.folds.n_folds
    learner = settings.get("learner", "")
    return {
        "folds": f"{k}-fold cross-validation, {learner}",
        "time": f"{k} folds in order of time, {learner}",
        "test": f"{learner}, tested on separate rows",
        "model": "predicted by a fitted model",
        "given": "probabilities as given, nothing was trained",
        "scores": f"scores as given, calibrated in {k}-fold cross-validation",
    }[evaluation.origin]


def recipe(evaluation: Evaluation) -> str | None:
    """Return Python code that fits the recommended method to X and y; None if nothing was trained.

    It predicts as the report did, and of a forest is what ``vennforest fit`` writes.
    """
    if evaluation.origin not in ("folds", "time", "test"):
        return None
    method, settings = evaluation.verdict.method, evaluation.settings
    seed = settings["random_state"]
    learner = LEARNERS.get(settings["estimator"])
    model = settings["estimator"]
    lines: list[str] = []
    if learner is not None:
        model = learner.code(settings["n_trees"], seed)
        lines += learner.imports()
    averaged = settings["calibrate_on"] == "cv"  # also without calibration the mean of five models
    if method != RAW or averaged:
        lines.append("from vennforest import CalibratedClassifier")
    if is_frame(evaluation.X):
        lines.append("from vennforest.tables import table_pipeline")
        types = settings.get("types")
        if types:
            lines += ["", f"types = {pformat(types, sort_dicts=False)}"]
        more = ", types=types" if types else ""
        if settings.get("missing"):
            more += f", missing={settings['missing']}"
        model = f"table_pipeline({model}, random_state={seed}{more})"
    labels, noun = "y", "forest" if learner is LEARNERS[FOREST] else "classifier"
    if learner is not None and learner.numbered:
        lines += ["", "classes, codes = np.unique(y, return_inverse=True)"]
        labels = "codes"
    if method == RAW and not averaged:
        fitted = f"model = {model}.fit(X, {labels})"
        return "\n".join([*lines, "", fitted, "model.predict_proba(X_new)"])
    groups = "" if evaluation.folds.groups is None else ", groups=groups"
    options = [f'method="{method}"', f"random_state={seed}"]
    lines += [
        "",
        f"{noun} = {model}",
        f"model = CalibratedClassifier({noun}, {', '.join(options)}).fit(X, {labels}{groups})",
        "model.predict_proba(X_new)  # a probability for each class",
    ]
    if evaluation.folds.estimates[method].bounds is not None:
        lines.append("model.predict_multiprobability(X_new)  # its lower and upper bounds")
    return "\n".join(lines)


ENCODINGS: dict[str, str] = {
    "number": "numbers",
    "category": "categories",
    "text": "text of many values",
    "date": "dates",
}
"""What a reader calls the ways in which columns become numbers."""


def against(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return how each method compares with the recommended one."""
    found = []
    for method, gap in evaluation.verdict.against.items():
        worse = "worse" if gap.mean > 0 else "better"
        shown, margin = with_margin(abs(gap.mean), gap.margin)
        sign = "+" if gap.mean > 0 else "−" if gap.mean < 0 else ""
        found.append(
            {
                "name": evaluation.names[method],
                "loss": gap.loss,
                "gap": gap,
                "size": (sign + shown, margin),
                "verdict": worse if gap.clear else "no difference beyond chance",
            }
        )
    return found


def data(evaluation: Evaluation) -> dict[str, Any]:
    """Return a description of the data."""
    folds, X = evaluation.folds, evaluation.X
    kinds: dict[str, list[str]] = {}
    for column, encoding in folds.encodings.items():
        if encoding != "empty":
            kinds.setdefault(ENCODINGS[encoding], []).append(column)
    n_columns = None if X is None else int(X.shape[1])
    named = sum(map(len, kinds.values()))
    return {
        "rows": len(folds.codes),
        "columns": n_columns,
        "kinds": sorted(kinds.items(), key=lambda item: -len(item[1])),
        "empty": (n_columns or 0) - named if kinds else 0,
        "missing": folds.missing,
        "important": most_split_on(evaluation)[:8],
    }


def decisions(evaluation: Evaluation) -> dict[str, Any] | None:
    """Return what decisions cost by each method; None without costs."""
    costs = evaluation.costs
    if costs is None:
        return None
    folds = evaluation.folds
    always = costs.costs[folds.codes].mean(axis=0).tolist()
    made = evaluation.decisions
    amounts = [
        amount
        for d in made.values()
        for amount in (d.mean_cost, d.expected_cost, d.settled_cost, d.unsettled_cost)
    ]
    known = [amount for amount in [*amounts, *always] if amount is not None]
    shown = dict(zip(known, alike(known, 0.0), strict=True))
    return {
        "decisions": costs.decisions,
        "matrix": [
            (str(label), [f"{cost:,.10g}" for cost in row])
            for label, row in zip(folds.classes, costs.costs, strict=True)
        ],
        "always": list(zip(costs.decisions, always, strict=True)),
        "shown": {**shown, None: "–"},
        "best": shown[min(d.mean_cost for d in made.values())],
    }


def render(evaluation: Evaluation, command: str | None = None, *, rows: bool = False) -> str:
    """Return the page; see `Evaluation.to_html`."""
    environment = templates()
    from markupsafe import Markup, escape

    environment.filters.update(
        prob=lambda p: "–" if p is None else numbers.probability(p),
        share=lambda p: "–" if p is None or p != p else numbers.percent(p),
        count="{:,}".format,
        minus=lambda value: _minus(value, 2),
        points=numbers.number_of_points,
        options=lambda text: Markup(OPTION.sub(WHOLE, str(escape(text)))),
    )
    bounded, two = evaluation.bounded, evaluation.positive is not None
    measured = columns(len(evaluation.folds.classes))
    page: str = environment.get_template("page.html.j2").render(
        **frame(command),
        evaluation=evaluation,
        settings=evaluation.settings,
        grouped=evaluation.folds.groups is not None,
        names=evaluation.names,
        raw_name=answers.raw_name(evaluation),
        advice=evaluation.advice(),
        reasons=answers.reasons(evaluation),
        figures=answers.key_figures(evaluation),
        finding=answers.finding(evaluation),
        how=how(evaluation),
        recipe=recipe(evaluation),
        data=data(evaluation),
        bounded=bounded,
        known=evaluation.confidence is not None,
        bounds_meaning=bounded and answers.bounds_meaning(evaluation, bounded),
        columns=measured,
        table=comparison(evaluation, measured),
        against=against(evaluation),
        levels=event.levels(evaluation),
        classes=class_rows(evaluation),
        class_methods=evaluation.raw_and_best,
        decisions=decisions(evaluation),
        subgroups=subgroups(evaluation),
        rare=event.is_rare(evaluation),
        tops=event.tops_of(evaluation) if two else [],
        ranking=event.ranking_rows(evaluation) if two else [],
        thresholds=event.thresholds_table(evaluation) if two else None,
        tie=event.cost_threshold(evaluation.costs, evaluation.positive),
        lines=event.line_rows(evaluation) if two else [],
        uncertain=uncertain_rows(evaluation) if rows else None,
        wrong=wrong_rows(evaluation) if rows else None,
        shown=answers.shown_first(evaluation),
        main_diagram=figures.calibration(evaluation, answers.shown_first(evaluation)),
        diagrams=[figures.reliability(evaluation, key) for key in evaluation.measures],
        intervals=bounded and figures.intervals(evaluation),
        class_diagrams=[] if two else figures.classes(evaluation),
        most_classes=figures.MOST_CLASSES,
        ranking_curves=figures.ranking(evaluation) if two else [],
        net_benefit=figures.net_benefit(evaluation) if two else None,
        over_time=lambda table: figures.over_time(evaluation, table),
    )
    return harmless(page)
