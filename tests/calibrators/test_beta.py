"""Beta calibration against Newton steps with 60 digits, and its constraints."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from oracles import formulas as oracle
from vennforest.calibrators import BetaCalibration


def fit_beta(scores, positive, weight, targets="smoothed"):
    return BetaCalibration(targets).fit(scores, positive, sample_weight=weight, classes=[0, 1])


def drawn(rng, n, shape):
    """Scores in (0, 1) that mean what they say, the contrary, or only at one end."""
    s = rng.beta(0.7, 0.9, n).clip(1e-9, 1 - 1e-9)
    q = {"right": s, "wrong": 1 - s, "low": s**3, "high": 1 - (1 - s) ** 3}[shape]
    y = (rng.random(n) < 0.1 + 0.8 * q).astype(float)
    y[:4] = 0, 1, 0, 1
    s[:4] = 0.2, 0.2, 0.8, 0.8  # both labels at two scores: the maximum is finite
    return s, y, rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else None


def columns(s):
    return [np.log(s), -np.log1p(-s)]


@pytest.mark.parametrize("targets", ["smoothed", "hard"])
def test_it_agrees_with_the_oracle_where_no_constraint_binds(targets):
    rng = np.random.default_rng(0)
    compared = 0
    while compared < 6:
        s, y, weight = drawn(rng, int(rng.integers(8, 30)), "right")
        target = np.array(oracle.platt_targets(y, weight, targets))
        a, b, c = oracle.logistic_fit(columns(s), target, weight)
        if min(a, b) < 0:
            continue
        found = fit_beta(s, y, weight, targets)
        p = found.predict_proba(s)[:, 1]
        assert_allclose(p, expit(np.dot([a, b], columns(s)) + c), rtol=1e-8)
        assert_allclose(found.coef_[0], [a, b, c], rtol=1e-7)
        compared += 1


@pytest.mark.parametrize("shape", ["right", "wrong", "low", "high"])
def test_constraints_leave_the_best_map_that_does_not_decrease(shape):
    rng = np.random.default_rng(1)
    bound = 0
    for _ in range(8):
        s, y, weight = drawn(rng, 40, shape)
        w = np.ones(40) if weight is None else weight
        X = np.vstack([*columns(s), np.ones(40)])

        def loss(theta, X=X, y=y, w=w):
            f = theta @ X
            return (w * (np.logaddexp(0, f) - y * f)).sum(), (w * (expit(f) - y)) @ X.T

        best = min(
            minimize(
                loss,
                [start, start, 0.0],
                jac=True,
                method="L-BFGS-B",
                bounds=[(0, None), (0, None), (None, None)],
                options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 10_000, "maxfun": 100_000},
            ).fun
            for start in (0.0, 1.0)
        )
        found = fit_beta(s, y, weight, "hard")
        p = found.predict_proba(s)[:, 1]
        mine = -(w * (y * np.log(p) + (1 - y) * np.log1p(-p))).sum()
        assert (found.coef_[0, :2] >= 0).all()
        assert mine <= best + 1e-9 * abs(best)
        assert (np.diff(found.predict_proba(np.linspace(0, 1, 200))[:, 1]) >= 0).all()
        bound += (found.coef_[0, :2] == 0).any()
    if shape == "wrong":
        assert bound > 2


def test_separable_labels_do_not_make_certainties_of_calibration_scores():
    """Five of a rare class, all above the rest: hard targets say 0 to the sixth, a little below."""
    s = np.append(np.linspace(0.01, 0.4, 60), np.linspace(0.6, 0.9, 5))
    y = np.arange(65) >= 60
    hard = BetaCalibration("hard").fit(s, y).predict_proba([0.4, 0.6])
    assert max(hard[0, 1], hard[1, 0]) < 1e-6
    p = BetaCalibration().fit(s, y).predict_proba([0.4, 0.6])[:, 1]
    assert 1e-3 < p[0] < 0.2 < p[1] < 0.95
