"""Distances from the smooth curve, and the difference of two areas, beside their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit
from scipy.stats import norm
from scipy.stats import t as student

from vennforest.metrics import auc_difference, auc_interval, calibration_distances


def draw(n, seed, slope=1.0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n) - 1
    p = 1 / (1 + np.exp(-z))
    return rng.random(n) < 1 / (1 + np.exp(-slope * z)), p, z


def test_distances_are_those_of_a_regression_on_restricted_cubic_splines():
    """Fitted with scikit-learn's solver and Harrell's basis, written out."""
    from sklearn.linear_model import LogisticRegression

    y, p, z = draw(1500, 3, 0.6)
    order = np.argsort(p)
    information = np.cumsum((p * (1 - p))[order])
    quantiles = np.array([0.05, 0.275, 0.5, 0.725, 0.95])
    knots = z[order[np.searchsorted(information, quantiles * information[-1])]]
    cube = lambda x: np.maximum(x, 0) ** 3  # noqa: E731
    a, b = knots[-2:]
    columns = [z]
    for k in knots[:-2]:
        part = cube(z - k) - cube(z - a) * (b - k) / (b - a) + cube(z - b) * (a - k) / (b - a)
        columns.append(part / (b - knots[0]) ** 2)
    X = np.column_stack(columns)
    smooth = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(X, y)
    distance = np.abs(p - smooth.predict_proba(X)[:, 1])
    found = calibration_distances(y, p, n_draws=20)
    expected = distance.mean(), np.median(distance), np.quantile(distance, 0.9), distance.max()
    values = [getattr(found, name).value for name in ("ici", "e50", "e90", "emax")]
    assert_allclose(values, expected, rtol=0.01)
    assert found.ici.low < found.ici.value < found.ici.high
    assert found.by_chance["ici"] < found.ici.low


def test_groups_widen_the_intervals_and_separated_labels_have_none():
    y, p, _ = draw(400, 4, 0.3)
    rows = np.repeat(np.arange(400), 5)
    alone = calibration_distances(y[rows], p[rows])
    grouped = calibration_distances(y[rows], p[rows], groups=rows)
    assert grouped.ici.value == alone.ici.value
    assert grouped.ici.high - grouped.ici.low > 1.5 * (alone.ici.high - alone.ici.low)
    assert np.isnan(calibration_distances(p > 0.3, p).ici.value)


@pytest.mark.parametrize("size", ["even", "uneven"])
def test_an_index_above_0_is_rarely_claimed_of_calibrated_groups(size):
    """Of 30 groups whose labels share half of their variance, within three errors of 5%."""
    rng = np.random.default_rng(11)
    n_claims = 0
    for _ in range(100):
        sizes = np.full(30, 20) if size == "even" else rng.geometric(0.05, 30)
        groups = np.repeat(np.arange(30), sizes)
        p = expit(rng.normal(size=len(groups)) - 1)
        shared = np.sqrt(0.5) * rng.normal(size=30)[groups]
        y = norm.cdf(shared + np.sqrt(0.5) * rng.normal(size=len(groups))) < p
        index = calibration_distances(y, p, groups=groups).ici
        n_claims += index.low > 0
        assert np.isfinite(index.high)
    assert n_claims <= 5 + 3 * (100 * 0.05 * 0.95) ** 0.5


def test_the_difference_of_areas_is_delongs():
    rng = np.random.default_rng(5)
    y = rng.random(120) < 0.4
    p, q = (np.round(1 / (1 + np.exp(-(2 * y + rng.normal(size=120)))), 2) for _ in range(2))

    def placements(s):
        kernel = (s[y][:, None] > s[~y]) + 0.5 * (s[y][:, None] == s[~y])
        return kernel.mean(1), kernel.mean(0)

    (a1, b1), (a2, b2) = placements(p), placements(q)
    variance = (a1 - a2).var(ddof=1) / y.sum() + (b1 - b2).var(ddof=1) / (~y).sum()
    found = auc_difference(y, p, q)
    assert_allclose(found.value, a1.mean() - a2.mean())
    quantile = student.ppf(0.975, min(y.sum(), (~y).sum()) - 1)
    assert_allclose(found.high - found.low, 2 * quantile * variance**0.5)
    assert_allclose(found.value, auc_interval(y, p).value - auc_interval(y, q).value)
    same = auc_difference(y, p, p)
    assert same.value == same.low == same.high == 0 and same.pvalue == 1
    twice = np.repeat(np.arange(120), 2)
    grouped = auc_difference(y[twice], p[twice], q[twice], groups=twice)
    assert grouped.high - grouped.low == pytest.approx(found.high - found.low, rel=0.02)
