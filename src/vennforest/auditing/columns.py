"""Columns that repeat an ID or predict the label on their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.tree import DecisionTreeClassifier

from vennforest._validation import FloatArray, IntArray
from vennforest.auditing.finding import Finding

MIN_AUDITED_ROWS = 40
MAX_AUDITED_ROWS = 5_000
"""Rows that steps are fitted to and columns are judged by; below the first nothing is reported."""

MIN_ERRORS_REMOVED = 0.98
MIN_AGREEMENT_OF_IDS = 0.98
"""Share of the errors of the most frequent class that a leaking column removes, and of pairs of
rows with one ID that have the same label."""


def find_faulty_columns(
    names: Iterable[Any], columns: list[NDArray[Any]], codes: IntArray, groups: IntArray | None
) -> Iterator[Finding]:
    """Yield a finding for each column that is a repeated ID or predicts the label on its own."""
    rows = np.sort(np.random.default_rng(0).permutation(len(codes))[:MAX_AUDITED_ROWS])
    codes = np.unique(codes[rows], return_inverse=True)[1]
    for name, column in zip(names, columns, strict=True):
        column = column[rows]
        if leaks_class(column, codes):
            message = (
                f"column {name!r} alone predicts the label almost without error: leave it out if "
                "it was recorded after the outcome"
            )
            yield Finding("leaking column", "warning", message)
        elif groups is None and repeats_ids(column, codes):
            message = (
                f"column {name!r} looks like a repeated ID, whose rows have one label each: pass "
                "it as groups= to keep the rows of one person or object together, and leave it out "
                "of X"
            )
            yield Finding("repeated ID", "warning", message)


def leaks_class(column: NDArray[Any], codes: IntArray) -> bool:
    """Return whether a small tree on a column (n,) predicts the class (n,) almost perfectly."""
    values, counts = column_as_numbers(column), np.bincount(codes)
    n_errors = len(codes) - counts.max()
    if n_errors < 5 or counts.min() < 3:
        return False
    if column.dtype.kind not in "biufmM" and len(np.unique(values)) > len(values) / 4:
        return False
    tree = DecisionTreeClassifier(max_leaf_nodes=4 * len(counts), random_state=0)
    limit = (1 - MIN_ERRORS_REMOVED) * n_errors
    cells = values[:, None]
    if (tree.fit(cells, codes).predict(cells) != codes).sum() > 1.5 * limit:
        return False
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    return bool((cross_val_predict(tree, cells, codes, cv=folds) != codes).sum() <= limit)


def repeats_ids(column: NDArray[Any], codes: IntArray) -> bool:
    """Return whether a column (n,) is like an ID: many values, of few rows with one label each."""
    values, n = column_as_numbers(column), len(codes)
    if column.dtype.kind in "bmM" or (values % 1 > 0).any():
        return False
    _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
    if not max(20, n / 50) <= len(counts) <= 0.8 * n:
        return False
    table = np.zeros((len(counts), codes.max() + 1))
    np.add.at(table, (number, codes), 1)
    n_pairs = float((counts * (counts - 1)).sum())
    agreement = float((table * (table - 1)).sum()) / n_pairs
    by_chance = float(np.square(np.bincount(codes) / n).sum())
    if agreement < MIN_AGREEMENT_OF_IDS or n_pairs * (1 - by_chance) < 50:
        return False
    # Neighbouring values of a number that matters agree in their labels too.
    label = table.argmax(axis=1)
    return bool((label[1:] == label[:-1]).mean() < (1 + by_chance) / 2)


def column_as_numbers(column: NDArray[Any]) -> FloatArray:
    """Return a column (n,) as float64: codes for text, NaN for missing cells."""
    if column.dtype.kind in "mM":
        return np.where(np.isnat(column), np.nan, column.astype(np.int64))
    if column.dtype.kind in "biuf":
        return np.where(np.isfinite(column), column, np.nan).astype(np.float64)
    return np.unique(list(map(str, column.tolist())), return_inverse=True)[1].astype(np.float64)
