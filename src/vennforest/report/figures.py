"""Pictures of an evaluation as HTML images."""

from __future__ import annotations

import base64
import html
import io
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray
from vennforest.metrics import ReliabilityCurve, reliability_curve
from vennforest.plots import ReliabilityDisplay
from vennforest.plots._style import COLOURS, GREY, percents, plain, style
from vennforest.report.comparison import Comparison

MAX_CLASS_DIAGRAMS = 12
MAX_EVIDENCE_POINTS = 2000
"""Points of the line of evidence; of longer streams the largest value of each stretch."""

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar in a label is a dollar
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "system-ui", "Segoe UI", "Roboto", "Helvetica Neue"],
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.linewidth": 0.8,
    "figure.dpi": 72.0,
}


def draw(name: str, size: tuple[float, float], paint: Callable[[Any], Any], alt: str) -> str:
    """Return what ``paint`` draws into axes as an HTML image; ``size`` is in inches."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with matplotlib.rc_context({**STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the browser has the glyphs that are missing here
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)  # measures text for the layout
        paint(figure.subplots())
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    return (
        f'<img alt="{html.escape(alt)}" style="max-width:{round(2 * 72 * size[0])}px" '
        f'src="data:image/svg+xml;base64,{data}">'
    )


def calibration(comparison: Comparison, methods: list[str], names: dict[str, str]) -> str:
    """Return the picture of some methods' calibration, with the band of the first."""
    is_rare = comparison.predictions.is_rare
    curves = {names[method]: _curve(comparison, method) for method in methods}
    titles = " and ".join(curves)
    return draw(
        "calibration",
        (4.8, 5.0),
        lambda ax: ReliabilityDisplay(curves).plot(ax=ax, log=is_rare, title=""),
        f"Calibration of {titles}: how often it happened, by predicted probability",
    )


def _curve(comparison: Comparison, method: str, **options: Any) -> ReliabilityCurve:
    predictions = comparison.predictions
    options |= predictions.for_metric(predictions.estimates[method]) | options
    return reliability_curve(groups=predictions.groups, **options)


def classes(comparison: Comparison, names: dict[str, str]) -> dict[str, str]:
    """Return a diagram of each of the most frequent classes, by raw and recommended method."""
    labels, codes = comparison.predictions.classes, comparison.predictions.codes

    def paint(ax: Any, j: int) -> None:
        curves = {
            names[m]: _curve(comparison, m, pos_label=labels[j]) for m in comparison.raw_and_best
        }
        ReliabilityDisplay(curves).plot(ax=ax, statistics=False, histogram=False, title="")
        ax.set(xlabel="Predicted probability", ylabel="How often it was observed")

    counts = np.bincount(codes, minlength=len(labels))
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MAX_CLASS_DIAGRAMS]).tolist()
    return {
        str(labels[j]): draw(
            f"class-{j}", (4.8, 4.6), partial(paint, j=j), f"Calibration of class {labels[j]}"
        )
        for j in frequent
    }


def over_periods(
    name: str,
    periods: list[str],
    values: FloatArray,
    ylabel: str,
    alt: str,
    expected: list[float] | None = None,
) -> str:
    """Draw values with their intervals (m, 3) in m periods, and what was expected there."""
    paint = partial(
        paint_rates, names=periods, values=values, ylabel=ylabel, expected=expected, joined=True
    )
    return draw(name, (9.0, 3.4), paint, alt)


def paint_rates(
    ax: Any,
    names: list[str],
    values: FloatArray,
    ylabel: str,
    expected: list[float] | None = None,
    *,
    joined: bool = False,
    log: bool = False,
) -> None:
    """Draw rates with their intervals (m, 3) in m parts of the rows, and expected rates."""
    x, (middle, low, high) = np.arange(len(names)), values.T
    ends = [middle - low, high - middle]
    ax.errorbar(x, middle, ends, fmt="o", capsize=3, color=COLOURS[0], label="observed")
    if expected is not None:
        line, size = ("-", 6) if joined else ("", 14)
        look = {"color": COLOURS[1], "marker": "_", "linestyle": line, "markersize": size}
        ax.plot(x, expected, label="mean probability", **look)
        ax.legend(frameon=False)
    step = max(1, len(names) // 10) if joined else 1
    ax.set_xticks(x[::step], names[::step], rotation=30, ha="right")
    ax.set_ylabel(ylabel)
    plain(ax)
    if log and expected is not None:
        ax.set_yscale("log")
        ax.set_ylim(bottom=min(expected) / 5)
    percents(ax.yaxis)


def paint_evidence(
    ax: Any,
    evidence: FloatArray,
    threshold: float,
    began: int | None,
    times: NDArray[Any] | None = None,
) -> None:
    """Draw how evidence (n,) grows over rows, or times, to the level of an alarm."""
    n = len(evidence)
    starts = np.linspace(0, n, min(n, MAX_EVIDENCE_POINTS) + 1).astype(int)
    ends = starts[1:] - 1
    tops = np.log10(np.maximum(np.maximum.reduceat(evidence, starts[:-1]), 1e-300))
    ax.plot(ends if times is None else times[ends], tops, color=style(0).color)
    level = np.log10(threshold)
    ax.axhline(level, color=GREY, linestyle="--", linewidth=1)
    text = {"color": GREY, "ha": "right", "va": "bottom", "transform": ax.get_yaxis_transform()}
    ax.text(0.99, level, f"alarm at {threshold:,.4g}", **text)
    if began is not None:
        ax.axvline(began if times is None else times[began], color=style(1).color, linewidth=1)
    ax.set_xlabel("Row of the stream" if times is None else "Time")
    ax.set_ylabel("Evidence, powers of ten")
    plain(ax)
