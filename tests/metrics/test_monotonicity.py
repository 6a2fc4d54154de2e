"""The test that a frequency falls as its score rises: closed forms, size and power."""

import numpy as np
import pytest
from scipy.optimize import isotonic_regression
from scipy.special import rel_entr
from scipy.stats import binom, chi2

from vennforest.metrics.dependence import draw_labels
from vennforest.metrics.monotonicity import MONOTONICITY_LEVEL, chi_bar_sf, falling_frequency

DESIGNS = {  # rows, frequency, rows of a group, correlation
    "constant": (600, 0.3, None, 0), "rare": (4000, 0.03, None, 0),
    "few events": (2000, 0.02, None, 0), "even": (3000, 0.5, None, 0),
    "pairs": (600, 0.3, 2, 0.5), "triples": (900, 0.3, 3, 0.4),
    "large groups": (1000, 0.3, 20, 0.2), "rare, groups": (6000, 0.05, 3, 0.5),
    "one row each": (600, 0.3, 1, 0),
}  # fmt: skip


def draw(design, rng):
    n, rate, size, correlation = DESIGNS[design]
    groups = None if size is None else np.arange(n) // size
    scores = rng.random(n)
    return scores, draw_labels(rng, np.full(n, rate), groups, correlation, 1)[0], groups


def test_the_law_of_the_ratio_is_that_of_drawn_normal_means():
    rng = np.random.default_rng(31)
    for n_cells in (2, 5, 20):
        means = rng.standard_normal((4000, n_cells))
        ratios = np.array([((row - isotonic_regression(row).x) ** 2).sum() for row in means])
        for quantile in (0.5, 0.9, 0.95):
            ratio = np.quantile(ratios, quantile)
            assert chi_bar_sf(ratio, n_cells) == pytest.approx(1 - quantile, abs=0.025)
    assert chi_bar_sf(3.0, 2) == pytest.approx(chi2.sf(3.0, 1) / 2)
    assert chi_bar_sf(0.0, 1) == chi_bar_sf(0.0, 5) == 1


def test_the_ratio_is_that_of_free_and_isotonic_cells():
    scores = np.repeat([0.1, 0.4, 0.8], 100)
    events = (10, 60, 30)
    outcome = np.concatenate([np.arange(100) < n for n in events]).astype(int)
    fall = falling_frequency(scores, outcome)
    pooled, free = 0.45, np.array([0.6, 0.3])
    ratio = 200 * (rel_entr(free, pooled) + rel_entr(1 - free, 1 - pooled)).sum()
    assert fall.pvalue == pytest.approx(chi_bar_sf(ratio, 3))
    assert fall[1:] == pytest.approx((0, 0.4, 0.8, 0.6, 0.3))
    assert str(fall).startswith("falls from 60.0% to 30.0% as the score rises from 0.4 to 0.8")


@pytest.mark.parametrize("outcome", [np.zeros(50), np.ones(50), np.arange(50) > 48, [1] * 50])
def test_few_events_and_constant_scores_are_not_tested(outcome):
    assert falling_frequency(np.linspace(0, 1, 50), np.asarray(outcome, dtype=int)) is None
    assert falling_frequency(np.full(50, 0.3), np.arange(50) % 2) is None


def test_the_level_is_divided_among_classes_and_the_worst_is_named():
    rng = np.random.default_rng(32)
    p = rng.dirichlet([1, 1, 1], 2000)
    codes = (rng.random((2000, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
    assert falling_frequency(p, codes) is None
    p[:, 2] = 1 - p[:, 2]
    fall = falling_frequency(p, codes)
    assert fall.column == 2
    alone = falling_frequency(p[:, 2], (codes == 2).astype(int))
    assert fall.pvalue == pytest.approx(min(1, 3 * alone.pvalue))


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
def test_the_size_is_five_percent(design):
    rng = np.random.default_rng([33, [*DESIGNS].index(design)])
    is_rejected = []
    for _ in range(400):
        scores, outcome, groups = draw(design, rng)
        is_rejected.append(falling_frequency(scores, outcome.astype(int), groups) is not None)
    assert sum(is_rejected) <= binom.ppf(0.999, 400, MONOTONICITY_LEVEL)


def test_a_wave_is_found():
    rng = np.random.default_rng(34)
    scores = rng.random(1000)
    frequency = 0.3 + 0.2 * np.sin(2 * np.pi * scores)
    fall = falling_frequency(scores, (rng.random(1000) < frequency).astype(int))
    assert fall.pvalue < 0.001
    assert fall.low < 0.35
    assert fall.high > 0.65
    assert fall.before > 0.35 > fall.after


@pytest.mark.parametrize("outcome", [0, 1])
def test_groups_without_one_of_the_outcomes_fall_nowhere(outcome):
    scores, codes = np.linspace(0, 1, 200), np.full(200, outcome)
    assert falling_frequency(scores, codes, np.arange(200) // 4) is None
