"""Examples that are copies of others: one copy trains where another calibrates."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.stats import binomtest
from sklearn.neighbors import NearestNeighbors

from vennforest._validation import CodeArray, FloatArray, IntArray
from vennforest._warn import warn
from vennforest.sources.draws import hash_rows

FEW = 0.02
"""Share of examples whose copy tells their label up to which nothing is reported."""

FEW_TWINS = 0.05
"""The same for exact twins and for examples on straight lines, of which some are honest."""

NEAR = 0.1
"""A copy is so many times nearer than the nearest example that is not one."""

NEARER = 0.01
"""The same with one or two measured columns, in which chance brings examples as near as that."""

WIDE = 3
"""Measured columns from which the first applies; and with none, columns in which a copy's next
neighbour must differ, because cells of few categories hold many honest twins."""

SIGNIFICANT = 1e-5
"""Chance at which an honest table may be taken for one with copies."""

MOST_SAMPLED = 500
"""Examples whose neighbours are searched for."""

MOST_WORK = 200_000_000
"""Cells that the search may visit: with many rows fewer examples are looked at."""

FEWEST = 20
"""Examples below which nothing can be reported."""

NEIGHBOURS = 20
"""Of each sampled example: as many copies of one example are seen through."""

STRAIGHT = 1e-9
"""Cosines nearer to -1 are those of a point on the line between two others."""


class Copies(NamedTuple):
    """Estimated shares of the examples, in [0, 1]; 0 where chance would give as many."""

    copied: float
    """With a copy or near-copy that tells the label better than the next neighbour does."""
    synthetic: float
    """On a straight line between two neighbours of the same class, as SMOTE makes them."""


def warn_of_repeats(X: Any, codes: CodeArray) -> None:
    """Warn where many examples have a copy, a near-copy, or were made from others.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, d)
    codes : ndarray of shape (n,)
        Class numbers.

    Warns
    -----
    UserWarning
        With the share of such examples.
    """
    found = find_copies(X, codes)
    if found.synthetic:
        warn(
            f"about {found.synthetic:.0%} of the examples lie exactly between two others of their "
            "class, as SMOTE makes them: probabilities would be those of a population with other "
            "class frequencies, and too certain. Fit to the original rows; a rare class needs no "
            "oversampling"
        )
    elif found.copied:
        warn(
            f"about {found.copied:.0%} of the examples have a copy or near-copy with their label: "
            "one trains where the other calibrates, so probabilities and bounds may be too "
            "certain. Pass groups= to keep the rows of one person or object together, or weights "
            "in place of copies"
        )


def find_copies(X: Any, codes: CodeArray) -> Copies:
    """Estimate how many examples are copies of others, exact or near, or lie between others.

    A copy is an example at least ten times nearer than the nearest other one. Whether copies give
    labels away is decided against the same examples' next neighbours: where those have the same
    label just as often, nothing is lost. Columns of whole numbers or text that differ in every row
    are left out, because they number the rows. Exact twins in a column of measured values
    count whatever their labels.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n, d)
    codes : ndarray of shape (n,)
        Class numbers.
    """
    n = len(codes)
    if n < FEWEST:
        return Copies(0.0, 0.0)
    if issparse(X):
        return Copies(_above(_twins(hash_rows(X)), FEW_TWINS), 0.0)
    table, measured = _as_numbers(X, n)
    if not table.shape[1]:
        return Copies(0.0, 0.0)
    rng = np.random.default_rng(0)
    twins = 0.0
    if table.shape[1] == 1 and not measured.any() and len(np.unique(table)) > n / 4:
        twins = _twins(hash_rows(table))  # texts, say: nothing to shuffle them against
    elif measured.any():
        shuffled = rng.permuted(table, axis=0)
        twins = _twins(hash_rows(table)) - _twins(hash_rows(shuffled))
    sampled = rng.permutation(n)[: max(FEWEST, min(MOST_SAMPLED, MOST_WORK // table.size))]
    # One more than wanted: an example is its own neighbour, or one of its copies is.
    k = min(NEIGHBOURS + 1, n)
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(table)
    near = search.kneighbors(table[sampled], return_distance=False)
    near = _without_self(near, sampled)
    away = np.linalg.norm(table[near] - table[sampled, None], axis=2)
    order = np.argsort(away, axis=1, kind="stable")
    near, away = np.take_along_axis(near, order, 1), np.take_along_axis(away, order, 1)
    n_measured = int(measured.sum())
    beyond = away * (NEAR if n_measured >= WIDE or not n_measured else NEARER) > away[:, :1]
    if not n_measured:
        beyond &= (table[near] != table[sampled, None]).sum(axis=2) >= WIDE
        beyond[(away > 0).argmax(axis=1) != beyond.argmax(axis=1)] = False
    copied = _telling(codes, sampled, near, beyond)
    synthetic = _between(table[:, measured], codes, sampled, near)
    return Copies(max(copied, _above(twins, FEW_TWINS)), synthetic)


def _twins(hashes: Any) -> float:
    """Return the share of rows that are equal to another one."""
    _, counts = np.unique(hashes, return_counts=True)
    return float(counts[counts > 1].sum() / len(hashes))


def _above(share: float, least: float) -> float:
    return share if share > least else 0.0


def _without_self(near: IntArray, sampled: IntArray) -> IntArray:
    """Return neighbours (m, k - 1) without the example itself; the last goes where it is absent."""
    own = near == sampled[:, None]
    own[~own.any(axis=1), -1] = True
    others: IntArray = near[~own].reshape(len(near), -1)
    return others


def _telling(codes: CodeArray, sampled: IntArray, near: IntArray, beyond: Any) -> float:
    """Return the share of examples with a copy, if copies tell labels better than others do.

    ``beyond``, (m, k), is true for neighbours that the first, where it is one, is a copy beside.
    """
    rows = np.flatnonzero(beyond.any(axis=1))
    label = codes[sampled[rows]]
    of_copy = codes[near[rows, 0]] == label
    of_next = codes[near[rows, beyond[rows].argmax(axis=1)]] == label
    better, worse = int((of_copy & ~of_next).sum()), int((of_next & ~of_copy).sum())
    share = (better - worse) / len(sampled)
    if share <= FEW:
        return 0.0
    # Without copies either neighbour has the label as often as the other (McNemar 1947).
    chance = binomtest(better, better + worse, alternative="greater").pvalue
    return len(rows) / len(sampled) if chance < SIGNIFICANT else 0.0


def _between(table: FloatArray, codes: CodeArray, sampled: IntArray, near: IntArray) -> float:
    """Return the share of examples on a line between two neighbours of their class."""
    if table.shape[1] < WIDE:
        return 0.0  # with one column every example is, with two by rounding
    way = table[near] - table[sampled, None]
    length = np.linalg.norm(way, axis=2)
    usable = (codes[near] == codes[sampled, None]) & (length > 0)
    way /= np.where(length > 0, length, 1)[..., None]
    cosine = way @ way.transpose(0, 2, 1)
    both = usable[:, :, None] & usable[:, None, :]
    # Examples that differ in fewer columns lie on lines by chance.
    wide = ((np.abs(way) > STRAIGHT).sum(axis=2) >= WIDE)[:, :, None]
    straight = (both & wide & (cosine < STRAIGHT - 1)).any(axis=(1, 2))
    return _above(float(straight.mean()), FEW_TWINS)


def _as_numbers(X: Any, n: int) -> tuple[FloatArray, Any]:
    """Return the columns as numbers of about one size, (n, c), and which of them are measured.

    A category becomes a normal number of its own, so that equal ones stay equal; columns that
    number the rows, or are constant, are left out.
    """
    made: list[FloatArray] = []
    measured: list[bool] = []
    for values in _columns(X):
        if values.ndim != 1:
            continue
        if values.dtype.kind in "mM":
            values = values.astype(np.int64)
        if values.dtype.kind not in "biuf":
            values = _categories(values)
            if len(np.unique(values)) == n:
                continue
            whole = True
        else:
            values = values.astype(np.float64)
            known = values[np.isfinite(values)]
            whole = bool((known == np.floor(known)).all())
            if whole and len(np.unique(values)) == n:
                continue
            values = np.where(np.isfinite(values), values, np.median(known) if len(known) else 0)
        spread = values.std()
        if not (0 < spread < np.inf):
            continue
        made.append((values - values.mean()) / spread)
        measured.append(not whole and len(np.unique(values)) > n / 4)
    table = np.column_stack(made) if made else np.empty((n, 0))
    return np.ascontiguousarray(table), np.array(measured, dtype=bool)


def _columns(X: Any) -> list[NDArray[Any]]:
    """Return the columns of a table of any kind, none where they cannot be taken one by one."""
    if not hasattr(X, "columns"):
        values = np.asarray(X)
        return [values] if values.ndim < 2 else list(values.T)
    try:
        return [np.asarray(X[name]) for name in X.columns]
    except Exception:  # whatever a table of another library does
        return []


def _categories(values: Any) -> FloatArray:
    """Return a normal number for each different cell."""
    known: dict[Any, int] = {}
    try:
        codes = [known.setdefault(value, len(known)) for value in values.tolist()]
    except TypeError:  # cells without a hash, such as lists
        return np.zeros(len(values))
    numbers: FloatArray = np.random.default_rng(0).normal(size=len(known))[codes]
    return numbers
