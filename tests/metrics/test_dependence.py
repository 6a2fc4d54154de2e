"""Variances and draws of labels that depend on each other within groups."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from vennforest.metrics import kuiper_test
from vennforest.metrics.calibration_tests import grouped_pvalues
from vennforest.metrics.dependence import draw_labels, intragroup_correlation, variance_of_sums


def test_variances_are_sums_over_pairs():
    rng = np.random.default_rng(np.random.SeedSequence().entropy)
    for _ in range(50):
        n = int(rng.integers(1, 30))
        p = rng.choice([0.0, 0.1, 0.2, 1.0, rng.random()], n)
        groups = np.unique(rng.integers(0, 5, n), return_inverse=True)[1]
        features = rng.normal(size=(n, 2))
        pairs = np.minimum.outer(p, p) * (1 - np.maximum.outer(p, p))
        pairs *= 0.3 * (groups[:, None] == groups) * (1 - np.eye(n)) + np.eye(n)
        variance = variance_of_sums(features, p, groups, 0.3)
        np.testing.assert_allclose(variance, features.T @ pairs @ features, atol=1e-10)


def test_drawn_labels_have_these_variances_and_this_correlation():
    rng = np.random.default_rng(seed := np.random.SeedSequence().entropy)
    p, groups = rng.random(40), np.repeat(np.arange(10), 4)
    labels = draw_labels(rng, p, groups, 0.4, 20_000)
    expected = variance_of_sums(np.ones((40, 1)), p, groups, 0.4)[0, 0]
    assert abs(labels.sum(axis=1).var() / expected - 1) < 0.06, seed
    assert np.abs(labels.mean(axis=0) - p).max() < 0.025, seed
    many = draw_labels(rng, np.tile(p, 500), np.repeat(np.arange(5000), 4), 0.4, 1)[0]
    assert (
        abs(intragroup_correlation(many, np.tile(p, 500), np.repeat(np.arange(5000), 4)) - 0.4)
        < 0.06
    )


def test_single_rows_as_groups_are_independent():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p**2).astype(float)
    assert intragroup_correlation(y, p, np.arange(300)) == 0
    assert grouped_pvalues(y, p, np.arange(300), 0.0) == grouped_pvalues(y, p, None, 0.0)


def test_without_groups_the_tests_are_those_of_their_formulas():
    rng = np.random.default_rng(1)
    p = rng.beta(1, 3, 400)
    y = (rng.random(400) < p**1.3).astype(float)
    z = ((y - p) @ (1 - 2 * p)) / np.sqrt((1 - 2 * p) ** 2 @ (p * (1 - p)))
    spiegelhalter, kuiper, _ = grouped_pvalues(y, p, None, 0.0)
    assert spiegelhalter == pytest.approx(2 * norm.sf(abs(z)))
    assert kuiper == pytest.approx(kuiper_test(y, p).pvalue)


def test_grouped_tests_keep_their_level_and_see_a_slope():
    rng = np.random.default_rng(seed := np.random.SeedSequence().entropy)
    groups = np.repeat(np.arange(300), 3)
    rejected = np.zeros((2, 3))
    for _ in range(200):
        p = expit(-1 + rng.normal(size=900))
        latent = (rng.normal(size=300)[groups] + rng.normal(size=900)) / np.sqrt(2)
        for i, q in enumerate((p, expit(0.6 * logit(p)))):
            y = (norm.cdf(latent) < q).astype(float)
            pvalues = grouped_pvalues(y, p, groups, intragroup_correlation(y, p, groups))
            rejected[i] += np.array(pvalues) < 0.05
    assert (rejected[0] <= 22).all() and rejected[1, 2] > 150, seed
