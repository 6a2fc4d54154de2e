"""Pictures of an evaluation as HTML images."""

from __future__ import annotations

import base64
import html
import io
import warnings
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray
from vennforest.metrics import (
    interval_curve,
    reliability_curve,
    smooth_calibration_curve,
)
from vennforest.plots import IntervalDisplay, ReliabilityDisplay
from vennforest.plots._style import COLOURS as PLOT_COLOURS
from vennforest.plots._style import GREY, draw_line, legend, percents, plain, style
from vennforest.report.event import curve_of, is_rare, ranking_of

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

MOST_CLASSES = 12
"""Of more classes the most frequent have a diagram of their own."""

MOST_SHOWN = 400
"""Of more rows so many intervals are drawn."""

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a dollar in a label is a dollar
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "system-ui", "Segoe UI", "Roboto", "Helvetica Neue"],
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.linewidth": 0.8,
    "figure.dpi": 72.0,
    "path.simplify": True,
}


def draw(name: str, size: tuple[float, float], paint: Callable[[Any], Any], alt: str) -> str:
    """Return what ``paint`` draws into axes as an HTML image; ``size`` is in inches."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with matplotlib.rc_context({**SETTINGS, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # glyphs missing here are found by the browser
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)  # measures text for the layout
        paint(figure.subplots())
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    width = round(2 * 72 * size[0])
    return (
        f'<img alt="{html.escape(alt)}" style="max-width:{width}px" '
        f'src="data:image/svg+xml;base64,{data}">'
    )


def calibration(evaluation: Evaluation, keys: list[str]) -> str:
    """Return the picture of some methods' calibration, with the band of the first."""
    names = [evaluation.names[key] for key in keys]
    rare = is_rare(evaluation)
    curves = {
        name: _curve(evaluation, key, **_bins(rare)) for key, name in zip(keys, names, strict=True)
    }
    return draw(
        "calibration",
        (4.8, 5.0),
        lambda ax: ReliabilityDisplay(curves).plot(ax=ax, log=rare, band=names[0], title=""),
        f"Calibration of {' and '.join(names)}: how often it happened, by predicted probability",
    )


def _bins(rare: bool) -> dict[str, Any]:
    """Return the bins of a picture: of a rare class of equal count, on logarithmic axes."""
    return {"strategy": "quantile"} if rare else {}


def reliability(evaluation: Evaluation, method: str) -> str:
    """Return the reliability diagram of one method, with a smoothed line."""
    title = evaluation.names[method]
    rare = is_rare(evaluation)
    curve = _curve(evaluation, method, **_bins(rare))
    smooth = smooth_calibration_curve(
        evaluation.observed,
        evaluation.folds.estimates[method].p,
        classes=evaluation.folds.classes,
        pos_label=evaluation.label,
    )
    return draw(
        f"reliability-{list(evaluation.measures).index(method)}",
        (4.8, 4.8),
        lambda ax: ReliabilityDisplay({title: curve}, {title: smooth}).plot(
            ax=ax, log=rare, histogram=False
        ),
        f"Reliability diagram of {title}: observed share against predicted probability",
    )


RANKINGS = {
    "roc": (
        ("false_positive_rate", "true_positive_rate"),
        ("False alarms among the others", "Found of the class (sensitivity)"),
        "ROC curve: sensitivity against false positive rate",
    ),
    "precision-recall": (
        ("recall", "precision"),
        ("Found of the class (recall)", "Right among those flagged"),
        "Precision against recall",
    ),
    "gain": (
        ("depth", "gain"),
        ("Rows taken from the top of the ranking", "Found of the class"),
        "Share of the positive class found in the top of the ranking",
    ),
}
"""Pictures of a ranking: what is drawn against what, the axes, and what a screen reader says."""


def ranking(evaluation: Evaluation) -> list[str]:
    """Return ROC, precision-recall and gain curves of the model as it is and the recommended."""
    curves = {
        evaluation.names[key]: ranking_of(evaluation, key)
        for key in reversed(evaluation.raw_and_best)
    }
    share = next(iter(curves.values())).share

    def paint(ax: Any, kind: str) -> None:
        (x, y), (x_label, y_label), _ = RANKINGS[kind]
        steps = kind == "precision-recall"
        chance = ax.plot([0, 1], [share] * 2 if steps else [0, 1], color=GREY, lw=1, ls=":")[0]
        lines = {
            name: draw_line(
                ax,
                i,
                name,
                getattr(curve, x),
                getattr(curve, y),
                drawstyle="steps-post" if steps else "default",
            )
            for i, (name, curve) in enumerate(curves.items())
        }
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel=x_label, ylabel=y_label)
        percents(ax.xaxis, ax.yaxis)
        plain(ax)
        corner = "lower left" if steps else "lower right"
        legend(ax, [*lines.items(), ("random ranking", chance)], corner)

    return [
        draw(f"ranking-{kind}", (4.8, 4.2), partial(paint, kind=kind), alt)
        for kind, (_, _, alt) in RANKINGS.items()
    ]


def net_benefit(evaluation: Evaluation) -> str:
    """Return the recommended method's decision curve, with the band of confidence intervals."""
    curve, name = curve_of(evaluation), evaluation.names[evaluation.verdict.method]
    at, everyone = curve.threshold, curve.everyone

    def paint(ax: Any) -> None:
        nobody = ax.plot(at, 0 * at, color=GREY, linewidth=1, linestyle=":")[0]
        always = ax.plot(at, everyone, color=GREY, linewidth=1, linestyle="--")[0]
        if curve.at_lower is not None and curve.at_upper is not None:
            ends = (np.minimum, np.maximum)
            low, high = (end(curve.at_lower, curve.at_upper) for end in ends)
            ax.fill_between(at, low, high, color=PLOT_COLOURS[0], alpha=0.2, linewidth=0)
        line = draw_line(ax, 0, name, at, curve.net_benefit)
        most = max(float(np.max(curve.net_benefit)), float(np.max(everyone)), 1e-12)
        ax.set(
            xlim=(0, float(at[-1])),
            ylim=(-0.12 * most, 1.08 * most),
            xlabel="Threshold from which a row is flagged",
            ylabel="Net benefit",
        )
        percents(ax.xaxis)
        plain(ax)
        entries = [(name, line), ("flag everyone", always), ("flag no one", nobody)]
        legend(ax, entries, "upper right")

    alt = "Decision curve: net benefit against threshold probability"
    return draw("net-benefit", (8.6, 3.8), paint, alt)


def _curve(evaluation: Evaluation, key: str, label: Any = None, **options: Any) -> Any:
    """Return the calibration of one method, of a class or by default of the event."""
    return reliability_curve(
        evaluation.observed,
        evaluation.folds.estimates[key].p,
        classes=evaluation.folds.classes,
        pos_label=evaluation.label if label is None else label,
        **options,
    )


def classes(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Return a diagram of each of the most frequent classes, raw forest and recommended method."""
    folds = evaluation.folds
    counts = np.bincount(folds.codes, minlength=len(folds.classes))

    def paint(ax: Any, label: Any) -> None:
        curves = {
            evaluation.names[key]: _curve(evaluation, key, label, n_resamples=0)
            for key in evaluation.raw_and_best
        }
        ReliabilityDisplay(curves).plot(ax=ax, histogram=False, title="")
        ax.set(xlabel="Predicted probability", ylabel="How often it was observed")

    diagrams = []
    for j in np.sort(np.argsort(-counts, kind="stable")[:MOST_CLASSES]):
        label = folds.classes[j]
        alt, drawn = f"Reliability diagram of class {label}", partial(paint, label=label)
        diagrams.append((str(label), draw(f"class-{j}", (4.8, 4.6), drawn, alt)))
    return diagrams


def intervals(evaluation: Evaluation) -> str:
    """Return the recommended method's intervals, row by row in the order of the probability."""
    best = evaluation.best
    assert best.bounds is not None
    curve = interval_curve(
        evaluation.observed,
        best.bounds,
        p=best.p,
        confidence=best.confidence,
        pos_label=evaluation.label,
        max_points=MOST_SHOWN,
    )
    return draw(
        "intervals",
        (4.8, 3.8),
        lambda ax: IntervalDisplay(curve).plot(ax=ax),
        "Probability, bounds and confidence interval of every row, sorted by probability",
    )


def over_time(evaluation: Evaluation, table: dict[str, Any]) -> str:
    """Draw what was observed beside what was expected, in each period of a table of `subgroups`."""
    rows = [row for row in table["rows"] if row["name"] != "missing"]
    two = evaluation.positive is not None
    by = f"by {table['period']}" if table["period"] else "over time"
    return over_periods(
        f"time-{list(evaluation.by).index(table['name'])}",
        [row["name"] for row in rows],
        np.array([[row[key] for key in ("observed", "least", "most")] for row in rows]),
        f"Share of “{evaluation.label}”" if two else "Share predicted right",
        f"Observed and expected {by}",
        [row["expected"] for row in rows],
    )


def over_periods(
    name: str,
    periods: list[str],
    values: FloatArray,
    ylabel: str,
    alt: str,
    expected: list[float] | None = None,
) -> str:
    """Draw ``values`` (m, 3), each with its interval, in m periods, and what was expected there."""

    def paint(ax: Any) -> None:
        at, (middle, low, high) = np.arange(len(periods)), values.T
        ends = [middle - low, high - middle]
        blue, orange = PLOT_COLOURS[:2]
        ax.errorbar(at, middle, ends, fmt="o", capsize=3, color=blue, label="observed")
        if expected is not None:
            ax.plot(at, expected, color=orange, marker="_", label="mean probability")
            ax.legend(frameon=False)
        step = max(1, len(periods) // 10)
        ax.set_xticks(at[::step], periods[::step], rotation=30, ha="right")
        ax.set_ylabel(ylabel)
        plain(ax)
        percents(ax.yaxis)

    return draw(name, (9.0, 3.4), paint, alt)


MOST_POINTS = 2000
"""Of longer streams the largest value of each stretch is drawn."""


def paint_evidence(
    ax: Any,
    evidence: dict[str, FloatArray],
    threshold: float,
    began: int | None,
    times: NDArray[Any] | None = None,
) -> None:
    """Draw by name how evidence (n,) grows over rows, or times, to the level of an alarm."""
    for i, (name, values) in enumerate(evidence.items()):
        n, look = len(values), style(i)
        starts = np.linspace(0, n, min(n, MOST_POINTS) + 1).astype(int)
        ends = starts[1:] - 1
        at = ends if times is None else times[ends]
        tops = np.log10(np.maximum(np.maximum.reduceat(values, starts[:-1]), 1e-300))
        ax.plot(at, tops, color=look.color, linestyle=look.linestyle, label=name)
    level, right = np.log10(threshold), {"color": GREY, "ha": "right", "va": "bottom"}
    ax.axhline(level, color=GREY, linestyle="--", linewidth=1)
    transform = ax.get_yaxis_transform()
    ax.text(0.99, level, f"alarm at {threshold:,.4g}", transform=transform, **right)
    if began is not None:
        ax.axvline(began if times is None else times[began], color=style(1).color, linewidth=1)
    ax.set_xlabel("Row of the stream" if times is None else "Time")
    ax.set_ylabel("Evidence, powers of ten")
    if len(evidence) > 1:
        ax.legend(frameon=False)
    plain(ax)
