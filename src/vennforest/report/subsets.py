"""Parts of the rows: subgroups by the values of a column, and single rows to look at."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, InputError, IntArray, is_frame
from vennforest.metrics import auc_interval, kuiper_test, spiegelhalter_test
from vennforest.report.event import confidence_of, event_of, share_interval
from vennforest.report.expected import periods
from vennforest.report.folds import moments
from vennforest.report.measures import squared_losses

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation


MOST_VALUES = 12
"""Of more values the most frequent are looked at, the others together."""

QUARTERS = 4
"""Numbers of many values are cut into so many parts of like size."""

LEVEL = 0.05
FEWEST = 20
"""Rows below which a value is only counted."""


def subgroups(evaluation: Evaluation) -> list[dict[str, Any]]:
    """Return for each column that was asked for the rows of its table, and what they say."""
    tables = [_table(evaluation, name, values) for name, values in evaluation.by.items()]
    tested = [row for table in tables for row in table["rows"] if row["pvalue"] is not None]
    for row, adjusted in zip(tested, holm([row["pvalue"] for row in tested]), strict=True):
        row["adjusted"] = adjusted
    for table in tables:
        table["sentence"] = _sentence(table, len(tested))
    return tables


def _table(evaluation: Evaluation, name: str, values: NDArray[Any]) -> dict[str, Any]:
    """Return a column's table: over time by the shortest period with enough rows in each."""
    dates = _dates(values, name)
    if dates is None:
        part, period = parted(values), ""
        order = list(dict.fromkeys(sorted(part, key=_order)))
    else:
        part, there = (
            np.full(len(values), "missing", dtype=object),
            np.flatnonzero(~np.isnat(dates)),
        )
        period, found = periods(dates[there])
        for one in found:
            part[there[one.rows]] = one.name
        order = [one.name for one in found] + ["missing"] * (len(there) < len(values))
    rows = [_row(evaluation, one, np.flatnonzero(part == one)) for one in order]
    over_time = bool(period) or name == evaluation.settings.get("time")
    return {"name": name, "period": period, "over_time": over_time, "rows": rows}


def _dates(values: NDArray[Any], name: str) -> NDArray[Any] | None:
    """Return the values as dates, NaT where missing; None if they are something else."""
    try:
        read = moments(values, name)
    except InputError:
        return None
    return read if read.dtype.kind == "M" and not np.isnat(read).all() else None


def holm(pvalues: list[float]) -> list[float]:
    """Return p-values adjusted for their number (Holm 1979), in their order."""
    m = len(pvalues)
    order = np.argsort(pvalues, kind="stable")
    steps = np.array(pvalues)[order] * (m - np.arange(m))
    adjusted = np.minimum(1.0, np.maximum.accumulate(steps)) if m else steps
    back = np.empty(m)
    back[order] = adjusted
    return [float(value) for value in back]


def parted(values: NDArray[Any]) -> NDArray[Any]:
    """Return the part of each row, as text: values, quarters of numbers, the rare ones together."""
    missing = np.array([_is_missing(value) for value in values.tolist()], dtype=bool)
    names = np.full(len(values), "missing", dtype=object)
    there = values[~missing]
    numeric = _numbers(there)
    if numeric is not None and len(np.unique(numeric)) > MOST_VALUES:
        cuts = np.unique(np.quantile(numeric, np.linspace(0, 1, QUARTERS + 1)[1:-1]))
        part = np.searchsorted(cuts, numeric, side="left")
        ends = [*(f"{cut:.4g}" for cut in cuts)]
        titles = [
            f"up to {ends[0]}",
            *(f"over {low} to {high}" for low, high in pairwise(ends)),
            f"over {ends[-1]}",
        ]
        names[~missing] = np.array(titles, dtype=object)[part]
        return names
    # Values that differ by spaces at their ends are one.
    text = np.array([str(value).strip() for value in there.tolist()], dtype=object)
    kept, counts = np.unique(text, return_counts=True)
    if len(kept) > MOST_VALUES:
        most = set(kept[np.argsort(-counts, kind="stable")[: MOST_VALUES - 1]])
        rest = f"{len(kept) - len(most)} other values"
        text = np.array([value if value in most else rest for value in text], dtype=object)
    names[~missing] = text
    return names


def _is_missing(value: Any) -> bool:
    if value is None or (isinstance(value, str) and not value.strip()):
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return True


def _numbers(values: NDArray[Any]) -> NDArray[np.float64] | None:
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        return None
    return numbers if len(numbers) and np.isfinite(numbers).all() else None


def _order(name: str) -> tuple[int, float, str]:
    """Return what parts are sorted by: quarters and numbers by size, then text, then the rest."""
    words = name.split()
    if name == "missing":
        return (3, 0.0, name)
    try:
        if name.startswith("up to "):
            return (0, -float("inf"), name)
        number = float(words[1] if name.startswith("over ") else name)
        return (0, number, name)
    except (ValueError, IndexError):
        return (2 if name.endswith(" other values") else 1, 0.0, name)


def _row(evaluation: Evaluation, name: str, at: NDArray[np.intp]) -> dict[str, Any]:
    folds = evaluation.folds
    estimates = folds.estimates[evaluation.verdict.method]
    p, outcome, *_ = event_of(evaluation, estimates)
    known = confidence_of(evaluation, estimates)
    n, events = len(at), int(outcome[at].sum())
    least, most = share_interval(outcome[at], None if folds.groups is None else folds.groups[at])
    expected = float(p[at].sum())
    row: dict[str, Any] = {
        "name": name,
        "n": n,
        "events": events,
        "expected": expected / n,
        "observed": events / n,
        "least": least,
        "most": most,
        "width": None if known is None else float((known[1] - known[0])[at].mean()),
        "brier": float(squared_losses(estimates.p[at], folds.codes[at]).mean()),
        "auc": None,
        "auc_low": None,
        "auc_high": None,
        "pvalue": None,
        "adjusted": None,
    }
    if n < FEWEST:
        return row
    y, q = folds.classes[folds.codes[at]], estimates.p[at]
    options = {"classes": folds.classes, "pos_label": evaluation.label}
    area = auc_interval(y, q, groups=None if folds.groups is None else folds.groups[at], **options)
    if np.isfinite(area.auc):
        row.update(auc=area.auc, auc_low=area.low, auc_high=area.high)
    tests = (spiegelhalter_test, kuiper_test)
    row["pvalue"] = min(1.0, 2 * min(test(y, q, classes=folds.classes).pvalue for test in tests))
    return row


def _sentence(table: dict[str, Any], tests: int) -> str:
    off = [row for row in table["rows"] if row["adjusted"] is not None and row["adjusted"] < LEVEL]
    small = [row for row in table["rows"] if row["pvalue"] is None]
    many = (
        f"with {tests} parts tested at once, adjusted by Holm" if tests > 1 else "one part tested"
    )
    if off:
        shown = "; ".join(
            f"{row['name']} ({'too high' if row['expected'] > row['observed'] else 'too low'}"
            " on average)"
            for row in off
        )
        text = f"Calibration is rejected for {shown} ({many})."
    else:
        text = f"Calibration is not rejected for any part ({many})."
    if small:
        text += f" {len(small)} with fewer than {FEWEST} rows cannot be judged."
    return text


SHOWN = 12
COLUMNS = 4
LEAST = 0.005
"""Importance below which a column is not named: it would be shown as 0 %."""
LONGEST = 40


def uncertain_rows(evaluation: Evaluation) -> dict[str, Any]:
    """Return the rows whose class is least certain, the most uncertain first.

    Those of the widest confidence interval of the predicted label; where it is not known, those of
    the lowest probability.
    """
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
    estimates = evaluation.folds.estimates[evaluation.verdict.method]
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
    if index is None:
        return None, "Row", "Rows are counted from 1"
    if not index[evaluation.folds.rows].is_unique:
        return None, "Row", "Rows are counted from 1, because the index repeats"
    if index.name is None:
        return index, "Index", "Rows are named by the index of the data frame"
    return index, str(index.name), ""


def _cell(X: Any, position: int, name: str) -> str:
    at = [str(column) for column in X.columns].index(name)
    if hasattr(X, "iloc"):
        value = None if X.iloc[:, at].isna().iloc[position] else X.iloc[position, at]
    else:
        value = X[position, at]
    if value is None:
        return "–"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    text = str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
