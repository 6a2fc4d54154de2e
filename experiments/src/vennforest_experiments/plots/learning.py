"""Values over sizes, with error bars, of several methods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest.plots._style import Display, named, plain, short, style
from vennforest_experiments.comparison import LearningCurve, learning_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.lines import Line2D


MOST_TICKS = 8
"""Up to so many sizes each has a tick on a logarithmic axis."""


class LearningCurveDisplay(Display):
    """How a measure changes with the number of training examples, or any other size.

    Parameters
    ----------
    curves : dict of str to LearningCurve
        What ``vennforest_experiments.comparison.learning_curve`` returns, by name of the method.
    measure : str
        Name of the measure, for the axis.
    size : str
        What the sizes count, for the axis.

    Attributes
    ----------
    ax_ : Axes
        Where it was drawn.
    figure_ : Figure
        The figure of it.
    line_ : Line2D
        The first method's curve.
    lines_ : list of Line2D
        Every method's curve.
    """

    ax_: Axes
    figure_: Figure | SubFigure
    line_: Line2D
    lines_: list[Line2D]

    def __init__(
        self,
        curves: dict[str, LearningCurve],
        *,
        measure: str = "Score",
        size: str = "Training examples",
    ) -> None:
        self.curves = curves
        self.measure = measure
        self.size = size

    @classmethod
    def from_values(
        cls,
        sizes: ArrayLike,
        values: Any,
        *,
        name: str | None = None,
        measure: str = "Score",
        size: str = "Training examples",
        ax: Axes | None = None,
        plot_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Draw values that were measured before.

        Parameters
        ----------
        sizes : array-like of shape (s,)
            The sizes.
        values : array-like of shape (s,) or (s, r), or dict of str to such
            Values of one method, or of several by name; a column per repetition.
        name : str, optional
            What one method is called.
        measure, size : str
            Names for the axes.
        ax : Axes, optional
            Where to draw; by default on a new figure.
        plot_options : dict, optional
            Passed to ``plot``.
        **options
            Passed to ``vennforest_experiments.comparison.learning_curve``.

        Returns
        -------
        LearningCurveDisplay

        Raises
        ------
        ValueError
            As ``learning_curve``.
        ImportError
            If matplotlib is not installed.
        """
        methods = named(values, name, measure)
        curves = {key: learning_curve(sizes, table, **options) for key, table in methods.items()}
        return cls(curves, measure=measure, size=size).plot(ax=ax, **(plot_options or {}))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        train_sizes: ArrayLike = (0.1, 0.325, 0.55, 0.775, 1.0),
        cv: Any = 5,
        scoring: Any = None,
        n_jobs: int | None = None,
        random_state: int | None = 0,
        name: str | None = None,
        **options: Any,
    ) -> Self:
        """Train on growing parts of the data, score on held-out folds, and draw.

        Parameters
        ----------
        estimator : classifier, or dict of str to classifier
            Unfitted; cloned for every fit.
        X : array-like of shape (n, d)
            Objects.
        y : array-like of shape (n,)
            Their labels.
        train_sizes, cv, scoring, n_jobs, random_state
            As in ``sklearn.model_selection.learning_curve``, which does the work; rows are
            shuffled.
        name : str, optional
            What one classifier is called, by default its class's name.
        **options
            Passed to ``from_values``.

        Returns
        -------
        LearningCurveDisplay

        Raises
        ------
        ValueError
            As ``from_values``.
        """
        from sklearn.model_selection import learning_curve as measure_sizes

        models = named(estimator, name, type(estimator).__name__)
        sizes: Any = None
        values = {}
        for key, model in models.items():
            sizes, _, values[key] = measure_sizes(
                model,
                X,
                y,
                train_sizes=np.asarray(train_sizes),
                cv=cv,
                scoring=scoring,
                n_jobs=n_jobs,
                shuffle=True,
                random_state=random_state,
            )
        options.setdefault("measure", scoring if isinstance(scoring, str) else "Score")
        return cls.from_values(sizes, values, **options)

    def plot(
        self, *, ax: Axes | None = None, log_sizes: bool = False, title: str | None = None
    ) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; by default on a new figure.
        log_sizes : bool
            Whether the axis of the sizes is logarithmic.
        title : str, optional
            The title.

        Returns
        -------
        LearningCurveDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = self._begin(ax, (6.0, 4.2))
        self.lines_ = []
        for i, (key, curve) in enumerate(self.curves.items()):
            look = style(i)
            bars = ax.errorbar(
                curve.sizes,
                curve.mean,
                yerr=np.stack([curve.mean - curve.low, curve.high - curve.mean]),
                color=look.color,
                linestyle=look.linestyle,
                linewidth=1.5,
                marker=look.marker,
                markersize=5.5,
                markerfacecolor="white",
                markeredgewidth=1.4,
                elinewidth=1,
                capsize=3,
                label=short(key),
            )
            self.lines_.append(bars.lines[0])
        self.line_ = self.lines_[0]
        if log_sizes:
            ax.set_xscale("log")
            sizes = np.unique(np.concatenate([curve.sizes for curve in self.curves.values()]))
            if len(sizes) <= MOST_TICKS:
                ax.set_xticks(sizes, [f"{size:,g}" for size in sizes])
                ax.minorticks_off()
        ax.set(xlabel=self.size, ylabel=self.measure)
        if title is not None:
            ax.set_title(title)
        plain(ax)
        if len(self.curves) > 1:
            ax.legend(fontsize="small", framealpha=0.85, handlelength=3.5)
        return self
