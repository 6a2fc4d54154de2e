"""Decisions at known costs, and net benefit."""

from fractions import Fraction

import numpy as np
import pytest

from oracles import decisions as oracle
from vennforest import Multiprobability
from vennforest.decisions import CostMatrix, decide
from vennforest.metrics import decision_curve


def draw_case(rng):
    """Bounds, a point between them and costs, all in twelfths so that ties are frequent."""
    k, d = int(rng.integers(2, 5)), int(rng.integers(2, 5))
    middle = np.diff(np.sort(np.concatenate([[0, 12], rng.integers(0, 13, k - 1)])))
    low = np.maximum(middle - rng.integers(0, 4, k), 0)
    high = np.minimum(middle + rng.integers(0, 4, k), 12)
    costs = rng.integers(0, 4, (k, d))
    return [[Fraction(int(v), 12) for v in row] for row in (low, high, middle)], costs.tolist()


def test_choices_against_corners():
    rng = np.random.default_rng(20261122)
    undecided = ties = 0
    for _ in range(400):
        (low, high, middle), costs = draw_case(rng)
        k = len(low)
        bounds = Multiprobability(np.array([low], float), np.array([high], float), np.arange(k))
        matrix = CostMatrix(np.array(costs, float), tuple("abcd"[: len(costs[0])]))
        p = np.array([middle], float)
        chosen = {
            rule: decide(bounds, matrix, rule, p=p) for rule in ("expected", "cautious", "safe")
        }
        mean = oracle.expected(middle, costs)
        assert chosen["expected"].index[0] == mean.index(min(mean))
        assert chosen["cautious"].index[0] == oracle.cautious(low, high, costs, middle)
        assert chosen["safe"].index[0] == oracle.safe(low, high, costs)
        undecided += chosen["safe"].index[0] < 0
        ties += mean.count(min(mean)) > 1
        for one in chosen.values():
            if (j := one.index[0]) >= 0:
                every = [oracle.expected(v, costs)[j] for v in oracle.vertices(low, high)]
                assert one.upper[0] == pytest.approx(float(max(every)), abs=1e-12)
                assert one.lower[0] == pytest.approx(float(min(every)), abs=1e-12)
            else:
                assert np.isnan(one.lower[0]) and np.isnan(one.upper[0])
    assert undecided > 50 and ties > 30


def test_costs_by_name_are_of_their_classes():
    costs = {"ill": {"wait": 5, "treat": 0}, "well": {"wait": 0, "treat": 1}}
    p = np.array([[0.1, 0.9], [0.9, 0.1]])  # ill, well
    made = decide(Multiprobability(p, p, np.array(["ill", "well"])), costs)
    assert made.names().tolist() == ["wait", "treat"]
    assert made.lower == pytest.approx([0.5, 0.1]) and made.upper == pytest.approx([0.5, 0.1])
    none = np.empty((0, 2))
    assert len(decide(Multiprobability(none, none, np.arange(2)), [[0, 1], [5, 0]])) == 0


@pytest.mark.parametrize(
    ("given", "costs", "options", "message"),
    [
        ([[0.5, 0.5]], np.eye(2), {}, "bounds must be a Multiprobability, got list: without"),
        ((0.1, 0.9), np.eye(2), {"rule": "bold"}, "rule must be one of"),
        ((0.1, 0.9), np.eye(2), {"p": [[0.5, 0.6]]}, "sum to 1"),
        ((0.1, 0.9), np.eye(3), {}, "a row and a column"),
        ((0.1, 0.9), CostMatrix(np.eye(3), ("a", "b", "c")), {}, "a row for each of 2"),
        ((0.1, 0.2), np.eye(2), {}, "room for probabilities"),
        ((0.3, 0.2), np.eye(2), {}, "lower <= upper"),
        ((np.nan, 0.2), np.eye(2), {}, "lower <= upper"),
        ((0.1, 0.9), np.eye(2), {"p": [[0.2, 0.8]] * 2}, "p must have shape"),
    ],
)
def test_refused(given, costs, options, message):
    if isinstance(given, tuple):
        given = Multiprobability(*(np.full((1, 2), v) for v in given), np.arange(2))
    with pytest.raises(ValueError, match=message):
        decide(given, costs, **options)


def test_choices_by_costs_are_those_by_net_benefit():
    rng = np.random.default_rng(3)
    p = rng.integers(0, 11, 200) / 10
    y = rng.random(200) < p
    weight = rng.integers(0, 4, 200)
    grid = np.array([0.1, 0.3, 0.5, 0.9])
    found = decision_curve(y, p, grid, sample_weight=weight)
    for j, t in enumerate(grid):
        # Costs: t for acting in vain, 1 - t for a positive that is missed.
        costs = CostMatrix(np.array([[t, 0], [0, 1 - t]]), ("act", "wait"))
        paid = costs.paid(costs.decide(np.column_stack([1 - p, p])), y.astype(int))
        share = (weight * y).sum() / weight.sum()
        mean = (weight * paid).sum() / weight.sum()
        assert found.net_benefit[j] == pytest.approx(share - mean / (1 - t))
