"""Isotonic calibration against the max–min formula and its reading in exact fractions."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.isotonic import IsotonicRegression

from oracles import formulas as oracle
from support.cases import draw_scores
from vennforest.calibrators.isotonic import IsotonicCalibration


def drawn(rng):
    """One to thirteen scores of any kind, the smallest and the largest floats among them."""
    n = int(rng.integers(1, 14))
    scores = [
        draw_scores(rng, n, 2),
        draw_scores(rng, n, 2),
        5e-324 * rng.integers(-4, 5, n),
        # the sum and the difference of two overflow
        rng.choice([-1, 1], n) * rng.uniform(1.2e308, 1.79e308, n),
    ][rng.integers(4)]
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else None
    return scores, rng.integers(0, 2, n).astype(float), weight


def between_and_beside(scores, rng):
    """The scores, the middles of neighbours, their neighbours among floats, and others."""
    x = np.unique(scores)
    places = np.concatenate([x, x[:-1] / 2 + x[1:] / 2, rng.choice(x, 4) * rng.random(4)])
    places = np.concatenate([places, np.nextafter(places, -np.inf), np.nextafter(places, np.inf)])
    return places[np.isfinite(places)]


def test_the_fit_and_its_reading_agree_with_exact_fractions():
    rng = np.random.default_rng(0)
    for _ in range(300):
        scores, y, weight = drawn(rng)
        fitted = oracle.isotonic_max_min(scores, y, weight)
        new = between_and_beside(scores, rng)
        model = IsotonicCalibration().fit(scores, y, sample_weight=weight, classes=[0, 1])
        p = model._predict_proba(new)[:, 1]
        expected = [float(oracle.isotonic_read(fitted, s)) for s in new]
        assert_allclose(p, expected, rtol=0, atol=1e-12)


def test_calibration_scores_get_the_values_of_scikit_learn():
    rng = np.random.default_rng(1)
    for _ in range(100):
        scores = rng.integers(-5, 5, 12) / 8  # it takes neighbouring floats for equal
        y, weight = rng.integers(0, 2, 12), rng.integers(1, 4, 12)
        model = IsotonicCalibration().fit(scores, y, sample_weight=weight, classes=[0, 1])
        theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, y, weight).predict(scores)
        assert_allclose(model._predict_proba(scores)[:, 1], theirs, atol=1e-9)


def test_many_classes_are_normalised_and_rows_of_zeros_keep_their_raw_scores():
    scores = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.3, 0.4, 0.3]])
    y = np.array([0, 1, 2, 1])
    p = IsotonicCalibration().fit(scores, y).predict_proba(scores)
    each = np.column_stack(
        [
            [float(oracle.isotonic_max_min(scores[:, j], (y == j) * 1)[s]) for s in scores[:, j]]
            for j in range(3)
        ]
    )
    assert_allclose(p, each / each.sum(axis=1, keepdims=True), atol=1e-12)
    nothing = np.array([[0.1, 0.15, 0.05]])
    found = IsotonicCalibration("score").fit(scores, y).predict_proba(nothing)
    assert_allclose(found, nothing / nothing.sum())
