"""Many methods over many data sets: mean ranks, Friedman's test, and what differs from what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
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
        How many data sets the ranks are means over.
    tie_factor : float
        In [0, 1]: the share of the ranks' variance that ties leave, 1 without ties.
    control : str or None
        The method that Bonferroni–Dunn compares the others with.
    alpha : float
        The level of the tests, in (0, 1).
    ranks : ndarray of shape (n, k) or None
        The ranks themselves, where they are known.

    Notes
    -----
    All tests look at rank differences in units of their standard error under the null
    hypothesis, ``z = (R_i - R_j) / sqrt(k (k + 1) / (6 n))`` (Demšar 2006, section 3.2.2).
    """

    methods: tuple[str, ...]
    mean_ranks: FloatArray
    n_datasets: int
    tie_factor: float
    control: str | None
    alpha: float
    ranks: FloatArray | None = None

    @property
    def chi_square(self) -> float:
        """Friedman's statistic, corrected for ties; chi-square with k - 1 degrees of freedom.

        ``12 n / (k (k + 1)) * (sum of R_j**2 - k (k + 1)**2 / 4)`` (Demšar 2006, section 3.2.1),
        divided by ``tie_factor``.
        """
        k = len(self.methods)
        spread = float(((self.mean_ranks - (k + 1) / 2) ** 2).sum())
        if self.tie_factor == 0:  # every method equal on every data set
            return 0.0
        largest = float(self.n_datasets * (k - 1))
        statistic = 12 * self.n_datasets / (k * (k + 1)) * spread / self.tie_factor
        return min(statistic, largest)

    @property
    def chi_square_p(self) -> float:
        """p-value of Friedman's statistic."""
        return float(stats.chi2.sf(self.chi_square, len(self.methods) - 1))

    @property
    def f(self) -> float:
        """Iman and Davenport's statistic, F with k - 1 and (k - 1)(n - 1) degrees of freedom.

        ``(n - 1) chi_square / (n (k - 1) - chi_square)``: infinite where all data sets rank the
        methods alike.
        """
        largest = self.n_datasets * (len(self.methods) - 1)
        if self.chi_square >= largest * (1 - 1e-12):
            return float("inf")
        return (self.n_datasets - 1) * self.chi_square / (largest - self.chi_square)

    @property
    def f_p(self) -> float:
        """p-value of Iman and Davenport's statistic; NaN with a single data set."""
        k, n = len(self.methods), self.n_datasets
        if n < 2:
            return float("nan")
        return float(stats.f.sf(self.f, k - 1, (k - 1) * (n - 1)))

    @property
    def standard_error(self) -> float:
        """Standard deviation of a difference of two mean ranks under the null hypothesis."""
        k = len(self.methods)
        return float(np.sqrt(k * (k + 1) / (6 * self.n_datasets)))

    @cached_property
    def z(self) -> FloatArray:
        """Differences of mean ranks, row minus column, in standard errors; shape (k, k)."""
        return (self.mean_ranks[:, None] - self.mean_ranks[None, :]) / self.standard_error

    @cached_property
    def unadjusted(self) -> FloatArray:
        """Two-sided p-value of every pair, not adjusted for there being many; shape (k, k)."""
        p: FloatArray = 2 * stats.norm.sf(np.abs(self.z))
        np.fill_diagonal(p, 1.0)
        return p

    @cached_property
    def nemenyi(self) -> FloatArray:
        """Nemenyi's p-value of every pair, from the studentized range; shape (k, k)."""
        k = len(self.methods)
        p = np.ones((k, k))
        for i, j in combinations(range(k), 2):
            q = abs(self.z[i, j]) * np.sqrt(2)
            p[i, j] = p[j, i] = float(np.clip(stats.studentized_range.sf(q, k, np.inf), 0, 1))
        return p

    @cached_property
    def bonferroni_dunn(self) -> FloatArray:
        """p-value of every method against the control, times k - 1, at most 1; shape (k,).

        Raises
        ------
        ValueError
            If there is no control.
        """
        if self.control is None:
            raise ValueError("control must name a method for Bonferroni–Dunn, got None")
        row = self.unadjusted[self.methods.index(self.control)]
        p: FloatArray = np.minimum(row * (len(self.methods) - 1), 1.0)
        return p

    @cached_property
    def bergmann_hommel(self) -> FloatArray:
        """Bergmann and Hommel's adjusted p-value of every pair; shape (k, k).

        Raises
        ------
        ValueError
            If there are more than 12 methods.
        """
        return bergmann_hommel(self.unadjusted)

    def critical_difference(self, test: Test = "nemenyi") -> float:
        """Return the difference of mean ranks above which two methods differ at level alpha.

        Parameters
        ----------
        test : {"nemenyi", "bonferroni-dunn"}
            For all pairs, or for pairs with one control.

        Raises
        ------
        ValueError
            If ``test`` has no critical difference.
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
        """Return the adjusted p-value of every pair, shape (k, k); 1 on the diagonal.

        With ``"bonferroni-dunn"`` pairs without the control have NaN.

        Raises
        ------
        ValueError
            If ``test`` is not known.
        """
        if test == "nemenyi":
            return self.nemenyi
        if test == "bergmann-hommel":
            return self.bergmann_hommel
        if test == "bonferroni-dunn":
            p = np.full((len(self.methods),) * 2, np.nan)
            np.fill_diagonal(p, 1.0)
            at = self.methods.index(self.control) if self.control is not None else 0
            p[at] = p[:, at] = self.bonferroni_dunn
            return p
        raise ValueError(f"test must be one of {list(get_args(Test))}, got {test!r}")

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
        differ at level alpha.

        Raises
        ------
        ValueError
            If the test is Bonferroni–Dunn's, which compares with the control alone.
        """
        if test == "bonferroni-dunn":
            raise ValueError('test must compare all pairs, got "bonferroni-dunn"')
        order = np.argsort(self.mean_ranks, kind="stable")
        alike = self.p_values(test)[np.ix_(order, order)] > self.alpha
        runs: list[tuple[str, ...]] = []
        reached = 0
        for start in range(len(order)):
            stop = start + 1
            while stop < len(order) and alike[start:stop, stop].all():
                stop += 1
            if stop - start > 1 and stop > reached:
                runs.append(tuple(self.methods[i] for i in order[start:stop]))
                reached = stop
        return runs

    def to_markdown(self, test: Test = "bergmann-hommel") -> str:
        """Return mean ranks and adjusted p-values as a Markdown table, best methods first."""
        p = self.p_values(test)
        order = np.argsort(self.mean_ranks, kind="stable")
        names = [self.methods[i] for i in order]
        lines = [
            "| method | mean rank | " + " | ".join(names) + " |",
            "|---|---|" + "---|" * len(names),
        ]
        for i in order:
            cells = ["" if i == j or np.isnan(p[i, j]) else f"{p[i, j]:.3g}" for j in order]
            lines.append(
                f"| {self.methods[i]} | {self.mean_ranks[i]:.3f} | " + " | ".join(cells) + " |"
            )
        return "\n".join(lines) + "\n"


def compare(
    table: Any,
    *,
    lower_is_better: bool,
    methods: Sequence[str] | None = None,
    control: str | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Compare methods over data sets by their ranks.

    Parameters
    ----------
    table : array-like of shape (n, k), data frame, or mapping
        One row per data set, one column per method. A data frame brings its column names; a mapping
        holds for each method its n values, or for each method a mapping of data sets to values.
    lower_is_better : bool
        Whether the smallest value gets rank 1. Equal values share the mean of their ranks.
    methods : sequence of str of length k, optional
        Names of the columns, where the table brings none.
    control : str, optional
        The method for Bonferroni–Dunn's comparisons.
    alpha : float
        The level of the tests, in (0, 1).

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If a value is missing, there are fewer than two methods or no data set, names do not fit,
        or ``control`` is not a method.

    Examples
    --------
    >>> losses = {"raw": [0.5, 0.4, 0.6, 0.7], "Venn-Abers": [0.4, 0.3, 0.5, 0.6]}
    >>> comparison = compare(losses, lower_is_better=True)
    >>> comparison.mean_ranks
    array([2., 1.])
    >>> comparison.better()
    [('Venn-Abers', 'raw')]
    """
    values, names = _read(table, methods)
    if np.isnan(values).any():
        row, column = np.argwhere(np.isnan(values))[0]
        raise ValueError(
            f"table must have a value in every cell, got NaN for {names[column]} in row {row}: "
            "leave out the data set or the method"
        )
    n, k = values.shape
    if n < 1:
        raise ValueError(f"table must have at least one data set, got {n}")
    ranks = stats.rankdata(values if lower_is_better else -values, axis=1)
    ties = sum(
        float((count**3 - count).sum())
        for count in (np.unique(row, return_counts=True)[1] for row in ranks)
    )
    factor = 1 - ties / (n * k * (k**2 - 1)) if k > 1 else 0.0
    return _comparison(names, ranks.mean(axis=0), n, factor, control, alpha, ranks)


def compare_mean_ranks(
    mean_ranks: Mapping[str, float],
    n_datasets: int,
    *,
    control: str | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Compare methods of which the mean ranks alone are known, as from a printed table.

    Parameters
    ----------
    mean_ranks : mapping of str to float
        For each method its mean rank, in [1, k]; ties are not corrected for.
    n_datasets : int
        How many data sets they are means over.
    control : str, optional
        The method for Bonferroni–Dunn's comparisons.
    alpha : float
        The level of the tests, in (0, 1).

    Raises
    ------
    ValueError
        If the ranks are not mean ranks of k methods (their sum is k (k + 1) / 2, here to within
        what rounding to two places allows), or ``control`` is not a method.
    """
    names = tuple(mean_ranks)
    ranks = np.array([mean_ranks[name] for name in names], dtype=np.float64)
    k = len(names)
    inside = bool(((ranks >= 1) & (ranks <= k)).all())
    if not inside or abs(ranks.sum() - k * (k + 1) / 2) > 0.01 * k:
        raise ValueError(
            f"mean_ranks must lie in [1, {k}] and sum to {k * (k + 1) / 2}, got {ranks.tolist()}"
        )
    if n_datasets < 1:
        raise ValueError(f"n_datasets must be at least 1, got {n_datasets}")
    return _comparison(names, ranks, n_datasets, 1.0, control, alpha, None)


def _comparison(
    names: tuple[str, ...],
    mean_ranks: FloatArray,
    n: int,
    factor: float,
    control: str | None,
    alpha: float,
    ranks: FloatArray | None,
) -> Comparison:
    if len(names) < 2:
        raise ValueError(f"table must have at least two methods, got {len(names)}")
    if control is not None and control not in names:
        raise ValueError(f"control must be one of {list(names)}, got {control!r}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must be in (0, 1), got {alpha}")
    return Comparison(names, mean_ranks, n, factor, control, alpha, ranks)


def _read(table: Any, methods: Sequence[str] | None) -> tuple[FloatArray, tuple[str, ...]]:
    names: list[Any] | None = None
    if isinstance(table, Mapping):
        names, table = list(table), _from_mapping(table)
    elif hasattr(table, "columns"):
        names = list(table.columns)
    values = np.asarray(table, dtype=np.float64)
    if values.ndim != 2:
        raise ValueError(f"table must have shape (n, k), got {values.shape}")
    k = values.shape[1]
    given = methods if methods is not None else names
    chosen = tuple(map(str, given)) if given is not None else tuple(map(str, range(k)))
    if len(chosen) != k or len(set(chosen)) != k:
        raise ValueError(f"methods must be {k} different names, got {list(chosen)}")
    return values, chosen


def _from_mapping(table: Mapping[Any, Any]) -> list[list[float]]:
    columns = list(table.values())
    if columns and all(isinstance(column, Mapping) for column in columns):
        datasets = list(columns[0])
        for method, column in table.items():
            if set(column) != set(datasets):
                odd = sorted(map(str, set(column) ^ set(datasets)))
                raise ValueError(
                    f"table must have the same data sets for every method, got {odd} for "
                    f"{method} or the first method alone"
                )
        columns = [[column[dataset] for dataset in datasets] for column in columns]
    lengths = {len(column) for column in columns}
    if len(lengths) > 1:
        raise ValueError(f"table must have as many values for every method, got {sorted(lengths)}")
    return [list(row) for row in zip(*columns, strict=True)]
