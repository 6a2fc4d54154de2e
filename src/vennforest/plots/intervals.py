"""Lower and upper probabilities, against the score or object by object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest.metrics import IntervalCurve, interval_curve
from vennforest.multiprobability import Multiprobability
from vennforest.plots._style import COLOURS, GREY, figure_of, new_axes, plain, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

FEW = 80
"""Up to so many objects each has a bar of its own."""


class IntervalDisplay:
    """Lower and upper probabilities in the order of the scores, or of the probabilities.

    Parameters
    ----------
    curve : IntervalCurve
        What ``vennforest.metrics.interval_curve`` returns.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of it.
    line_ : Line2D
        The probabilities between the bounds.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    line_: Line2D

    def __init__(self, curve: IntervalCurve) -> None:
        self.curve = curve

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike | None,
        m: Multiprobability,
        *,
        scores: ArrayLike | None = None,
        ax: Axes | None = None,
        title: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw intervals.

        Parameters
        ----------
        y : array-like of shape (n,) or None
            Observed labels, where they are known: ticks at the upper edge where the event
            happened, at the lower edge where it did not.
        m : Multiprobability
            Lower and upper probabilities of n objects.
        scores : array-like of shape (n,), optional
            With scores the bounds are drawn against them; without, the objects stand in the order
            of their probabilities.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        title : str, optional
            The title.
        **options
            Passed to ``vennforest.metrics.interval_curve``.

        Raises
        ------
        ValueError
            As ``interval_curve``.
        ImportError
            If matplotlib is not installed.
        """
        return cls(interval_curve(y, m, scores=scores, **options)).plot(ax=ax, title=title)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike | None = None, **options: Any
    ) -> Self:
        """Draw the intervals that a fitted classifier gives.

        Parameters
        ----------
        estimator : classifier
            Fitted; has ``predict_multiprobability``.
        X : array-like of shape (n, d)
            Objects.
        y : array-like of shape (n,), optional
            Their labels.
        **options
            Passed to ``from_predictions``.

        Raises
        ------
        ValueError
            As ``from_predictions``.
        TypeError
            If the classifier gives no multiprobabilities.
        """
        if not hasattr(estimator, "predict_multiprobability"):
            raise TypeError(
                "estimator must have predict_multiprobability, got "
                f"{type(estimator).__name__}: use a Venn or Venn–Abers method"
            )
        return cls.from_predictions(y, estimator.predict_multiprobability(X), **options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw the intervals.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default on a new figure.
        title : str, optional
            The title.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        curve = self.curve
        ax = new_axes(ax, (6.4, 4.2))
        self.ax_, self.figure_ = ax, figure_of(ax)
        few = len(curve.x) <= FEW
        if few or not curve.by_score:
            ax.vlines(
                curve.x,
                curve.low,
                curve.high,
                color=COLOURS[0],
                linewidth=2.2 if few else 0.9,
                alpha=0.55,
                label="Lower to upper",
            )
        else:
            ax.fill_between(
                curve.x,
                curve.low,
                curve.high,
                color=COLOURS[0],
                alpha=0.3,
                linewidth=0,
                label="Lower to upper",
            )
            for bound in (curve.low, curve.high):
                ax.plot(curve.x, bound, color=COLOURS[0], linewidth=0.7, alpha=0.8)
        self.line_ = ax.plot(
            curve.x,
            curve.p,
            color="black",
            linewidth=0 if few else 1.3,
            marker="o" if few else None,
            markersize=3.5,
            label="Probability",
        )[0]
        if curve.outcome is not None:
            self._draw_outcomes(curve.outcome)
        event = short(curve.event)
        what = "the predicted label" if curve.event == "predicted label" else repr(event)
        if curve.by_score:
            x_label = "Score"
        else:
            taken = "" if len(curve.x) == curve.n else f", {len(curve.x):,} of {curve.n:,} shown"
            x_label = f"Rows, sorted by probability{taken}"
        ax.set(xlabel=x_label, ylabel=f"Probability of {what}", ylim=(-0.06, 1.06))
        if title is not None:
            ax.set_title(title)
        plain(ax)
        if not curve.by_score:
            ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.legend(fontsize="small", loc="best", framealpha=0.85)
        return self

    def _draw_outcomes(self, outcome: Any) -> None:
        for value, at, color, label in (
            (1.0, 1.045, COLOURS[1], "It happened (top)"),
            (0.0, -0.045, GREY, "It did not (bottom)"),
        ):
            where = self.curve.x[outcome == value]
            ticks: dict[str, Any] = {"linestyle": "", "marker": "|", "color": color}
            self.ax_.plot(
                where,
                np.full(len(where), at),
                markersize=6,
                markeredgewidth=0.8,
                alpha=1.0 if len(self.curve.x) <= FEW else 0.5,
                clip_on=False,
                **ticks,
            )
            self.ax_.plot([], [], markersize=9, markeredgewidth=1.6, label=label, **ticks)
