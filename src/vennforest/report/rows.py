"""The rows that a reader should look at: the most uncertain, and the most confident mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._validation import FloatArray, IntArray, is_frame

if TYPE_CHECKING:
    from vennforest.report.evaluation import Evaluation

SHOWN = 12
COLUMNS = 4
LEAST = 0.005
"""Importance below which a column is not named: it would read 0 %."""
LONGEST = 40


def uncertain_rows(evaluation: Evaluation) -> dict[str, Any]:
    """Return the rows whose class is least certain, the most uncertain first.

    With bounds those of the widest interval of the predicted label; without, those of the lowest
    confidence.
    """
    _, low, high, p = _of_predicted(evaluation)
    doubt = high - low if low is not None and high is not None else 1 - p
    order = np.lexsort((p, -doubt))[:SHOWN]
    return _listing(evaluation, order)


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
    """Return code, lower and upper (None: no bounds) and probability of the predicted label."""
    estimates = evaluation.folds.estimates[evaluation.verdict.method]
    code = estimates.p.argmax(axis=1)
    at = code[:, None]
    p = np.take_along_axis(estimates.p, at, axis=1)[:, 0]
    if estimates.bounds is None:
        return code, None, None, p
    low = np.take_along_axis(estimates.bounds.lower, at, axis=1)[:, 0]
    high = np.take_along_axis(estimates.bounds.upper, at, axis=1)[:, 0]
    return code, low, high, p


def _listing(evaluation: Evaluation, order: IntArray) -> dict[str, Any]:
    folds = evaluation.folds
    code, low, high, p = _of_predicted(evaluation)
    names = [name for name, _ in most_split_on(evaluation)[:COLUMNS]]
    index, head, said = _naming(evaluation)
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
    return {"names": names, "rows": rows, "head": head, "said": said}


def _naming(evaluation: Evaluation) -> tuple[Any, str, str]:
    """Return the index that names the rows (None: counted from 1), its heading, what to say."""
    index = getattr(evaluation.X, "index", None) if is_frame(evaluation.X) else None
    if index is None:
        return None, "Row", "Rows are counted from 1"
    if not index[evaluation.folds.rows].is_unique:
        return None, "Row", "Rows are counted from 1, since the index names some of them alike"
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
