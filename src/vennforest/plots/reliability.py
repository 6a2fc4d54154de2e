"""Reliability diagrams: observed frequencies against probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest._class_columns import class_probabilities
from vennforest._validation import FloatArray
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
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D

UNNAMED = "Estimates"

AXIS_ENDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 1.0)
"""Upper ends of axes; lower ends are these subtracted from 1."""

N_HISTOGRAM_BARS = 40


class ReliabilityDisplay:
    """Reliability diagram of one or several methods, with the distribution of estimates below.

    Each dot is a group of equally many rows: mean estimate against observed share. The line is a
    smooth curve with a pointwise confidence band, or with another ``band`` of ``reliability_curve``
    the CORP curve, the isotonic regression of outcomes on estimates. Confidence intervals, band,
    observed over expected, calibration intercept, slope and C (AUC) are shown for the first method
    only, as is the distribution: bars up for rows where the event happened, bars down for the
    others, each with its own scale. Axes contain the dots, their intervals, and 98% of the
    estimates.

    Parameters
    ----------
    curves : dict of str to ReliabilityCurve
        Return values of ``vennforest.metrics.reliability_curve``, by name of the method.

    Attributes
    ----------
    ax_, figure_, ax_histogram_
        The diagram, and the distribution below it (None if not drawn).
    lines_, line_
        The curve of every method, and that of the first.
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
        """Draw the reliability diagram of estimates.

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
            For the same reasons as ``reliability_curve``.
        """
        methods = p if isinstance(p, Mapping) else {name or UNNAMED: p}
        curves = {key: reliability_curve(y, value, **options) for key, value in methods.items()}
        return cls(curves).plot(ax=ax, **(plot_options or {}))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, **options: Any
    ) -> Self:
        """Draw the reliability diagram of fitted classifiers.

        Parameters
        ----------
        estimator : classifier, or dict of str to classifier
            Fitted, with ``predict_proba`` and ``classes_``.
        X : array-like of shape (n, d)
            Objects that the classifiers were not trained on.
        y : array-like of shape (n,)
            Labels of the objects.
        name, **options
            As for ``from_predictions``; the default name is that of the class.
        """
        models = estimator
        if not isinstance(estimator, Mapping):
            models = {name or type(estimator).__name__: estimator}
        p = {key: class_probabilities(model, X)[0] for key, model in models.items()}
        classes = np.unique(next(iter(models.values())).classes_)
        return cls.from_predictions(y, p, **{"classes": classes, **options})

    def plot(
        self,
        *,
        ax: Axes | None = None,
        band: bool = True,
        statistics: bool = True,
        histogram: bool = True,
        title: str | None = None,
        log: bool = False,
        limits: tuple[float, float] | None = None,
    ) -> Self:
        """Draw the reliability diagram.

        Parameters
        ----------
        ax : Axes, optional
            Axes of the diagram, by default of a new figure. The distribution is drawn below them;
            a figure with ``layout="constrained"`` leaves space for it.
        band, statistics, histogram : bool
            Whether to show the band, observed over expected with intercept, slope and C, and the
            distribution, all of the first method.
        title : str, optional
            Title; by default the name of the method if there is only one.
        log : bool
            Whether both axes are logarithmic, for a rare event; shares of 0 are at the lower edge.
        limits : (float, float), optional
            Where both axes begin and end, by default so that they contain all groups of rows;
            above 0 where they are logarithmic.
        """
        width = 5.2 if len(self.curves) < MAX_NAMES_INSIDE else 8.4
        self.ax_ = ax = new_axes((width, 6.0 if histogram else 5.0)) if ax is None else ax
        self.figure_ = ax.figure
        first = next(iter(self.curves.values()))
        low, high = self._limits(log) if limits is None else limits
        ideal = ax.plot([low, high], [low, high], color=GREY, linewidth=1, linestyle=":")[0]
        has_band = bool(band and len(first.band_estimate))
        self._draw_curves(low, has_band)
        x_label, y_label = "Predicted probability that the label is right", "Labels that were right"
        if first.event != "predicted label":
            name = f"“{short(first.event)}”"
            x_label, y_label = f"Predicted probability of {name}", f"How often {name} was observed"
        if log:
            ax.set(xscale="log", yscale="log")
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_minor_formatter("")
        ax.set(xlim=(low, high), ylim=(low, high), ylabel=wrapped(ax, y_label))
        percents(ax.xaxis, ax.yaxis)
        plain(ax)
        if title is None:
            name = next(iter(self.curves)) if len(self.curves) == 1 else UNNAMED
            title = "Reliability diagram" if name == UNNAMED else short(name)
        self.ax_histogram_ = None
        if histogram:
            self.ax_histogram_ = self._draw_histogram(first, x_label, log)
        else:  # the layout would lose a histogram below a square
            ax.set_xlabel(wrapped(ax, x_label))
            ax.set_aspect("equal", adjustable="box")
        entries = [(short(name), line) for name, line in zip(self.curves, self.lines_, strict=True)]
        if statistics:
            marks = [f"dots: {len(first.bin_share)} groups of rows"]
            marks += [f"bars{', band' * has_band}: {100 * first.level:g}% intervals"]
            line = first.line
            titles: dict[str, Any] = {"O/E": line.observed_expected, "intercept": line.intercept}
            titles |= {"slope": line.slope} | ({} if first.auc is None else {"C": first.auc})
            for name, of in titles.items():
                if np.isfinite([of.value, of.low]).all():
                    text = f"{name} {of.value:.2f} ({of.low:.2f} to {of.high:.2f})"
                    marks.append(text.replace("-0.00", "0.00").replace("-", "−"))
            entries[0] = "\n".join([entries[0][0], *marks]), entries[0][1]
        legend(ax, [*entries, ("perfectly calibrated", ideal)], title)
        root: Any = ax.figure.figure
        for _ in range(2):  # what is below the axes shrinks with them: the layout converges
            root.draw_without_rendering()
        return self

    def _limits(self, log: bool) -> tuple[float, float]:
        """Return where both axes begin and end."""
        curves = self.curves.values()
        values = np.concatenate([v for c in curves for v in (c.bin_estimate, c.bin_share)])
        first = next(iter(curves))
        if log:
            estimates = np.concatenate([c.bin_estimate for c in curves])
            powers = np.log10([estimates[estimates > 0].min(initial=0.1), values.max()])
            return float(10 ** np.floor(powers[0])), float(10 ** np.ceil(powers[1]))
        rank = np.cumsum(first.positives + first.negatives)
        ends = first.estimate[np.searchsorted(rank, rank[-1] * np.array([0.01, 0.99]))]
        values = np.concatenate([values, first.bin_low, first.bin_high, ends])
        ends = np.array(AXIS_ENDS)
        high = ends[np.searchsorted(ends, min(np.nanmax(values), 1.0))]
        return 1 - ends[np.searchsorted(ends, min(1 - np.nanmin(values), 1.0))], high

    def _draw_curves(self, lowest: float, has_band: bool) -> None:
        """Draw lines and dots of all methods, and the intervals and the band of the first."""
        ax, first = self.ax_, next(iter(self.curves.values()))
        self.lines_ = []
        for i, (key, curve) in enumerate(self.curves.items()):
            is_smooth = curve.band == "smooth"
            x = curve.smooth_estimate if is_smooth else curve.corp_estimate
            y = curve.smooth_share if is_smooth else curve.corp_share
            self.lines_.append(draw_line(ax, i, key, x, np.maximum(y, lowest), zorder=3))
        self.line_ = self.lines_[0]
        bottom, top = np.maximum([first.bin_low, first.bin_high], lowest)
        look: dict[str, Any] = {"color": style(0).color, "linewidth": 1.2, "zorder": 3.5}
        ax.vlines(first.bin_estimate, bottom, top, **look)
        if has_band:
            bottom, top = np.maximum([first.band_low, first.band_high], lowest)
            look = {"color": style(0).color, "alpha": 0.15, "linewidth": 0}
            ax.fill_between(first.band_estimate, bottom, top, **look)
        for i, curve in reversed(list(enumerate(self.curves.values()))):  # the first on top
            ax.scatter(
                curve.bin_estimate,
                np.maximum(curve.bin_share, lowest),
                s=30,
                marker=style(i).marker,
                facecolor="white",
                edgecolor=style(i).color,
                linewidth=1.4,
                zorder=4,
                clip_on=False,
            )

    def _draw_histogram(self, curve: ReliabilityCurve, label: str, log: bool) -> Axes:
        below = self.ax_.inset_axes((0, -0.26, 1, 0.2), sharex=self.ax_)
        low, high = self.ax_.get_xlim()
        edges: FloatArray = (np.geomspace if log else np.linspace)(low, high, N_HISTOGRAM_BARS + 1)
        for sign, weight in ((1, curve.positives), (-1, curve.negatives)):
            heights = np.histogram(curve.estimate, edges, weights=weight)[0]
            heights = sign * heights / max(heights.max(), 1)
            color = style(0).color if sign > 0 else GREY
            below.stairs(heights, edges, color=color, fill=True, alpha=0.7)
        happened = "right" if curve.event == "predicted label" else f"“{short(curve.event)}”"
        rows = [f"{count:,.0f}" for count in (curve.positives.sum(), curve.negatives.sum())]
        below.set(ylim=(-1.08, 1.08), yticks=[])
        below.axhline(0, color="black", linewidth=0.6)
        counts = f"up: {happened} ({rows[0]} rows), down: not ({rows[1]})"
        below.set_xlabel("\n".join([wrapped(below, label), wrapped(below, counts)]))
        plain(below)
        percents(below.xaxis)
        self.ax_.tick_params(labelbottom=False)
        return below
