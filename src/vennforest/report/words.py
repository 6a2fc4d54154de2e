"""Sentences: templates of text, with filters that format numbers and lists of names."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import FunctionType
from typing import Any

from vennforest._messages import as_sentence, counted, needed
from vennforest.metrics import IntervalEstimate
from vennforest.metrics.dependence import MIN_EVENT_GROUPS
from vennforest.monitoring.columns import MIN_ROWS_A_SIDE
from vennforest.report import numbers
from vennforest.report.measures import CALIBRATION_TEST_LEVEL, MAX_RATIO, RAW
from vennforest.validation.sites import NEW_SITE, POOLED
from vennforest.validation.update import TITLES

MAX_LISTED = 5
"""Most names in a sentence of the page; the text for a paper names all."""


MAX_P_VALUE = 0.05
"""Largest corrected p-value of a column that is reported to have moved."""


def joined(names: Iterable[object], n: int | None = None) -> str:
    """Return names as text such as "a, b and c"; of more than n the first, and how many more."""
    texts = [str(name) for name in names]
    if n is not None and len(texts) > n:
        texts = [*texts[:n], f"{len(texts) - n} more"]
    return " and ".join(filter(None, [", ".join(texts[:-1]), texts[-1]])) if texts else "none"


def ways(names: Mapping[str, Sequence[object]], n: int | None = None) -> str:
    """Return where calibration is rejected, such as "too low in A and too high in B and C"."""
    return " and ".join(f"{way} in {joined(of, n)}" for way, of in names.items() if len(of))


def interval(estimate: IntervalEstimate) -> str:
    """Return an estimate with its interval as text."""
    value, low, high = (
        numbers.fixed(end, 2) for end in (estimate.value, estimate.low, estimate.high)
    )
    return f"{value} (95% interval {low} to {high})"


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of text, which ¶ divides, each in one line."""
    return [" ".join(part.split()) for part in text.split("¶") if part.strip()]


def lines(text: str) -> list[str]:
    """Return the lines of text that are not empty."""
    return [line.strip() for line in text.splitlines() if line.strip()]


FILTERS = {
    **{name: form for name, form in vars(numbers).items() if isinstance(form, FunctionType)},
    "counted": counted,
    "clauses": lambda text: "; ".join(lines(text)),
    "first_paragraph": lambda text: paragraphs(text)[0],
    "interval": interval,
    "is_finite": math.isfinite,
    "items": lambda text, n=None: joined(lines(text), n),
    "joined": joined,
    "quoted": repr,
    "rows": counted,
    "sentence": as_sentence,
    "skill_over": lambda loss, base: 1 - loss / base if base else math.nan,
    "ways": ways,
}
CONSTANTS = {
    "CALIBRATION_TEST_LEVEL": CALIBRATION_TEST_LEVEL,
    "MAX_P_VALUE": MAX_P_VALUE,
    "MAX_RATIO": MAX_RATIO,
    "MIN_EVENT_GROUPS": MIN_EVENT_GROUPS,
    "MIN_ROWS_A_SIDE": MIN_ROWS_A_SIDE,
    "NEW_SITE": NEW_SITE,
    "POOLED": POOLED,
    "RAW": RAW,
    "titles_of_updates": TITLES,
    "zip": zip,
}


@cache
def templates() -> Any:
    """Return the environment of the templates, each of which is compiled once."""
    jinja2 = needed("jinja2", "reports")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("vennforest.report"),
        autoescape=lambda name: name is not None and name.endswith(".html.j2"),
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= FILTERS
    environment.globals |= CONSTANTS
    return environment


def sentences_on(name: str, *values: Any, template: str = "sentences.txt.j2") -> list[str]:
    """Return the paragraphs of a macro of a template."""
    return paragraphs(getattr(templates().get_template(template).module, name)(*values))
