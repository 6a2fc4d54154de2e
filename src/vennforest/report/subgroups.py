"""Calibration of parts of the rows: by the values of a column, or by periods of time."""

from __future__ import annotations

from collections.abc import Mapping
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
    """Return the rows of each value, or of quarters of numbers; the missing ones come last.

    Of many values the most frequent are parts. Values that differ by spaces at their ends are the
    same.
    """
    import pandas as pd

    missing = are_missing(values)
    present = np.flatnonzero(~missing)
    cells = pd.Series(values[present])
    try:
        numbers = cells.astype(np.float64)
        is_numeric = bool(np.isfinite(numbers).all())
    except (TypeError, ValueError):
        is_numeric = False
    if is_numeric and numbers.nunique() > MAX_VALUES:
        quarters = pd.qcut(numbers, N_NUMBER_PARTS, duplicates="drop")
        labels, names = quarters.astype(str), quarters.cat.categories.astype(str).tolist()
    else:
        labels = cells.map(lambda value: str(value).strip())
        keys = numbers if is_numeric else labels
        by_value = labels[keys.sort_values(kind="stable").index].drop_duplicates()
        names = by_value.tolist()
        if len(names) > MAX_VALUES:
            frequent = by_value.map(labels.value_counts()).nlargest(MAX_VALUES - 1).index
            rest = f"{len(names) - len(frequent)} other values"
            names = [*by_value[by_value.index.isin(frequent)], rest]
            labels = labels.where(labels.isin(names), rest)
    parts = [(name, present[(labels == name).to_numpy()]) for name in names]
    return [*parts, *_missing_part(missing)]
