"""Colours, markers, axes and legends of all plots."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill, shorten
from typing import TYPE_CHECKING, Any, NamedTuple

from vennforest._messages import needed

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

# Okabe & Ito (2008), in an order of falling contrast with white; yellow is left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", (0, (3, 1, 1, 1, 1, 1)), (0, (5, 1)), (0, (1, 1)))
GREY = "#767676"
MAX_NAME_LENGTH = 42
"""Characters of a name in a legend or at a tick."""
MAX_NAMES_INSIDE = 6
"""Maximum number of entries of a legend inside the axes."""


class Style(NamedTuple):
    """Colour, marker and line of a method, distinct in colour and in black and white."""

    color: str
    marker: str
    linestyle: Any


def style(i: int) -> Style:
    """Return the style of the i-th method."""
    return Style(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i % len(LINES)])


def new_axes(size: tuple[float, float]) -> Axes:
    """Return the axes of a new figure."""
    pyplot = needed("matplotlib.pyplot", "plots")
    axes: Axes = pyplot.subplots(figsize=size, layout="constrained")[1]
    return axes


def draw_line(ax: Axes, i: int, name: str, x: Any, y: Any, **options: Any) -> Line2D:
    """Draw the line of the i-th method."""
    color, _, linestyle = style(i)
    return ax.plot(x, y, color=color, ls=linestyle, lw=1.6, label=short(name), **options)[0]


def short(name: Any) -> str:
    """Return a name shortened to fit a legend or a tick."""
    text = str(name)
    if " " in text:
        return shorten(text, MAX_NAME_LENGTH, placeholder=" …")
    return text if len(text) <= MAX_NAME_LENGTH else text[: MAX_NAME_LENGTH - 1] + "…"


def plain(ax: Axes) -> None:
    """Hide the upper and right spines, and draw a light grid below the data."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.grid(visible=True, color="0.9", linewidth=0.6)
    ax.set_axisbelow(True)


def percents(*axes: Any) -> None:
    """Write the numbers of these axes (``ax.xaxis``, ``ax.yaxis``) as percentages."""
    for axis in axes:
        axis.set_major_formatter(lambda value, _: f"{100 * value:.4g}%")


def wrapped(ax: Axes, text: str) -> str:
    """Return a label in lines that fit the width of the figure."""
    from matplotlib import rcParams

    width, size = 72 * ax.figure.bbox.width / ax.figure.dpi, float(rcParams["font.size"])
    return fill(text, max(20, int(0.85 * width / (0.55 * size))))  # letters: about half as wide


def legend(ax: Axes, entries: Sequence[tuple[str, Artist]], title: str = "") -> None:
    """Add the title and a legend of named lines.

    The legend is inside the axes; above them without a title, and beside them if it is long. A
    figure with ``layout="constrained"`` leaves space for it.
    """
    position: Any = {"loc": "best", "framealpha": 0.85}
    if not title:
        position = {"loc": "lower left", "bbox_to_anchor": (0, 1), "frameon": False}
    if len(entries) > MAX_NAMES_INSIDE:
        position = {"loc": "upper left", "bbox_to_anchor": (1.02, 1), "frameon": False}
    names, lines = zip(*entries, strict=True)
    ax.set_title(title)
    ax.legend(lines, names, fontsize="small", handlelength=2.2, **position)
