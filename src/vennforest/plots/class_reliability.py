"""Reliability diagrams of many classes, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest.metrics import reliability_curve
from vennforest.plots._style import figure_of, named, pyplot, short
from vennforest.plots.reliability import UNNAMED, ReliabilityDisplay, estimates_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


class ClassReliabilityDisplay:
    """Reliability diagrams of every class against the rest, side by side.

    Parameters
    ----------
    displays : dict of str to ReliabilityDisplay
        One diagram a class.
    n_left_out : int
        How many classes there were beyond those.

    Attributes
    ----------
    axes_ : ndarray of Axes
        One a class.
    figure_ : Figure
        Their figure.
    """

    axes_: Any
    figure_: Figure | SubFigure

    def __init__(self, displays: dict[str, ReliabilityDisplay], n_left_out: int = 0) -> None:
        self.displays = displays
        self.n_left_out = n_left_out

    @classmethod
    def from_predictions(
        cls,
        y: ArrayLike,
        p: Any,
        *,
        classes: ArrayLike | None = None,
        name: str | None = None,
        max_classes: int = 12,
        columns: int = 4,
        plot_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> Self:
        """Draw one diagram per class.

        Parameters
        ----------
        y : array-like of shape (n,)
            Labels.
        p : array-like of shape (n, k), or dict of str to such
            Estimates of one method, or of several by name.
        classes : array-like of shape (k,), optional
            Every class, when some may be missing from ``y``.
        name : str, optional
            What one method is called.
        max_classes : int
            Of more classes than this, the most frequent are shown.
        columns : int
            How many diagrams stand in a row.
        plot_options : dict, optional
            Passed to ``ReliabilityDisplay.plot``.
        **options
            Passed to ``vennforest.metrics.reliability_curve``.

        Raises
        ------
        ValueError
            As ``reliability_curve``.
        ImportError
            If matplotlib is not installed.
        """
        methods = named(p, name, UNNAMED)
        labels, counts = np.unique(np.asarray(y), return_counts=True)
        named_classes = labels if classes is None else np.unique(np.asarray(classes))
        frequency = {label: int(count) for label, count in zip(labels, counts, strict=True)}
        shown = sorted(named_classes, key=lambda label: -frequency.get(label, 0))[:max_classes]
        displays = {}
        for label in (label for label in named_classes if label in shown):
            curves = {
                key: reliability_curve(y, value, classes=named_classes, pos_label=label, **options)
                for key, value in methods.items()
            }
            displays[str(label)] = ReliabilityDisplay(curves)
        new = cls(displays, len(named_classes) - len(displays))
        return new.plot(columns=columns, **(plot_options or {}))

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, **options: Any
    ) -> Self:
        """Draw one diagram per class of a fitted classifier, or of several in a dict by name.

        Parameters
        ----------
        estimator : classifier, or dict of str to classifier
            Fitted; each has ``predict_proba`` and ``classes_``.
        X : array-like of shape (n, d)
            Objects that the classifiers were not trained on.
        y : array-like of shape (n,)
            Their labels.
        name : str, optional
            What one classifier is called, by default its class's name.
        **options
            Passed to ``from_predictions``.

        Raises
        ------
        ValueError
            As ``from_predictions``.
        """
        p, classes = estimates_of(estimator, X, name)
        return cls.from_predictions(y, p, **{"classes": classes, **options})

    def plot(self, *, ax: Any = None, columns: int = 4, **options: Any) -> Self:
        """Draw the diagrams.

        Parameters
        ----------
        ax : sequence of Axes, optional
            At least one a class; by default those of a new figure.
        columns : int
            How many diagrams stand in a row of a new figure.
        **options
            Passed to ``ReliabilityDisplay.plot``; the histogram is left out by default.

        Raises
        ------
        ValueError
            If there are fewer axes than classes.
        """
        n = len(self.displays)
        if ax is None:
            columns = min(columns, n)
            rows = -(-n // columns)
            figure, grid = pyplot().subplots(
                rows,
                columns,
                figsize=(2.7 * columns, 2.75 * rows + 0.5),
                layout="constrained",
                squeeze=False,
            )
            for spare in grid.ravel()[n:]:
                spare.remove()
            ax = grid.ravel()[:n]
            self.figure_ = figure
        axes = np.asarray(ax, dtype=object).ravel()
        if len(axes) < n:
            raise ValueError(f"ax must hold an axes for each of {n} classes, got {len(axes)}")
        self.axes_ = axes[:n]
        self.figure_ = figure_of(axes[0])
        options.setdefault("histogram", False)
        for one, (label, display) in zip(self.axes_, self.displays.items(), strict=True):
            display.plot(ax=one, title=short(label), names=False, **options)
            one.set(xlabel="", ylabel="", xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        if hasattr(self.figure_, "supxlabel"):
            rest = f" ({self.n_left_out} rarer ones not shown)" if self.n_left_out else ""
            self.figure_.supxlabel(f"Predicted probability of the class{rest}", fontsize="medium")
            self.figure_.supylabel("How often the class was observed", fontsize="medium")
        if len(display.curves) > 1:
            self.figure_.legend(
                display.lines_,
                [short(name) for name in display.curves],
                loc="outside upper center",
                ncols=min(4, len(display.lines_)),
                fontsize="small",
            )
        return self
