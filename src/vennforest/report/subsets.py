"""Parts of the rows: by the values of a column, by periods of time, and single rows."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, InputError, IntArray, is_frame
from vennforest.metrics import auc_interval
from vennforest.monitoring.columns import holm
from vennforest.performance.estimate import MIN_ROWS_TO_ESTIMATE
from vennforest.report.event import confidence_of, part_of
from vennforest.report.folds import are_missing, moments
from vennforest.report.measures import CALIBRATION_TESTS, squared_losses

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation


MOST_VALUES = 12
"""Of more values the most frequent are looked at, the others together."""

QUARTERS = 4
"""Numbers of many values are cut into so many parts of like size."""

LEVEL = 0.05
FEWEST = 20
"""Rows below which a value is only counted."""

MOST_PERIODS = 40
"""Periods that are shown; with more of them longer ones are taken."""

SLICES = 10
"""Equal parts that times which are numbers are cut into, at most."""


def subgroups(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return for each column that was asked for the rows of its table, and what they say."""
    tables = [_table(evaluation, name, values) for name, values in evaluation.by.items()]
    tested = [row for table in tables for row in table["rows"] if row["pvalue"] is not None]
    adjusted = holm(np.array([row["pvalue"] for row in tested])).tolist()
    for row, one in zip(tested, adjusted, strict=True):
        row["adjusted"] = one
    for table in tables:
        table["sentence"] = _sentence(table, len(tested))
    return tables


def _table(evaluation: Evaluation, name: str, values: NDArray[Any]) -> dict[str, Any]:
    """Return a column's table: over time by the shortest period with enough rows in each."""
    dates = _dates(values, name)
    if dates is None:
        (part, order), period = parted(values), ""
    else:
        part, there = np.full(len(values), "missing", object), np.flatnonzero(~np.isnat(dates))
        period, found = periods(dates[there])
        for part_name, at in found:
            part[there[at]] = part_name
        order = [one for one, _ in found] + ["missing"] * (len(there) < len(values))
    rows = [_row(evaluation, one, np.flatnonzero(part == one)) for one in order]
    over_time = bool(period) or name == evaluation.settings.get("time")
    return {"name": name, "period": period, "over_time": over_time, "rows": rows}


def periods(times: NDArray[Any]) -> tuple[str, list[tuple[str, IntArray]]]:
    """Return the shortest periods of ``times`` (n,) of which all inner ones have enough rows.

    What they are ("week" … "year", or "part" of numbers), and the name and the rows of each.
    """
    if times.dtype.kind == "M":
        for kind, numbers in _calendar(times):
            values, codes = np.unique(numbers, return_inverse=True)
            sizes = np.bincount(codes)
            inner = sizes[1:-1] if len(sizes) > 2 else sizes
            if kind == "year" or (
                1 < len(values) <= MOST_PERIODS and inner.min() >= MIN_ROWS_TO_ESTIMATE
            ):
                return kind, [
                    (_written(kind, value), np.flatnonzero(codes == code))
                    for code, value in enumerate(values)
                ]
    moments, at = np.unique(times, return_inverse=True)
    parts = max(1, min(SLICES, len(times) // (2 * MIN_ROWS_TO_ESTIMATE), len(moments)))
    middle = np.cumsum(np.bincount(at)) - np.bincount(at) / 2
    number = np.minimum((middle / len(times) * parts).astype(np.intp), parts - 1)[at]
    return "part", [
        (f"{times[rows].min():g} to {times[rows].max():g}", rows)
        for code in np.unique(number)
        for rows in [np.flatnonzero(number == code)]
    ]


def _calendar(times: NDArray[Any]) -> list[tuple[str, NDArray[np.int64]]]:
    days = times.astype("datetime64[D]").astype(np.int64)
    months = times.astype("datetime64[M]").astype(np.int64)
    weeks = (days + 3) // 7  # since the Monday before 1970
    return [("week", weeks), ("month", months), ("quarter", months // 3), ("year", months // 12)]


def _written(kind: str, value: int) -> str:
    if kind == "week":
        return str(np.datetime64(int(value) * 7 - 3, "D"))
    if kind == "month":
        return str(np.datetime64(int(value), "M"))
    return f"{1970 + value // 4} Q{value % 4 + 1}" if kind == "quarter" else str(1970 + value)


def _dates(values: NDArray[Any], name: str) -> NDArray[Any] | None:
    """Return the values as dates, NaT where missing; None if they are something else."""
    try:
        read = moments(values, name)
    except InputError:
        return None
    return read if read.dtype.kind == "M" and not np.isnat(read).all() else None


def parted(values: NDArray[Any]) -> tuple[NDArray[Any], list[str]]:
    """Return the part of each row by name, values or quarters of numbers, and the names' order."""
    missing = are_missing(values)
    names = np.full(len(values), "missing", dtype=object)
    there = values[~missing]
    last = ["missing"] * bool(missing.any())
    numeric = _numbers(there)
    if numeric is not None and len(np.unique(numeric)) > MOST_VALUES:
        cuts = np.unique(np.quantile(numeric, np.linspace(0, 1, QUARTERS + 1)[1:-1]))
        ends = [f"{cut:.4g}" for cut in cuts]
        between = [f"over {low} to {high}" for low, high in pairwise(ends)]
        titles = np.array([f"up to {ends[0]}", *between, f"over {ends[-1]}"], dtype=object)
        part = np.searchsorted(cuts, numeric, side="left")
        names[~missing] = titles[part]
        return names, [*titles[np.unique(part)], *last]
    # Values that differ by spaces at their ends are one.
    text = np.array([str(value).strip() for value in there.tolist()], dtype=object)
    kept, first, counts = np.unique(text, return_index=True, return_counts=True)
    order = kept.tolist() if numeric is None else kept[np.argsort(numeric[first])].tolist()
    if len(kept) > MOST_VALUES:
        most = set(kept[np.argsort(-counts, kind="stable")[: MOST_VALUES - 1]])
        rest = f"{len(kept) - len(most)} other values"
        text = np.array([value if value in most else rest for value in text], dtype=object)
        order = [value for value in order if value in most] + [rest]
    names[~missing] = text
    return names, [*order, *last]


def _numbers(values: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) and np.isfinite(numbers).all() else None


def _row(evaluation: Evaluation, name: str, at: NDArray[np.intp]) -> dict[str, Any]:
    folds, estimates = evaluation.folds, evaluation.best
    known = confidence_of(evaluation, estimates)
    row: dict[str, Any] = {
        "name": name,
        **part_of(evaluation, at),
        "width": None if known is None else float((known[1] - known[0])[at].mean()),
        "brier": float(squared_losses(estimates.p[at], folds.codes[at]).mean()),
        **dict.fromkeys(("auc", "auc_low", "auc_high", "pvalue", "adjusted")),
    }
    if len(at) < FEWEST:
        return row
    y, q = folds.classes[folds.codes[at]], estimates.p[at]
    options = {"classes": folds.classes, "pos_label": evaluation.label}
    area = auc_interval(y, q, groups=None if folds.groups is None else folds.groups[at], **options)
    if np.isfinite(area.auc):
        row.update(auc=area.auc, auc_low=area.low, auc_high=area.high)
    pvalues = (test(y, q, classes=folds.classes).pvalue for test in CALIBRATION_TESTS)
    row["pvalue"] = min(1.0, 2 * min(pvalues))
    return row


def _sentence(table: dict[str, Any], tests: int) -> str:
    off = [row for row in table["rows"] if row["adjusted"] is not None and row["adjusted"] < LEVEL]
    small = [row for row in table["rows"] if row["pvalue"] is None]
    many = f"{tests} parts tested at once, adjusted by Holm" if tests > 1 else "one part tested"
    text = f"Calibration is not rejected for any part ({many})."
    if off:
        ways = ("too high" if row["expected"] > row["observed"] else "too low" for row in off)
        shown = (f"{row['name']} ({way} on average)" for row, way in zip(off, ways, strict=True))
        text = f"Calibration is rejected for {'; '.join(shown)} ({many})."
    if small:
        text += f" {len(small)} with fewer than {FEWEST} rows cannot be judged."
    return text


SHOWN = 12
COLUMNS = 4
LEAST = 0.005
"""Importance below which a column is not named: it would be shown as 0 %."""
LONGEST = 40


def uncertain_rows(evaluation: Evaluation) -> dict[str, Any]:
    """Return the rows of the widest confidence intervals, or of the lowest probabilities."""
    _, low, high, p = _of_predicted(evaluation)
    doubt = high - low if low is not None and high is not None else 1 - p
    return _listing(evaluation, np.lexsort((p, -doubt))[:SHOWN])


def wrong_rows(evaluation: Evaluation) -> dict[str, Any]:
    """Return the rows that were predicted wrongly with the most confidence."""
    code, low, _, p = _of_predicted(evaluation)
    wrong = np.flatnonzero(code != evaluation.folds.codes)
    sure = p if low is None else low
    return _listing(evaluation, wrong[np.lexsort((-p[wrong], -sure[wrong]))][:SHOWN])


def most_split_on(evaluation: Evaluation) -> list[tuple[str, float]]:
    """Return the columns of a data frame with their importances, the largest first."""
    shares = evaluation.folds.importances if is_frame(evaluation.X) else {}
    return [(name, share) for name, share in shares.items() if share >= LEAST]


def _of_predicted(
    evaluation: Evaluation,
) -> tuple[IntArray, FloatArray | None, FloatArray | None, FloatArray]:
    """Return the predicted label's code, confidence interval (None: not known) and probability."""
    estimates = evaluation.best
    code = estimates.p.argmax(axis=1)
    at, known = (np.arange(len(code)), code), estimates.confidence
    if known is None:
        return code, None, None, estimates.p[at]
    return code, known.lower[at], known.upper[at], estimates.p[at]


def _listing(evaluation: Evaluation, order: IntArray) -> dict[str, Any]:
    folds = evaluation.folds
    code, low, high, p = _of_predicted(evaluation)
    names = [name for name, _ in most_split_on(evaluation)[:COLUMNS]]
    index, head, naming = _naming(evaluation)
    rows = [
        {
            "row": str(folds.rows[i] + 1 if index is None else index[folds.rows[i]]),
            "observed": str(folds.classes[folds.codes[i]]),
            "predicted": str(folds.classes[code[i]]),
            "p": float(p[i]),
            "low": None if low is None else float(low[i]),
            "high": None if high is None else float(high[i]),
            "cells": [_cell(evaluation.X, int(folds.rows[i]), name) for name in names],
        }
        for i in order
    ]
    return {"names": names, "rows": rows, "head": head, "naming": naming}


def _naming(evaluation: Evaluation) -> tuple[Any, str, str]:
    """Return the index that names the rows (None: counted from 1), its heading, what to say."""
    index = getattr(evaluation.X, "index", None) if is_frame(evaluation.X) else None
    if index is None or not index[evaluation.folds.rows].is_unique:
        return None, "Row", "Rows are counted from 1"
    if index.name is None:
        return index, "Index", "Rows are named by the index of the data frame"
    return index, str(index.name), ""


def _cell(X: Any, position: int, name: str) -> str:
    at = [str(column) for column in X.columns].index(name)
    if hasattr(X, "iloc"):
        value = None if X.iloc[:, at].isna().iloc[position] else X.iloc[position, at]
    else:
        value = X[position, at]
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    text = "–" if value is None else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
