"""Probabilities with bounds and confidence intervals, object by object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest.calibrators.intervals import ConfidenceIntervals
from vennforest.metrics import IntervalCurve, interval_curve
from vennforest.multiprobability import Multiprobability
from vennforest.plots._style import COLOURS, GREY, legend, new_axes, percents, plain, short, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

MAX_SINGLE_BARS = 80
"""Maximum number of objects that are drawn as bars of their own."""

OUTCOME_TICKS = (
    (1.0, 1.045, COLOURS[1], "It happened (top)"),
    (0.0, -0.045, GREY, "It did not (bottom)"),
)
"""Outcomes, the height of their ticks, colours and names."""


class IntervalDisplay:
    """Probabilities with Venn–Abers bounds and confidence intervals, sorted by probability.

    Bounds are thick, confidence intervals thin: the bounds show the effect of one more label, the
    confidence interval the uncertainty of the frequency among cases with such a score.

    Parameters
    ----------
    curve : IntervalCurve
        The return value of ``vennforest.metrics.interval_curve``.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
    line_ : Line2D
        The probabilities.
    bounds_, confidence_ : Collection
        The bounds, and the confidence intervals (None if there are none).
    """

    ax_: Axes
    figure_: Figure | SubFigure
    line_: Line2D
    bounds_: Collection
    confidence_: Collection | None

    def __init__(self, curve: IntervalCurve) -> None:
        self.curve = curve

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike | None,
        m: Multiprobability,
        *,
        confidence: ConfidenceIntervals | None = None,
        ax: Axes | None = None,
        title: str | None = None,
        **options: Any,
    ) -> Self:
        """Draw probabilities with their bounds and confidence intervals.

        Parameters
        ----------
        y : array-like of shape (n,) or None
            Observed labels: ticks at the upper edge where the event happened, at the lower edge
            where it did not.
        m : Multiprobability
            Lower and upper probabilities of n objects.
        confidence : ConfidenceIntervals, optional
            Confidence intervals of the same objects, from ``predict_confidence``.
        ax, title, **options
            Axes, by default of a new figure, title, and further arguments of
            ``vennforest.metrics.interval_curve``, such as the probabilities ``p`` (n, k).

        Raises
        ------
        ValueError
            For the same reasons as ``interval_curve``.
        """
        curve = interval_curve(y, m, confidence=confidence, **options)
        return cls(curve).plot(ax=ax, title=title)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike | None = None, **options: Any
    ) -> Self:
        """Draw the probabilities, bounds and confidence intervals of a fitted classifier.

        Parameters
        ----------
        estimator : CalibratedClassifier
            Fitted, with a method that has bounds.
        X, y, **options
            Objects, array-like of shape (n, d), and as for ``from_predictions``.
        """
        options = {"p": estimator.predict_proba(X), **options}
        if hasattr(estimator, "predict_confidence"):
            options = {"confidence": estimator.predict_confidence(X), **options}
        return cls.from_predictions(y, estimator.predict_multiprobability(X), **options)

    def plot(self, *, ax: Axes | None = None, title: str | None = None) -> Self:
        """Draw the intervals; parameters and errors as for ``from_predictions``."""
        curve = self.curve
        self.ax_ = ax = new_axes((6.4, 4.2)) if ax is None else ax
        self.figure_ = ax.figure
        as_bars = len(curve.x) <= MAX_SINGLE_BARS
        self.confidence_, width, name = None, (2.2 if as_bars else 0.9), "Lower to upper"
        if curve.confidence is not None:
            level = f"{100 * (curve.level or 0):g}% confidence interval"
            look: dict[str, Any] = {"color": COLOURS[2], "alpha": 0.6, "label": level}
            self.confidence_ = ax.vlines(curve.x, *curve.confidence, linewidth=0.9, **look)
            width, name = (4.5 if as_bars else 1.8), "Venn–Abers bounds"
        look = {"color": COLOURS[0], "alpha": 0.7, "label": name}
        self.bounds_ = ax.vlines(curve.x, curve.low, curve.high, linewidth=width, **look)
        self.line_ = ax.plot(
            curve.x,
            curve.p,
            color="black",
            linewidth=0 if as_bars else 1.3,
            marker="o" if as_bars else None,
            markersize=3.5,
            label="Probability",
        )[0]
        for value, at, color, label in () if curve.outcome is None else OUTCOME_TICKS:
            x = curve.x[curve.outcome == value]
            look = {"marker": "|", "color": color, "label": label, "alpha": 1.0 if as_bars else 0.5}
            ax.plot(x, np.full(len(x), at), ls="", clip_on=False, **look)
        is_of_label = curve.event == "predicted label"
        event_name = "the predicted label" if is_of_label else f"“{short(curve.event)}”"
        subset = "" if len(curve.x) == curve.n else f", {len(curve.x):,} of {curve.n:,} shown"
        x_label = wrapped(ax, f"Rows, sorted by probability{subset}")
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.set(
            xlabel=x_label, ylabel=wrapped(ax, f"Probability of {event_name}"), ylim=(-0.06, 1.06)
        )
        percents(ax.yaxis)
        plain(ax)
        handles, labels = ax.get_legend_handles_labels()
        legend(ax, list(zip(labels, handles, strict=True)), title or "")
        return self
