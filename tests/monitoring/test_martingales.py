"""P-values and capital of a stream beside their formulas, and what they guarantee."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from oracles import monitoring as oracle
from vennforest.monitoring import Monitor
from vennforest.monitoring.bets import (
    LABEL_CHANGES,
    SCORE_TILTS,
    SHARE_SHIFTS,
    Bets,
    bets_on_labels,
    bets_on_scores,
    bets_on_share,
    expected_shares,
)
from vennforest.monitoring.evidence import (
    advance_evidence,
    channels,
    combine,
    log_copies,
    set_bets,
    start,
)
from vennforest.monitoring.stream_kernels import HALF_BET_AFTER, JUMP_RATES


def draw_bets(rng, of_labels, n_bins):
    """Fair bets in bins of any size."""
    n_bets = len(LABEL_CHANGES if of_labels else SCORE_TILTS)
    edges = np.sort(rng.random(n_bins - 1))
    if of_labels:
        limits = rng.uniform(0.05, 0.95, n_bins)
        factors = rng.uniform(0.2, 3, (n_bets, n_bins, 2))
        factors /= (
            factors @ [[1], [0]] * limits[:, None] + factors @ [[0], [1]] * (1 - limits)[:, None]
        )
        factors = factors.reshape(n_bets, -1)
    else:
        mass = rng.dirichlet(np.ones(n_bins))
        limits = np.cumsum(mass)[:-1]
        factors = rng.uniform(0.2, 3, (n_bets, n_bins))
        factors /= (factors @ mass)[:, None]
    return Bets(edges, limits, factors)


@pytest.mark.parametrize("of_labels", [True, False])
def test_channel_is_the_mixture(of_labels):
    """The labels are watched in the third of three channels, the scores in the first."""
    rng = np.random.default_rng(5)
    watched, channel = channels(2, "labels"), 2 if of_labels else 0
    for seed in range(15):
        bets = draw_bets(rng, of_labels, int(rng.integers(1, 5)))
        n = int(rng.integers(0, 8))
        before, known = rng.random((n, 1)), rng.random(n) < 0.4
        scores, hits = rng.random((14, 1)), rng.random(14) < 0.6
        state = start((5, 3), np.random.RandomState(0))
        state["seed"] = seed
        for copy in state:
            set_bets(copy, watched, [bets] * 3, before, known.astype(int))
        logs = []
        for t in range(14):
            rows = slice(t, t + 1)
            advance_evidence(state, watched, scores[rows], hits[rows].astype(int), t)
            logs.append(log_copies(state)[0, channel])
        bins = [np.searchsorted(bets.edges, s[:, 0], side="right") for s in (before, scores)]
        reference = list(zip(bins[0].tolist(), known.tolist(), strict=True))
        stream = list(zip(bins[1].tolist(), hits.tolist(), strict=True))
        column = oracle.stream_columns(reference, stream, seed, of_labels, bets.limits.tolist())
        expected = oracle.evidence(
            column,
            bets.factors.tolist(),
            [1 / len(bets.factors)] * len(bets.factors),
            JUMP_RATES.tolist(),
            HALF_BET_AFTER,
        )
        assert_allclose(np.exp(logs), expected, rtol=1e-9)


@pytest.mark.parametrize("copies", [5, 15])
def test_copies_are_combined_to_what_a_fifth_of_them_reach(copies):
    rng = np.random.default_rng(12)
    logs = rng.normal(0, 3, (copies, 4, 50))
    found = combine(logs)
    for j, t in product(range(4), range(50)):
        expected = oracle.reached_by_a_fifth(np.exp(logs[:, j, t]).tolist()) / 4
        assert_allclose(np.exp(found[j, t]), expected)


BAGS = [
    [(0, True), (0, False), (1, True), (1, True), (0, False)],
    [(0, True)] * 4,
    [(0, False), (1, True), (1, False), (1, False), (1, True)],
]


@pytest.mark.parametrize("n_reference", [0, 2])
def test_bins_are_independent_whatever_the_bag(n_reference):
    """Over all orders of a bag the columns are as if drawn one by one: no bet on them can gain."""
    limits = [Fraction(2, 7), Fraction(3, 5)]
    mass = [Fraction(2, 7), Fraction(3, 5) - Fraction(2, 7), Fraction(2, 5)]
    for bag in BAGS:
        law = oracle.law_of_columns(bag, n_reference, False, limits)
        for path in product(range(3), repeat=len(bag) - n_reference):
            assert law.get(path, 0) == prod(mass[column] for column in path)


@pytest.mark.parametrize("n_reference", [0, 2])
def test_labels_are_independent_of_all_bins_whatever_the_bag(n_reference):
    """Given the whole sequence of bins, no bet on labels can gain, even one that knows it."""
    limits = [Fraction(1, 4), Fraction(2, 3)]
    for bag in BAGS:
        law = oracle.law_of_columns(bag, n_reference, True, limits)
        bins = {}
        for path, chance in law.items():
            places = tuple(column // 2 for column in path)
            bins[places] = bins.get(places, 0) + chance
        assert sum(bins.values()) == 1
        for places, chance in bins.items():
            for labels in product((0, 1), repeat=len(places)):
                path = tuple(2 * c + h for c, h in zip(places, labels, strict=True))
                given = prod(
                    1 - limits[c] if h else limits[c] for c, h in zip(places, labels, strict=True)
                )
                assert law.get(path, 0) == chance * given


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=80),
    st.integers(0, 2**16),
    st.floats(0.01, 0.99),
    st.booleans(),
)
def test_designed_bets_are_fair(scores, seed, share, probabilities):
    hits = np.random.default_rng(seed).random(len(scores)) < share
    scores = np.array(scores)
    shares = expected_shares(scores, hits, probabilities=probabilities)
    for bets, of_labels in (
        (bets_on_scores(scores), False),
        (bets_on_share(float(shares.mean())), True),
        (bets_on_labels(scores, shares), True),
    ):
        shares_of_bins = np.diff(bets.limits, prepend=0.0, append=1.0)
        if of_labels:
            shares_of_bins = np.stack([bets.limits, 1 - bets.limits], axis=1)
            factors = bets.factors.reshape(len(bets.factors), -1, 2)
            assert_allclose((factors * shares_of_bins).sum(axis=2), 1)
        else:
            assert_allclose(bets.factors @ shares_of_bins, 1)
        assert (bets.factors > 0).all() and (np.diff(bets.edges) > 0).all()


def test_bets_shift_the_log_odds_by_what_their_names_say():
    for share in (0.02, 0.3, 0.9):
        without, with_label = bets_on_share(share).factors.T
        assert_allclose(np.log(with_label / without), list(SHARE_SHIFTS.values()))
        bets = bets_on_labels(np.arange(50) / 50, np.full(50, share))
        ratios = np.log(bets.factors[:, 1::2] / bets.factors[:, ::2])
        for ratio, (shift, slope) in zip(ratios, LABEL_CHANGES.values(), strict=True):
            if slope == 1:
                assert_allclose(ratio, shift)


def test_scores_that_are_probabilities_are_taken_for_them():
    rng = np.random.default_rng(9)
    scores = rng.beta(1, 4, 500)
    honest = expected_shares(scores, rng.random(500) < scores, probabilities=True)
    assert_allclose(honest, scores.clip(1e-3, 1 - 1e-3))
    hits = rng.random(500) < scores**2  # too large by far
    assert abs(expected_shares(scores, hits, probabilities=True).mean() - hits.mean()) < 0.02


def streams(n_streams, n_reference, n, seed):
    """Exchangeable streams of calibrated scores."""
    rng = np.random.default_rng(seed)
    for _ in range(n_streams):
        scores = rng.beta(1, 4, n_reference + n)
        yield scores, rng.random(len(scores)) < scores


@pytest.mark.parametrize("watch", ["labels", "objects"])
def test_alarms_are_as_rare_as_promised(watch):
    alarms = 0
    for case, (scores, y) in enumerate(streams(50, 100, 200, 6)):
        monitor = Monitor(watch=watch, alpha=0.1, random_state=case).fit(
            scores[:100], y[:100], classes=[False, True]
        )
        monitor.update(scores[100:], y[100:] if watch == "labels" else None)
        alarms += monitor.alarm_ is not None
    assert alarms <= 50 * 0.1 + 2.6 * np.sqrt(50 * 0.1 * 0.9)


def test_bins_of_a_score_have_as_many_examples_each():
    edges, limits, factors = bets_on_scores(np.random.default_rng(0).permutation(1500) / 1500)
    assert_allclose(edges, np.arange(1, 15) / 15, atol=1e-3)
    assert_allclose(limits, np.arange(1, 15) / 15)
    assert factors.shape == (len(SCORE_TILTS), 15)


def test_examples_that_design_the_bets_are_not_counted_against_the_stream():
    scores = np.random.default_rng(0).random(200)
    monitor = Monitor(random_state=0).fit(scores, scores > 0.5)
    assert (monitor._state["counts"].sum(axis=(-2, -1)) == 160).all()
