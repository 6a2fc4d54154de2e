import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.oracles import confidence as oracle

from vennforest.calibrators import likelihood_ratio_kernels as kernels
from vennforest.calibrators.confidence import ClassExamples, confidence_intervals
from vennforest.calibrators.likelihood_ratio import (
    QUANTILES,
    LikelihoodRatio,
    expected_scores,
    limit_quantile,
)


def drawn(rng):
    """Scores with and without ties, extreme ones, neighbours one ulp apart; any balance."""
    n = int(rng.integers(1, 40))
    kind = rng.integers(5)
    if kind == 0:
        scores = rng.random(n)
    elif kind == 1:
        scores = rng.integers(0, 6, n) / 5
    elif kind == 2:
        scores = rng.standard_normal(n) * 10.0 ** rng.integers(-300, 300, n)
    elif kind == 3:
        scores = 0.5 + rng.integers(0, 8, n) * np.spacing(0.5)
    else:
        scores = np.zeros(n)
    share = rng.choice([0.0, 0.02, 0.3, 0.5, 0.9, 1.0])
    y = (rng.random(n) < share).astype(float)
    if rng.random() < 0.4:  # a curve that rises
        y = (rng.random(n) < np.argsort(np.argsort(scores)) / n).astype(float)
    return scores, y


def asked(rng, scores):
    inside = rng.choice(scores, 3)
    near = np.nextafter(inside, rng.choice([-np.inf, np.inf], 3))
    ends = [scores.min() - 1, scores.max() + 1, np.finfo(float).max, -np.finfo(float).max]
    return np.concatenate([inside, near, ends, rng.random(2)])


@pytest.mark.parametrize("seed", range(6))
def test_intervals_and_ratios_are_the_definition(seed):
    rng = np.random.default_rng([271, seed])
    for _ in range(40):
        scores, y = drawn(rng)
        new = asked(rng, scores)
        quantile = rng.choice([0.1, 1.602, 2.269, 8.0])
        weight = np.ones(len(scores))
        table = LikelihoodRatio.from_counts(*ClassExamples.of(scores, y == 1))
        low, up = table.ends(new, quantile)
        expected = [oracle.interval(scores, y, weight, x, quantile) for x in new]
        assert_allclose(np.column_stack([low, up]), expected, rtol=0, atol=1e-9)
        theta = rng.uniform(0.001, 0.999, len(new))
        found = np.empty(len(new))
        trees, largest = (table.below, table.above), table.below.best[-1]
        kernels.ratios(table.places(new), theta, table.W, table.Y, *trees, largest, found)
        expected = [oracle.ratio(scores, y, weight, x, t) for x, t in zip(new, theta, strict=True)]
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_weights_are_repeated_observations(seed):
    rng = np.random.default_rng([272, seed])
    for _ in range(20):
        scores, y = drawn(rng)
        weight = rng.integers(1, 5, len(scores))
        new = asked(rng, scores)
        one = LikelihoodRatio.from_counts(*ClassExamples.of(scores, y == 1, weight.astype(float)))
        many = LikelihoodRatio.from_counts(
            *ClassExamples.of(np.repeat(scores, weight), np.repeat(y, weight) == 1)
        )
        assert_allclose(one.ends(new, 2.269), many.ends(new, 2.269), rtol=0, atol=1e-9)
        real = weight * rng.random(len(scores)) + 0.01
        low, up = LikelihoodRatio.from_counts(*ClassExamples.of(scores, y == 1, real)).ends(
            new, 2.269
        )
        expected = [oracle.interval(scores, y, real, x, 2.269) for x in new]
        assert_allclose(np.column_stack([low, up]), expected, rtol=0, atol=1e-8)


def test_reversed_scores_with_exchanged_labels_give_the_mirrored_interval():
    rng = np.random.default_rng(273)
    scores = np.round(rng.random(500), 2)
    y = rng.random(500) < scores
    new = rng.random(50)
    low, up = LikelihoodRatio.from_counts(*ClassExamples.of(scores, y)).ends(new, 2.269)
    mirrored = LikelihoodRatio.from_counts(*ClassExamples.of(-scores, ~y)).ends(-new, 2.269)
    assert_allclose(mirrored, [1 - up, 1 - low], rtol=0, atol=1e-10)


@pytest.mark.parametrize("n", [1, 3, 50, 3000])
def test_tables_rise_and_contain_the_limit_interval_at_their_scores(n):
    rng = np.random.default_rng([274, n])
    scores = rng.random(n)
    ratio = LikelihoodRatio.from_counts(*ClassExamples.of(scores, rng.random(n) < scores))
    table = ratio.table(0.9)
    assert (np.diff(table.x) > 0).all()
    low, up = ratio.ends(table.x, limit_quantile(0.9))
    assert (table.lower <= low + 1e-12).all()
    assert (table.upper >= up - 1e-12).all()
    new = np.concatenate([rng.uniform(-0.5, 1.5, 20), scores[:5]])
    low, up = table.read(new)
    assert (low <= up).all()
    assert (low[new < scores.min()] == 0).all()
    assert (up[new > scores.max()] == 1).all()
    # the same examples in another order, asked one at a time
    order = rng.permutation(n)
    again = LikelihoodRatio.from_counts(
        *ClassExamples.of(scores[order], ratio_labels(ratio, scores)[order])
    )
    assert_allclose(again.table(0.9).upper, table.upper, rtol=0, atol=0)


def ratio_labels(ratio, scores):
    at = np.searchsorted(ratio.x, scores)
    return np.diff(ratio.Y)[at] == 1


def test_quantiles_of_the_limit():
    assert limit_quantile(0.95) == pytest.approx(2.269)
    assert limit_quantile(0.9) == pytest.approx(1.602)
    levels = np.linspace(0.01, 0.9999, 300)
    found = [limit_quantile(level) for level in levels]
    assert (np.diff(found) > 0).all()
    assert max(found) > max(QUANTILES)


CURVES = {
    "identity": lambda s: s,
    "flat": lambda s: np.full_like(s, 0.3),
    "rare": lambda s: 0.05 * s,
    "late": lambda s: np.where(s < 0.8, 0.1, 0.6),
}


@pytest.mark.parametrize("name", CURVES)
def test_coverage_of_drawn_curves(name):
    """150 draws of 150 examples, at 20 scores; the coverage of one draw varies by .15."""
    f, rng = CURVES[name], np.random.default_rng(275)
    new = np.linspace(0.05, 0.95, 20)
    covered = []
    for _ in range(150):
        scores = rng.random(150)
        y = rng.random(150) < f(scores)
        found = confidence_intervals(scores, y, new, classes=[False, True])
        covered.append((found.lower[:, 1] <= f(new)) & (f(new) <= found.upper[:, 1]))
    assert np.mean(covered) > 0.88


def test_expected_scores_of_normal_noise_are_shrunk_linearly():
    """Normal scores of variance 1, noise of .2: E[S | s] = s / 1.2."""
    rng = np.random.default_rng(276)
    scores = rng.standard_normal(20_000) * np.sqrt(1.2)
    found = expected_scores(scores, np.full(20_000, 0.2))
    middle = np.abs(scores) < 1.5
    # the kernel's own width makes the density a little flatter
    slope = np.polyfit(scores[middle], found[middle], 1)[0]
    assert 1 - 0.2 / 1.2 < slope < 1 - 0.2 / 1.2 + 0.03
    assert (np.argsort(found, kind="stable") == np.argsort(scores, kind="stable")).all()
    assert_allclose(expected_scores(scores, np.zeros(20_000)), scores)


def test_no_positive_example_means_three_in_n():
    scores = np.linspace(0, 1, 100)
    table = LikelihoodRatio.from_counts(*ClassExamples.of(scores, np.zeros(100, bool))).table(0.95)
    assert table.upper[0] >= 1 - 0.05 ** (1 / 100) - 1e-9
    assert (table.lower == 0).all()
