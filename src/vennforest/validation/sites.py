"""Internal-external validation: calibration and ranking at each site, and over sites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student

from vennforest._messages import needed
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_inside,
    check_order,
    encode_groups,
)
from vennforest.metrics import auc_interval
from vennforest.metrics._inputs import ClassEstimates, EventEstimates, check_estimates
from vennforest.metrics.calibration_line import line_of
from vennforest.validation.grades import grade_names

if TYPE_CHECKING:
    import pandas as pd

SCALES: dict[str, Any] = {
    "observed_expected": (np.log, np.exp),
    "slope": (lambda slope: slope, lambda slope: slope),
    "auc": (logit, expit),
}
"""Scale on which each measure is pooled over sites, and back from it."""

POOLED, NEW_SITE = "pooled", "another site"
"""Rows after those of the sites: the mean over sites, and the range for another one."""


def internal_external(
    y: ArrayLike,
    p: ArrayLike,
    site: ArrayLike,
    *,
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
    y, p, classes, pos_label
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
    356, i6460). Standard errors are those of the intervals; the variance between sites is that of
    Paule & Mandel (1982), and intervals are those of Hartung & Knapp (2001), whose variance is not
    made smaller than that of the ordinary one. The prediction interval is that of IntHout et al.
    (2016), with Student's quantile for k - 1 degrees of freedom. Sites without an interval of a
    measure are left out of its mean; with one site left it is NaN.

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
    estimates = check_estimates(y, p, None, classes, pos_label)
    n = len(estimates.codes)
    names, of_row = np.unique(grade_names(site, "site").astype(str), return_inverse=True)
    if len(of_row) != n or len(names) < 2:
        raise InputError(
            f"site must have two values or more in {n} rows, got {len(names)} in {len(of_row)}"
        )
    numbers = encode_groups(groups, p)
    rows = {}
    for j, name in enumerate(names.tolist()):
        part = np.flatnonzero(of_row == j)
        group = None if numbers is None else np.unique(numbers[part], return_inverse=True)[1]
        rows[name] = _measures_of(estimates, part, group, level)
    frame = pandas.DataFrame.from_dict(rows, orient="index").rename_axis("site")
    table: pd.DataFrame = pandas.concat([frame, _over_sites(frame, level)])
    return table


def _measures_of(
    estimates: ClassEstimates, rows: IntArray, group: IntArray | None, level: float
) -> dict[str, float]:
    """Return the numbers of rows and events, and the measures with their intervals, of one site."""
    problem = estimates.main()
    line = line_of(EventEstimates(*(values[rows] for values in problem)), group, level)
    area = auc_interval(
        estimates.codes[rows],
        estimates.p[rows],
        groups=group,
        classes=np.arange(estimates.p.shape[1]),
        pos_label=estimates.positive,
        level=level,
    )
    measures: dict[str, float] = {"n": len(rows), "events": int(problem.outcome[rows].sum())}
    intervals = vars(line.observed_expected), vars(line.slope), vars(area)
    for measure, ends in zip(SCALES, map(dict.values, intervals), strict=True):
        measures |= zip((measure, f"{measure}_low", f"{measure}_high"), ends, strict=False)
    return measures


def _over_sites(frame: pd.DataFrame, level: float) -> pd.DataFrame:
    """Return the mean of each measure over the sites of a table, and the range of another site."""
    over_sites: dict[str, dict[str, float]] = {
        POOLED: dict(frame[["n", "events"]].sum()),
        NEW_SITE: {},
    }
    for measure, (scale, back) in SCALES.items():
        with np.errstate(divide="ignore", invalid="ignore"):
            value, low, high = (scale(frame[measure + end]) for end in ("", "_low", "_high"))
        has_interval = np.isfinite(value) & np.isfinite(high - low)
        errors = (high - low)[has_interval] / (2 * norm.ppf((1 + level) / 2))
        mean, half, half_of_new = pool(value[has_interval].to_numpy(), errors.to_numpy(), level)
        over_sites[POOLED][measure] = back(mean)
        for name, width in ((POOLED, half), (NEW_SITE, half_of_new)):
            over_sites[name] |= {
                f"{measure}_low": back(mean - width),
                f"{measure}_high": back(mean + width),
            }
    return frame.from_dict(over_sites, orient="index")


def pool(values: FloatArray, errors: FloatArray, level: float) -> tuple[float, float, float]:
    """Return the mean of k estimates with standard errors by random effects.

    Then half of its interval, and half of the prediction interval of another estimate; NaN for
    fewer than two.
    """
    k = len(values)
    if k < 2:
        return float("nan"), float("nan"), float("nan")

    def weighted(between: float) -> tuple[FloatArray, float, float]:
        weight = 1 / (errors**2 + between)
        mean = float(weight @ values / weight.sum())
        return weight, mean, float(weight @ (values - mean) ** 2) / (k - 1)

    # Paule & Mandel: the variance between at which the generalised Q has its expectation.
    between, largest = 0.0, float(np.ptp(values) ** 2 * k)
    if weighted(0.0)[2] > 1:
        between = float(brentq(lambda variance: weighted(variance)[2] - 1, 0.0, largest))
    weight, mean, ratio = weighted(between)
    variance = max(1.0, ratio) / weight.sum()
    quantile = float(student.ppf((1 + level) / 2, k - 1))
    return mean, quantile * variance**0.5, quantile * (variance + between) ** 0.5
