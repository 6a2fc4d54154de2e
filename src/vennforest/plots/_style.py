"""What all plots share: colours, markers, axes, names of lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import shorten
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vennforest._messages import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D
    from matplotlib.text import Text

# Okabe & Ito (2008), in an order of falling contrast with white; yellow is left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
LINES: tuple[Any, ...] = ("-", "--", "-.", (0, (3, 1, 1, 1, 1, 1)), (0, (5, 1)), (0, (1, 1)))
GREY = "#767676"
LONGEST_NAME = 42


class Style(NamedTuple):
    """The look of a method, which differs from others with and without colour."""

    color: str
    marker: str
    linestyle: Any


def style(i: int) -> Style:
    """Return the look of the i-th method; colour, marker and line repeat at different lengths."""
    return Style(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i % len(LINES)])


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``, or raise an ``ImportError`` that says how to install it."""
    return needed("matplotlib.pyplot", "plots", "report")


class Display:
    """Where something was drawn.

    Attributes
    ----------
    ax_ : Axes
        The axes: those that were given, or of a new figure.
    figure_ : Figure
        Their figure.
    """

    ax_: Axes
    figure_: Figure | SubFigure

    def _begin(self, ax: Axes | None, size: tuple[float, float] = (5.2, 4.6)) -> Axes:
        """Return the given axes, or those of a new figure; raises as `pyplot`."""
        if ax is None:
            _, ax = pyplot().subplots(figsize=size, layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        return ax


def draw_line(ax: Axes, i: int, name: str, x: Any, y: Any, **more: Any) -> Line2D:
    """Draw the line of the i-th method."""
    look = style(i)
    return ax.plot(
        x,
        y,
        color=look.color,
        linestyle=look.linestyle,
        linewidth=1.6,
        label=short(name),
        **more,
    )[0]


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


def percents(*axes: Any) -> None:
    """Write the numbers of these axes (``ax.xaxis``, ``ax.yaxis``) as percentages."""
    for axis in axes:
        axis.set_major_formatter(lambda value, _: f"{100 * value:.4g}%")


MOST_NAMED = 6
"""Of more lines a legend beside the axes has the names."""

ANCHORS = 24
"""Places along a line at which its name is tried."""


def name_lines(ax: Axes, named: Sequence[tuple[str, Line2D]]) -> None:
    """Write each name at its line, in the line's colour, where it is clear of all lines.

    Of many lines, of which no name would find a place, a legend beside the axes has the names.
    """
    if len(named) > MOST_NAMED:
        lines, names = [line for _, line in named], [short(name) for name, _ in named]
        ax.legend(
            lines,
            names,
            loc="upper left",
            bbox_to_anchor=(1.02, 1),
            fontsize="small",
            frameon=False,
            handlelength=3.2,
        )
        return
    x, y = ax.get_xlim()[0], ax.get_ylim()[0]  # which a logarithmic axis has, unlike 0
    texts = [
        ax.text(x, y, short(name), color=line.get_color(), fontsize="small", ha="left", va="bottom")
        for name, line in named
    ]
    figure: Any = ax.figure.canvas.figure  # of a subfigure the whole
    figure.draw_without_rendering()  # what follows is in pixels
    every = [_in_pixels(line) for line in ax.lines if len(line.get_xdata())]  # type: ignore[arg-type]
    taken: list[NDArray[np.float64]] = []
    for text, (_, line) in zip(texts, named, strict=True):
        box = _free_place(ax, text, _in_pixels(line), every, taken)
        taken.append(box)
        x, y = ax.transData.inverted().transform(box[:2])
        text.set_position((float(x), float(y)))
        text.set_in_layout(False)


def _in_pixels(line: Line2D) -> NDArray[np.float64]:
    """Return points along a line, (n, 2), a few pixels apart."""
    corners: NDArray[np.float64] = line.get_transform().transform(line.get_xydata())
    corners = corners[np.isfinite(corners).all(axis=1)]
    if len(corners) < 2:
        return corners
    steps = np.append(0, np.hypot(*np.diff(corners, axis=0).T)).cumsum()
    at = np.linspace(0, steps[-1], max(2, min(400, int(steps[-1] / 3))))
    return np.column_stack([np.interp(at, steps, corners[:, j]) for j in (0, 1)])


def _free_place(
    ax: Axes,
    text: Text,
    line: NDArray[np.float64],
    every: Sequence[NDArray[np.float64]],
    taken: Sequence[NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Return where a name covers the least of lines and of other names: left, bottom, right, top.

    Of equally free places the one at which the other lines are farthest.
    """
    extent, inside = text.get_window_extent(), ax.get_window_extent()
    width, height = extent.width + 4, extent.height
    if not len(line):
        line = np.array([[inside.x0, inside.y0]])
    anchors = line[np.linspace(0, len(line) - 1, ANCHORS).astype(int)]
    left, below, middle = -6 - width, -5 - height, -width / 2
    sides = [(6, -height / 2), (left, -height / 2), (middle, 5), (middle, below)]
    moves = [*sides, (6, 3), (6, below), (left, 3), (left, below)]
    corner = (anchors[:, None] + np.array(moves)).reshape(-1, 2)
    boxes = np.column_stack([corner, corner + np.array([width, height])])
    points = np.concatenate(list(every))
    others = [one for one in every if one.shape != line.shape or not np.allclose(one, line)]
    x, y = points[:, 0], points[:, 1]
    covered = (x >= boxes[:, :1]) & (x <= boxes[:, 2:3])
    covered &= (y >= boxes[:, 1:2]) & (y <= boxes[:, 3:4])
    cost = 10.0 * covered.sum(axis=1)
    for begin, bottom, end, top in taken:
        cost += 1000.0 * (
            (boxes[:, 0] < end) & (boxes[:, 2] > begin)
            & (boxes[:, 1] < top) & (boxes[:, 3] > bottom)
        )  # fmt: skip
    outside = np.maximum(0, [inside.x0, inside.y0] - corner).sum(axis=1)
    outside += np.maximum(0, boxes[:, 2:] - [inside.x1, inside.y1]).sum(axis=1)
    cost += 100.0 * outside
    if others:
        gaps = ((boxes[:, :2] + boxes[:, 2:]) / 2)[:, None] - np.concatenate(others)
        cost -= np.minimum(np.hypot(gaps[..., 0], gaps[..., 1]).min(axis=1), 80.0)
    best: NDArray[np.float64] = boxes[int(cost.argmin())]
    return best


def named(values: Any, name: str | None, default: str) -> dict[str, Any]:
    """Return a mapping from names of methods: the given one, or one of a single method."""
    if isinstance(values, Mapping):
        if not values:
            raise ValueError("methods must contain at least one entry, got none")
        return {str(key): value for key, value in values.items()}
    return {default if name is None else name: values}
