"""Decisions at known costs."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest

from oracles import decisions as oracle
from vennforest import VennAbers
from vennforest._validation import InputError
from vennforest.decisions import CostMatrix
from vennforest.metrics import decision_curve


def test_decisions_are_of_least_expected_cost():
    """Probabilities and costs in twelfths, so that ties are frequent."""
    rng = np.random.default_rng(20261122)
    ties = 0
    for _ in range(200):
        k, d = int(rng.integers(2, 5)), int(rng.integers(2, 5))
        twelfths = np.diff(np.sort(np.concatenate([[0, 12], rng.integers(0, 13, k - 1)])))
        costs = rng.integers(0, 4, (k, d)).tolist()
        matrix = CostMatrix(np.array(costs, float), tuple("abcd"[:d]))
        mean = oracle.expected([Fraction(int(v), 12) for v in twelfths], costs)
        assert matrix.decide(twelfths[None] / 12)[0] == mean.index(min(mean))
        ties += mean.count(min(mean)) > 1
    assert ties > 15


def test_who_acts_above_a_threshold():
    """What bounds promise to who acts where p0 >= t and waits where p1 < t, for every bag.

    In between, U: the sum over acted on of y is that of P_Y less (1 - p1) over positives in U, and
    over waited for that of P_Y and p0 over negatives in U.
    """
    for bag in combinations_with_replacement(list(product((0.2, 0.4, 0.7), (0, 1))), 4):
        cases = []
        for i in range(4):
            s, y = zip(*(bag[:i] + bag[i + 1 :]), strict=True)
            m = VennAbers("log").fit(s, y, classes=[0, 1]).predict_multiprobability([bag[i][0]])
            p0, p1 = (Fraction(float(p)).limit_denominator(4) for p in (m.p0[0], m.p1[0]))
            cases.append((p0, p1, bag[i][1]))
        for t in (Fraction(e, 12) for e in range(1, 12)):
            acted = [(p0, p1, y) for p0, p1, y in cases if p0 >= t]
            waited = [(p0, p1, y) for p0, p1, y in cases if p1 < t]
            between = [(p0, p1, y) for p0, p1, y in cases if p0 < t <= p1]
            lost = sum(1 - p1 for _, p1, y in between if y == 1)
            gained = sum(p0 for p0, _, y in between if y == 0)
            assert sum(y for *_, y in acted) == sum((p0, p1)[y] for p0, p1, y in acted) - lost
            assert sum(y for *_, y in waited) == sum((p0, p1)[y] for p0, p1, y in waited) + gained
            assert sum(y for *_, y in acted) >= t * len(acted) - lost
            assert sum(y for *_, y in waited) <= t * len(waited) + gained


def test_costs_by_name_are_of_their_classes():
    costs = {"ill": {"wait": 5, "treat": 0}, "well": {"wait": 0, "treat": 1}}
    matrix = CostMatrix.read(costs, np.array(["ill", "well"]))
    decided = matrix.decide(np.array([[0.1, 0.9], [0.9, 0.1]]))
    assert [matrix.decisions[j] for j in decided] == ["wait", "treat"]
    assert matrix.costs[0, decided].tolist() == [5, 0]


@pytest.mark.parametrize(("costs", "message"), [
    (np.eye(3), "a row and a column"),
    (CostMatrix(np.eye(3), ("a", "b", "c")), "a row for each of 2"),
    ({0: {"a": 1}, 2: {"a": 1}}, "a row for each class"),
    ({0: {"a": 1, "b": 0}, 1: {"a": 1, "c": 0}}, "the same decisions for each class"),
    (
        {0: {"a": 1, "b": "x"}, 1: {"a": 1, "b": 0}},
        "list of rows in the order of the classes, got",
    ),
    ([[0, np.nan], [1, 0]], "finite numbers"),
    ('{"0": ', "JSON with a fault"),
    ("no such file.json", "there is no file"),
])  # fmt: skip
def test_other_costs_are_refused(costs, message):
    with pytest.raises(ValueError, match=message):
        CostMatrix.read(costs, np.arange(2))


def test_choices_by_costs_are_those_by_net_benefit():
    rng = np.random.default_rng(3)
    p = rng.integers(0, 11, 200) / 10
    y = rng.random(200) < p
    weight = rng.integers(0, 4, 200)
    grid = np.array([0.1, 0.3, 0.5, 0.9])
    curve = decision_curve(y, p, grid, sample_weight=weight)
    for j, t in enumerate(grid):
        # Costs: t for acting in vain, 1 - t for a positive that is missed.
        costs = CostMatrix(np.array([[t, 0], [0, 1 - t]]), ("act", "wait"))
        paid = costs.costs[y.astype(int), costs.decide(np.column_stack([1 - p, p]))]
        share = (weight * y).sum() / weight.sum()
        mean = (weight * paid).sum() / weight.sum()
        assert curve.net_benefit[j] == pytest.approx(share - mean / (1 - t))


def test_costs_in_a_data_frame_go_by_the_names_of_classes():
    frame = pd.DataFrame([[0, 7], [1, 0]], ["yes", "no"], ["treat", "wait"])
    matrix = CostMatrix.read(frame, np.array(["no", "yes"]))
    assert matrix.costs.tolist() == [[1, 0], [0, 7]] and matrix.decisions == ("treat", "wait")
    with pytest.raises(InputError, match=r"a row for each class \(no, yes\), got 0, 1"):
        CostMatrix.read(pd.DataFrame([[0, 1], [1, 0]]), np.array(["no", "yes"]))


def test_classes_that_are_numbers_are_named_as_whole_numbers():
    costs = {1: {"treat": 0, "wait": 7}, 0: {"treat": 1, "wait": 0}}
    assert CostMatrix.read(costs, np.array([0.0, 1.0])).costs.tolist() == [[1, 0], [0, 7]]
