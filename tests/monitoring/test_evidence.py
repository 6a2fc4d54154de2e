"""Evidence of copies, and when a change began: the split of the largest likelihood ratio."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, logit

from oracles import monitoring as oracle
from vennforest.monitoring import Monitor
from vennforest.monitoring.evidence import (
    LOG_RATIO_95,
    History,
    combine,
)


def draw_history(rng, n_blocks, of_labels):
    n_bins, n_bets = 4, 3
    shares = rng.dirichlet(np.ones(n_bins))
    logs = rng.normal(0, 0.5, (n_bets, 2 * n_bins))
    edges, padded = np.full((1, 14), np.finfo(float).max), np.zeros((1, 15))
    edges[0, : n_bins - 1], padded[0, :n_bins] = np.arange(1, n_bins), shares
    log_factors = np.zeros((1, n_bets, 30))
    log_factors[0, :, : 2 * n_bins if of_labels else n_bins] = logs[
        :, : None if of_labels else n_bins
    ]
    counts, times = np.zeros((n_blocks, 1, 30), np.int32), np.full(n_blocks, np.nan)
    return History(edges, padded, log_factors, counts, times), shares, logs


@pytest.mark.parametrize("of_labels", [True, False])
def test_change_is_dated_where_the_slow_search_finds_it(of_labels):
    rng = np.random.default_rng(31)
    for _ in range(60):
        n = int(rng.integers(1, 40))
        history, shares, logs = draw_history(rng, 64, of_labels)
        bins, hits = rng.integers(0, 4, n), rng.random(n) < rng.random()
        first = 0
        while first < n:
            rows = slice(first, first + int(rng.integers(1, 9)))
            scores, times = bins[rows, None].astype(float), np.full(len(bins[rows]), np.nan)
            history.append(scores, hits[rows, None], np.array([of_labels]), times, first)
            first = min(rows.stop, n)
        ratios = np.zeros((n, len(logs)))
        for start in range(n):
            for k, log in enumerate(logs):
                total = variance = 0.0
                for cell, hit in zip(bins[start:], hits[start:], strict=True):
                    if of_labels:
                        q, pays = shares[cell], log[2 * cell : 2 * cell + 2]
                        law = [1 - q, q]
                        paid = pays[int(hit)]
                    else:
                        law, pays = shares, log[:4]
                        paid = pays[cell]
                    mean = float(np.dot(law, pays))
                    total += paid - mean
                    variance += float(np.dot(law, (pays - mean) ** 2))
                size = min(max(total / variance, 0), 1)
                ratios[start, k] = size * total - size**2 * variance / 2
        bet, block, low, high = history.date(0, of_labels, len(logs))
        assert_allclose(ratios[block].max(), ratios.max(), atol=1e-9)
        inside = np.flatnonzero(ratios[:, ratios[block].argmax()] >= ratios.max() - LOG_RATIO_95)
        assert low <= block <= high
        if ratios.max() > LOG_RATIO_95:
            assert (low, high) == (inside[0], inside[-1])
        columns = 2 * bins[block:] + hits[block:] if of_labels else bins[block:]
        sums = [log[columns].sum() for log in logs]
        assert_allclose(sums[bet], max(sums), atol=1e-9)


def test_joined_blocks_hold_the_same_rows():
    rng = np.random.default_rng(32)
    short, whole = (draw_history(np.random.default_rng(33), n, True)[0] for n in (8, 512))
    scores, hits = rng.integers(0, 4, (300, 1)).astype(float), rng.random((300, 1)) < 0.3
    times = np.arange(300.0)
    for history in (short, whole):
        for first in range(0, 300, 37):
            rows = slice(first, first + 37)
            history.append(scores[rows], hits[rows], np.array([True]), times[rows], first)
    assert short.width == 64 and whole.width == 1
    n = -(-300 // 64)
    assert (short.counts[:n] == whole.counts.reshape(8, 64, 1, 30).sum(axis=1)[:n]).all()
    assert short.times[:n].tolist() == times[::64].tolist()


def test_interval_contains_the_change_and_is_early_as_often_as_late():
    """Errors of 40 drawn streams are those of the split with the largest score statistic."""
    rng, errors, peers, inside = np.random.default_rng(34), [], [], 0

    def draw(n, shift):
        scores = rng.beta(2, 5, n)
        return scores, (rng.random(n) < expit(1.1 * logit(scores) + shift)).astype(int)

    for _ in range(40):
        monitor = Monitor(random_state=0).fit(*draw(1500, 0))
        scores, y = map(np.concatenate, zip(draw(700, 0), draw(1100, 0.8), strict=True))
        monitor.update(scores, y)
        change = next(c for c in monitor.explain() if c.kind == "labels given scores")
        errors.append(change.since - 700)
        inside += change.since_low <= 700 <= change.since_high
        p = expit(1.1 * logit(scores))
        residual, variance = ((v[::-1].cumsum()[::-1])[:-50] for v in (y - p, p * (1 - p)))
        peers.append(int((residual**2 / variance).argmax()) - 700)
    assert np.abs(errors).mean() < 1.3 * np.abs(peers).mean()
    assert np.mean(np.array(errors) < -200) < 0.15
    assert inside >= 36


@pytest.mark.parametrize("copies", [5, 15])
def test_copies_are_combined_to_what_a_fifth_of_them_reach(copies):
    rng = np.random.default_rng(12)
    logs = rng.normal(0, 3, (copies, 4, 50))
    found = combine(logs)
    for j, t in product(range(4), range(50)):
        expected = oracle.reached_by_a_fifth(np.exp(logs[:, j, t]).tolist()) / 4
        assert_allclose(np.exp(found[j, t]), expected)
