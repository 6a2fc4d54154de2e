"""Ranking and decisions of the positive class: ROC, precision-recall, gain, net benefit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import check_option
from vennforest.metrics import DecisionCurve, RankingCurves, decision_curve, ranking_curves
from vennforest.plots._style import (
    GREY,
    figure_of,
    name_lines,
    named,
    new_axes,
    percents,
    plain,
    short,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

Kind = Literal["roc", "precision-recall", "gain"]
"""What a ranking diagram shows."""

UNNAMED = "Estimates"


class RankingDisplay:
    """ROC, precision-recall or gain curves of one or several methods.

    Parameters
    ----------
    curves : dict of str to RankingCurves
        What ``vennforest.metrics.ranking_curves`` returns, by name of the method.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of it.
    lines_ : list of Line2D
        Every method's curve.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    lines_: list[Line2D]

    def __init__(self, curves: dict[str, RankingCurves]) -> None:
        self.curves = curves

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        p: Any,
        *,
        name: str | None = None,
        kind: Kind = "roc",
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the curves of estimates.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels.
        p : array-like of shape (n,) or (n, k), or dict of str to such
            Estimates of one method, or of several by name.
        name : str, optional
            What one method is called.
        kind : {"roc", "precision-recall", "gain"}
            What to draw.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **options
            Passed to ``vennforest.metrics.ranking_curves``.

        Raises
        ------
        ValueError
            As ``ranking_curves``, or if ``kind`` is unknown.
        ImportError
            If matplotlib is not installed.
        """
        methods = named(p, name, UNNAMED)
        curves = {key: ranking_curves(y, value, **options) for key, value in methods.items()}
        return cls(curves).plot(kind=kind, ax=ax)

    def plot(self, *, kind: Kind = "roc", ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        kind : {"roc", "precision-recall", "gain"}
            What to draw.
        ax : Axes, optional
            Where to draw; by default on a new figure.

        Raises
        ------
        ValueError
            If ``kind`` is unknown.
        ImportError
            If matplotlib is not installed.
        """
        check_option(kind, Kind, "kind")
        ax = new_axes(ax)
        self.ax_, self.figure_, self.lines_ = ax, figure_of(ax), []
        share = next(iter(self.curves.values())).share
        blind = [share, share] if kind == "precision-recall" else [0, 1]
        chance = ax.plot([0, 1], blind, color=GREY, linewidth=1, linestyle=":")[0]
        for i, (key, curve) in enumerate(self.curves.items()):
            look = style(i)
            x, y = {
                "roc": (curve.false_positive_rate, curve.true_positive_rate),
                "precision-recall": (curve.recall, curve.precision),
                "gain": (curve.depth, curve.gain),
            }[kind]
            self.lines_ += ax.plot(
                x,
                y,
                color=look.color,
                linestyle=look.linestyle,
                linewidth=1.6,
                drawstyle="steps-post" if kind == "precision-recall" else "default",
                label=short(key),
            )
        x_label, y_label = {
            "roc": ("False alarms among the others", "Found of the class (sensitivity)"),
            "precision-recall": ("Found of the class (recall)", "Right among those flagged"),
            "gain": ("Rows taken from the top of the ranking", "Found of the class"),
        }[kind]
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x_label, ylabel=y_label)
        percents(ax.xaxis, ax.yaxis)
        plain(ax)
        names = [*zip(self.curves, self.lines_, strict=True), ("random ranking", chance)]
        name_lines(ax, names)
        return self


class DecisionCurveDisplay:
    """Net benefit over thresholds, with the band between decisions at the two bounds.

    Parameters
    ----------
    curves : dict of str to DecisionCurve
        What ``vennforest.metrics.decision_curve`` returns, by name of the method.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of it.
    lines_ : list of Line2D
        Every method's curve.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    lines_: list[Line2D]

    def __init__(self, curves: dict[str, DecisionCurve]) -> None:
        self.curves = curves

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        p: Any,
        thresholds: ArrayLike | None = None,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the decision curves of estimates.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels.
        p : array-like of shape (n,) or (n, k), or dict of str to such
            Estimates of one method, or of several by name.
        thresholds : array-like of shape (t,), optional
            In (0, 1); by default 0.01, 0.02, … 0.99.
        name : str, optional
            What one method is called.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        **options
            Passed to ``vennforest.metrics.decision_curve``.

        Raises
        ------
        ValueError
            As ``decision_curve``.
        ImportError
            If matplotlib is not installed.
        """
        at = np.linspace(0.01, 0.99, 99) if thresholds is None else thresholds
        methods = named(p, name, UNNAMED)
        curves = {key: decision_curve(y, value, at, **options) for key, value in methods.items()}
        return cls(curves).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default on a new figure.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = new_axes(ax)
        self.ax_, self.figure_, self.lines_ = ax, figure_of(ax), []
        first = next(iter(self.curves.values()))
        nobody = ax.plot(
            first.threshold, 0 * first.threshold, color=GREY, linewidth=1, linestyle=":"
        )[0]
        everyone = ax.plot(
            first.threshold, first.everyone, color=GREY, linewidth=1, linestyle="--"
        )[0]
        for i, (key, curve) in enumerate(self.curves.items()):
            look = style(i)
            if curve.at_lower is not None and curve.at_upper is not None:
                ax.fill_between(
                    curve.threshold,
                    np.minimum(curve.at_lower, curve.at_upper),
                    np.maximum(curve.at_lower, curve.at_upper),
                    color=look.color,
                    alpha=0.2,
                    linewidth=0,
                )
            self.lines_ += ax.plot(
                curve.threshold,
                curve.net_benefit,
                color=look.color,
                linestyle=look.linestyle,
                linewidth=1.6,
                label=short(key),
            )
        most = max(float(np.max(curve.net_benefit)) for curve in self.curves.values())
        most = max(most, float(np.max(first.everyone)), 1e-12)
        ax.set(
            xlim=(0, float(first.threshold[-1])),
            ylim=(-0.12 * most, 1.08 * most),
            xlabel="Threshold from which a row is flagged",
            ylabel="Net benefit",
        )
        percents(ax.xaxis)
        plain(ax)
        names = [*zip(self.curves, self.lines_, strict=True)]
        name_lines(ax, [*names, ("flag everyone", everyone), ("flag nobody", nobody)])
        return self
