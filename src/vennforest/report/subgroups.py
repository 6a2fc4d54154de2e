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
from vennforest.report.event import summarise
from vennforest.report.measures import CALIBRATION_TESTS, Predictions, squared_losses
from vennforest.report.splits import are_missing, moments

if TYPE_CHECKING:
    import pandas as pd

MAX_VALUES = 12
"""Values of a column that are parts of their own; of more the most frequent are."""

N_NUMBER_PARTS = 4
"""Parts of like size that numbers of many values are cut into."""

MIN_ROWS_TO_TEST = 20
MAX_PERIODS = 40

PERIODS = {"W": "week", "M": "month", "Q": "quarter", "Y": "year"}
"""Calendar periods by pandas' letters, the shortest first."""

Parts = list[tuple[str, IntArray]]
"""Names of parts, with their rows."""


def subgroups(
    by: Mapping[str, NDArray[Any]], predictions: Predictions, method: str
) -> pd.DataFrame:
    """Return calibration and errors of each part of the rows, by each column.

    Indexed by column and part. ``period`` is "week" … "year" for dates, else ""; ``adjusted`` are
    the p-values of calibration, adjusted for all parts (Holm 1979), NaN below 20 rows.
    """
    import pandas as pd

    estimates, groups = predictions.estimates[method], predictions.groups
    event, losses = predictions.event(estimates), squared_losses(estimates.p, predictions.codes)
    parts = [
        {
            "column": column,
            "part": name,
            "period": period,
            **summarise(event, rows, groups),
            "brier": float(losses[rows].mean()),
            **_ranking_and_test(predictions, method, rows),
        }
        for column, values in by.items()
        for period, named_rows in [parts_of_column(values, column)]
        for name, rows in named_rows
    ]
    frame = pd.DataFrame(parts)
    tested = frame["pvalue"].notna()
    frame["adjusted"] = np.nan
    frame.loc[tested, "adjusted"] = holm(frame.loc[tested, "pvalue"].to_numpy())
    return frame.set_index(["column", "part"])


def _ranking_and_test(predictions: Predictions, method: str, rows: IntArray) -> dict[str, float]:
    """Return AUC with its interval, and the p-value of calibration; NaN for few rows."""
    if len(rows) < MIN_ROWS_TO_TEST:
        return dict.fromkeys(("auc", "auc_low", "auc_high", "pvalue"), np.nan)
    groups = None if predictions.groups is None else predictions.groups[rows]
    options = predictions.for_metric(predictions.estimates[method], rows)
    auc = auc_interval(groups=groups, **options)
    del options["pos_label"]
    pvalue = min(1.0, 2 * min(test(**options).pvalue for test in CALIBRATION_TESTS))
    return {"auc": auc.auc, "auc_low": auc.low, "auc_high": auc.high, "pvalue": pvalue}


def sentence(table: pd.DataFrame, n_tested: int) -> str:
    """Return for which parts of one column calibration is rejected."""
    rejected = table[table["adjusted"] < 0.05]
    ways = np.where(rejected["expected"] > rejected["observed"], "high", "low")
    names = rejected.index.get_level_values("part")
    shown = [f"{name} (too {way} on average)" for name, way in zip(names, ways, strict=True)]
    text = f"rejected for {'; '.join(shown)}" if shown else "not rejected for any part"
    return f"Calibration is {text} (parts tested: {n_tested}, adjusted by Holm)."


def parts_of_column(values: NDArray[Any], name: str) -> tuple[str, Parts]:
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
    """Return the shortest periods of dates (n,), all inner ones of which have enough rows.

    The kind ("week", "month", "quarter" or "year"), and the rows of each.
    """
    import pandas as pd

    for letter, kind in PERIODS.items():  # noqa: B007
        codes, values = pd.factorize(pd.DatetimeIndex(times).to_period(letter), sort=True)
        sizes = np.bincount(codes)
        inner = sizes[1:-1] if len(sizes) > 2 else sizes
        if 1 < len(values) <= MAX_PERIODS and inner.min() >= MIN_ROWS_OF_PERIOD:
            break
    names = [str(value.start_time.date()) if kind == "week" else str(value) for value in values]
    return kind, [(name, np.flatnonzero(codes == i)) for i, name in enumerate(names)]


def parts_by_value(values: NDArray[Any]) -> Parts:
    """Return the rows of each value, or of quarters of numbers; the missing ones come last."""
    missing = are_missing(values)
    present = np.flatnonzero(~missing)
    numbers = _as_numbers(values[present])
    if numbers is not None and len(np.unique(numbers)) > MAX_VALUES:
        part, names = _quarters(numbers)
    else:
        part, names = _values(values[present], numbers)
    parts = [(name, present[part == i]) for i, name in enumerate(names)]
    return [*((name, rows) for name, rows in parts if len(rows)), *_missing_part(missing)]


def _quarters(numbers: NDArray[np.float64]) -> tuple[IntArray, list[str]]:
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

    Values that differ by spaces at their ends are the same; numbers are sorted as numbers.
    """
    import pandas as pd

    text = pd.Series([str(value).strip() for value in values.tolist()], dtype=object)
    keys = text if numbers is None else pd.Series(numbers)
    names = text[keys.sort_values(kind="stable").index].drop_duplicates()
    rest = []
    if len(names) > MAX_VALUES:
        frequent = names.map(text.value_counts()).nlargest(MAX_VALUES - 1).index
        rest = [f"{len(names) - len(frequent)} other values"]
        names = names[names.index.isin(frequent)]
    codes = pd.Index(names).get_indexer(pd.Index(text))
    return np.where(codes < 0, len(names), codes), [*names, *rest]


def _as_numbers(values: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) and np.isfinite(numbers).all() else None
