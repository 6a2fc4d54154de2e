"""Softmax maps against their formula and its derivatives, and unpenalised regressions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from oracles import maps
from vennforest.calibrators.softmax import SoftmaxMap

STRUCTURES = ["shared", "diagonal", "full"]


def drawn(rng, n, k, weights=True):
    """Scores with zeros and ties that are worth something, their labels and weights."""
    scores = rng.multinomial(12, rng.dirichlet(np.full(k, 0.6)), n) / 12
    if rng.random() < 0.5:
        scores = np.array([rng.dirichlet(12 * s + 0.3) for s in scores])
    codes = np.array([rng.choice(k, p=(s + 0.2) / (1 + 0.2 * k)) for s in scores])
    weight = rng.choice([0.5, 1.0, 2.0, 7.0], n) if weights and rng.random() < 0.5 else None
    return scores, codes, weight


def parts_of(model, scores, codes, weight):
    """What the formulas take: logarithms, codes, weights, W and b, all lists."""
    k = scores.shape[1]
    w = [1.0] * len(codes) if weight is None else weight.tolist()
    shares = maps.label_shares(codes.tolist(), w, k)
    logs = [maps.shrunken_logs(row, model.shrinkage, shares) for row in scores.tolist()]
    return logs, codes.tolist(), w, model.coef_.tolist(), model.intercept_.tolist()


def free_gradient(gradient, W, structure):
    """The derivatives without those of slopes held at 0, by which the sum would not decrease."""
    slopes = {"shared": np.diag(W)[:1], "diagonal": np.diag(W), "full": np.empty(0)}[structure]
    is_held = np.append(slopes <= 0, np.zeros(len(gradient) - len(slopes), bool))
    assert (slopes >= 0).all() and (np.array(gradient)[is_held] > -1e-6).all()
    return np.where(is_held, 0, gradient)


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("ridge", [1e-3, 0.3, 20.0])
def test_the_derivative_of_the_formula_is_zero(structure, k, ridge):
    """The sum is strictly convex, so that this is the one minimum."""
    if k == 2 and structure != "diagonal":
        return  # two classes have a slope each
    rng = np.random.default_rng(k)
    for _ in range(3):
        scores, codes, weight = drawn(rng, int(rng.integers(1, 40)), k)
        model = SoftmaxMap(structure, ridge, shrinkage=float(rng.choice([0.003, 0.05])))
        given = scores[:, 1] if k == 2 else scores
        model.fit(given, codes, sample_weight=weight, classes=range(k))
        logs, codes_, w, W, b = parts_of(model, scores, codes, weight)
        if k == 2 and (differences := np.diff(model.coef_, axis=0)[0] * [-1, 1]).min() < 1e-9:
            assert (differences > -1e-12).all()  # held: the map must not decrease
            continue
        gradient = maps.matrix_gradient(logs, codes_, w, W, b, ridge, structure)
        gradient = free_gradient(gradient, model.coef_, structure)
        assert_allclose(gradient, 0, atol=2e-8 * (sum(w) + ridge))
        expected = [softmax([np.dot(W[j], row) + b[j] for j in range(k)]) for row in logs]
        assert_allclose(model.predict_proba(given), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_with_many_classes_the_loss_is_the_least_to_six_digits(structure):
    k, n = 26, 40
    rng = np.random.default_rng(30)
    scores = rng.dirichlet(np.full(k, 0.3), n)
    codes = np.array([rng.choice(k, p=row) for row in scores])
    model = SoftmaxMap(structure).fit(scores, codes, classes=range(k))
    logs, codes_, w, W, b = parts_of(model, scores, codes, None)
    gradient = maps.matrix_gradient(logs, codes_, w, W, b, 1.0, structure)
    gradient = free_gradient(gradient, model.coef_, structure)
    # The penalty alone gives the loss a curvature of a tenth or more (of a shared slope of 1 / 10),
    # so that the gradient bounds what is left to gain.
    assert np.square(gradient).sum() / 0.2 < 1e-3 * n


@pytest.mark.parametrize("structure", ["shared", "diagonal"])
def test_scores_that_rank_backwards_are_not_read_backwards(structure):
    rng = np.random.default_rng(6)
    scores = rng.dirichlet([1.0, 1.0, 1.0], 300)
    codes = np.array([rng.choice(3, p=(1 - row) / 2) for row in scores])
    model = SoftmaxMap(structure).fit(scores, codes)
    assert (model.coef_ == 0).all()
    assert_allclose(model.predict_proba(scores[:2]), [np.bincount(codes) / 300] * 2, atol=2e-3)
