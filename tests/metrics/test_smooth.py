"""The smooth calibration curve: Harrell's spline, maximum likelihood, the delta method."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit, logit
from scipy.stats import norm
from scipy.stats import t as student

from vennforest import metrics
from vennforest.metrics import calibration_distances
from vennforest.metrics.smooth import spline_features

LEAST_CASES = {5: 200, 4: 100, 3: 50}
SHARES = {5: (0.05, 0.275, 0.5, 0.725, 0.95), 4: (0.05, 0.35, 0.65, 0.95), 3: (0.1, 0.5, 0.9)}


def slow_features(z, knots):
    """Harrell (2015), equation 2.25, number by number."""
    first, *_, a, b = knots
    rows = []
    for x in z:
        row = [1.0, x]
        for knot in knots[:-2]:
            value = max(x - knot, 0) ** 3
            value -= max(x - a, 0) ** 3 * (b - knot) / (b - a)
            value += max(x - b, 0) ** 3 * (a - knot) / (b - a)
            row.append(value / (b - first) ** 2)
        rows.append(row)
    return np.array(rows)


def slow_curve(y, p, at, groups=None):
    """Shares at probabilities, with the half-width of their interval in log-odds."""
    inside = [0 < q < 1 for q in p]
    y, z = y[inside], np.log(p[inside] / (1 - p[inside]))
    n_cases = min(y.sum(), len(y) - y.sum())
    n_knots = next((k for k in (5, 4, 3) if n_cases >= LEAST_CASES[k]), 2)
    # The smallest estimate below or at which at least this share of the information lies.
    ordered = sorted(z)
    information = [expit(x) * (1 - expit(x)) for x in ordered]
    shares = np.cumsum(information) / sum(information)
    knots = [ordered[np.argmax(shares >= share)] for share in SHARES.get(n_knots, ())]
    x = slow_features(z, knots) if knots else np.column_stack([np.ones(len(z)), z])

    def minus_likelihood(beta):
        eta = x @ beta
        return (np.logaddexp(0, eta) - y * eta).sum()

    def gradient(beta):
        return x.T @ (expit(x @ beta) - y)

    beta = minimize(minus_likelihood, np.zeros(x.shape[1]), jac=gradient, method="BFGS",
                    options={"gtol": 1e-9, "maxiter": 10_000}).x  # fmt: skip
    q = expit(x @ beta)
    variance, quantile = np.linalg.inv((x * (q * (1 - q))[:, None]).T @ x), 1.959963984540054
    if groups is not None:
        groups = groups[inside]
        sums = np.array(
            [((y - q)[:, None] * x)[groups == g].sum(axis=0) for g in np.unique(groups)]
        )
        total, moves = np.linalg.inv(variance), []
        for g, score in zip(np.unique(groups), sums, strict=True):
            part = groups == g
            inside_g = (x[part] * (q * (1 - q))[part, None]).T @ x[part]
            moves.append(np.linalg.solve(total - inside_g, score))
        m = len(moves)
        variance = np.transpose(moves) @ moves * (m - 1) / m
        quantile = student.ppf(0.975, m - 1)
    line = np.column_stack([np.ones(len(at)), logit(at)])
    new = slow_features(logit(at), knots) if knots else line
    return expit(new @ beta), quantile * np.sqrt(np.diag(new @ variance @ new.T))


def test_the_spline_is_harrells():
    rng = np.random.default_rng(1)
    for _ in range(60):
        knots = np.sort(rng.normal(size=rng.integers(3, 6)) * 3)
        z = np.concatenate([rng.normal(size=20) * 5, knots])
        np.testing.assert_allclose(
            spline_features(z, knots), slow_features(z, knots), rtol=1e-9, atol=1e-9
        )
        beyond = knots[-1] + np.array([1.0, 2.0, 3.0])
        assert np.ptp(np.diff(spline_features(beyond, knots), axis=0), axis=0).max() < 1e-6


@pytest.mark.parametrize("grouped", [False, True])
def test_the_curve_is_that_of_the_slow_version(grouped):
    rng = np.random.default_rng(2)
    for _ in range(20):
        n = int(rng.integers(60, 700))
        z = rng.normal(size=n) * rng.choice([0.5, 1, 2]) + rng.normal()
        p = expit(z)
        y = (rng.random(n) < expit(0.7 * z + 0.2 * np.sin(2 * z))).astype(int)
        y[:2] = 0, 1
        p[rng.integers(0, n, 3)] = rng.choice([0.0, 1.0])
        groups = rng.integers(0, n // 3, n) if grouped else None
        curve = metrics.reliability_curve(y, p, groups=groups)
        if not len(curve.smooth_estimate):
            continue
        share, half = slow_curve(y, p, curve.smooth_estimate, groups)
        np.testing.assert_allclose(curve.smooth_share, share, atol=1e-5)
        np.testing.assert_allclose(curve.band_low, expit(logit(share) - half), atol=1e-4)
        np.testing.assert_allclose(curve.band_high, expit(logit(share) + half), atol=1e-4)
        inside = np.sort(p[(p > 0) & (p < 1)])
        ends = inside[[9, -10]] if len(inside) >= 200 else inside[[0, -1]]
        np.testing.assert_allclose(curve.smooth_estimate[[0, -1]], ends)


def test_what_has_no_curve():
    for y, p in (
        ([0, 1], [0.2, 0.8]),
        ([0, 0, 1, 1], [0.1, 0.2, 0.3, 0.4]),
        ([0, 1, 1], [0.5, 0.5, 0.5]),
        ([0, 1, 0], [0.0, 1.0, 1.0]),
        ([0, 1, 0, 1], [0.3, np.nextafter(0.3, 1), 0.3, np.nextafter(0.3, 1)]),
    ):
        curve = metrics.reliability_curve(y, p)
        assert len(curve.smooth_estimate) == len(curve.band_low) == 0
    extreme = metrics.reliability_curve([0, 1, 0, 1, 1], [1e-300, 1e-300, 0.4, 0.4, 1 - 1e-16])
    assert np.isfinite(extreme.smooth_share).all() and np.isfinite(extreme.band_high).all()
    one_group = metrics.reliability_curve([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], groups=[1] * 4)
    assert np.isnan([one_group.bin_low, one_group.bin_high]).all()


@pytest.mark.parametrize(("options", "message"), [
    ({"band": "wide"}, "band must be one of"),
    ({"groups": [1, 2]}, r"groups must have shape \(4,\), got \(2,\)"),
])  # fmt: skip
def test_refused_options(options, message):
    with pytest.raises(ValueError, match=message):
        metrics.reliability_curve([0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4], **options)


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


@pytest.mark.filterwarnings("error")
def test_probabilities_next_to_1_and_equal_ones_but_for_rounding_have_no_warning():
    rng = np.random.default_rng(4)
    p = 1 - 10 ** rng.uniform(-16, 0, 400)
    y = rng.random(400) < 0.9
    distances = calibration_distances(y, p, sample_weight=rng.lognormal(0, 1, 400))
    assert np.isfinite(list(distances.by_chance.values())).all()
    p = 0.5 + 1e-16 * rng.integers(-2, 3, 400)
    assert np.isnan(metrics.calibration_line(y, p).slope.value)
    assert not len(metrics.reliability_curve(y, p).smooth_estimate)
