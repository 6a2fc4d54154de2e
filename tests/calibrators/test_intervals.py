"""Confidence intervals for a rising curve: against slow versions, and their coverage."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq, isotonic_regression
from scipy.stats import binom

from oracles import confidence as oracle
from support.cases import draw_scores
from vennforest.calibrators import VennAbers
from vennforest.calibrators import interval_kernels as kernels
from vennforest.calibrators.intervals import (
    LIMIT_QUANTILES,
    MAX_CURVE_SCORES,
    expected_scores,
    interval_curves,
    intervals_at_scores,
    likelihood_ratio_ends,
    limit_quantile,
    read_intervals,
)

CURVES = {
    "flat": lambda s: np.full_like(s, 0.3),
    "identity": lambda s: s,
    "sure": lambda s: np.where(s < 0.3, 0.0, 1.0),
    "late": lambda s: np.where(s < 0.9, 0.05, 0.5),
}
"""Curves that do not decrease."""


def draw_examples(rng, n):
    """Scores of any kind, labels of any balance or of a curve that rises."""
    scores = draw_scores(rng, n, 2)
    y = rng.random(n) < rng.choice([0.0, 0.02, 0.3, 0.5, 0.9, 1.0])
    if rng.random() < 0.4:
        y = rng.random(n) < np.argsort(np.argsort(scores)) / n
    return scores, y.astype(int)


def count(scores, y, weight=None):
    """Distinct scores, the weight of the examples at each, and that of the positive ones."""
    x, index = np.unique(scores, return_inverse=True)
    weight = np.ones(len(y)) if weight is None else weight
    return x, *(np.bincount(index, part, len(x)) for part in (weight, weight * y))


def exact_bound(s, m, error, upper):
    """Clopper & Pearson's bound, by solving for the probability of a tail."""
    if upper:
        return 1.0 if s == m else brentq(lambda p: binom.cdf(s, m, p) - error, 0, 1, xtol=1e-14)
    return 0.0 if s == 0 else brentq(lambda p: binom.sf(s - 1, m, p) - error, 0, 1, xtol=1e-14)


def stretch(total, positive, start, length, step):
    """Count examples and positives of scores from one on, until there are enough."""
    m = s = 0
    while 0 <= start < len(total) and m < length:
        m, s, start = m + total[start], s + positive[start], start + step
    return (m, s) if m >= length else None


def slow_exact(scores, y, new, level):
    x, total, positive = count(scores, y)
    lengths = [4 * 2**d for d in range(20) if 4 * 2**d <= len(scores)]
    low, up = 0.0, 1.0
    for length in lengths:
        error = (1 - level) / (2 * len(lengths))
        if forward := stretch(total, positive, sum(x < new), length, 1):
            up = min(up, exact_bound(forward[1], forward[0], error, True))
        if backward := stretch(total, positive, sum(x <= new) - 1, length, -1):
            low = max(low, exact_bound(backward[1], backward[0], error, False))
    return min(low, up), max(low, up)


def test_exact_ends_are_those_of_the_slow_version():
    rng = np.random.default_rng([51, 0])
    for _ in range(25):
        n = int(rng.integers(1, 60))
        scores = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 6, n) / 5
        y = (rng.random(n) < rng.choice([0.1, 0.5, 0.9])).astype(int)
        new = rng.choice(np.append(scores, [-1, 0.5, 2]), 5)
        level = rng.choice([0.5, 0.9, 0.999])
        ends = intervals_at_scores(*count(scores, y), level, "exact").at(new)
        expected = [slow_exact(scores, y, s, level) for s in new]
        assert_allclose(np.column_stack(ends), expected, rtol=0, atol=1e-9)


def exact_coverage(f, scores, new, level):
    """The exact probability that each interval contains the curve, by enumeration of labels."""
    p = f(scores)
    covered = np.zeros(len(new))
    for labels in product((0, 1), repeat=len(scores)):
        y = np.array(labels)
        low, up = intervals_at_scores(*count(scores, y), level, "exact").at(new)
        probability = np.prod(np.where(y == 1, p, 1 - p))
        covered += probability * ((low <= f(new)) & (f(new) <= up))
    return covered


@pytest.mark.parametrize("name", CURVES)
def test_exact_coverage_is_never_below_the_level(name):
    """Every sequence of eight labels with its probability, scores with and without ties."""
    distinct, tied = np.linspace(0.1, 0.9, 8), np.repeat([0.2, 0.5, 0.7, 0.75], [2, 4, 1, 1])
    for level, scores in ((0.5, distinct), (0.5, tied), (0.8, tied)):
        new = np.concatenate([scores, [0.0, 0.4, 0.55, 1.0]])
        assert exact_coverage(CURVES[name], scores, new, level).min() >= level - 1e-12
    # and a curve that falls is detected
    assert exact_coverage(lambda s: 1 - s, distinct, distinct, 0.5).min() < 0.4


def test_many_scores_are_bounded_at_some_of_them_and_counts_rounded_outwards():
    rng = np.random.default_rng(53)
    n = 20_000
    scores, y = np.arange(n) / n, (rng.random(n) < 0.4).astype(int)
    curve = intervals_at_scores(*count(scores, y), 0.9, "exact")
    assert len(curve.x) <= MAX_CURVE_SCORES
    lengths = [4 << d for d in range(13)]
    for i in np.searchsorted(scores, curve.x)[[3, 200, 700, -70]]:
        tails = {
            upper: [
                exact_bound(y[part].sum(), m, 0.1 / 26, upper)
                for m in lengths
                for part in [slice(i, i + m) if upper else slice(max(0, i + 1 - m), i + 1)]
                if (i + m <= n if upper else i + 1 >= m)
            ]
            for upper in (True, False)
        }
        low, up = (end[curve.x == scores[i]][0] for end in (curve.lower, curve.upper))
        assert max(tails[False]) - 1e-3 < low <= max(tails[False]) + 1e-12
        assert min(tails[True]) - 1e-12 <= up < min(tails[True]) + 1e-3


def ends_of(scores, y, weight, quantile):
    x, total, positive = count(scores, y, weight)
    fit = isotonic_regression(positive / total, weights=total).x
    quantiles = np.full(len(x), quantile)
    return likelihood_ratio_ends(total, positive, fit, np.arange(len(x)), quantiles, quantiles)


@pytest.mark.parametrize("n_draws", [5, pytest.param(50, marks=pytest.mark.slow)])
def test_ends_and_ratios_are_the_definition(rng, n_draws):
    for _ in range(n_draws):
        n = int(rng.integers(1, 25))
        scores, y = draw_examples(rng, n)
        weight = rng.choice([1.0, 2.0, 0.3], n) if rng.random() < 0.5 else np.ones(n)
        quantile = rng.choice([0.1, 1.602, 2.269, 8.0])
        x, total, positive = count(scores, y, weight)
        expected = [oracle.interval(scores, y, weight, s, quantile) for s in x]
        ends = np.column_stack(ends_of(scores, y, weight, quantile))
        assert_allclose(ends, expected, rtol=0, atol=1e-8)
        theta = rng.uniform(0.001, 0.999, len(x))
        ratios = kernels.simulated_ratios(total, positive[None], np.arange(len(x)), theta)
        expected = [oracle.ratio(scores, y, weight, s, t) for s, t in zip(x, theta, strict=True)]
        assert_allclose(ratios[0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["likelihood-ratio", "exact"])
def test_weights_are_repeated_observations(method):
    rng = np.random.default_rng(272)
    scores, y = np.round(rng.random(100), 2), rng.integers(0, 2, 100)
    weight = rng.integers(1, 4, 100)
    weighted = interval_curves(scores, y, 2, 0.95, method, weight=weight.astype(float))[0]
    repeated = interval_curves(np.repeat(scores, weight), np.repeat(y, weight), 2, 0.95, method)[0]
    assert_allclose(weighted.lower, repeated.lower, rtol=0, atol=1e-9)
    assert_allclose(weighted.upper, repeated.upper, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n", [1, 3, 50, 3000])
def test_a_curve_contains_the_interval_of_the_limit(n):
    rng = np.random.default_rng([274, n])
    scores = rng.random(n)
    y = (rng.random(n) < scores).astype(int)
    curve = intervals_at_scores(*count(scores, y), 0.9)
    assert (np.diff(curve.x) > 0).all()
    at = np.searchsorted(np.sort(scores), curve.x)
    low, up = (end[at] for end in ends_of(scores, y, None, limit_quantile(0.9)))
    assert (curve.lower <= low + 1e-12).all()
    assert (curve.upper >= up - 1e-12).all()
    new = np.concatenate([rng.uniform(-0.5, 1.5, 20), scores[:5]])
    low, up = curve.at(new)
    assert (low <= up).all()
    assert (low[new < scores.min()] == 0).all()
    assert (up[new > scores.max()] == 1).all()
    order = rng.permutation(n)
    assert_array_equal(interval_curves(scores[order], y[order], 2, 0.9)[0].upper, curve.upper)
    edges, lower, upper = curve.steps()
    number = np.searchsorted(edges, new, "right")
    assert_array_equal([lower[number], upper[number]], [low, up])


def test_quantiles_of_the_limit():
    assert limit_quantile(0.95) == pytest.approx(2.269)
    assert limit_quantile(0.9) == pytest.approx(1.602)
    quantiles = [limit_quantile(level) for level in np.linspace(0.01, 0.9999, 300)]
    assert (np.diff(quantiles) > 0).all()
    assert max(quantiles) > max(LIMIT_QUANTILES)


@pytest.mark.parametrize("name", ["identity", "flat", "late"])
def test_coverage_of_drawn_curves(name):
    """40 draws of 150 examples, at 20 scores; the coverage of one draw varies by .15."""
    f, rng = CURVES[name], np.random.default_rng(275)
    new = np.linspace(0.05, 0.95, 20)
    covered = []
    for _ in range(40):
        scores = rng.random(150)
        y = (rng.random(150) < f(scores)).astype(int)
        low, up = interval_curves(scores, y, 2)[0].at(new)
        covered.append((low <= f(new)) & (f(new) <= up))
    assert np.mean(covered) > 0.88


def test_the_end_above_which_all_are_positive_is_exact_for_real_weights():
    """The fit is 1 there: rounding of cumulative weights must not hide it."""
    rng = np.random.default_rng(276)
    for _ in range(10):
        scores, weight = np.sort(rng.random(60)), rng.gamma(2, 1, 60)
        y = (rng.random(60) < scores).astype(int)
        y[-6:] = 1
        lower = interval_curves(scores, y, 2, weight=weight)[0].lower
        exact = ends_of(scores, y, weight, -2 * np.log1p(-0.95))[0]
        assert (lower[-6:] <= exact[-6:] + 1e-9).all()


@pytest.mark.parametrize("weight", [1.0, 0.3])
def test_equal_labels_have_the_exact_end(weight):
    """No positive example in n: three in n; the fits 0 and 1 of weights are exact too."""
    scores, weights = np.linspace(0, 1, 100), np.full(100, weight)
    level = 1 - 0.05**weight  # (1 - theta)^(100 weight) = 1 - level
    for label in (0, 1):
        curve = interval_curves(scores, np.full(100, label), 2, level, weight=weights)[0]
        end = curve.upper[0] if label == 0 else 1 - curve.lower[-1]
        assert end >= 1 - 0.05 ** (1 / 100) - 1e-9
        assert_array_equal(curve.upper if label else curve.lower, label)


def test_expected_scores_of_normal_noise_are_shrunk_linearly():
    """Normal scores of variance 1, noise of .2: E[S | s] = s / 1.2."""
    rng = np.random.default_rng(276)
    scores = rng.standard_normal(20_000) * np.sqrt(1.2)
    expected = expected_scores(scores, np.full(20_000, 0.2))
    middle = np.abs(scores) < 1.5
    # the kernel's own width makes the density a little flatter
    slope = np.polyfit(scores[middle], expected[middle], 1)[0]
    assert 1 - 0.2 / 1.2 < slope < 1 - 0.2 / 1.2 + 0.03
    assert (np.argsort(expected, kind="stable") == np.argsort(scores, kind="stable")).all()
    assert_array_equal(expected_scores(scores, np.zeros(20_000)), scores)
    constant = np.full(3, 0.3)  # whose standard deviation is not 0 but 5e-17
    assert_array_equal(expected_scores(constant, np.ones(3)), constant)


def mean_width(scores, y, groups=None):
    low, up = interval_curves(scores, y, 2, groups=groups)[0].at(np.linspace(0.1, 0.9, 9))
    return (up - low).mean()


def test_copies_of_examples_in_groups_count_once():
    """Near-copies: five of each example, with scores that differ in the last digits."""
    rng = np.random.default_rng(56)
    scores = rng.random(400)
    y = (rng.random(400) < scores).astype(int)
    width = mean_width(scores, y)
    copies = np.repeat(scores, 5) + rng.uniform(0, 1e-9, 2000)
    assert mean_width(copies, np.repeat(y, 5)) < 0.7 * width
    grouped = mean_width(copies, np.repeat(y, 5), np.repeat(np.arange(400), 5))
    assert 0.9 < grouped / width < 1.1
    # groups of independent examples change little
    assert 0.99 < mean_width(scores, y, rng.integers(0, 100, 400)) / width < 1.2


def test_many_classes_are_one_against_the_rest_and_two_mirror_each_other():
    rng = np.random.default_rng(54)
    scores, y, labels = rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300), np.array([*"abc"])
    for method in ("likelihood-ratio", "exact"):
        curves = interval_curves(scores, y, 3, 0.9, method)
        intervals = read_intervals(curves, scores[:20], labels, 0.9)
        for j in range(3):
            curve = interval_curves(scores[:, j], (y == j).astype(int), 2, 0.9, method)
            one = read_intervals(curve, scores[:20, j], labels[:2], 0.9)
            assert_array_equal(intervals.lower[:, j], one.lower[:, 1])
            assert_array_equal(intervals.upper[:, j], one.upper[:, 1])
            assert_array_equal(one.lower[:, 0], 1 - one.upper[:, 1])
    wide = intervals.widen(scores[:20])
    assert_array_equal(wide.lower, np.minimum(intervals.lower, scores[:20]))
    outside = (scores[:20] < intervals.lower) | (scores[:20] > intervals.upper)
    assert_array_equal(wide.widened, outside.any(axis=1))


def test_exact_intervals_are_wider_and_few_examples_bound_nothing():
    rng = np.random.default_rng(55)
    scores = rng.random(300)
    y = (rng.random(300) < scores).astype(int)
    widths = [
        np.subtract(*interval_curves(scores, y, 2, 0.9, method)[0].at(scores)[::-1]).mean()
        for method in ("likelihood-ratio", "exact")
    ]
    assert widths[1] > 1.3 * widths[0]
    few = interval_curves(np.array([0.1, 0.5, 0.9]), np.array([0, 1, 1]), 2, method="exact")[0]
    none = (intervals_at_scores(*np.empty((3, 0)), method=m) for m in ("likelihood-ratio", "exact"))
    for curve in (few, *none):
        assert_array_equal(curve.at(np.array([0.5])), [[0], [1]])


def test_intervals_are_sliced_and_shown_as_a_frame():
    rng = np.random.default_rng(0)
    s = rng.random(50)
    intervals = VennAbers().fit(s, rng.random(50) < s).predict_confidence(s, level=0.9)
    assert len(intervals[3]) == 1 and intervals[3].lower[0, 1] == intervals.lower[3, 1]
    assert_array_equal(
        intervals[intervals.lower[:, 1] > 0.2].upper, intervals.upper[intervals.lower[:, 1] > 0.2]
    )
    frame = intervals.to_frame()
    assert list(frame) == ["low90(False)", "high90(False)", "low90(True)", "high90(True)"]
    assert_array_equal(frame["high90(True)"], intervals.upper[:, 1])
    assert intervals.to_frame(p=intervals.upper).columns[0] == "p(False)"


@pytest.mark.slow
@pytest.mark.parametrize("jump", [0.5, 0.97])
def test_coverage_beside_a_jump(jump):
    """A quantile from a curve that is smoothed over the jump covers .5 to .75 there."""
    rng = np.random.default_rng([279, int(100 * jump)])
    n, low_rate, high_rate = 1000, 0.05, 0.8
    new = jump + np.array([-20, -5, -1, 1, 5]) / n
    truth = np.where(new < jump, low_rate, high_rate)
    covered = []
    for _ in range(150):
        scores = rng.random(n)
        y = (rng.random(n) < np.where(scores < jump, low_rate, high_rate)).astype(int)
        low, up = interval_curves(scores, y, 2)[0].at(new)
        covered.append((low <= truth) & (truth <= up))
    assert np.mean(covered, axis=0).min() > 0.88
