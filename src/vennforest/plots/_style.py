"""Colours, markers and axes that all plots share."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Okabe & Ito (2008), in an order of falling contrast with white; yellow is left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", (0, (3, 1, 1, 1, 1, 1)), (0, (5, 1)), (0, (1, 1)))
GREY = "#767676"
LONGEST_NAME = 42


class Style(NamedTuple):
    """What tells one method from another, with and without colour."""

    color: str
    marker: str
    linestyle: Any


def style(i: int) -> Style:
    """Return the look of the i-th method; colour, marker and line repeat at different lengths."""
    return Style(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i % len(LINES)])


def new_axes(ax: Axes | None, size: tuple[float, float] = (5.2, 4.6)) -> Axes:
    """Return the given axes, or those of a new figure.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    if ax is not None:
        return ax
    _, axes = pyplot().subplots(figsize=size, layout="constrained")
    return axes  # type: ignore[no-any-return]


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``, imported at the first plot only.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as missing:
        raise ImportError(
            "plots need matplotlib: install it with pip install 'vennforest[report]'"
        ) from missing
    return plt


def figure_of(ax: Axes) -> Figure | SubFigure:
    """Return the figure that axes belong to."""
    return ax.figure


def short(name: Any) -> str:
    """Return a name that fits a legend or a tick."""
    text = str(name)
    one_word = text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"
    return shorten(text, LONGEST_NAME, placeholder=" …") if " " in text else one_word


def plain(ax: Axes) -> None:
    """Take off what carries no information, and put a light grid below the data."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(visible=True, color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)


def named(values: Any, name: str | None, default: str) -> dict[str, Any]:
    """Return a mapping from names of methods: the given one, or one of a single method."""
    if isinstance(values, Mapping):
        if not values:
            raise ValueError("methods must hold at least one entry, got none")
        return {str(key): value for key, value in values.items()}
    return {default if name is None else name: values}
