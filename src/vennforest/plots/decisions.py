"""Ranking and decisions of the positive class: ROC, precision-recall, gain, net benefit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import check_option
from vennforest.metrics import DecisionCurve, RankingCurves, decision_curve, ranking_curves
from vennforest.plots._style import (
    GREY,
    MethodsDisplay,
    name_lines,
    percents,
    plain,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Kind = Literal["roc", "precision-recall", "gain"]
"""What a ranking diagram shows."""


class RankingDisplay(MethodsDisplay):
    """ROC, precision-recall or gain curves of one or several methods.

    Parameters
    ----------
    curves : dict of str to RankingCurves
        What ``vennforest.metrics.ranking_curves`` returns, by name of the method.

    Attributes
    ----------
    ax_, figure_, lines_
        Where it was drawn, and every method's curve.
    """

    curves: dict[str, RankingCurves]

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
        y, p, name, ax
            As for ``ReliabilityDisplay.from_predictions``.
        kind : {"roc", "precision-recall", "gain"}
            What to draw.
        **options
            Passed to ``vennforest.metrics.ranking_curves``.

        Raises
        ------
        ValueError
            As ``ranking_curves``, or if ``kind`` is unknown.
        """
        new = cls._of(p, name, lambda value: ranking_curves(y, value, **options))
        return new.plot(kind=kind, ax=ax)

    def plot(self, *, kind: Kind = "roc", ax: Axes | None = None) -> Self:
        """Draw the curves; parameters and errors as for ``from_predictions``."""
        check_option(kind, Kind, "kind")
        ax, self.lines_ = self._begin(ax), []
        share = next(iter(self.curves.values())).share
        blind = [share, share] if kind == "precision-recall" else [0, 1]
        chance = ax.plot([0, 1], blind, color=GREY, linewidth=1, linestyle=":")[0]
        for i, curve in enumerate(self.curves.values()):
            x, y = {
                "roc": (curve.false_positive_rate, curve.true_positive_rate),
                "precision-recall": (curve.recall, curve.precision),
                "gain": (curve.depth, curve.gain),
            }[kind]
            steps = "steps-post" if kind == "precision-recall" else "default"
            self._draw(i, x, y, drawstyle=steps)
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


class DecisionCurveDisplay(MethodsDisplay):
    """Net benefit over thresholds, with the band between decisions at the two bounds.

    Parameters
    ----------
    curves : dict of str to DecisionCurve
        What ``vennforest.metrics.decision_curve`` returns, by name of the method.

    Attributes
    ----------
    ax_, figure_, lines_
        Where it was drawn, and every method's curve.
    """

    curves: dict[str, DecisionCurve]

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
        y, p, name, ax
            As for ``ReliabilityDisplay.from_predictions``.
        thresholds : array-like of shape (t,), optional
            In (0, 1); by default 0.01, 0.02, … 0.99.
        **options
            Passed to ``vennforest.metrics.decision_curve``.

        Raises
        ------
        ValueError
            As ``decision_curve``.
        """
        at = np.linspace(0.01, 0.99, 99) if thresholds is None else thresholds
        new = cls._of(p, name, lambda value: decision_curve(y, value, at, **options))
        return new.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw the curves on the axes, by default those of a new figure."""
        ax, self.lines_ = self._begin(ax), []
        first = next(iter(self.curves.values()))
        nobody = ax.plot(
            first.threshold, 0 * first.threshold, color=GREY, linewidth=1, linestyle=":"
        )[0]
        everyone = ax.plot(
            first.threshold, first.everyone, color=GREY, linewidth=1, linestyle="--"
        )[0]
        for i, curve in enumerate(self.curves.values()):
            if curve.at_lower is not None and curve.at_upper is not None:
                ax.fill_between(
                    curve.threshold,
                    np.minimum(curve.at_lower, curve.at_upper),
                    np.maximum(curve.at_lower, curve.at_upper),
                    color=style(i).color,
                    alpha=0.2,
                    linewidth=0,
                )
            self._draw(i, curve.threshold, curve.net_benefit)
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
        name_lines(ax, [*names, ("flag everyone", everyone), ("flag no one", nobody)])
        return self
