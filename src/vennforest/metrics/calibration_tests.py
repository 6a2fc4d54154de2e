"""Tests of the hypothesis that probabilities are calibrated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc, erfc, fdtrc, logit

from vennforest._validation import FloatArray, IntArray
from vennforest.metrics._inputs import ClassEstimates, EventEstimates
from vennforest.metrics.dependence import (
    MIN_EVENT_GROUPS,
    event_groups,
    intragroup_correlation,
    variance_of_sums,
)
from vennforest.metrics.variance import effective_rows, share_pvalue, sum_by_group

GROUPED_TESTS = ("spiegelhalter", "kuiper", "line")

MIN_EXPECTED = 10
"""Expected events, or non-events, below which the exact test of their number is used."""


class CalibrationTest(NamedTuple):
    """Statistic of a test of calibration, and its p-value in [0, 1]."""

    statistic: float
    pvalue: float


def spiegelhalter(codes: IntArray, p: FloatArray, weight: FloatArray) -> CalibrationTest:
    """Return Spiegelhalter's test for probabilities (n, k); see `spiegelhalter_test`.

    For any number of classes z = Σ (‖p‖² − p_y) / √(Σ (Σ_j p_j³ − ‖p‖⁴)), p_y the probability of
    the observed label, which for two classes is Σ (y − p)(1 − 2p) / √(Σ (1 − 2p)² p (1 − p)).
    """
    square = np.einsum("ij,ij->i", p, p)
    excess = square - p[np.arange(len(p)), codes]
    # Σ p_j³ − ‖p‖⁴ written as a sum: the variance of p_Y, Y drawn from p.
    variance = np.einsum("ij,ij->i", p, (p - square[:, None]) ** 2)
    z = _standardised(float(weight @ excess), float(weight**2 @ variance))
    return CalibrationTest(z, float(erfc(abs(z) / np.sqrt(2))))


def kuiper(event: EventEstimates) -> CalibrationTest:
    """Return Kuiper's test of an event; see `kuiper_test`."""
    outcome, p, weight, _ = event
    reach = _reach(weight * (outcome - p), p)
    statistic = _standardised(reach, float(weight**2 @ (p * (1 - p))))
    return CalibrationTest(statistic, range_sf(statistic))


@dataclass(frozen=True, eq=False)
class CalibrationTests:
    """Tests of the calibration of all classes, and the p-value of all of them together.

    Attributes
    ----------
    pvalue : float
        The smallest p-value times the number of tests. NaN where no test is valid: if rows
        correlate within groups, at least ten groups must have the rarer outcome; with one group
        that cannot be known.
    pvalues : dict of str to float
        p-values by test. With two classes: "spiegelhalter", "kuiper", and with groups "line", of
        intercept 0 and slope 1; or "count", of the exact binomial test of the number of events
        where fewer than ten are expected. With more: "top label", of these for the predicted label;
        "class means", that each mean probability is right; and "class curves", of each class
        against the rest, adjusted for the number of classes.
    class_pvalues : ndarray of shape (k,)
        p-values of each class against the rest, by Kuiper's test or the exact one, adjusted for
        the number of classes.
    class_excess : ndarray of shape (k,)
        Share of each class minus its mean probability.
    """

    pvalue: float
    pvalues: dict[str, float]
    class_pvalues: FloatArray
    class_excess: FloatArray


def tests_of(estimates: ClassEstimates, rows: Any = slice(None)) -> CalibrationTests:
    """Return the tests of some rows, whose correlation in groups is that of all rows."""
    problem, k, groups = estimates.main, estimates.p.shape[1], estimates.groups
    weight, codes, p = estimates.weight[rows], estimates.codes[rows], estimates.p[rows]
    residual = (codes[:, None] == np.arange(k)) - p
    excess = weight @ residual / weight.sum()
    pvalues = _event_pvalues(problem, rows)
    if estimates.positive is None and "spiegelhalter" in pvalues and groups is None:
        pvalues["spiegelhalter"] = spiegelhalter(codes, p, weight).pvalue  # of all classes
    pvalue = _smallest(pvalues.values())
    if estimates.positive is not None:
        return CalibrationTests(pvalue, pvalues, np.full(k, _shape_pvalue(pvalues)), excess)
    of_class = np.array(
        [_shape_pvalue(_event_pvalues(event, rows)) for event in estimates.one_vs_rest()]
    )
    pvalues = {
        "top label": pvalue,
        "class means": _class_means(residual, p, weight, None if groups is None else groups[rows]),
        "class curves": _smallest(of_class),
    }
    adjusted = np.minimum(1, of_class * np.isfinite(of_class).sum())
    return CalibrationTests(_smallest(pvalues.values()), pvalues, adjusted, excess)


def _smallest(pvalues: Iterable[float]) -> float:
    """Return the smallest p-value times the number of those that are not NaN; NaN if all are."""
    valid = [pvalue for pvalue in pvalues if pvalue == pvalue]
    return min(1.0, len(valid) * min(valid)) if valid else float("nan")


def _shape_pvalue(pvalues: dict[str, float]) -> float:
    """Return the p-value of Kuiper's test, or of the exact one, among those of one event."""
    return pvalues.get("kuiper", pvalues.get("count", float("nan")))


def _event_pvalues(event: EventEstimates, rows: Any) -> dict[str, float]:
    """Return the p-values of the tests of one event in some rows; NaN with too few groups."""
    (outcome, p, weight, groups), correlation = event.take(rows), 0.0
    if groups is not None and event.groups is not None:
        correlation = intragroup_correlation(event.outcome, event.p, event.groups)
        are_few = correlation > 0 and event_groups(outcome, groups) < MIN_EVENT_GROUPS
        if are_few or not event.groups.any():  # one group does not say how its rows correlate
            return dict.fromkeys(GROUPED_TESTS, float("nan"))
    n, expected = effective_rows(weight), float(weight @ p / weight.sum())
    if correlation == 0 and n * min(expected, 1 - expected) < MIN_EXPECTED:
        # Hoeffding (1956): tails of the sum of unequal probabilities are not above binomial ones.
        return {"count": share_pvalue(outcome, weight, expected)}
    pvalues = grouped_pvalues(outcome, p, groups, correlation, weight)
    names = GROUPED_TESTS if groups is not None else GROUPED_TESTS[:2]
    return dict(zip(names, pvalues, strict=False))


def _class_means(
    residual: FloatArray, p: FloatArray, weight: FloatArray, groups: IntArray | None
) -> float:
    """Return the p-value of the sum of residuals (n, k) of all classes; see `calibration_tests`."""
    kish = weight.sum() / (weight @ weight)
    order = np.argsort(weight @ p, kind="stable")
    total = kish * np.cumsum((weight @ p)[order])
    n_rare = max(1, int((kish * (weight @ p) < MIN_EXPECTED).sum()))
    n_rare += n_rare < len(order) and total[n_rare - 1] < MIN_EXPECTED
    starts = np.append(0, np.arange(n_rare, len(order)))
    if len(starts) < 2 or (groups is not None and len(np.unique(groups)) < MIN_EVENT_GROUPS):
        return float("nan")
    # One class is determined by the others: the most frequent one is left out.
    p, residual = (
        np.add.reduceat(values[:, order], starts, axis=1)[:, :-1] for values in (p, residual)
    )
    weighted = weight[:, None] * p
    variance = np.diag(weight @ weighted) - weighted.T @ weighted
    if not (np.diag(variance) > 0).all():  # of probabilities 0 and 1
        return float("nan")
    scale = 1 / np.sqrt(np.diag(variance))
    inverse = np.linalg.pinv(variance * scale * scale[:, None], rcond=1e-10, hermitian=True)
    excess, df = (weight @ residual) * scale, float(np.linalg.matrix_rank(inverse))
    statistic = float(excess @ inverse @ excess)
    if groups is None:
        return float(chdtrc(df, statistic))
    sums = sum_by_group(weight[:, None] * (residual - weight @ residual / weight.sum()), groups)
    effects = inverse @ ((sums * scale).T @ (sums * scale)) * len(sums) / max(1, len(sums) - 1)
    # Rao and Scott's correction, of the second order: effects differ between classes.
    effect = max(1.0, float(np.trace(effects)) / df)
    df /= max(1.0, float(np.trace(effects @ effects)) / (df * effect**2))
    return float(fdtrc(df, df * max(1, len(sums) - 1), statistic / effect / inverse.shape[0]))


def grouped_pvalues(
    outcome: FloatArray,
    p: FloatArray,
    groups: IntArray | None,
    correlation: float,
    weight: FloatArray | None = None,
) -> tuple[float, float, float]:
    """Return the p-values of three tests of calibration of rows (n,) that depend within groups.

    Spiegelhalter's and Kuiper's statistics with the variances of `variance_of_sums`, and the score
    test of intercept 0 and slope 1 of the log-odds, χ² with two degrees of freedom.
    """
    residual, features = outcome - p, np.ones((len(p), 3))
    features[:, 1] = 1 - 2 * p
    features[:, 2] = np.where((p > 0) & (p < 1), logit(np.clip(p, 1e-300, 1 - 1e-16)), 0)
    features *= 1 if weight is None else weight[:, None]
    sums, covariance = residual @ features, variance_of_sums(features, p, groups, correlation)
    z = _standardised(float(sums[1]), float(covariance[1, 1]))
    line = np.ix_([0, 2], [0, 2])
    inverse = np.linalg.pinv(covariance[line], hermitian=True)
    of_line = chdtrc(np.linalg.matrix_rank(covariance[line]), sums[[0, 2]] @ inverse @ sums[[0, 2]])
    reach = _standardised(_reach(residual * features[:, 0], p), float(covariance[0, 0]))
    return float(erfc(abs(z) / np.sqrt(2))), range_sf(reach), float(of_line)


def _reach(residual: FloatArray, p: FloatArray) -> float:
    """Return the range of the sums of residuals (n,) in the order of p, from 0 on."""
    level = np.unique(p, return_inverse=True)[1]
    return float(np.ptp(np.append(0.0, np.cumsum(np.bincount(level, residual)))))


def _standardised(excess: float, variance: float) -> float:
    if variance > 0:
        return excess / float(np.sqrt(variance))
    return float(np.copysign(np.inf, excess)) if excess else 0.0


def range_sf(x: float) -> float:
    """Return P(max W − min W > x) for a Brownian motion W on [0, 1] and x >= 0.

    Feller (1951), doi:10.1214/aoms/1177729589: the tail series for large x, and its theta-function
    transform for small x.
    """
    if x == 0:
        return 1.0
    if x > 1.5:
        k = np.arange(1, 40)
        return float(4 * ((-1.0) ** (k - 1) * k * erfc(k * x / np.sqrt(2))).sum())
    half = np.arange(1, 40, 2) * np.pi / 2
    terms = (8 / x**2 + 2 / half**2) * np.exp(-2 * half**2 / x**2)
    return float(1 - terms.sum())
