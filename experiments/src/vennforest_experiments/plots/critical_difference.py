"""Critical-difference diagrams: mean ranks of methods and which of them do not differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from vennforest._validation import FloatArray
from vennforest.plots._style import COLOURS, GREY, Display, short
from vennforest_experiments.comparison.ranks import Comparison, Test

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


class CriticalDifferenceDisplay(Display):
    """Mean ranks on a line, the best at the left, methods that do not differ under one bar.

    Parameters
    ----------
    mean_ranks : ndarray of shape (k,)
        In [1, k].
    names : sequence of k str
        The methods.
    critical_difference : float, optional
        Drawn to scale above the axis.
    groups : sequence of sequences of str
        Names of methods that do not differ, one group per bar.

    Attributes
    ----------
    ax_ : Axes
        The axes with the diagram.
    figure_ : Figure
        The figure of the axes.
    bars_ : list of Line2D
        The bars of the groups.

    Notes
    -----
    Demšar (2006), section 3.2.4.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    bars_: list[Any]

    def __init__(
        self,
        mean_ranks: FloatArray,
        names: Sequence[str],
        *,
        critical_difference: float | None = None,
        groups: Sequence[Sequence[str]] = (),
    ) -> None:
        self.mean_ranks, self.names = np.asarray(mean_ranks), list(names)
        self.critical_difference, self.groups = critical_difference, list(groups)

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, *, test: Test = "nemenyi", ax: Axes | None = None
    ) -> Self:
        """Draw the diagram of a comparison.

        Parameters
        ----------
        comparison : Comparison
            The result of `vennforest_experiments.comparison.compare`.
        test : {"nemenyi", "bergmann-hommel"}
            The test that decides which methods differ. Nemenyi's has a critical difference, which
            is shown.
        ax : Axes, optional
            Axes to draw on; by default those of a new figure.

        Returns
        -------
        CriticalDifferenceDisplay
        """
        return cls(
            comparison.mean_ranks,
            comparison.methods,
            critical_difference=comparison.critical_difference() if test == "nemenyi" else None,
            groups=comparison.groups(test),
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the diagram on ``ax``, or on a new figure."""
        k = len(self.names)
        order = np.argsort(self.mean_ranks, kind="stable")
        levels = self._levels()
        n_levels = max(levels, default=-1) + 1
        half = -(-k // 2)
        first = 0.7 + 0.35 * n_levels
        depth = first + 0.55 * half
        longest = max(len(short(name)) for name in self.names)
        ax = self._begin(ax, (5.0 + 0.14 * (longest + 6), 1.2 + 0.36 * (depth + 1.2)))
        lowest, highest = 1, max(k, 2)
        ax.set(xlim=(lowest, highest), ylim=(depth, -1.9))
        ax.axis("off")
        ax.hlines(0, lowest, highest, color="black", linewidth=1.2)
        for rank in range(lowest, highest + 1):
            ax.vlines(rank, -0.18, 0, color="black", linewidth=1)
            ax.text(rank, -0.3, str(rank), ha="center", va="bottom", fontsize="small")
        ax.text(lowest, -1.05, "Mean rank (1 is best)", ha="left", va="bottom", fontsize="small")
        for place, i in enumerate(order):
            left = place < half
            row = first + 0.55 * (place if left else k - 1 - place)
            self._draw_name(ax, i, row, left=left)
        self.bars_ = [
            self._draw_bar(ax, group, level)
            for group, level in zip(self.groups, levels, strict=True)
        ]
        if self.critical_difference is not None:
            self._draw_difference(ax, highest, min(self.critical_difference, highest - lowest))
        return self

    def _ends(self, group: Sequence[str]) -> tuple[float, float]:
        ranks = [self.mean_ranks[self.names.index(name)] for name in group]
        return float(min(ranks)), float(max(ranks))

    def _levels(self) -> list[int]:
        """Return a height for each group, the lowest at which it meets no other."""
        taken: list[list[tuple[float, float]]] = []
        levels = []
        for group in self.groups:
            low, high = self._ends(group)
            level = 0
            while level < len(taken) and any(
                low <= b + 0.1 and a - 0.1 <= high for a, b in taken[level]
            ):
                level += 1
            if level == len(taken):
                taken.append([])
            taken[level].append((low, high))
            levels.append(level)
        return levels

    def _draw_name(self, ax: Axes, i: Any, row: float, *, left: bool) -> None:
        rank = float(self.mean_ranks[i])
        edge = 0.0 if left else 1.0
        ax.vlines(rank, 0, row, color=GREY, linewidth=0.9)
        transform = ax.get_yaxis_transform()
        ax.annotate(
            "",
            (rank, row),
            xytext=(edge, row),
            textcoords=transform,
            arrowprops={"arrowstyle": "-", "color": GREY, "linewidth": 0.9, "shrinkA": 0,
                        "shrinkB": 0},
        )  # fmt: skip
        name, value = short(self.names[i]), f"{rank:.2f}"
        ax.text(
            edge + (-0.01 if left else 0.01),
            row,
            f"{name}  {value}" if left else f"{value}  {name}",
            transform=transform,
            ha="right" if left else "left",
            va="center",
            fontsize="small",
        )

    def _draw_bar(self, ax: Axes, group: Sequence[str], level: int) -> Any:
        low, high = self._ends(group)
        return ax.plot(
            [low - 0.04, high + 0.04],
            [0.4 + 0.35 * level] * 2,
            color=COLOURS[0],
            linewidth=4,
            solid_capstyle="round",
            zorder=4,
            clip_on=False,
        )[0]

    def _draw_difference(self, ax: Axes, highest: float, length: float) -> None:
        start = highest - length
        ax.plot([start, highest], [-1.35, -1.35], color="black", linewidth=1.4, marker="|")
        ax.text(
            (start + highest) / 2,
            -1.5,
            f"critical difference {self.critical_difference:.2f}",
            ha="center",
            va="bottom",
            fontsize="small",
        )
