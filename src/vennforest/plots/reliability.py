"""Reliability diagrams: observed frequencies against probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest.metrics import ReliabilityCurve, reliability_curve
from vennforest.plots._style import (
    GREY,
    MAX_NAMES_INSIDE,
    draw_line,
    legend,
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

UNNAMED = "Estimates"


class ReliabilityDisplay:
    """Reliability diagram of one or several methods, with the histogram of the estimates below.

    Dots are bins: mean estimate against observed share, their size the number of observations.
    The line is the CORP curve, the isotonic regression of the outcomes on the estimates. The grey
    band is the range of that curve for calibrated estimates.

    Parameters
    ----------
    curves : dict of str to ReliabilityCurve
        Return values of ``vennforest.metrics.reliability_curve``, by name of the method.

    Attributes
    ----------
    ax_, figure_, ax_histogram_
        The diagram, and the histogram below it (None without).
    lines_, line_
        The CORP curve of every method, and that of the first.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    ax_histogram_: Axes | None
    lines_: list[Line2D]
    line_: Line2D

    def __init__(self, curves: dict[str, ReliabilityCurve]) -> None:
        self.curves = curves

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        p: Any,
        *,
        name: str | None = None,
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Draw the diagram of estimates.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels.
        p : array-like of shape (n,) or (n, k), or dict of str to such
            Estimates of one method, or of several by name. With more than two classes and no
            ``pos_label``, the diagram shows the confidence in the predicted label.
        name, ax
            Name of a single method, and axes, by default of a new figure.
        plot_options, **options
            Passed to ``plot`` and to ``vennforest.metrics.reliability_curve``.

        Raises
        ------
        ValueError
            As ``reliability_curve``.
        """
        methods = p if isinstance(p, Mapping) else {name or UNNAMED: p}
        curves = {key: reliability_curve(y, value, **options) for key, value in methods.items()}
        return cls(curves).plot(ax=ax, **(plot_options or {}))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, **options: Any
    ) -> Self:
        """Draw the diagram of fitted classifiers.

        Parameters
        ----------
        estimator : classifier, or dict of str to classifier
            Fitted, with ``predict_proba`` and ``classes_``.
        X : array-like of shape (n, d)
            Objects that the classifiers were not trained on.
        y : array-like of shape (n,)
            Their labels.
        name, **options
            As for ``from_predictions``; the default name is that of the class.
        """
        models = estimator
        if not isinstance(estimator, Mapping):
            models = {name or type(estimator).__name__: estimator}
        p = {key: model.predict_proba(X) for key, model in models.items()}
        classes = next(iter(models.values())).classes_
        return cls.from_predictions(y, p, **{"classes": classes, **options})

    def plot(
        self,
        *,
        ax: Axes | None = None,
        band: bool | None = None,
        histogram: bool = True,
        title: str | None = None,
        log: bool = False,
    ) -> Self:
        """Draw the diagram.

        Parameters
        ----------
        ax : Axes, optional
            By default of a new figure. The histogram is below them; a figure with
            ``layout="constrained"`` leaves space for it.
        band : bool, optional
            Whether to show the consistency band of the first method; by default that of a single
            one.
        histogram : bool
            Whether to show how the estimates are distributed.
        title : str, optional
            By default the name of a single method.
        log : bool
            Whether both axes are logarithmic, for a rare event; then shares of 0 and the histogram
            are not shown.
        """
        histogram = histogram and not log
        width = 5.2 if len(self.curves) < MAX_NAMES_INSIDE else 8.4
        self.ax_ = ax = new_axes((width, 6.0 if histogram else 5.0)) if ax is None else ax
        self.figure_ = ax.figure
        first = next(iter(self.curves.values()))
        if len(first.band_estimate) and (band or (band is None and len(self.curves) == 1)):
            look: dict[str, Any] = {"color": "0.75", "alpha": 0.45, "linewidth": 0, "zorder": 1}
            ax.fill_between(first.band_estimate, first.band_low, first.band_high, **look)
        ideal = ax.plot([0, 1], [0, 1], color=GREY, linewidth=1, linestyle=":")[0]
        self.lines_ = []
        for i, (key, values) in enumerate(self.curves.items()):
            self.lines_.append(
                draw_line(ax, i, key, values.corp_estimate, values.corp_share, zorder=3)
            )
            self._draw_bins(values, i)
        self.line_ = self.lines_[0]
        x_label, y_label = _axis_labels(first.event)
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x_label, ylabel=y_label)
        if not histogram:  # the layout would lose a histogram below a square
            ax.set_aspect("equal", adjustable="box")
        if log:
            self._draw_log()
        else:
            ax.set(xticks=np.linspace(0, 1, 6), yticks=np.linspace(0, 1, 6))
            percents(ax.xaxis, ax.yaxis)
        plain(ax)
        if title is None:
            name = next(iter(self.curves)) if len(self.curves) == 1 else UNNAMED
            title = "Reliability diagram" if name == UNNAMED else short(name)
        ax.set_title(title)
        self.ax_histogram_ = self._draw_histogram(x_label) if histogram else None
        lines = dict(zip(self.curves, self.lines_, strict=True))
        legend(ax, [*lines.items(), ("perfectly calibrated", ideal)])
        return self

    def _draw_log(self) -> None:
        """Show the estimates from half the smallest bin's to 1, by powers of ten."""
        estimates = np.concatenate([curve.bin_estimate for curve in self.curves.values()])
        smallest = min(float(estimates[estimates > 0].min(initial=0.1)) / 2, 0.1)
        ax = self.ax_
        ax.set_xscale("log", nonpositive="mask")
        ax.set_yscale("log", nonpositive="mask")
        ax.set(xlim=(smallest, 1.1), ylim=(smallest, 1.1))
        ax.plot([smallest, 1], [smallest, 1], color=GREY, linewidth=1, linestyle=":")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter(lambda x, _: f"{100 * x:g}%")
            axis.set_minor_formatter("")
        for points in ax.collections:  # bins with a share of 0 would be drawn outside of the axes
            points.set_clip_on(True)

    def _draw_bins(self, values: ReliabilityCurve, i: int) -> None:
        look = style(i)
        self.ax_.scatter(
            values.bin_estimate,
            values.bin_share,
            s=14 + 110 * values.bin_weight / values.bin_weight.sum(),
            marker=look.marker,
            facecolor="white",
            edgecolor=look.color,
            linewidth=1.4,
            zorder=4,
            clip_on=False,
        )

    def _draw_histogram(self, label: str) -> Axes:
        below = self.ax_.inset_axes((0, -0.26, 1, 0.2))
        for i, values in enumerate(self.curves.values()):
            look = style(i)
            edges = np.linspace(0, 1, len(values.histogram) + 1)
            below.stairs(
                values.histogram,
                edges,
                color=look.color,
                linestyle=look.linestyle,
                fill=i == 0,
                alpha=0.6 if i == 0 else 1.0,
                linewidth=1.3,
            )
        below.set(xlim=self.ax_.get_xlim(), ylim=(0, None), xlabel=label, ylabel="Rows")
        below.set_xticks(np.linspace(0, 1, 6))
        percents(below.xaxis, below.yaxis)
        below.locator_params(axis="y", nbins=3)
        self.ax_.set_xlabel("")
        self.ax_.tick_params(labelbottom=False)
        plain(below)
        return below


def _axis_labels(event: str) -> tuple[str, str]:
    if event == "predicted label":
        return "Predicted probability that the label is right", "Labels that were right"
    name = f"“{short(event)}”"
    return f"Predicted probability of {name}", f"How often {name} was observed"
