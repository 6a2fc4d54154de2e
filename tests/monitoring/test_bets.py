"""Bets are fair, and shift the log-odds by what their names say."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from vennforest.monitoring.bets import (
    LABEL_CHANGES,
    SCORE_TILTS,
    SHARE_SHIFTS,
    bets_on_labels,
    bets_on_scores,
    bets_on_share,
    expected_shares,
)


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


def test_bins_of_a_score_have_as_many_examples_each():
    edges, limits, factors = bets_on_scores(np.random.default_rng(0).permutation(1500) / 1500)
    assert_allclose(edges, np.arange(1, 15) / 15, atol=1e-3)
    assert_allclose(limits, np.arange(1, 15) / 15)
    assert factors.shape == (len(SCORE_TILTS), 15)
