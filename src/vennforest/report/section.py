"""A section of the page about one question: sentences, a table and a picture; pictures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

Columns = Sequence[tuple[str, str, str]]
"""Name in a data frame, title, and form (see `page.to_text`), for each column of a table."""


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture: size in inches, the function that draws it into axes of matplotlib, description.

    ``data`` is what is drawn, as a CSV beside the files of the picture has it.
    """

    size: tuple[float, float]
    paint: Callable[[Any], Any]
    alt: str
    data: pd.DataFrame | None = None


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
    picture : Picture or None
        What the sentences are about, drawn.
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
    picture: Picture | None = None
    finding: str = ""
    choice: str = ""
    advice: str = ""
