"""Pictures of an evaluation: images of its page, and files."""

from __future__ import annotations

import base64
import html
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vennforest._messages import needed
from vennforest._validation import FloatArray
from vennforest.metrics import interval_curve, reliability_curve
from vennforest.plots import IntervalDisplay, ReliabilityDisplay
from vennforest.plots._style import COLOURS, GREY, draw_line, legend, percents, plain, short, style
from vennforest.report.findings import Findings
from vennforest.report.measures import Predictions
from vennforest.validation.sites import NEW_SITE, POOLED

Limits = tuple[float, float] | None
"""Where axes of probabilities begin and end; None: where the data do."""

ENDINGS = ("svg", "pdf", "png", "csv")
PIXELS_PER_INCH = 200
MILLIMETRES_PER_INCH = 25.4
PRINTED_FONT_SIZE = 7.5

LOG_SHARE = 0.01
"""Share of the positive class below which the axes of calibration are logarithmic."""

N_THRESHOLDS = 200
"""Thresholds of a decision curve, by default up to the probability that 1% of the rows exceed."""

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
    "pdf.fonttype": 42,
}


@dataclass(frozen=True, eq=False)
class Picture:
    """A picture: size in inches, the function that draws it into axes of matplotlib, description.

    ``data`` is what is drawn, as a CSV beside the files of the picture has it.
    """

    size: tuple[float, float]
    paint: Callable[[Any], Any]
    alt: str
    data: pd.DataFrame | None = None


def draw(name: str, picture: Picture) -> str:
    """Return a picture as an HTML image."""
    content = encode(name, picture, ["svg"])["svg"]
    width = round(1.45 * 72 * picture.size[0])
    return (
        f'<img alt="{html.escape(picture.alt)}" style="max-width:{width}px" '
        f'src="data:image/svg+xml;base64,{base64.b64encode(content).decode()}">'
    )


def encode(
    name: str, picture: Picture, formats: Sequence[str], width: float | None = None
) -> dict[str, bytes]:
    """Return the bytes of a picture in each format; they are reproducible.

    Pictures of a given width, in millimetres, have letters of 7.5 points.
    """
    matplotlib = needed("matplotlib", "pictures")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    scale = 1.0 if width is None else width / MILLIMETRES_PER_INCH / picture.size[0]
    font_size = STYLE["font.size"] if width is None else PRINTED_FONT_SIZE
    look: dict[Any, Any] = {"font.size": font_size, "axes.titlesize": font_size}
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    files = {}
    with matplotlib.rc_context({**STYLE, **look, "svg.hashsalt": name}), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the browser has the glyphs that are missing here
        size = picture.size[0] * scale, picture.size[1] * scale
        figure = Figure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)  # measures text for the layout
        picture.paint(figure.subplots())
        for ending in formats:
            buffer = io.BytesIO()
            metadata = dates.get(ending)
            figure.savefig(buffer, format=ending, dpi=PIXELS_PER_INCH, metadata=metadata)
            files[ending] = buffer.getvalue()
    return files


def pictures(
    findings: Findings, predictions: Predictions, limits: Limits = None
) -> dict[str, Picture]:
    """Return the pictures that the evaluation has, by the names of their files."""
    names, methods = dict(findings.origin.names), findings.shown_methods
    result = {"calibration": _calibration(predictions, methods, names, limits)}
    if predictions.positive is not None:
        result["decision-curve"] = _decision_curve(predictions, methods, names, limits)
    if predictions.estimates[findings.method].bounds is not None:
        result["intervals"] = _intervals(predictions, findings.method, names)
    if "sites" in findings.sections:
        result["sites"] = _forest(findings.sections["sites"].frame)
    if "grades" in findings.sections:
        frame: Any = findings.sections["grades"].frame
        lowest, highest = frame["expected"].agg(["min", "max"])
        alt = "Observed rates with 95% intervals, and expected rates, by grade"
        is_log = 0 < 20 * lowest < highest
        ylabel = f"Share of {findings.event}"
        result["grades"] = rates(frame, "observed", ylabel, alt, "expected", log=is_log)
    return result


def pictures_over_time(findings: Findings) -> dict[str, Picture]:
    """Return pictures of columns of dates that divide the rows, by ``time-`` and its position."""
    result: dict[str, Picture] = {}
    ylabel = "Share predicted right" if findings.positive is None else f"Share of {findings.event}"
    if findings.subgroups is None:
        return result
    for number, column in enumerate(findings.subgroups.index.unique("column")):
        parts: Any = findings.subgroups.xs(column)
        if period := parts["period"].iloc[0]:
            dated = parts[parts.index != "missing"]
            alt = f"Observed and expected by {period}"
            result[f"time-{number}"] = rates(dated, "observed", ylabel, alt, "expected")
    return result


def _forest(frame: Any) -> Picture:
    """Return the forest plot of sites: measures with intervals, pooled value and range."""
    measures = [
        ("observed_expected", "Observed / expected", 1.0),
        ("slope", "Slope", 1.0),
        ("auc", "C (AUC)", None),
    ]
    y = np.arange(len(frame))[::-1]
    is_pooled = frame.index.isin([POOLED, NEW_SITE])

    def paint(ax: Any) -> None:
        ax.axis("off")
        for i, (key, title, ideal) in enumerate(measures):
            panel = ax.inset_axes((0.34 * i, 0, 0.32, 1))
            for rows, color in ((~is_pooled, COLOURS[0]), (is_pooled, COLOURS[1])):
                values, low, high = frame.loc[rows, [key, f"{key}_low", f"{key}_high"]].to_numpy().T
                look = {"color": color, "linewidth": 1.4}
                panel.hlines(y[rows], low, high, **look)
                panel.plot(values, y[rows], "s", color=color, markersize=4)
            if ideal is not None:
                panel.axvline(ideal, color=GREY, linewidth=1, linestyle=":")
            if key == "observed_expected":
                panel.set_xscale("log")
                panel.xaxis.set_major_formatter("{x:g}")
                panel.xaxis.set_minor_formatter("")
            panel.set_yticks(y, [short(name) for name in frame.index] if i == 0 else [])
            panel.set(title=title, ylim=(-0.6, len(frame) - 0.4))
            plain(panel)

    height = 1.0 + 0.28 * len(frame)
    alt = "Forest plot: each site with 95% intervals, the pooled value and the range of other sites"
    return Picture((9.0, height), paint, alt, frame.reset_index())


def _calibration(
    predictions: Predictions, methods: list[str], names: dict[str, str], limits: Limits
) -> Picture:
    """Return the picture of some methods' calibration, with the intervals of the first."""
    judged = {names[m]: predictions.judged(predictions.estimates[m]) for m in methods}
    curves = {name: estimates.reliability_curve() for name, estimates in judged.items()}
    share = predictions.share
    is_log = share is not None and share < LOG_SHARE and (limits is None or limits[0] > 0)
    titles = ("probability", "observed", "low95", "high95", "rows")
    parts = []
    for name, c in curves.items():
        values_of_parts = {
            "dots": (c.bin_estimate, c.bin_share, c.bin_low, c.bin_high, c.bin_weight),
            "line": (c.smooth_estimate, c.smooth_share, c.band_low, c.band_high, np.nan),
            "rows that happened": (c.estimate, 1.0, np.nan, np.nan, c.positives),
            "rows that did not": (c.estimate, 0.0, np.nan, np.nan, c.negatives),
        }
        for part, values in values_of_parts.items():
            cells = dict(zip(titles, values, strict=True))
            parts.append(pd.DataFrame({"method": name, "part": part, **cells}))
    return Picture(
        (4.8, 6.0),
        lambda ax: ReliabilityDisplay(curves).plot(ax=ax, log=is_log, title="", limits=limits),
        f"Calibration of {' and '.join(curves)}: how often it happened, by predicted probability",
        pd.concat(parts),
    )


def _decision_curve(
    predictions: Predictions, methods: list[str], names: dict[str, str], limits: Limits
) -> Picture:
    """Return the picture of the net benefit of some methods, of flagging all rows and none.

    The band is the interval of the first.
    """
    p = {names[m]: predictions.estimates[m].p[:, predictions.positive] for m in methods}
    highest = max(float(np.quantile(values, 0.99)) for values in p.values())
    lowest, highest = limits or (0.0, min(max(highest, predictions.share or 0.0), 1.0))
    thresholds = np.linspace(lowest, highest, N_THRESHOLDS + 2)[1:-1]
    judged = {names[m]: predictions.judged(predictions.estimates[m]) for m in methods}
    curves = {name: estimates.net_benefit(thresholds) for name, estimates in judged.items()}
    first = next(iter(curves.values()))
    benefits = {name: curve.net_benefit for name, curve in curves.items()}
    benefits |= {"flag every row": first.everyone, "flag no row": np.zeros(N_THRESHOLDS)}

    def paint(ax: Any) -> None:
        lines: dict[str, Any] = {
            name: draw_line(ax, i, name, thresholds, benefits[name]) for i, name in enumerate(p)
        }
        low, high = np.clip([first.net_benefit_low, first.net_benefit_high], -1, 1)
        ax.fill_between(thresholds, low, high, color=COLOURS[0], alpha=0.15, linewidth=0)
        for name, line in (("flag every row", "-"), ("flag no row", ":")):
            lines[name] = ax.plot(thresholds, benefits[name], color=GREY, lw=1, ls=line)[0]
        top = max(predictions.share or 0.0, high.max())
        ax.set(ylim=(-0.1 * top, 1.05 * top), xlim=(lowest, highest))
        ax.set(xlabel="Threshold", ylabel="Net benefit per row")
        percents(ax.xaxis)
        plain(ax)
        legend(ax, list(lines.items()))

    parts = []
    for name, benefit in benefits.items():
        columns = {"method": name, "threshold": thresholds, "net_benefit": benefit}
        if name in curves:
            columns |= {"low": curves[name].net_benefit_low, "high": curves[name].net_benefit_high}
        parts.append(pd.DataFrame(columns))
    alt = f"Net benefit of deciding by {' and '.join(p)}, by threshold"
    return Picture((4.8, 3.6), paint, alt, pd.concat(parts))


def _intervals(predictions: Predictions, method: str, names: dict[str, str]) -> Picture:
    """Return the picture of probabilities with bounds and confidence intervals."""
    estimates = predictions.estimates[method]
    assert estimates.bounds is not None
    curve = interval_curve(
        predictions.classes[predictions.codes],
        estimates.bounds,
        p=estimates.p,
        confidence=estimates.confidence,
        pos_label=predictions.label,
    )
    columns = {"rank": curve.x, "probability": curve.p, "lower": curve.low, "upper": curve.high}
    if curve.confidence is not None:
        columns |= dict(zip(("low95", "high95"), curve.confidence, strict=True))
    return Picture(
        (4.8, 3.6),
        lambda ax: IntervalDisplay(curve).plot(ax=ax),
        f"Probabilities of {names[method]} with bounds and confidence intervals, row by row",
        pd.DataFrame({**columns, "observed": curve.outcome}),
    )


def classes(findings: Findings, predictions: Predictions) -> dict[str, str]:
    """Return a diagram of each frequent class, by the methods of the first picture."""
    methods, names = findings.shown_methods, findings.origin.names
    labels, codes = predictions.classes, predictions.codes

    def paint(ax: Any, j: int) -> None:
        curves = {}
        for m in methods:
            options = predictions.for_metric(predictions.estimates[m]) | {"pos_label": labels[j]}
            curves[names[m]] = reliability_curve(groups=predictions.groups, **options)
        ReliabilityDisplay(curves).plot(ax=ax, statistics=False, histogram=False, title="")
        ax.set(xlabel="Predicted probability", ylabel="How often it was observed")

    counts = np.bincount(codes, minlength=len(labels))
    frequent = np.sort(np.argsort(-counts, kind="stable")[:MAX_CLASS_DIAGRAMS]).tolist()
    images = {}
    for j in frequent:
        picture = Picture((4.8, 4.6), partial(paint, j=j), f"Calibration of class {labels[j]}")
        images[str(labels[j])] = draw(f"class-{j}", picture)
    return images


def rates(
    frame: pd.DataFrame,
    key: str,
    ylabel: str,
    alt: str,
    expected: str | None = None,
    log: bool = False,
) -> Picture:
    """Return the picture of a rate and its interval in each row of a frame, and of expected rates.

    ``key``, ``key_low``, ``key_high`` and ``expected`` are names of columns.
    """

    def paint(ax: Any) -> None:
        x = np.arange(len(frame))
        middle, low, high = frame[[key, f"{key}_low", f"{key}_high"]].to_numpy(float).T
        ends = [middle - low, high - middle]
        dots = ax.errorbar(x, middle, ends, fmt="o", capsize=3, color=COLOURS[0])
        step = max(1, len(frame) // 10)
        ax.set_xticks(x[::step], frame.index[::step], rotation=30, ha="right")
        ax.set_ylabel(ylabel)
        plain(ax)
        if log:
            ax.set_yscale("log")
            ax.set_ylim(bottom=frame[expected].min() / 5)
        percents(ax.yaxis)
        if expected is not None:
            line = ax.plot(x, frame[expected], color=COLOURS[1], marker="_")[0]
            legend(ax, [("mean probability", line), ("observed, 95% interval", dots)])

    return Picture((9.0, 3.4), paint, alt, frame.reset_index())


def evidence_over_time(
    evidence: FloatArray, threshold: float, began: int | None, times: NDArray[Any] | None
) -> Picture:
    """Return the picture of evidence (n,) by row or time, with the threshold of an alarm."""

    def paint(ax: Any) -> None:
        n = len(evidence)
        starts = np.linspace(0, n, min(n, MAX_EVIDENCE_POINTS) + 1).astype(int)
        ends = starts[1:] - 1
        tops = np.log10(np.maximum(np.maximum.reduceat(evidence, starts[:-1]), 1e-12))
        ax.plot(ends if times is None else times[ends], tops, color=style(0).color)
        level = np.log10(threshold)
        ax.axhline(level, color=GREY, linestyle="--", linewidth=1)
        text = {"color": GREY, "ha": "right", "va": "bottom", "transform": ax.get_yaxis_transform()}
        ax.text(0.99, level, f"alarm at {threshold:,.4g}", **text)
        if began is not None:
            ax.axvline(began if times is None else times[began], color=style(1).color, linewidth=1)
        ax.set_xlabel("Row of the stream" if times is None else "Time")
        if times is not None:
            ax.tick_params("x", rotation=30)
        ax.set_ylabel("Evidence, powers of ten")
        plain(ax)

    alt = "Evidence of a change over the rows of the stream, on a logarithmic scale"
    return Picture((9.0, 3.6), paint, alt)
