"""Rating grades: expected and observed rates, exact tests, and stability of the shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

from vennforest._messages import needed
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_inside,
    check_scores,
)
from vennforest.monitoring.columns import holm
from vennforest.validation._rows import outcomes_and_probabilities

if TYPE_CHECKING:
    import pandas as pd

MAX_GRADES = 100

MISSING = "missing"
"""Name of the grade of rows without one."""


def grades(
    y: ArrayLike, p: ArrayLike, grade: ArrayLike, *, level: float = 0.95, pos_label: Any = None
) -> pd.DataFrame:
    """Compare expected and observed rates of an event, such as a default, in each grade.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observed labels, of independent rows: one row for each customer.
    p : array-like of shape (n,)
        Probability of the event, in [0, 1].
    grade : array-like of shape (n,)
        Grade of each row, of 2 to 100. Rows without a grade are a grade of their own.
    level : float
        Level of the intervals, between 0 and 1.
    pos_label : label, optional
        The event; by default the second of two labels in sorted order.

    Returns
    -------
    data frame
        A row for each grade: ordered categories in their order, numbers by size, and other text
        by mean probability. The columns are the number of rows ``n`` and of ``events``; the mean
        probability ``expected``; the rate ``observed`` with its exact interval (Clopper & Pearson
        1934) from ``observed_low`` to ``observed_high``; ``binomial``, the probability of so many
        events or more; ``jeffreys``, the posterior probability that the rate is at most the
        expected one; and the p-values ``too_low`` and ``too_high``, for probabilities that are too
        low or too high.

    Raises
    ------
    ValueError
        If there are fewer than 20 rows or two grades, or more than 100 grades.

    Notes
    -----
    ``binomial`` is P(X >= D), X binomial with N rows and the expected rate, and ``jeffreys`` the
    distribution function of Beta(D + 1/2, N - D + 1/2) at the expected rate: the test of the ECB's
    *Instructions for reporting the validation results of internal models* (2019). Both are
    one-sided: small values mean that probabilities are too low. Where probabilities differ within
    a grade the binomial test is conservative (Hoeffding 1956). ``too_low`` is ``binomial``, and
    ``too_high`` is P(X <= D), adjusted for the number of grades by Holm's method.

    Examples
    --------
    >>> y = [0] * 95 + [1] * 5 + [0] * 80 + [1] * 20
    >>> frame = grades(y, [0.05] * 100 + [0.1] * 100, ["A"] * 100 + ["B"] * 100)
    >>> frame[["expected", "observed", "too_low"]].round(3)
           expected  observed  too_low
    grade
    A          0.05      0.05    0.564
    B          0.10      0.20    0.004
    """
    pandas = needed("pandas", "data frames")
    outcome, p = outcomes_and_probabilities(y, p, pos_label)
    check_inside(level, "level")
    codes, names = _in_order(grade, p)
    n = np.bincount(codes)
    events = np.bincount(codes, weights=outcome)
    expected = np.clip(np.bincount(codes, weights=p) / n, 0, 1)
    tail = (1 - level) / 2
    tails = [
        np.asarray(binom.sf(events - 1, n, expected)),
        np.asarray(binom.cdf(events, n, expected)),
    ]
    frame: pd.DataFrame = pandas.DataFrame(
        {
            "n": n,
            "events": events.astype(int),
            "expected": expected,
            "observed": events / n,
            "observed_low": np.where(events > 0, beta.ppf(tail, events, n - events + 1), 0.0),
            "observed_high": np.where(events < n, beta.ppf(1 - tail, events + 1, n - events), 1.0),
            "binomial": tails[0],
            "jeffreys": beta.cdf(expected, events + 0.5, n - events + 0.5),
            "too_low": holm(tails[0]),
            "too_high": holm(tails[1]),
        },
        index=pandas.Index(names, name="grade"),
    )
    return frame


def _in_order(grade: ArrayLike, p: FloatArray) -> tuple[IntArray, list[str]]:
    """Return the code of each row's grade (n,) in natural order, and the grades' names."""
    import pandas as pd

    texts = grade_names(grade)
    if len(texts) != len(p):
        raise InputError(f"grade must be of {len(p)} rows, got {len(texts)}")
    codes, names = pd.factorize(texts)
    if not 2 <= len(names) <= MAX_GRADES:
        raise InputError(
            f"grade must have 2 to {MAX_GRADES} different values, got {len(names)}: name a column "
            "of grades, or pass all rows to vennforest check without it"
        )
    dtype = getattr(grade, "dtype", None)
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        position = pd.Series(range(len(dtype.categories)), grade_names(dtype.categories))
        keys = np.asarray(position.reindex(names), dtype=np.float64)
    else:
        keys = np.asarray(pd.to_numeric(pd.Series(names), errors="coerce"), dtype=np.float64)
        if np.isnan(keys[names != MISSING]).any():
            keys = np.asarray(np.bincount(codes, weights=p) / np.bincount(codes))
    order = np.lexsort((names, keys, names == MISSING))
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return rank[codes], names[order].tolist()


def grade_names(grade: Any) -> Any:
    """Return the names of grades (n,) as text: 1, 1.0 and " 1" are the same."""
    import pandas as pd

    column = pd.Series(np.asarray(grade, dtype=object))
    missing = column.isna()
    texts = column.astype(str).str.strip()
    numbers = pd.to_numeric(texts.mask(missing), errors="coerce")
    if numbers.notna().eq(~missing).all():
        texts = numbers.map("{:.12g}".format)
    return texts.mask(missing | texts.eq(""), MISSING).to_numpy(object)


class Stability(NamedTuple):
    """The population stability index, and its distribution if the shares have not changed.

    Attributes
    ----------
    psi : float
        Σ (a - b) log(a / b) over the grades' shares a and b, not below 0.
    pvalue : float
        Probability of an index at least as large if the shares have not changed.
    high : float
        The index that is exceeded with a probability of 5% if the shares have not changed.
    """

    psi: float
    pvalue: float
    high: float


def population_stability(
    grade: ArrayLike,
    reference: ArrayLike | Mapping[Any, float],
    *,
    n_draws: int = 9999,
    random_state: int = 0,
) -> Stability:
    """Return how much the shares of the grades have changed, and what chance explains.

    Parameters
    ----------
    grade : array-like of shape (n,)
        Grade of each row.
    reference : array-like of shape (m,) or mapping
        Grade of each row of the reference, or the share of each grade there, which sum to 1.
    n_draws : int
        Tables drawn with unchanged shares.
    random_state : int
        Seeds the draws.

    Raises
    ------
    ValueError
        If there are fewer than two grades, or shares do not sum to 1.

    Notes
    -----
    With m reference rows, counts are drawn as if rows had been assigned to the two tables at
    random (a permutation test); with shares, from a multinomial distribution. The p-value
    (b + 1) / (n_draws + 1) is exact for any counts if rows are independent. In large samples
    n m / (n + m) PSI, or n PSI, has a χ² distribution with one degree of freedom less than there
    are grades (Yurdakul & Naranjo 2020, Journal of Risk Model Validation 14(4)): thresholds such
    as 0.1 and 0.25 mean something else for every size. Where a grade has no row on one side, ½ is
    added to every count.

    Examples
    --------
    >>> population_stability(["A"] * 60 + ["B"] * 40, {"A": 0.5, "B": 0.5}).psi
    0.04054651081081643
    """
    check_count(n_draws, "n_draws")
    rng = np.random.default_rng(random_state)
    shares = reference if isinstance(reference, Mapping) else None
    labels = grade_names(grade)
    texts = np.concatenate([labels, grade_names(reference if shares is None else list(shares))])
    codes, names = np.unique(texts, return_inverse=True)[::-1]
    k, n = len(names), len(labels)
    if k < 2 or not 0 < n < len(texts):
        raise InputError(f"grade and reference must have two grades or more, got {k}")
    counts = np.bincount(codes[:n], minlength=k)
    others: NDArray[Any] = np.bincount(codes[n:], minlength=k)
    if shares is not None:
        values = check_scores([*shares.values()], "reference")
        if (values < 0).any() or abs(values.sum() - 1) > 1e-6:
            raise InputError(f"reference must have shares that sum to 1, got {values.tolist()}")
        others = n * np.bincount(codes[n:], values / values.sum(), k)
        draws = rng.multinomial(n, others / n, size=n_draws)
        other_draws = np.broadcast_to(others, draws.shape)
    else:
        draws = rng.multivariate_hypergeometric(counts + others, n, size=n_draws)
        other_draws = counts + others - draws
    psi, simulated = float(_index(counts, others)), _index(draws, other_draws)
    reached = int((simulated >= psi * (1 - 1e-12)).sum())
    return Stability(psi, (reached + 1) / (n_draws + 1), float(np.quantile(simulated, 0.95)))


def _index(counts: Any, others: Any) -> Any:
    """Return the population stability index of counts (..., k) and others (..., k)."""
    is_empty = (np.minimum(counts, others) == 0).any(axis=-1, keepdims=True)
    shares, reference = (
        (values + 0.5 * is_empty) / (values + 0.5 * is_empty).sum(axis=-1, keepdims=True)
        for values in (counts, others)
    )
    return ((shares - reference) * np.log(shares / reference)).sum(axis=-1)
