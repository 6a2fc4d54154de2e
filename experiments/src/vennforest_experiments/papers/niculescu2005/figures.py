"""The figures of Niculescu-Mizil & Caruana (2005): histograms, reliability, curves, bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vennforest._validation import FloatArray
from vennforest_experiments.papers.niculescu2005.learners import LEARNERS
from vennforest_experiments.papers.protocol.reproduction import Figure
from vennforest_experiments.papers.protocol.store import Record

LABELS = {
    "BST-DT": "boosted trees",
    "SVM": "SVMs",
    "RF": "random forests",
    "ANN": "neural nets",
    "BAG-DT": "bagged trees",
    "KNN": "memory-based learning",
    "LOGREG": "logistic regression",
    "BST-STMP": "boosted stumps",
    "NB": "naïve Bayes",
    "DT": "decision trees",
}

Shown = Mapping[tuple[str, str], Record]
"""Records of the first trial by problem and learner."""

Panel = Callable[[Any, Record], None]


def figures(
    shown: Shown,
    curves: Mapping[tuple[str, str], FloatArray],
    losses: Mapping[tuple[str, str, str], FloatArray],
    sizes: Sequence[int],
) -> Iterable[Figure]:
    """Yield Figures 1 to 8.

    Parameters
    ----------
    shown : mapping
        Records of the first trial by problem and learner.
    curves : mapping
        By learner and method: squared errors, shape (sizes, trials).
    losses : mapping
        By learner, method and loss: one value per trial, shape (trials,).
    sizes : sequence of int
        Sizes of the calibration sets.
    """
    problems = list(dict.fromkeys(problem for problem, _ in shown))
    fitted: tuple[Panel, ...] = (
        lambda ax, r: _histogram(ax, r, "raw"),
        lambda ax, r: _reliability(ax, r, "raw", "Platt"),
        lambda ax, r: _reliability(ax, r, "raw", "isotonic"),
    )
    for number, kind, method in (
        (1, "BST-DT", "raw"),
        (2, "BST-DT", "Platt"),
        (3, "BST-DT", "isotonic"),
        (4, "ANN", "raw"),
        (5, "ANN", "Platt"),
    ):
        after = "" if method == "raw" else f", after calibration ({method})"
        rows = fitted if method == "raw" else _after(method)
        fits = ", with the fitted maps" if method == "raw" else ""
        yield Figure(
            f"figure-{number}",
            f"Figure {number}. Histograms and reliability diagrams of {LABELS[kind]}{after}{fits}",
            _grid([(p, shown[p, kind]) for p in problems], rows),
            (2.2 * len(problems) + 0.4, 2.0 * len(rows) + 0.4),
        )
    stand_in = "COV_TYPE" if "COV_TYPE" in problems else problems[0]
    both: tuple[Panel, ...] = (*fitted, lambda ax, r: _histogram(ax, r, "Platt"))
    yield Figure(
        "figure-6",
        f"Figure 6. Ten learners on {stand_in} (the paper: SLAC): raw histogram, reliability with "
        "Platt's and the isotonic map, histogram after Platt scaling",
        _grid([(kind, shown[stand_in, kind]) for kind in LEARNERS], both, down=True),
        (8.4, 1.9 * len(LEARNERS)),
    )
    yield Figure(
        "figure-7",
        "Figure 7. Squared error by the size of the calibration set, mean over the problems; "
        "bars: standard errors over trials",
        lambda ax: _curves(ax, curves, sizes),
        (12.0, 10.0),
    )
    yield Figure(
        "figure-8",
        "Figure 8. Squared error and log loss, mean over the problems; bars: standard deviations "
        "over trials",
        lambda ax: _bars(ax, losses),
        (12.0, 8.0),
    )


def _after(method: str) -> tuple[Panel, ...]:
    return (
        lambda ax, r: _histogram(ax, r, method),
        lambda ax, r: _reliability(ax, r, method, None),
    )


def _subplots(ax: Any, rows: int, columns: int) -> Any:
    """Replace one pair of axes by a grid."""
    canvas = ax.figure
    ax.remove()
    return canvas.subplots(rows, columns, squeeze=False)


def _grid(
    shown: Sequence[tuple[str, Record]], panels: Sequence[Panel], *, down: bool = False
) -> Callable[[Any], None]:
    """Return a function that draws one column of panels per record, or, with ``down``, one row."""

    def draw(ax: Any) -> None:
        size = len(panels), len(shown)
        axes = _subplots(ax, *size[::-1]).T if down else _subplots(ax, *size)
        for own, (name, record) in zip(axes.T, shown, strict=True):
            if down:
                own[0].set_ylabel(name, fontsize="small")
            else:
                own[0].set_title(name, fontsize="small")
            for one, panel in zip(own, panels, strict=True):
                panel(one, record)
                one.tick_params(labelsize="x-small")

    return draw


def _histogram(ax: Any, record: Record, method: str) -> None:
    n = np.array(record["bins"][method]["n"])
    ax.stairs(n / n.sum(), np.linspace(0, 1, 11), fill=True, color="#56B4E9")
    ax.set(xlim=(0, 1), ylim=(0, 1))


def _reliability(ax: Any, record: Record, method: str, fit: str | None) -> None:
    bins = record["bins"][method]
    points = [(e, s) for e, s in zip(bins["estimate"], bins["share"], strict=True) if e is not None]
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
    ax.plot(*zip(*points, strict=True), "o-", color="#0072B2", markersize=3, linewidth=1)
    if fit is not None:
        values = record["fit"][fit]
        ax.plot(np.linspace(0, 1, len(values)), values, color="#D55E00", linewidth=1)
    ax.set(xlim=(0, 1), ylim=(0, 1))


def _curves(ax: Any, curves: Mapping[tuple[str, str], FloatArray], sizes: Sequence[int]) -> None:
    kinds = [kind for kind in LEARNERS if kind != "DT"]
    axes = _subplots(ax, 3, 3).ravel()
    for i, (one, kind) in enumerate(zip(axes, kinds, strict=True)):
        values = {method: table for (own, method), table in curves.items() if own == kind}
        for method, table in values.items():
            trials = np.asarray(table, dtype=np.float64).reshape(len(sizes), -1)
            n_trials = (~np.isnan(trials)).sum(axis=1)
            spread = np.nanstd(trials, axis=1) * np.sqrt(1 / np.maximum(1, n_trials - 1))
            one.errorbar(sizes, np.nanmean(trials, axis=1), spread, label=method, capsize=2)
        one.set(xscale="log", xlabel="Calibration cases", ylabel="Squared error")
        one.set_xticks(sizes, [f"{size:g}" for size in sizes], fontsize="x-small")
        one.minorticks_off()
        one.set_title(kind)
        if i == 0:
            one.legend(fontsize="x-small", frameon=False)


def _bars(ax: Any, losses: Mapping[tuple[str, str, str], FloatArray]) -> None:
    methods = list(dict.fromkeys(method for _, method, _ in losses))
    names = list(dict.fromkeys(loss for _, _, loss in losses))
    places = np.arange(len(LEARNERS))
    width = 0.8 / len(methods)
    colours = ("0.55", "#0072B2", "#D55E00", "#009E73", "#CC79A7")
    for one, loss in zip(_subplots(ax, len(names), 1).ravel(), names, strict=True):
        for i, method in enumerate(methods):
            trials = [losses[kind, method, loss] for kind in LEARNERS]
            spread = [t.std(ddof=1) if len(t) > 1 else 0 for t in trials]
            one.bar(
                places + (i - (len(methods) - 1) / 2) * width,
                [t.mean() for t in trials],
                width,
                yerr=spread,
                label=method,
                color=colours[i % len(colours)],
                error_kw={"linewidth": 0.8},
            )
        one.set(xticks=places, xticklabels=LEARNERS, ylabel=loss.capitalize())
        one.grid(axis="y", color="0.9", linewidth=0.6)
        one.set_axisbelow(True)
    one.figure.axes[0].legend(ncols=len(methods), fontsize="small", frameon=False)
