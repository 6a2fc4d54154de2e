"""Boström's correction against trying all 2,601 pairs, and what it leaves unchanged."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from oracles import formulas as oracle
from vennforest.calibrators import Uncalibrated
from vennforest.calibrators.bostrom import BostromScaling


def drawn(rng, k, n):
    """Shares of votes: ties within rows, certain rows, equal rows."""
    votes = rng.choice([1, 2, 4, 16, 64])  # powers of two, so that shares sum to 1 exactly
    p = rng.dirichlet(np.full(k, rng.choice([0.2, 1.0, 5.0])), n)
    scores = np.array([rng.multinomial(votes, row) for row in p]) / votes
    flatter = (p + rng.choice([0.0, 0.1, 1.0])) ** rng.choice([0.5, 1, 3])
    flatter /= flatter.sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(k, p=row) for row in flatter])
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else None
    return scores, codes, weight


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_chosen_pair_is_the_first_with_the_smallest_brier_score(k):
    rng = np.random.default_rng(20 + k)
    chosen = set()
    for _ in range(5):
        scores, codes, weight = drawn(rng, k, int(rng.integers(1, 11)))
        losses = oracle.bostrom_losses(scores.tolist(), codes, weight)
        model = BostromScaling().fit(scores, codes, sample_weight=weight, classes=range(k))
        smallest = min(losses.values())
        assert losses[model.A_, model.B_] <= smallest + 1.1e-12
        # pairs are in order of A, then B
        before = [loss for pair, loss in losses.items() if pair < (model.A_, model.B_)]
        assert min(before, default=np.inf) > smallest + 0.9e-12
        expected = [oracle.bostrom_correct(p, model.A_, model.B_) for p in scores.tolist()]
        assert_allclose(model.predict_proba(scores), expected, rtol=0, atol=1e-12)
        chosen.add((model.A_, model.B_))
    assert len(chosen) > 2  # the cases were not all of one kind
    certain = BostromScaling().fit([1.0, 1.0, 0.0], [1, 0, 0])  # nothing left to correct
    assert (certain.A_, certain.B_) == (0, 0)


@pytest.mark.parametrize("k", [2, 3, 6])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 60))
def test_sums_winners_and_accuracy_stay(k, seed, n):
    rng = np.random.default_rng(seed)
    scores, codes, weight = drawn(rng, k, n)
    model = BostromScaling().fit(scores, codes, sample_weight=weight, classes=range(k))
    new = np.concatenate([scores, rng.dirichlet(np.ones(k), 50)])
    p = model.predict_proba(new)
    assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert ((p >= 0) & (p <= 1)).all()
    assert_array_equal(p.argmax(axis=1), new.argmax(axis=1))
    rows = np.arange(len(new))
    winner = new.argmax(axis=1)
    assert (p[rows, winner] >= new[rows, winner] - 1e-15).all()
    # The others keep their proportions.
    p[rows, winner] = new[rows, winner] = 0
    left = p.sum(axis=1) > 0
    shares = [q[left] / q[left].sum(axis=1, keepdims=True) for q in (p, new)]
    assert_allclose(*shares, atol=1e-12)


@pytest.mark.parametrize("calibrator", [BostromScaling(), Uncalibrated()])
def test_ties_between_rows_of_several_classes_stay(calibrator):
    """Shares of votes in another order sum to 1 with another rounding."""
    rng = np.random.default_rng(3)
    scores = np.array([rng.multinomial(25, row) for row in rng.dirichlet(np.ones(5), 200)]) / 25
    calibrator = calibrator.fit(scores, np.arange(200) % 5)
    p = calibrator.predict_proba(scores)
    for _ in range(5):
        order = np.append(0, rng.permutation(np.arange(1, 5)))
        largest = scores.max(axis=1)
        is_sure = (scores == largest[:, None]).sum(axis=1) == 1  # the first of equals wins
        permuted = calibrator.predict_proba(scores[:, order])
        assert_array_equal(permuted[is_sure, 0], p[is_sure, 0])


def test_small_probabilities_keep_their_order_under_the_steepest_correction():
    model = BostromScaling().fit([0.1, 0.9], [0, 1])
    model.A_, model.B_ = 50, 0
    p = model.predict_proba(np.linspace(0, 0.2, 101))[:, 1]
    assert p[1] > 0 and (np.diff(p) > 0).all()


def test_scores_that_are_no_probabilities_are_refused_with_the_way_out():
    y = [0, 1, 2]
    good = np.eye(3)
    with pytest.raises(ValueError, match=r"scores must lie in .*, got 1.5 in row 0, column 0"):
        BostromScaling("probability").fit([[1.5, -0.5, 0], [0, 1, 0], [0, 0, 1]], y)
    message = r"rows that sum to 1.*divide each row by its sum"
    with pytest.raises(ValueError, match=message):
        BostromScaling().fit(good / 2, y)
    with pytest.raises(ValueError, match=message):
        BostromScaling().fit(good, y).predict_proba(good / 2)
    with pytest.raises(ValueError, match=r"scores must lie in \[0, 1\].*, got -2.0"):
        BostromScaling().fit([-2.0, 0.5], [0, 1])
    # Single precision sums to 1 only roughly, and is taken.
    rough = np.random.default_rng(0).dirichlet(np.ones(3), 3).astype(np.float32)
    p = BostromScaling().fit(rough, y).predict_proba(rough)
    assert_allclose(p.sum(axis=1), 1, atol=1e-14)


def test_many_distinct_values_are_put_together_with_hardly_a_loss():
    rng = np.random.default_rng(0)
    A, B = np.arange(51)[:, None, None], np.arange(51)[:, None]
    for power in (0.3, 3.0):
        s = rng.beta(1, 2, 6000)
        y = rng.random(6000) < s**power
        winner = np.maximum(s, 1 - s)
        is_right = (s > 0.5) == y
        raised = winner + (1 - winner) / (1 + np.exp(B - A * winner))
        brier = 2 * np.square(raised - is_right).mean(axis=2)
        model = BostromScaling().fit(s, y)
        assert brier[model.A_, model.B_] <= brier.min() + 1e-6
