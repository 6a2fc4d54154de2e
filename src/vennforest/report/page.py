"""The report as one HTML page, which a template makes of findings."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

import pandas as pd

from vennforest._messages import harmless, needed
from vennforest._program import __version__
from vennforest.report import figures, numbers
from vennforest.report.measures import BASELINE
from vennforest.report.words import MAX_LISTED, sentences_on, templates

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

FOLDER = resources.files("vennforest.report").joinpath("templates")
LIBRARIES = ("scikit-learn", "numpy", "scipy", "numba")

MAX_UNFOLDED = 6
"""Most methods whose measures are all shown at once."""

PageColumns = Sequence[tuple[str, str, str]]
"""Name in a data frame, title, and form (see `cell`), for each column of a table."""


def cell(value: Any, form: str, decimals: int = 3) -> str:
    """Return a value as text, "–" for None and NaN.

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
    if form in ("percent", "probability"):
        return str(getattr(numbers, form)(value))
    if form == "pvalue":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    return numbers.fixed(value, 2 if form == "short" else decimals)


def table(
    frame: pd.DataFrame, columns: PageColumns, names: Iterable[Any] | None = None, ends: bool = True
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
        cells = [cell(value, form, decimals) for value in frame[key]]
        if ends and f"{key}_low" in frame:
            pairs = zip(frame[f"{key}_low"], frame[f"{key}_high"], strict=True)
            for i, (low, high) in enumerate(pairs):
                if math.isfinite(low):
                    low_text, high_text = cell(low, form, decimals), cell(high, form, decimals)
                    cells[i] += f" ({low_text}\u00a0to\u00a0{high_text})"
        texts[title] = cells
    return pd.DataFrame(texts, index=list(frame.index if names is None else names))


def render_page(
    template: str, command: str, inputs: Sequence[Mapping[str, Any]], **variables: Any
) -> str:
    """Return a page from a template; ``command`` is the one that made it, of ``inputs``."""
    needed("matplotlib", "pages")
    versions = {library: metadata.version(library) for library in LIBRARIES}
    page: str = (
        templates()
        .get_template(template)
        .render(
            style=FOLDER.joinpath("page.css").read_text("utf-8"),
            when=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            command=command,
            inputs=inputs,
            versions={"Python": platform.python_version(), "vennforest": __version__} | versions,
            table=table,
            sentences_on=sentences_on,
            **variables,
        )
    )
    return harmless(page.lstrip())


def render(
    evaluation: Evaluation,
    advised: Mapping[str, str] | None = None,
    command: str = "",
    inputs: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the page; see `Evaluation.to_html`."""
    f, predictions, verdict = evaluation.findings, evaluation.predictions, evaluation.verdict
    methods = f.methods.assign(pvalue=f.methods["pvalue"].drop(BASELINE))
    other_methods = methods.index.difference([*f.shown_methods, BASELINE], sort=False)
    folded = methods.loc[other_methods if len(methods) > MAX_UNFOLDED else []]
    pictures = figures.pictures(f, predictions) | figures.pictures_over_time(f)
    return render_page(
        "report.html.j2",
        command,
        inputs,
        f=f,
        best=f.origin.names[f.method],
        verdict=verdict,
        advised=advised or {},
        reasons=list(verdict.reasons.items()),
        pictures={name: figures.draw(name, picture) for name, picture in pictures.items()},
        class_diagrams={} if f.positive is not None else figures.classes(f, predictions),
        methods=methods,
        folded=folded,
        max_listed=MAX_LISTED,
        has_log_axes=(f.share or 1) < figures.LOG_SHARE,
    )
