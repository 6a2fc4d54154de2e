"""Compare many methods over many data sets: mean ranks, Friedman's test and post-hoc tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from vennforest._validation import FloatArray
from vennforest_experiments.comparison.exhaustive import bergmann_hommel

Test = Literal["nemenyi", "bonferroni-dunn", "bergmann-hommel"]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Mean ranks of k methods over n data sets, and the tests that follow from them.

    Parameters
    ----------
    methods : tuple of str
        The k methods.
    mean_ranks : ndarray of shape (k,)
        In [1, k], 1 the best.
    n_datasets : int
        Number of data sets.
    tie_factor : float, default=1.0
        In [0, 1]: the share of the ranks' variance that ties leave, 1 without ties.
    control : str, optional
        The method that Bonferroni–Dunn compares the others with.
    alpha : float, default=0.05
        The level of the tests, in (0, 1).
    ranks : ndarray of shape (n, k), optional
        The rank of every method on every data set.

    Notes
    -----
    All tests look at rank differences in units of their standard error under the null
    hypothesis, ``z = (R_i - R_j) / sqrt(k (k + 1) / (6 n))`` (Demšar 2006, section 3.2.2).
    """

    methods: tuple[str, ...]
    mean_ranks: FloatArray
    n_datasets: int
    tie_factor: float = 1.0
    control: str | None = None
    alpha: float = 0.05
    ranks: FloatArray | None = None

    @property
    def chi_square(self) -> float:
        """Friedman's statistic, corrected for ties; chi-square with k - 1 degrees of freedom.

        ``12 n / (k (k + 1)) * (sum of R_j**2 - k (k + 1)**2 / 4)`` (Demšar 2006, section 3.2.1),
        divided by ``tie_factor``.
        """
        k, n = len(self.methods), self.n_datasets
        if self.tie_factor == 0:  # all methods are equal on every data set
            return 0.0
        spread = float(((self.mean_ranks - (k + 1) / 2) ** 2).sum())
        return min(12 * n / (k * (k + 1)) * spread / self.tie_factor, float(n * (k - 1)))

    @property
    def chi_square_p(self) -> float:
        """p-value of Friedman's statistic."""
        return float(stats.chi2.sf(self.chi_square, len(self.methods) - 1))

    @property
    def standard_error(self) -> float:
        """Standard deviation of a difference of two mean ranks under the null hypothesis."""
        k = len(self.methods)
        return float(np.sqrt(k * (k + 1) / (6 * self.n_datasets)))

    @property
    def z(self) -> FloatArray:
        """Differences of mean ranks, row minus column, in standard errors; shape (k, k)."""
        return (self.mean_ranks[:, None] - self.mean_ranks[None, :]) / self.standard_error

    @property
    def unadjusted(self) -> FloatArray:
        """Two-sided p-value of every pair before any adjustment; shape (k, k)."""
        p: FloatArray = 2 * stats.norm.sf(np.abs(self.z))
        np.fill_diagonal(p, 1.0)
        return p

    @cached_property
    def nemenyi(self) -> FloatArray:
        """Nemenyi's p-value of every pair, from the studentized range; shape (k, k)."""
        q = np.abs(self.z) * np.sqrt(2)
        p: FloatArray = stats.studentized_range.sf(q, len(self.methods), np.inf).clip(0, 1)
        np.fill_diagonal(p, 1.0)
        return p

    @property
    def bonferroni_dunn(self) -> FloatArray:
        """p-value of every method against the control, adjusted; shape (k, k).

        Pairs without the control have NaN, the diagonal 1.
        """
        if self.control is None:
            raise ValueError("control must name a method for Bonferroni–Dunn, got None")
        k, i = len(self.methods), self.methods.index(self.control)
        p = np.full((k, k), np.nan)
        p[i] = p[:, i] = np.minimum(self.unadjusted[i] * (k - 1), 1.0)
        np.fill_diagonal(p, 1.0)
        return p

    @cached_property
    def bergmann_hommel(self) -> FloatArray:
        """Bergmann and Hommel's adjusted p-value of every pair of at most 12 methods; (k, k)."""
        return bergmann_hommel(self.unadjusted)

    def critical_difference(self, test: Test = "nemenyi") -> float:
        """Return the difference of mean ranks above which two methods differ at level alpha.

        Parameters
        ----------
        test : {"nemenyi", "bonferroni-dunn"}
            For all pairs, or for pairs with one control.
        """
        k = len(self.methods)
        if test == "nemenyi":
            z = float(stats.studentized_range.isf(self.alpha, k, np.inf)) / np.sqrt(2)
        elif test == "bonferroni-dunn":
            z = float(stats.norm.isf(self.alpha / (2 * (k - 1))))
        else:
            raise ValueError(f'test must be "nemenyi" or "bonferroni-dunn", got {test!r}')
        return float(z * self.standard_error)

    def p_values(self, test: Test = "bergmann-hommel") -> FloatArray:
        """Return the adjusted p-value of every pair, shape (k, k); 1 on the diagonal."""
        p_values: FloatArray = getattr(self, test.replace("-", "_"))
        return p_values

    def better(self, test: Test = "bergmann-hommel") -> list[tuple[str, str]]:
        """Return the pairs (better, worse) that differ at level alpha, best methods first."""
        p = self.p_values(test)
        order = np.argsort(self.mean_ranks, kind="stable")
        return [
            (self.methods[i], self.methods[j])
            for i in order
            for j in order
            if p[i, j] <= self.alpha and self.mean_ranks[i] < self.mean_ranks[j]
        ]

    def groups(self, test: Test = "nemenyi") -> list[tuple[str, ...]]:
        """Return the bars of a critical-difference diagram.

        Each is a longest run of two or more methods, neighbours in mean rank, no two of which
        differ at level alpha. The test must compare all pairs.
        """
        order = np.argsort(self.mean_ranks, kind="stable")
        alike = self.p_values(test)[np.ix_(order, order)] > self.alpha
        runs: list[tuple[str, ...]] = []
        end = 0
        for start in range(len(order)):
            stop = start + 1
            while stop < len(order) and alike[start:stop, stop].all():
                stop += 1
            if stop - start > 1 and stop > end:
                runs.append(tuple(self.methods[i] for i in order[start:stop]))
                end = stop
        return runs


def compare(
    table: Mapping[str, Any] | pd.DataFrame,
    *,
    lower_is_better: bool,
    control: str | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Compare methods over data sets by their ranks.

    Parameters
    ----------
    table : data frame, or mapping of methods to values
        One row per data set, one column per method. A mapping holds for each method its n values,
        or a mapping of data sets to values.
    lower_is_better : bool
        Whether the smallest value gets rank 1. Equal values share the mean of their ranks.
    control : str, optional
        The method for Bonferroni–Dunn's comparisons.
    alpha : float, default=0.05
        The level of the tests, in (0, 1).

    Raises
    ------
    ValueError
        If a value is missing, there are fewer than two methods or no data set, or ``control`` is
        not a method.

    Examples
    --------
    >>> losses = {"raw": [0.5, 0.4, 0.6, 0.7], "Venn-Abers": [0.4, 0.3, 0.5, 0.6]}
    >>> comparison = compare(losses, lower_is_better=True)
    >>> comparison.mean_ranks
    array([2., 1.])
    >>> comparison.better()
    [('Venn-Abers', 'raw')]
    """
    frame = pd.DataFrame(table).astype(float)
    (n, k), methods = frame.shape, tuple(map(str, frame.columns))
    if n < 1 or k < 2:
        raise ValueError(f"table must have two methods and one data set at least, got {n} × {k}")
    if frame.isna().any(axis=None):
        row, column = np.argwhere(frame.isna().to_numpy())[0]
        raise ValueError(
            f"table must have a value in every cell, got NaN for {methods[column]} and "
            f"{frame.index[row]}: leave out the data set or the method"
        )
    if control is not None and control not in methods:
        raise ValueError(f"control must be one of {list(methods)}, got {control!r}")
    values = frame.to_numpy()
    ranks = stats.rankdata(values if lower_is_better else -values, axis=1)
    n_tied = [np.unique(row, return_counts=True)[1] for row in ranks]
    ties = sum(float((count**3 - count).sum()) for count in n_tied)
    factor = 1 - ties / (n * k * (k**2 - 1))
    return Comparison(methods, ranks.mean(axis=0), n, factor, control, alpha, ranks)
