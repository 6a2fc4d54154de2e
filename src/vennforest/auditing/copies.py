"""Rows that are near-copies of others, or were made from others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest
from sklearn.neighbors import NearestNeighbors

from vennforest._validation import FloatArray, IntArray
from vennforest.auditing.columns import MIN_AUDITED_ROWS, column_as_numbers
from vennforest.auditing.finding import Finding
from vennforest.sources.checks import is_measured_column

MAX_SAMPLED_ROWS = 500
N_NEIGHBORS = 20
"""Rows whose neighbours are searched for, and neighbours of each, among which its copies are."""

RELATIVE_DISTANCE_OF_COPIES = 0.1
MIN_COLUMNS = 3
"""Largest distance of a copy, relative to that of the nearest row that is none, and measured
columns from which that is no chance."""

MIN_SHARE_OF_COPIES = 0.02
MIN_SHARE_OF_SYNTHETIC = 0.05
MAX_P_VALUE_OF_COPIES = 1e-5
"""Shares of the sampled rows up to which nothing is reported, and the largest probability of as
clear copies in a table without any (one-sided binomial test)."""

COSINE_TOLERANCE = 1e-9
"""Difference of a cosine from -1 up to which a row lies on the line between two others."""


def find_near_copies(
    columns: list[NDArray[Any]], codes: IntArray, groups: IntArray | None
) -> Iterator[Finding]:
    """Yield a finding if rows, of which none are equal, are near-copies of others, or synthetic."""
    n = len(codes)
    table, is_measured = _standardized(columns, n)
    n_measured = int(is_measured.sum())
    if n < MIN_AUDITED_ROWS or not table.shape[1] or 0 < n_measured < MIN_COLUMNS:
        return
    sampled = np.sort(np.random.default_rng(0).permutation(n)[:MAX_SAMPLED_ROWS])
    neighbors, distance = _neighbors(table, sampled, groups)
    synthetic = _between_two(table[:, is_measured], codes, sampled, neighbors, distance)
    if synthetic.mean() > MIN_SHARE_OF_SYNTHETIC:
        message = (
            f"about {synthetic.mean():.0%} of the examples lie exactly between two others of their "
            "class, as SMOTE makes them: probabilities would be those of a population with other "
            "class frequencies, and too certain. Fit to the original rows; a rare class needs no "
            "oversampling"
        )
        yield Finding("synthetic rows", "warning", message, sampled[synthetic])
        return
    is_next = distance * RELATIVE_DISTANCE_OF_COPIES > distance[:, :1]
    if not n_measured:
        # Cells of few categories have many equal rows: the next neighbour differs in three.
        is_next &= (table[neighbors] != table[sampled, None]).sum(axis=2) >= MIN_COLUMNS
        is_next[(distance > 0).argmax(axis=1) != is_next.argmax(axis=1)] = False
    rows = np.flatnonzero(is_next.any(axis=1))
    # Without copies either neighbour has the row's label as often (McNemar 1947).
    copy_agrees = codes[neighbors[rows, 0]] == codes[sampled[rows]]
    next_neighbor = neighbors[rows, is_next[rows].argmax(axis=1)]
    next_agrees = codes[next_neighbor] == codes[sampled[rows]]
    better, worse = int((copy_agrees & ~next_agrees).sum()), int((next_agrees & ~copy_agrees).sum())
    if better - worse <= MIN_SHARE_OF_COPIES * len(sampled):
        return
    if binomtest(better, better + worse, alternative="greater").pvalue < MAX_P_VALUE_OF_COPIES:
        message = (
            f"about {len(rows) / len(sampled):.0%} of the examples have a near-copy with their "
            "label: one trains where the other calibrates, so probabilities and bounds may be too "
            "certain. Pass groups= to keep the rows of one person or object together"
        )
        yield Finding("near-copies", "warning", message, sampled[rows])


def _neighbors(
    table: FloatArray, sampled: IntArray, groups: IntArray | None
) -> tuple[IntArray, FloatArray]:
    """Return the nearest rows of m sampled rows, and distances (NaN within a group), (m, k)."""
    k = min(N_NEIGHBORS + 1, len(table))
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(table)
    neighbors = search.kneighbors(table[sampled], return_distance=False)
    # A row is its own neighbour, or one of its copies is: then the last is left out.
    is_self = neighbors == sampled[:, None]
    is_self[~is_self.any(axis=1), -1] = True
    neighbors = neighbors[~is_self].reshape(len(sampled), k - 1)
    distance = np.linalg.norm(table[neighbors] - table[sampled, None], axis=2)
    if groups is not None:
        distance[groups[neighbors] == groups[sampled, None]] = np.nan
    order = np.argsort(distance, axis=1, kind="stable")
    return np.take_along_axis(neighbors, order, 1), np.take_along_axis(distance, order, 1)


def _between_two(
    table: FloatArray, codes: IntArray, sampled: IntArray, neighbors: IntArray, distance: FloatArray
) -> NDArray[np.bool_]:
    """Return a mask (m,) of sampled rows on the line between two neighbours of their class."""
    step = table[neighbors] - table[sampled, None]
    length = np.linalg.norm(step, axis=2)
    usable = (codes[neighbors] == codes[sampled, None]) & (length > 0) & ~np.isnan(distance)
    step /= np.where(length > 0, length, 1)[..., None]
    # Rows that differ in fewer columns lie on lines by chance.
    usable &= (np.abs(step) > COSINE_TOLERANCE).sum(axis=2) >= MIN_COLUMNS
    cosine = step @ step.transpose(0, 2, 1)
    is_straight = usable[:, :, None] & usable[:, None, :] & (cosine < COSINE_TOLERANCE - 1)
    return np.asarray(is_straight.any(axis=(1, 2)))


def _standardized(columns: list[NDArray[Any]], n: int) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return columns as standardised numbers (n, c), and a mask (c,) of continuous ones.

    Constant columns, and integers or text with a different value in every row, are left out.
    """
    standardized, is_measured = [np.empty((n, 0))], []
    for column in columns:
        numbers, measured = column_as_numbers(column), is_measured_column(column)
        if column.dtype.kind not in "biufmM":
            # A normal number for each category, so equal cells stay equal.
            numbers = np.random.default_rng(0).normal(size=n)[numbers.astype(np.intp)]
        present = ~np.isnan(numbers)
        numbers = np.where(present, numbers, np.median(numbers[present]) if present.any() else 0)
        spread = numbers.std()
        if 0 < spread < np.inf and (measured or len(np.unique(numbers)) < n):
            standardized.append(((numbers - numbers.mean()) / spread)[:, None])
            is_measured.append(measured)
    return np.hstack(standardized), np.array(is_measured, dtype=bool)
