"""Internal-external validation: calibration and ranking at each site, and over sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.optimize.elementwise import find_root
from scipy.special import chdtri, ndtr, stdtrit

from vennforest._messages import needed
from vennforest._validation import FloatArray, InputError, check_inside, check_order
from vennforest.metrics import Estimates
from vennforest.metrics.variance import SCALES, Scale, effective_rows, with_ends
from vennforest.validation.grades import grade_names

if TYPE_CHECKING:
    import pandas as pd

POOLED_ON: dict[str, Scale] = {"observed_expected": "log", "slope": "identity", "auc": "log-odds"}
"""Scale on which each measure is pooled over sites."""

N_VARIANCES = 500
"""Number of quantiles of the variance between sites."""

POOLED, NEW_SITE = "pooled", "another site"
"""Rows after those of the sites: the mean over sites, and the range for another one."""


def internal_external(
    y: ArrayLike,
    p: ArrayLike,
    site: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Return observed over expected, slope and AUC at each site, and pooled over sites.

    In internal-external validation (Steyerberg & Harrell 2016) each site, such as a hospital, is
    predicted by a model of the other sites: see ``vennforest.report.evaluate(..., site=...)``.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``. With more than two classes and no ``pos_label``, observed
        over expected and slope are of the event that the predicted label is right.
    site : array-like of shape (n,)
        Site of each row, of at least two; rows without one are the site ``"missing"``.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, such as patients, within the sites.
    level : float
        Confidence level of the intervals, in (0, 1).

    Returns
    -------
    data frame
        A row for each site with the rows ``n``, the ``events``, and ``observed_expected``,
        ``slope`` and ``auc`` with the ends of their intervals (``slope_low``, ``slope_high``, …).
        Row ``"pooled"`` has the means over sites, and ``"another site"`` the intervals in which
        the measures of a new site are expected.

    Notes
    -----
    A meta-analysis with random effects, of log(O/E), slope and logit(AUC) (Debray et al. 2017, BMJ
    356, i6460). The variance between sites is that of Paule & Mandel (1982); intervals are those of
    Hartung & Knapp (2001), whose variance is not made smaller than that of the ordinary one. In the
    range of another site the variance between sites has its confidence distribution, by which the
    generalised Q has a χ² distribution with k - 1 degrees of freedom (Viechtbauer 2007). At a site
    without an event half an event is added to the observed and to the expected ones. Sites without
    a standard error of another measure are left out of its mean; with one site left it is NaN.
    ``attrs["pooled"]`` has the number of sites in the mean of each measure.

    Examples
    --------
    >>> y, p = [0, 0, 1, 0, 1, 1] * 60, [0.1, 0.3, 0.4, 0.6, 0.7, 0.9] * 60
    >>> frame = internal_external(y, p, ["north"] * 120 + ["south"] * 120 + ["west"] * 120)
    >>> frame.loc["pooled", ["observed_expected", "auc"]].round(2).tolist()
    [1.0, 0.89]
    """
    pandas = needed("pandas", "data frames")
    check_inside(level, "level")
    check_order(p, site=site)
    options: Any = {"sample_weight": sample_weight, "groups": groups, "classes": classes}
    estimates = Estimates(y, p, pos_label=pos_label, **options)
    n = len(estimates.is_counted)
    of_rows = grade_names(site, "site").astype(str)
    if len(of_rows) != n or len(names := np.unique(of_rows[estimates.is_counted])) < 2:
        n_sites = len(np.unique(of_rows))
        raise InputError(
            f"site must have two values or more in {n} rows, got {n_sites} in {len(of_rows)}"
        )
    if {POOLED, NEW_SITE} & set(names.tolist()):
        raise InputError(f"site must have other values than {POOLED!r} and {NEW_SITE!r}: rename it")
    rows: dict[str, dict[str, float]] = {}
    pooled: dict[str, list[tuple[float, float]]] = {measure: [] for measure in POOLED_ON}
    for name in names.tolist():
        part = estimates.take(of_rows[estimates.is_counted] == name)
        event = part.main
        rows[name] = {"n": len(event.p), "events": int(event.outcome.sum())}
        for measure, estimate in part.calibration_and_ranking(level).items():
            scale = POOLED_ON[measure]
            if estimate.standard_error > 0:
                value = float(SCALES[scale][0](estimate.value))
                pooled[measure].append((value, estimate.standard_error))
            elif measure == "observed_expected" and not event.outcome.any():
                expected = effective_rows(event.weight) * np.average(event.p, weights=event.weight)
                value = -float(np.log(2 * expected + 1))  # of half an event
                pooled[measure].append((value, 2**0.5))
            rows[name] |= with_ends(measure, estimate.value, estimate.low, estimate.high)
    frame = pandas.DataFrame.from_dict(rows, orient="index")
    over_sites: dict[str, Any] = {POOLED: dict(frame[["n", "events"]].sum()), NEW_SITE: {}}
    for measure, scale in POOLED_ON.items():
        values, errors = np.reshape(pooled[measure], (-1, 2)).T
        mean, ends, range_of_new = pool(values, errors, level)
        back = SCALES[scale][1]
        with np.errstate(over="ignore"):
            over_sites[POOLED] |= with_ends(measure, back(mean), *map(back, ends))
            over_sites[NEW_SITE] |= with_ends(measure, np.nan, *map(back, range_of_new))
    table: pd.DataFrame = pandas.concat([frame, frame.from_dict(over_sites, orient="index")])
    table.attrs["pooled"] = {measure: len(sites) for measure, sites in pooled.items()}
    return table


def pool(
    values: FloatArray, errors: FloatArray, level: float
) -> tuple[float, tuple[float, float], tuple[float, float]]:
    """Return the mean of k estimates with standard errors by random effects, (k,).

    Then the ends of its interval, and of the prediction interval of another estimate; NaN for fewer
    than two.
    """
    k, tail = len(values), (1 + level) / 2
    if k < 2:
        return float("nan"), (float("nan"),) * 2, (float("nan"),) * 2

    def weighted(between: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return sums of weights, means and generalised Q for variances between sites, (m,)."""
        weight = 1 / (errors**2 + between[:, None])
        total = weight.sum(axis=1)
        mean = weight @ values / total
        return total, mean, (weight * (values - mean[:, None]) ** 2).sum(axis=1)

    def variance_of(q: FloatArray) -> FloatArray:
        """Return the variances between sites at which the generalised Q has given values, (m,)."""
        # Q falls as the variance rises, from its value without any.
        ends = np.zeros(len(q)), np.ptp(values) ** 2 * k / q
        solve: Any = find_root  # the stubs of which know no further arguments
        root = solve(lambda between, q: weighted(between)[2] - q, ends, args=(q,))
        return np.where(weighted(np.zeros(1))[2] <= q, 0.0, root.x)

    # Paule & Mandel: the variance between at which the generalised Q has its expectation, so that
    # the factor by which Hartung & Knapp widen the interval is 1.
    between = variance_of(np.array([k - 1.0]))
    total, mean = (float(values[0]) for values in weighted(between)[:2])
    half = float(stdtrit(k - 1, tail)) / total**0.5
    # Another estimate: a normal one for each quantile of the distribution of the variance.
    between = variance_of(chdtri(k - 1, (np.arange(N_VARIANCES) + 0.5) / N_VARIANCES))
    totals, means, _ = weighted(between)
    spreads = np.sqrt(1 / totals + between)
    farthest = 10 * float(spreads.max()) + float(np.ptp(values))

    def excess(x: float, share: float) -> float:
        """Return how much larger than ``share`` the share of new estimates below x is."""
        return float(ndtr((x - means) / spreads).mean()) - share

    search = mean - farthest, mean + farthest
    low, high = (brentq(excess, *search, (share,)) for share in (1 - tail, tail))
    # Of alike sites the interval of the mean, by Student's quantile, may be the wider one.
    ends = mean - half, mean + half
    return mean, ends, (min(float(low), ends[0]), max(float(high), ends[1]))
