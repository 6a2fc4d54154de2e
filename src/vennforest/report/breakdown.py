"""Levels of probability, thresholds, and parts of the rows: what was expected and observed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vennforest._validation import IntArray, group_names, has_leading_zeros, is_missing
from vennforest.metrics.calibration_line import UNDEFINED
from vennforest.metrics.losses import squared_losses
from vennforest.metrics.variance import share_interval, with_ends
from vennforest.monitoring.columns import holm
from vennforest.performance.estimate import MIN_ROWS_TO_ESTIMATE as MIN_ROWS_OF_PERIOD
from vennforest.report.measures import MAX_RATIO, Event, MethodEstimates, Predictions
from vennforest.report.splits import dates_in
from vennforest.validation.grades import MISSING

LEVEL_EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RARE_LEVEL_EDGES = (
    0.0, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0,
)  # fmt: skip
USUAL_THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9)
RARE_THRESHOLD_MULTIPLES = (0.5, 1, 2, 5, 10, 20, 50)
"""Thresholds for a rare class, as multiples of its share."""

MAX_VALUES = 12
"""Maximum number of values of a column that are separate parts, the most frequent ones."""

N_NUMBER_PARTS = 4
"""Number of parts of similar size for columns with many different numbers."""

MEASURES_OF_PARTS = ("observed_expected", "slope", "auc")
MIN_ROWS_TO_TEST = 20
PART_LEVEL = 0.05
"""Level of the tests of parts of the rows, for all of them together."""

MAX_PERIODS = 40

PERIODS = {"W": "week", "M": "month", "Q": "quarter", "Y": "year"}
"""Calendar periods by pandas' letters, the shortest first."""

NamedRows = list[tuple[str, IntArray]]
"""Names of parts, with their rows."""


def summarise(predictions: Predictions, event: Event, rows: IntArray) -> dict[str, Any]:
    """Return expected and observed frequencies of the event in some rows, by name."""
    groups = None if predictions.groups is None else predictions.groups[rows]
    weight = None if predictions.weight is None else predictions.weight[rows]
    low, high = share_interval(event.outcome[rows], groups, weight)
    summary = {
        "n": len(rows),
        "expected": predictions.mean(event.p, rows),
        "observed": predictions.mean(event.outcome, rows),
        "observed_low": low,
        "observed_high": high,
    }
    for name, ends in (("bound", event.bounds), ("confidence", event.confidence)):
        if ends is not None:
            means = (predictions.mean(end, rows) for end in ends)
            summary |= dict(zip((f"{name}_low", f"{name}_high"), means, strict=True))
    return summary


def levels(
    predictions: Predictions, estimates: MethodEstimates, edges: Sequence[float]
) -> pd.DataFrame:
    """Return expected and observed frequencies by level of probability, closed below."""
    event = predictions.event(estimates)
    level = np.searchsorted(edges[1:-1], event.p, side="right")
    rows_of_levels = (np.flatnonzero(level == i) for i in np.unique(level))
    return pd.DataFrame([summarise(predictions, event, rows) for rows in rows_of_levels])


def thresholds(
    predictions: Predictions,
    estimates: MethodEstimates,
    at: Sequence[float] | None = None,
    tie: float | None = None,
) -> pd.DataFrame:
    """Return the effects of flagging rows, with one row for each threshold; None: usual ones.

    With confidence intervals, ``sure_yes``, ``open`` and ``sure_no`` count the rows whose interval
    is above the threshold, contains it or is below it. ``net_benefit`` is that of Vickers & Elkin
    (2006), and ``gain`` its excess over the better one of flagging every row and none. ``tie`` is
    the probability at which decisions cost the same.
    """
    share = predictions.share or 0.0
    cuts = {*USUAL_THRESHOLDS, round(share, 2)}
    if predictions.is_rare:
        sizes = [share * multiple for multiple in RARE_THRESHOLD_MULTIPLES]
        cuts = {round(size, -math.floor(math.log10(size))) for size in sizes if size > 0} | {0.5}
    if tie is not None:
        cuts = {t for t in cuts if abs(t - tie) > 1e-9} | {tie}
    cuts = {t for t in cuts if 0 < t < 1} if at is None else {*map(float, at)}
    judged = predictions.judged(estimates)
    columns = vars(judged.threshold_table(sorted(cuts), bounds=estimates.confidence, level=0.95))
    for name, (low, high) in columns.pop("intervals").items():
        columns |= {f"{name}_low": low, f"{name}_high": high}
    curve = vars(judged.net_benefit(sorted(cuts)))
    names = (f"{name}{end}" for name in ("net_benefit", "gain") for end in ("", "_low", "_high"))
    columns |= {name: curve[name] for name in names}
    columns = {key: values for key, values in columns.items() if values is not None}
    return pd.DataFrame(columns).rename(columns={"depends": "open"}).set_index("threshold")


def subgroups(
    by: Mapping[str, NDArray[Any]],
    predictions: Predictions,
    estimates: MethodEstimates,
    tolerance: float,
) -> pd.DataFrame:
    """Return calibration and errors of each part of the rows, by each column.

    The index is column and part. ``period`` is "week" … "year" for dates, else ""; ``adjusted`` are
    the p-values of calibration, adjusted for all parts (Holm 1979), NaN below 20 rows,
    or ten groups that have the rarer outcome. ``off`` says what is wrong where calibration is
    rejected, and the mean is off by more than the tolerance or the slope by more than a tenth.
    """
    event, losses = predictions.event(estimates), squared_losses(estimates.p, predictions.codes)
    judged = predictions.judged(estimates)
    parts: list[dict[str, Any]] = []
    for column, values in by.items():
        period, named_rows = parts_of_column(values, column)
        for name, rows in named_rows:
            part: dict[str, Any] = {"column": column, "part": name, "period": period}
            part |= summarise(predictions, event, rows)
            part["brier"] = predictions.mean(losses, rows)
            measures, pvalue = dict.fromkeys(MEASURES_OF_PARTS, UNDEFINED), np.nan
            if len(rows) >= MIN_ROWS_TO_TEST:
                measures, pvalue = (
                    judged.take(rows).calibration_and_ranking(),
                    judged.tests(rows).pvalue,
                )
            for key, estimate in measures.items():
                part |= with_ends(key, estimate.value, estimate.low, estimate.high)
            parts.append(part | {"pvalue": pvalue})
    frame = pd.DataFrame(parts)
    tested = frame["pvalue"].notna()
    frame["adjusted"] = np.nan
    frame.loc[tested, "adjusted"] = holm(frame.loc[tested, "pvalue"].to_numpy())
    excess, is_rejected = frame["observed"] - frame["expected"], frame["adjusted"] < PART_LEVEL
    frame["off"] = np.select(
        [
            ~is_rejected,
            excess > tolerance,
            excess < -tolerance,
            frame["slope"] < 1 - MAX_RATIO,
            frame["slope"] > 1 + MAX_RATIO,
        ],
        ["", "too low", "too high", "too extreme", "too moderate"],
        "",
    )
    return frame.set_index(["column", "part"])


def rejected_parts(off: pd.Series) -> dict[str, list[str]]:
    """Return the names of the parts where calibration is off, by what is wrong there."""
    return {way: off.index[off == way].tolist() for way in off.unique() if way}


def parts_of_column(
    values: NDArray[Any], name: str, max_periods: int = MAX_PERIODS
) -> tuple[str, NamedRows]:
    """Return the parts of a column, and the kind of period if it contains dates."""
    times = dates_in(values, name)
    if times is None:
        return "", parts_by_value(values)
    missing = np.isnat(times)
    present = np.flatnonzero(~missing)
    period, named_rows = periods(times[present], max_periods)
    parts = [(part, present[rows]) for part, rows in named_rows]
    return period, [*parts, *_missing_part(missing)]


def _missing_part(missing: NDArray[np.bool_]) -> NamedRows:
    return [(MISSING, np.flatnonzero(missing))] if missing.any() else []


def periods(times: NDArray[Any], max_periods: int = MAX_PERIODS) -> tuple[str, NamedRows]:
    """Divide dates (n,) into at most ``max_periods`` periods, the shortest with enough rows.

    The first and last period may have fewer. Returns the kind ("week", "month", "quarter" or
    "year") and the rows of each period.
    """
    for letter, kind in PERIODS.items():  # noqa: B007
        codes, values = pd.factorize(pd.DatetimeIndex(times).to_period(letter), sort=True)
        sizes = np.bincount(codes)
        inner = sizes[1:-1] if len(sizes) > 2 else sizes
        if 1 < len(values) <= max_periods and inner.min() >= MIN_ROWS_OF_PERIOD:
            break
    names = [str(value.start_time.date()) if kind == "week" else str(value) for value in values]
    return kind, [(name, np.flatnonzero(codes == i)) for i, name in enumerate(names)]


def parts_by_value(values: NDArray[Any]) -> NamedRows:
    """Return the rows of each value, or of quarters of numbers; the missing ones come last.

    If there are many values, only the most frequent are parts. Text with leading zeros is no
    number; see `group_names`.
    """
    texts = group_names(values, "by")
    missing = is_missing(texts) | (texts == MISSING)
    present = np.flatnonzero(~missing)
    labels = pd.Series(texts[present], dtype=object)
    numbers = pd.to_numeric(labels, errors="coerce").astype(np.float64)
    is_numeric = bool(np.isfinite(numbers).all()) and not has_leading_zeros(labels)
    if is_numeric and numbers.nunique() > MAX_VALUES:
        quarters = pd.qcut(numbers, N_NUMBER_PARTS, duplicates="drop")
        labels, names = quarters.astype(str), quarters.cat.categories.astype(str).tolist()
    else:
        keys = numbers if is_numeric else labels
        by_value = labels[keys.sort_values(kind="stable").index].drop_duplicates()
        names = by_value.tolist()
        if len(names) > MAX_VALUES:
            frequent = by_value.map(labels.value_counts()).nlargest(MAX_VALUES - 1).index
            remainder = f"{len(names) - len(frequent)} other values"
            names = [*by_value[by_value.index.isin(frequent)], remainder]
            labels = labels.where(labels.isin(names), remainder)
    parts = [(name, present[(labels == name).to_numpy()]) for name in names]
    return [*parts, *_missing_part(missing)]
