"""Evidence that a stream has changed, over its rows or over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest.plots._style import GREY, Display, named, plain, short, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

MOST_POINTS = 2000
"""Of longer streams the largest value of each stretch is drawn."""


class EvidenceDisplay(Display):
    """How evidence grows over a stream, with the level at which there is an alarm.

    Parameters
    ----------
    evidence : array-like of shape (n,), or dict of str to such
        After each row, above zero: what ``Monitor.update`` returned, of several by name.
    threshold : float, optional
        Where there is an alarm.
    times : array-like of shape (n,), optional
        Dates or numbers; None: rows are counted.
    began : int, optional
        Row to mark as where the change seems to have begun.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.
    lines_ : list of Line2D
        A line for each name.
    """

    lines_: list[Line2D]

    def __init__(
        self,
        evidence: Any,
        *,
        threshold: float | None = None,
        times: ArrayLike | None = None,
        began: int | None = None,
    ) -> None:
        self.evidence: dict[str, Any] = named(evidence, None, "Evidence")
        self.threshold = threshold
        self.times = times
        self.began = began

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw into the given axes, or those of a new figure."""
        self._begin(ax, (7.2, 3.4))
        self.lines_ = []
        for i, (name, given) in enumerate(self.evidence.items()):
            values = np.log10(np.maximum(np.asarray(given, dtype=np.float64), 1e-300))
            places, tops = _stretches(values)
            at = places if self.times is None else np.asarray(self.times)[places]
            look = style(i)
            self.lines_ += self.ax_.plot(
                at, tops, color=look.color, linestyle=look.linestyle, label=short(name)
            )
        if self.threshold is not None:
            self.ax_.axhline(np.log10(self.threshold), color=GREY, linestyle="--", linewidth=1)
            self.ax_.text(
                0.99,
                np.log10(self.threshold),
                f"alarm at {self.threshold:,.4g}",
                color=GREY,
                ha="right",
                va="bottom",
                transform=self.ax_.get_yaxis_transform(),
            )
        if self.began is not None:
            place = self.began if self.times is None else np.asarray(self.times)[self.began]
            self.ax_.axvline(place, color=style(1).color, linewidth=1)
        self.ax_.set_xlabel("Row of the stream" if self.times is None else "Time")
        self.ax_.set_ylabel("Evidence, powers of ten")
        if len(self.evidence) > 1:
            self.ax_.legend(frameon=False)
        plain(self.ax_)
        return self


def _stretches(values: Any) -> tuple[Any, Any]:
    """Return rows and values, of long streams the largest of each stretch."""
    n = len(values)
    if n <= MOST_POINTS:
        return np.arange(n), values
    edges = np.linspace(0, n, MOST_POINTS + 1).astype(int)[:-1]
    ends = np.append(edges[1:], n) - 1
    return ends, np.maximum.reduceat(values, edges)
