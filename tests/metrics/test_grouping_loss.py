import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm

from vennforest.metrics import grouping_loss
from vennforest.metrics.grouping_loss import _bound, _differences, _mixtures


class Table:
    """Answers what it is told: differences that are known."""

    def __init__(self, answers):
        self.answers = answers

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.answers[: len(X)]


def slow_bound(residual, found, level):
    """E[r h] / E[h^2]^(1/2) with the standard error of its jackknife."""
    n = len(residual)

    def root(rows):
        return np.mean(residual[rows] * found[rows]) / np.sqrt(np.mean(found[rows] ** 2))

    left_out = [root(np.arange(n) != i) for i in range(n)]
    error = np.sqrt((n - 1) ** 2 / n * np.var(left_out, ddof=1))
    z = norm.ppf((1 + level) / 2) * error
    at = root(np.arange(n))
    return max(at - z, 0) ** 2, max(at + z, 0) ** 2


def test_the_bound_is_that_of_the_definition_with_a_jackknife():
    rng = np.random.default_rng(31)
    found = rng.standard_normal(300)
    residual = 0.3 * found + rng.standard_normal(300)
    loss, lower, upper = _bound(residual, found, 0.9)
    assert_allclose((lower, upper), slow_bound(residual, found, 0.9), rtol=0.03)
    assert lower < loss < upper


def test_mixtures_are_the_halves_of_each_level():
    rng = np.random.default_rng(35)
    p, y, found = rng.random(203), rng.integers(0, 2, 203).astype(float), rng.random(203)
    rows = sorted(range(203), key=lambda i: p[i])
    first = sorted(rows[:41], key=lambda i: found[i])  # 203 = 3 * 41 + 2 * 40
    made = _mixtures(p, y, found)
    expected = [p[first].mean(), y[first[:21]].mean(), y[first[21:]].mean()]
    assert made.shape == (5, 3)
    assert_allclose(made[0], expected)


def test_both_sides_are_centred_within_levels():
    rng = np.random.default_rng(32)
    y, p = rng.integers(0, 2, 90).astype(float), rng.random(90)
    level, test = np.arange(90) % 3, np.arange(90) < 45
    answers = rng.standard_normal(90)
    r, h = _differences(Table(answers), np.zeros((90, 1)), y, p, level, ~test, test)
    for number in range(3):
        mine = level[test] == number
        assert_allclose(h[mine], answers[:45][mine] - answers[:45][mine].mean())
        assert abs(r[mine].mean()) < 1e-12


def test_known_differences_are_found_and_no_more():
    """Calibrated at .3, truth .45 or .15: the loss is .0225."""
    rng = np.random.default_rng(33)
    X = rng.integers(0, 2, (3000, 2))
    y = rng.random(3000) < np.where(X[:, 0] == 1, 0.45, 0.15)
    made = grouping_loss(X, y, np.full(3000, 0.3), random_state=1)
    assert made.lower < 0.0225 < made.upper
    assert made.lower > 0.01
    assert made.spread == np.sqrt(made.loss)
    assert_allclose(made.mixtures[:, 1].mean(), 0.15, atol=0.04)
    assert_allclose(made.mixtures[:, 2].mean(), 0.45, atol=0.04)
    again = grouping_loss(X, y, np.full(3000, 0.3), random_state=1)
    assert made.loss == again.loss


def test_where_there_are_no_differences_nothing_is_found():
    """At most one false find in eight draws: 2.5% each."""
    found = 0
    for seed in range(8):
        rng = np.random.default_rng([34, seed])
        X = rng.standard_normal((500, 3))
        truth = 1 / (1 + np.exp(-X[:, 0]))
        found += grouping_loss(X, rng.random(500) < truth, truth).lower > 0
    assert found <= 1


def test_wrong_arguments_are_refused():
    X, y, p = np.zeros((200, 1)), np.arange(200) % 2, np.full(200, 0.5)
    with pytest.raises(ValueError, match="y must be of 100 cases or more for 5 folds, got 50"):
        grouping_loss(X[:50], y[:50], p[:50])
    with pytest.raises(ValueError, match="level must lie between"):
        grouping_loss(X, y, p, level=1.2)
    nothing = grouping_loss(X, y, p)
    assert (nothing.loss, nothing.lower, nothing.upper) == (0, 0, 0)
