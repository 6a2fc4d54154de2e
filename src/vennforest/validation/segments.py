"""Search for segments of rows with miscalibrated probabilities."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from vennforest._messages import needed, plain_number, shown
from vennforest._validation import (
    CodeArray,
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_order,
    encode_groups,
    group_names,
    has_leading_zeros,
    without_arrow,
)
from vennforest.metrics._inputs import bin_codes
from vennforest.metrics.dependence import draw_labels, intragroup_correlation
from vennforest.validation.grades import MIN_ROWS, MISSING, outcomes_and_probabilities
from vennforest.validation.segment_kernels import segment_sums

if TYPE_CHECKING:
    import pandas as pd

N_SEGMENT_BINS, MAX_LEVELS = 5, 20
"""Bins of like size of a number; frequent values of a column that are levels of their own."""

MAX_CROSSED_COLUMNS, DRAWS_AT_ONCE = 20, 20
ALL_ROWS, PREDICTED = "all rows", "predicted probability"


def segments(
    X: Any,
    y: ArrayLike,
    p: ArrayLike,
    *,
    groups: ArrayLike | None = None,
    n_draws: int = 999,
    random_state: int = 0,
) -> pd.DataFrame:
    """Search segments of one and two columns for probabilities that are too high or too low.

    Parameters
    ----------
    X : data frame, Arrow table or array-like of shape (n, d)
        Columns that make segments: numbers in five bins of like size, dates by year, and other
        columns by value. The rare values of a column are one level, and so are its missing cells.
        The predicted probability is a column too. Of more than 20 columns the first 20 are crossed.
    y, p : array-like of shape (n,)
        Labels, and the probability of the second one in sorted order.
    groups : array-like of shape (n,), optional
        Rows of one group may depend on each other.
    n_draws, random_state : int
        Number of tables drawn under calibration, and the seed.

    Returns
    -------
    data frame
        A row for each segment of 20 rows or more, by name, the worst first: the number of rows
        ``n``, the mean probability ``expected``, the rate ``observed``, the ``statistic``, and
        the ``pvalue``, adjusted for all segments.

    Raises
    ------
    ValueError
        If there are fewer than 20 rows, or no column makes a segment of 20 rows.

    Notes
    -----
    The statistic is the deviance of the observed from the expected number of events, times the
    ratio of the binomial variance at the mean probability to Σ p (1 - p). Labels are drawn from
    the probabilities, and p-values are those of the largest statistic of all segments (Westfall &
    Young 1993, step-down maxT): with right probabilities of independent rows, any of them is 0.05
    or less with a probability of 5% at most.

    With groups, labels are drawn with the correlation that all pairs of rows of a group have:
    approximate, since it is estimated and taken to be the same everywhere.

    Examples
    --------
    >>> X = [["north", "day"], ["south", "day"], ["north", "night"], ["south", "night"]] * 50
    >>> segments(X, [0, 1] * 100, [0.5] * 200).index[0]
    '0 = north'
    """
    pandas = needed("pandas", "data frames")
    check_count(n_draws, "n_draws")
    check_count(random_state, "random_state", 0)
    check_order(X, y=y, p=p, groups=groups)
    outcome, p = outcomes_and_probabilities(y, p)
    if np.ndim(X := without_arrow(X)) != 2 or len(X) != len(p):
        raise InputError(f"X must be a table of {len(p)} rows, got {shown(X)}")
    features = pandas.DataFrame(X).reset_index(drop=True)
    names, segment = _memberships(features, p)
    # Other numbers than those by which a user may have drawn X with the same seed.
    rng = np.random.default_rng([random_state, len(p)])

    def sums_of(values: FloatArray) -> FloatArray:
        """Return the sums (b, m) of values (b, n) over segments; rows of none have a last one."""
        sums: FloatArray = segment_sums(segment, values, len(names) + 1)
        return sums[:, :-1]

    n, expected, variance, observed = sums_of(np.stack([p * 0 + 1, p, p * (1 - p), outcome]))
    group = encode_groups(groups, p)
    correlation = 0.0 if group is None else intragroup_correlation(outcome, p, group)
    statistic = _deviance(observed, n, expected, variance)
    statistics_of_draws = np.empty((n_draws, len(names)))
    for start in range(0, n_draws, DRAWS_AT_ONCE):
        size = min(DRAWS_AT_ONCE, n_draws - start)
        labels = draw_labels(rng, p, group, correlation, size)
        statistics = _deviance(sums_of(labels), n, expected, variance)
        statistics_of_draws[start : start + size] = statistics
    order = np.argsort(-statistic, kind="stable")
    # Step-down: a segment is compared with the largest of those that are no worse than it.
    largest = np.maximum.accumulate(statistics_of_draws[:, order[::-1]], axis=1)[:, ::-1]
    reached = (largest >= statistic[order] * (1 - 1e-9)).sum(axis=0)
    columns = {"n": n.astype(int), "expected": expected / n, "observed": observed / n}
    columns["statistic"] = statistic
    frame: pd.DataFrame = pandas.DataFrame(columns, pandas.Index(names, name="segment"))
    return frame.iloc[order].assign(pvalue=np.maximum.accumulate((reached + 1) / (n_draws + 1)))


def _deviance(
    events: FloatArray, n: FloatArray, expected: FloatArray, variance: FloatArray
) -> FloatArray:
    """Return the scaled deviance (b, m) of events (b, m) in m segments; other arrays are (m,)."""
    non_events, unexpected = n - events, np.maximum(n - expected, 0)
    deviance = xlogy(events, events) - xlogy(events, expected)
    deviance += xlogy(non_events, non_events) - xlogy(non_events, unexpected)
    ratio = np.divide(expected * unexpected / n, variance, where=variance > 0, out=np.ones_like(n))
    return np.asarray(np.maximum(2 * ratio * deviance, 0))


def _memberships(columns: pd.DataFrame, p: FloatArray) -> tuple[list[str], CodeArray]:
    """Return the names of m segments, and those of each row (n, c): m where it is in none."""
    pd = needed("pandas", "data frames")

    levels = [_levels(pd.Series(p), PREDICTED)]
    levels += [_levels(columns.iloc[:, j], str(name)) for j, name in enumerate(columns)]
    levels = [(codes, texts) for codes, texts in levels if len(texts) > 1]
    crossed = combinations(range(min(len(levels), MAX_CROSSED_COLUMNS + 1)), 2)
    names, indices = [ALL_ROWS], [np.zeros(len(p), dtype=np.int32)]
    for pair in [*((j,) for j in range(len(levels))), *crossed]:
        shape = [len(levels[j][1]) for j in pair]
        codes = np.ravel_multi_index([levels[j][0] for j in pair], shape)
        cells, sizes = np.unique(codes, return_counts=True)
        cells = cells[(sizes >= MIN_ROWS) & (sizes < len(p))]
        column_of_cell = np.full(codes.max() + 1, -1, dtype=np.int32)
        column_of_cell[cells] = np.arange(len(names), len(names) + len(cells))
        indices.append(column_of_cell[codes])
        names += [
            " and ".join(levels[j][1][i] for j, i in zip(pair, cell, strict=True))
            for cell in np.transpose(np.unravel_index(cells, shape))
        ]
    if len(names) == 1:
        raise InputError(
            f"X must have a column with values in {MIN_ROWS} rows or more, got rarer ones or one"
        )
    segment = np.column_stack(indices)
    segment[segment < 0] = len(names)
    return names, segment


def _levels(column: pd.Series, name: str) -> tuple[IntArray, list[str]]:
    """Return the level of each cell of a column (n,), and the names of the levels."""
    pd = needed("pandas", "data frames")

    column = column.dt.year if column.dtype.kind == "M" else column
    texts = pd.Series(group_names(column, name), dtype=object)
    missing = (texts.isna() | (texts == MISSING)).to_numpy()
    numbers = pd.to_numeric(texts, errors="coerce")
    is_number = numbers[~missing].notna().all() and not has_leading_zeros(texts[~missing])
    digits = partial(plain_number, digits=3 if name == PREDICTED else 6)
    if name == PREDICTED:
        texts = numbers.map(digits)
    if is_number and numbers.nunique() > 2 * N_SEGMENT_BINS:
        values = numbers[~missing].to_numpy(np.float64)
        bins = bin_codes(values, N_SEGMENT_BINS, "quantile")
        for i in np.unique(bins):
            low, high = digits(values[bins == i].min()), digits(values[bins == i].max())
            range_text = f" = {low}" if low == high else f" {low} to {high}"
            texts[np.flatnonzero(~missing)[bins == i]] = range_text
    else:
        counts = texts[~missing].value_counts()
        frequent = counts.index[(counts >= MIN_ROWS) & (np.arange(len(counts)) < MAX_LEVELS)]
        remainder = f": {len(counts) - len(frequent)} other values"
        texts = (" = " + texts).where(texts.isin(frequent), remainder)
    texts[missing] = f" {MISSING}"
    codes, words = pd.factorize((name + texts).to_numpy(object))
    return codes, words.tolist()
