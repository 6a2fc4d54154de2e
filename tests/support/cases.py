"""Drawn cases that tests of several modules share."""

import numpy as np
import pytest

from vennforest import CalibratedClassifier, Venn, VennAbers
from vennforest.calibrators import (
    BetaCalibration,
    BostromScaling,
    IsotonicCalibration,
    PlattScaling,
    PooledCalibration,
    SplineCalibration,
    TemperatureScaling,
    VectorScaling,
)

MAPS = [
    PlattScaling(), PlattScaling(targets="hard", on="score"), IsotonicCalibration(),
    BostromScaling(), BetaCalibration(), BetaCalibration(targets="hard"), TemperatureScaling(),
    VectorScaling(), SplineCalibration(), PooledCalibration(),
]  # fmt: skip
CALIBRATORS = [*MAPS, VennAbers(), VennAbers("log"), Venn(), Venn("bins")]
COMMON_METHODS = [
    "venn-abers", "venn", "platt", "isotonic", "bostrom", "beta", "temperature", "none",
]  # fmt: skip


def draw_rows(k=2, n=120, seed=0):
    """Features, labels that the first feature tells something of, and 40 new rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=n + 40), [0.2] if k == 2 else [-0.6, 0.6])
    return X[:n], y[:n], X[n:]


def draw_grid(n=120, seed=0, k=2):
    """Features that 32 bits hold exactly, with ties, labels, and 40 new rows."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n + 40, 4)), 2).astype(np.float32).astype(float)
    edges = [0.1] if k == 2 else [-0.5, 0.6]
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=n + 40), edges)
    return X[:n], y[:n], X[n:]


def draw_noise(n, k, seed):
    """Features that tell nothing of the labels, of which each of k is as frequent."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 6)), rng.permutation(np.arange(n) % k)


def fit(estimator, X, y, groups=None, **settings):
    """Fit a classifier with its groups, if there are any."""
    model = CalibratedClassifier(estimator, random_state=0, **settings)
    return model.fit(X, y) if groups is None else model.fit(X, y, groups=groups)


def score(model, X):
    """Scores of a model as calibrators take them: rounded, of two classes the second column."""
    p = rounded(model.predict_proba(X))
    return p[:, 1] if p.shape[1] == 2 else p


def rounded(scores):
    """Scores with a mantissa of 40 bits."""
    mantissa, exponent = np.frexp(scores)
    return np.ldexp(np.rint(mantissa * 2.0**40), exponent - 40)


def draw_estimates(rng):
    """Outcomes and estimates with ties, extremes and neighbours; sometimes one class or example."""
    n = int(rng.integers(1, 30))
    values = [0.0, 1.0, 0.5, 0.29, np.nextafter(0.29, 1), 1e-300, 1 - 1e-16, *rng.random(4)]
    p = rng.choice(values, n) if rng.random() < 0.7 else rng.random(n)
    y = (rng.random(n) < rng.random()).astype(int)
    return y, p


def close(a, b, tol=1e-12):
    np.testing.assert_allclose(a, b, rtol=0, atol=tol)


def draw_scores(rng, n, k):
    """Scores with ties and extremes, not all of them probabilities; (n,) where k is 2."""
    shape = n if k == 2 else (n, k)
    kind = rng.integers(6)
    if kind == 0:
        return rng.random(shape)
    if kind == 1:
        return rng.integers(0, 5, shape) / 4
    if kind == 2:
        return np.full(shape, rng.choice([0.0, 0.5, 0.75, 1.0]))
    if kind == 3:
        return 10.0 ** rng.choice([-300, -10, 0, 300], shape) * rng.choice([-1, 1], shape)
    if kind == 4:
        steps = rng.integers(-2, 3, shape)
        return 0.75 + steps * np.spacing(0.75)
    if k == 2:
        return rng.beta(0.3, 0.3, n)
    return rng.dirichlet(np.full(k, 0.4), n)


def draw_categorised(rng):
    k = int(rng.integers(2, 5))
    n = int(rng.integers(1, 14))
    calibration, new = draw_scores(rng, n, k), draw_scores(rng, 4, k)
    if rng.random() < 0.5:
        new[:2] = calibration[rng.integers(0, n, 2)]
    weight = None if rng.random() < 0.5 else rng.choice([0.25, 1.0, 2.0, 3.0, 1e6], n)
    return k, calibration, new, weight


def booster(package, **settings):
    """Return a classifier of XGBoost, LightGBM or CatBoost; skip the test without the package."""
    name, quiet = {
        "xgboost": ("XGBClassifier", {"n_jobs": 1}),
        "lightgbm": ("LGBMClassifier", {"n_jobs": 1, "verbose": -1}),
        "catboost": (
            "CatBoostClassifier", {"thread_count": 1, "verbose": 0, "allow_writing_files": False},
        ),
    }[package]  # fmt: skip
    return getattr(pytest.importorskip(package), name)(**quiet, **settings)
