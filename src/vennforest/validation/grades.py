"""Rating grades: expected and observed rates, exact tests, and stability of the shares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import beta, binom

from vennforest._messages import needed, shown
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_inside,
    check_order,
    group_names,
    is_missing,
    label_vector,
)
from vennforest.metrics._inputs import ClassEstimates
from vennforest.monitoring.columns import holm
from vennforest.scores import check_scores

if TYPE_CHECKING:
    import pandas as pd

MIN_ROWS, MAX_GRADES, N_DRAWS = 20, 100, 9999

MISSING = "missing"
"""Name of a part of rows without a value, with the rows that have this text."""


def outcomes_and_probabilities(y: ArrayLike, p: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return outcomes, 1 for the second label and 0 for the first, and probabilities, (n,)."""
    labels = label_vector(y)
    if len(labels) < MIN_ROWS:
        raise InputError(f"y must have at least {MIN_ROWS} rows, got {len(labels)}")
    # Labels 0 and 1 are of two classes even where the event never happened.
    is_binary = labels.dtype.kind in "biuf" and np.isin(labels, (0, 1)).all()
    classes = np.array([0, 1], dtype=labels.dtype) if is_binary else None
    event = ClassEstimates(y, p, classes=classes).of_event()
    return event.outcome, event.p


def grades(y: ArrayLike, p: ArrayLike, grade: ArrayLike, *, level: float = 0.95) -> pd.DataFrame:
    """Compare expected and observed rates of an event, such as a default, in each grade.

    Parameters
    ----------
    y, p : array-like of shape (n,)
        Labels of independent rows, and the probability of the second one in sorted order.
    grade : array-like of shape (n,)
        Grade of each row, of 2 to 100. Rows without a grade are a grade of their own.
    level : float
        Level of the intervals.

    Returns
    -------
    data frame
        A row for each grade: ordered categories in their order, numbers by size, other text by
        mean probability. The columns are the rows ``n`` and ``events``, the mean probability
        ``expected``, the rate ``observed`` with its exact interval (Clopper & Pearson 1934), the
        upper bound ``prudent``, the p-values ``binomial``, ``jeffreys``, ``too_low`` and
        ``too_high``, and ``ks``: the share of
        non-events up to this grade less that of events. Its largest distance from 0 is the
        Kolmogorov-Smirnov statistic of the grades.

    Raises
    ------
    ValueError
        If there are fewer than 20 rows or two grades, or more than 100 grades.

    Notes
    -----
    Of N rows and D events, ``binomial`` is P(X >= D), X binomial with the expected rate, and
    ``jeffreys`` the distribution function of Beta(D + 1/2, N - D + 1/2) at the expected rate: the
    test of the ECB's *Instructions for reporting the validation results of internal models*
    (2019). Small values of both mean that probabilities are too low. Where they differ within a
    grade the binomial test is conservative (Hoeffding 1956). ``too_low`` is ``binomial``, and
    ``too_high`` P(X <= D), adjusted for the number of grades by Holm's method.

    ``prudent`` is the most prudent estimate of Pluto & Tasche (2005, arXiv:cond-mat/0411699), for
    grades without or with few events: the upper bound, with confidence ``level``, of the rate of
    this grade and all that are expected to be no better, taken together. Its distance from the
    expected rate is a margin of conservatism.

    Examples
    --------
    >>> y = [0] * 95 + [1] * 5 + [0] * 80 + [1] * 20
    >>> frame = grades(y, [0.05] * 100 + [0.1] * 100, ["A"] * 100 + ["B"] * 100)
    >>> frame["too_low"].round(3).to_dict()
    {'A': 0.564, 'B': 0.004}
    """
    pandas = needed("pandas", "data frames")
    check_order(p, grade=grade)
    outcome, p = outcomes_and_probabilities(y, p)
    check_inside(level, "level")
    codes, names = grades_in_order(grade, p)
    n = np.bincount(codes)
    events = np.bincount(codes, weights=outcome)
    expected = np.clip(np.bincount(codes, weights=p) / n, 0, 1)
    tail = (1 - level) / 2
    upper = np.asarray(binom.sf(events - 1, n, expected))
    no_better = expected >= expected[:, None]
    n_pooled, events_pooled = no_better @ n, no_better @ events
    prudent = beta.ppf(level, events_pooled + 1, np.maximum(n_pooled - events_pooled, 1e-300))
    with np.errstate(invalid="ignore"):  # without events, or non-events, it is NaN
        ks = (n - events).cumsum() / (n - events).sum() - events.cumsum() / events.sum()
    columns = {
        "n": n,
        "events": events.astype(int),
        "expected": expected,
        "observed": events / n,
        "observed_low": np.where(events > 0, beta.ppf(tail, events, n - events + 1), 0.0),
        "observed_high": np.where(events < n, beta.ppf(1 - tail, events + 1, n - events), 1.0),
        "prudent": np.where(events_pooled < n_pooled, prudent, 1.0),
        "binomial": upper,
        "jeffreys": beta.cdf(expected, events + 0.5, n - events + 0.5),
        "too_low": holm(upper),
        "too_high": holm(np.asarray(binom.cdf(events, n, expected))),
        "ks": ks,
    }
    frame: pd.DataFrame = pandas.DataFrame(columns, pandas.Index(names, name="grade"))
    return frame


def grades_in_order(grade: ArrayLike, p: FloatArray) -> tuple[IntArray, list[str]]:
    """Return the code of each row's grade (n,) in natural order, and the grades' names."""
    pd = needed("pandas", "data frames")

    texts = grade_names(grade)
    if len(texts) != len(p):
        raise InputError(f"grade must be of {len(p)} rows, got {len(texts)}")
    codes, names = pd.factorize(texts)
    if not 2 <= len(names) <= MAX_GRADES:
        raise InputError(
            f"grade must have 2 to {MAX_GRADES} different values, got {len(names)}: name a column "
            "of grades"
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
    return np.argsort(order)[codes], names[order].tolist()


def grade_names(grade: Any, name: str = "grade") -> Any:
    """Return the names of grades or sites (n,) as text, see `group_names`."""
    names = group_names(grade, name)
    names[is_missing(names)] = MISSING
    return names


SMALLEST_SHARE_OF_INDEX = 1e-4
"""Share that replaces smaller ones in the stability index, whose logarithm needs one above 0."""


class Stability(NamedTuple):
    """The population stability index, its p-value, and the index that chance exceeds in 5%."""

    psi: float
    pvalue: float
    high: float


def population_stability(
    grade: ArrayLike, reference: ArrayLike | Mapping[Any, float], *, random_state: int = 0
) -> Stability:
    """Return how much the shares of the grades have changed, and what chance explains.

    Parameters
    ----------
    grade : array-like of shape (n,)
        Grade of each row.
    reference : array-like of shape (m,) or mapping
        Grade of each row of the reference, or the share of each grade there; they sum to 1.
    random_state : int
        Seeds the 9,999 draws.

    Returns
    -------
    Stability
        ``psi``, Σ (a - b) log(a / b) over the shares a and b; its ``pvalue``, and the index
        ``high`` that is exceeded with a probability of 5%, if the shares have not changed.

    Notes
    -----
    Rows are assigned to the two tables at random (a permutation test), or, with shares, drawn from
    them: the p-value is exact for any counts of independent rows. In large samples
    n m / (n + m) PSI, or n PSI with shares, has a χ² distribution with one degree of freedom less
    than there are grades (Yurdakul & Naranjo 2020, Journal of Risk Model Validation 14(4)), so
    limits such as 0.1 and 0.25 mean something else for every size. A share below 0.0001, such as
    that of a grade without rows on one side, counts as 0.0001, whatever the number of rows.

    Examples
    --------
    >>> round(population_stability(["A"] * 60 + ["B"] * 40, {"A": 0.5, "B": 0.5}).psi, 4)
    0.0405
    """
    check_count(random_state, "random_state", 0)
    rng = np.random.default_rng(random_state)
    shares = reference if isinstance(reference, Mapping) else None
    labels = grade_names(grade)
    reference_labels = grade_names(reference if shares is None else list(shares), "reference")
    texts = np.concatenate([labels, reference_labels])
    codes, names = np.unique(texts, return_inverse=True)[::-1]
    k, n = len(names), len(labels)
    if not 0 < n < len(texts):
        raise InputError(f"{'reference' if n else 'grade'} must have a row or more, got none")
    if not {*codes[:n].tolist()} & {*codes[n:].tolist()}:
        raise InputError(
            f"grade and reference must have a grade in common, got {shown(labels[0])} and "
            f"{shown(texts[n])}: write both alike"
        )
    if k < 2:
        raise InputError(f"grade and reference must have two grades or more, got {k}")
    counts = np.bincount(codes[:n], minlength=k)
    other_counts: NDArray[Any] = np.bincount(codes[n:], minlength=k)
    if shares is not None:
        values = check_scores([*shares.values()], "reference")
        if (values < 0).any() or abs(values.sum() - 1) > 1e-6:
            raise InputError(
                f"reference must have shares that sum to 1, got {shown(values.tolist())}"
            )
        other_counts = n * np.bincount(codes[n:], values / values.sum(), k)
        draws = rng.multinomial(n, other_counts / n, size=N_DRAWS)
        other_draws = np.broadcast_to(other_counts, draws.shape)
    else:
        draws = rng.multivariate_hypergeometric(counts + other_counts, n, size=N_DRAWS)
        other_draws = counts + other_counts - draws
    psi, simulated = float(_index(counts, other_counts)), _index(draws, other_draws)
    reached = int((simulated >= psi * (1 - 1e-12)).sum())
    return Stability(psi, (reached + 1) / (N_DRAWS + 1), float(np.quantile(simulated, 0.95)))


def _index(counts: Any, other_counts: Any) -> Any:
    """Return the population stability index of two arrays of counts (..., k)."""
    shares, reference = (
        np.maximum(values / values.sum(axis=-1, keepdims=True), SMALLEST_SHARE_OF_INDEX)
        for values in (counts, other_counts)
    )
    return ((shares - reference) * np.log(shares / reference)).sum(axis=-1)
