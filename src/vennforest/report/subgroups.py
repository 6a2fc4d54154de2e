"""Calibration of parts of the rows: by the values of a column, or by periods of time."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import InputError, IntArray
from vennforest.metrics import auc_interval
from vennforest.monitoring.columns import holm
from vennforest.performance.estimate import MIN_ROWS_TO_ESTIMATE as MIN_ROWS_OF_PERIOD
from vennforest.report.event import Event
from vennforest.report.measures import CALIBRATION_TESTS, Predictions, squared_losses
from vennforest.report.splits import are_missing, equal_parts, moments

if TYPE_CHECKING:
    import pandas as pd

MAX_VALUES = 12
"""Values of a column that are parts of their own; of more the most frequent are."""

N_NUMBER_PARTS = 4
"""Parts of like size that numbers of many values are cut into."""

MIN_ROWS_TO_TEST = 20
MAX_PERIODS = 40
MAX_TIME_PARTS = 10
"""Parts of like size that times which are numbers are cut into, at most."""

Parts = list[tuple[str, IntArray]]
"""Names of parts, with their rows."""


def subgroups(
    by: Mapping[str, NDArray[Any]],
    predictions: Predictions,
    method: str,
    positive: int | None,
) -> pd.DataFrame:
    """Return calibration and errors of each part of the rows, by each column.

    Indexed by column and part. ``period`` is "week" … "year" for dates, else ""; ``adjusted`` are
    the p-values of calibration, adjusted for all parts (Holm 1979), NaN below 20 rows.
    """
    import pandas as pd

    estimates, groups = predictions.estimates[method], predictions.groups
    event = Event.of(estimates, predictions.codes, positive)
    losses = squared_losses(estimates.p, predictions.codes)
    parts = [
        {
            "column": column,
            "part": name,
            "period": period,
            **event.summary(rows, groups),
            "brier": float(losses[rows].mean()),
            **_ranking_and_test(predictions, method, positive, rows),
        }
        for column, values in by.items()
        for period, named_rows in [_parts_of_column(values, column)]
        for name, rows in named_rows
    ]
    frame = pd.DataFrame(parts)
    tested = frame["pvalue"].notna()
    frame["adjusted"] = np.nan
    frame.loc[tested, "adjusted"] = holm(frame.loc[tested, "pvalue"].to_numpy())
    return frame.set_index(["column", "part"])


def _ranking_and_test(
    predictions: Predictions, method: str, positive: int | None, rows: IntArray
) -> dict[str, float]:
    """Return AUC with its interval, and the p-value of calibration; NaN for few rows."""
    names = ("auc", "auc_low", "auc_high", "pvalue")
    if len(rows) < MIN_ROWS_TO_TEST:
        return dict.fromkeys(names, np.nan)
    classes, groups = predictions.classes, predictions.groups
    y, p = classes[predictions.codes[rows]], predictions.estimates[method].p[rows]
    auc = auc_interval(
        y,
        p,
        groups=None if groups is None else groups[rows],
        classes=classes,
        pos_label=None if positive is None else classes[positive],
    )
    pvalue = min(1.0, 2 * min(test(y, p, classes=classes).pvalue for test in CALIBRATION_TESTS))
    return dict(zip(names, (auc.auc, auc.low, auc.high, pvalue), strict=True))


def sentence(table: pd.DataFrame, n_tested: int) -> str:
    """Return for which parts of one column calibration is rejected."""
    rejected = table[table["adjusted"] < 0.05]
    n_small = int(table["pvalue"].isna().sum())
    many = f"{n_tested} parts tested, adjusted by Holm" if n_tested > 1 else "one part tested"
    text = f"Calibration is not rejected for any part ({many})."
    if len(rejected):
        ways = np.where(rejected["expected"] > rejected["observed"], "high", "low")
        names = rejected.index.get_level_values("part")
        shown = (f"{name} (too {way} on average)" for name, way in zip(names, ways, strict=True))
        text = f"Calibration is rejected for {'; '.join(shown)} ({many})."
    if n_small:
        text += f" {n_small} with fewer than {MIN_ROWS_TO_TEST} rows cannot be judged."
    return text


def _parts_of_column(values: NDArray[Any], name: str) -> tuple[str, Parts]:
    """Return the parts of a column, and the kind of period if it contains dates."""
    try:
        times = moments(values, name)
    except InputError:
        times = None
    if times is None or times.dtype.kind != "M" or np.isnat(times).all():
        return "", parts_by_value(values)
    missing = np.isnat(times)
    present = np.flatnonzero(~missing)
    period, named_rows = periods(times[present])
    parts = [(part, present[rows]) for part, rows in named_rows]
    return period, [*parts, *_missing_part(missing)]


def _missing_part(missing: NDArray[np.bool_]) -> Parts:
    return [("missing", np.flatnonzero(missing))] if missing.any() else []


def periods(times: NDArray[Any]) -> tuple[str, Parts]:
    """Return the shortest periods of ``times`` (n,), all inner ones of which have enough rows.

    The kind ("week", "month", "quarter", "year", or "part" of numbers), and the rows of each.
    """
    if times.dtype.kind == "M":
        for kind, numbers in _calendar(times):
            values, codes = np.unique(numbers, return_inverse=True)
            sizes = np.bincount(codes)
            inner = sizes[1:-1] if len(sizes) > 2 else sizes
            is_long_enough = 1 < len(values) <= MAX_PERIODS and inner.min() >= MIN_ROWS_OF_PERIOD
            if kind == "year" or is_long_enough:
                return kind, [
                    (_period_name(kind, int(value)), np.flatnonzero(codes == code))
                    for code, value in enumerate(values)
                ]
    n_parts = min(MAX_TIME_PARTS, len(times) // (2 * MIN_ROWS_OF_PERIOD), len(np.unique(times)))
    part = equal_parts(times, max(1, n_parts))
    named_rows = [np.flatnonzero(part == i) for i in np.unique(part)]
    return "part", [
        (f"{times[rows].min():g} to {times[rows].max():g}", rows) for rows in named_rows
    ]


def _calendar(times: NDArray[Any]) -> list[tuple[str, NDArray[np.int64]]]:
    days = times.astype("datetime64[D]").astype(np.int64)
    months = times.astype("datetime64[M]").astype(np.int64)
    weeks = (days + 3) // 7  # since the Monday before 1970
    return [("week", weeks), ("month", months), ("quarter", months // 3), ("year", months // 12)]


def _period_name(kind: str, value: int) -> str:
    if kind == "week":
        return str(np.datetime64(value * 7 - 3, "D"))
    if kind == "month":
        return str(np.datetime64(value, "M"))
    return f"{1970 + value // 4} Q{value % 4 + 1}" if kind == "quarter" else str(1970 + value)


def parts_by_value(values: NDArray[Any]) -> Parts:
    """Return the rows of each value, or of quarters of numbers; the missing ones come last."""
    missing = are_missing(values)
    present = np.flatnonzero(~missing)
    numbers = _as_numbers(values[present])
    if numbers is not None and len(np.unique(numbers)) > MAX_VALUES:
        part, names = _cut(numbers)
    else:
        part, names = _values(values[present], numbers)
    parts = [(name, present[part == i]) for i, name in enumerate(names)]
    return [*((name, rows) for name, rows in parts if len(rows)), *_missing_part(missing)]


def _cut(numbers: NDArray[np.float64]) -> tuple[IntArray, list[str]]:
    """Return quarters of numbers, and their names."""
    inner = np.linspace(0, 1, N_NUMBER_PARTS + 1)[1:-1]
    cuts = np.unique(np.quantile(numbers, inner))
    # As few digits as tell the cuts apart; 17 tell any two numbers apart.
    texts = ([f"{cut:.{digits}g}" for cut in cuts] for digits in range(4, 18))
    ends = next(names for names in texts if len(set(names)) == len(cuts))
    between = [f"over {low} to {high}" for low, high in pairwise(ends)]
    names = [f"up to {ends[0]}", *between, f"over {ends[-1]}"]
    return np.searchsorted(cuts, numbers, side="left").astype(np.intp), names


def _values(
    values: NDArray[Any], numbers: NDArray[np.float64] | None
) -> tuple[IntArray, list[str]]:
    """Return a part for each value, or the most frequent ones and the rest, and their names.

    Values that differ by spaces at their ends are one; numbers are sorted as numbers.
    """
    text = np.array([str(value).strip() for value in values.tolist()], dtype=object)
    names, first, part, counts = np.unique(
        text, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.arange(len(names)) if numbers is None else np.argsort(numbers[first])
    rest = []
    if len(names) > MAX_VALUES:
        frequent = np.argsort(-counts, kind="stable")[: MAX_VALUES - 1]
        rest = [f"{len(names) - len(frequent)} other values"]
        order = order[np.isin(order, frequent)]
    number = np.full(len(names), len(order))
    number[order] = np.arange(len(order))
    return number[part], [*names[order].tolist(), *rest]


def _as_numbers(values: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) and np.isfinite(numbers).all() else None
