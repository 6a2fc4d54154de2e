"""P-values and capital of a stream beside their formulas, and what they guarantee."""

from fractions import Fraction
from itertools import product
from math import prod

import numpy as np
import pytest
from numpy.testing import assert_allclose

from oracles import monitoring as oracle
from vennforest.monitoring.bets import (
    LABEL_CHANGES,
    SCORE_TILTS,
    Bets,
)
from vennforest.monitoring.evidence import (
    advance_evidence,
    channels,
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
