"""A section of the page about one question: sentences, a table and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

Columns = Sequence[tuple[str, str, str]]
"""Name in a data frame, title, and form (see `page.to_text`), for each column of a table."""


@dataclass(frozen=True, eq=False)
class Section:
    """A section of the page that follows the measures.

    Attributes
    ----------
    title, anchor, sentences : str, str, sequence of str
        Heading, name in links and in ``Evaluation.summary()``, and paragraphs.
    frame, columns : data frame, sequence of (str, str, str)
        Numbers and text, with a named index; and name, title and form ("count", "percent",
        "probability", "pvalue", "number", "short" or "text") of each column that the page shows.
        ``key_low`` and ``key_high`` are the ends of the interval of ``key``.
    paint, size, caption : callable, tuple of two floats, str
        Function that draws the picture into axes of matplotlib, size in inches, and description.
    finding, choice : str, str
        Where calibration is rejected, as a clause; and the update that tests choose. "": nothing.
    advice : str
        A sentence on a better model, which follows that of the verdict; "": none.
    """

    title: str
    anchor: str
    sentences: Sequence[str]
    frame: pd.DataFrame | None = None
    columns: Columns = ()
    paint: Callable[[Any], Any] | None = None
    size: tuple[float, float] = (9.0, 3.4)
    caption: str = ""
    finding: str = ""
    choice: str = ""
    advice: str = ""
