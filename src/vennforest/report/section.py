"""A section of the page about one question: sentences, a table and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

Columns = Sequence[tuple[str, str, str]]
"""Name in a data frame, title, and a form of `page.written`, for each column of a table."""


@dataclass(frozen=True, eq=False)
class Section:
    """A section of the page that follows the measures.

    Attributes
    ----------
    title, anchor : str
        The heading, and the section's name in links and in ``Evaluation.summary()``.
    sentences : sequence of str
        Paragraphs above the table.
    frame : data frame or None
        Numbers and text; its index names the rows and has a name. The columns ``key_low`` and
        ``key_high`` are the ends of the interval of ``key``.
    columns : sequence of (str, str, str)
        Columns of the frame that the page shows: name, title, and form ("count", "percent",
        "probability", "pvalue", "number", "short" or "text").
    paint : callable or None
        Draws the picture into matplotlib's axes.
    size : tuple of two floats
        Width and height of the picture in inches.
    caption : str
        Description of the picture.
    """

    title: str
    anchor: str
    sentences: Sequence[str]
    frame: pd.DataFrame | None = None
    columns: Columns = ()
    paint: Callable[[Any], Any] | None = None
    size: tuple[float, float] = (9.0, 3.4)
    caption: str = ""
