"""Confidence intervals for a rising curve: against slow versions, and their coverage exactly."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import brentq
from scipy.stats import binom
from sklearn.exceptions import NotFittedError

from vennforest import ScoreCounts, VennAbers
from vennforest.calibrators.confidence import (
    ClassExamples,
    ScoreConfidence,
    confidence_intervals,
)

CURVES = {
    "flat": lambda s: np.full_like(s, 0.3),
    "identity": lambda s: s,
    "step": lambda s: np.where(s < 0.5, 0.1, 0.9),
    "steps": lambda s: np.floor(4 * s.clip(max=0.999)) / 4 + 0.1,
    "steep": lambda s: 1 / (1 + np.exp(-40 * (s - 0.5))),
    "rare": lambda s: 0.02 * s,
    "sure": lambda s: np.where(s < 0.3, 0.0, 1.0),
    "square": lambda s: s**2,
    "root": lambda s: np.sqrt(s),
    "late": lambda s: np.where(s < 0.9, 0.05, 0.5),
}
"""Ten curves, each not decreasing."""


def exact_bound(s, m, error, upper):
    """Clopper & Pearson's bound, by solving for the probability of a tail."""
    if upper:
        return 1.0 if s == m else brentq(lambda p: binom.cdf(s, m, p) - error, 0, 1, xtol=1e-14)
    return 0.0 if s == 0 else brentq(lambda p: binom.sf(s - 1, m, p) - error, 0, 1, xtol=1e-14)


def stretch(counts, begin, length, forward):
    """Count examples and positives of whole scores from one on, until there are enough."""
    m = s = 0
    at = begin
    while 0 <= at < len(counts):
        m, s = m + counts[at][0], s + counts[at][1]
        at += 1 if forward else -1
        if m >= length:
            return m, s
    return None


def slow_pointwise(scores, y, new, level):
    x = sorted(set(scores))
    counts = [(sum(v == t for v in scores), sum(y[np.array(scores) == t])) for t in x]
    lengths = []
    while 4 * 2 ** len(lengths) <= len(scores):
        lengths.append(4 * 2 ** len(lengths))
    low, up = 0.0, 1.0
    for length in lengths:
        error = (1 - level) / (2 * len(lengths))
        found = stretch(counts, sum(t < new for t in x), length, True)
        if found:
            up = min(up, exact_bound(found[1], found[0], error, True))
        found = stretch(counts, sum(t <= new for t in x) - 1, length, False)
        if found:
            low = max(low, exact_bound(found[1], found[0], error, False))
    return min(low, up), max(low, up)


@pytest.mark.parametrize("seed", range(4))
def test_pointwise_is_the_slow_version(seed):
    rng = np.random.default_rng([51, seed])
    for _ in range(30):
        n = int(rng.integers(1, 60))
        scores = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 6, n) / 5
        y = rng.random(n) < rng.choice([0.1, 0.5, 0.9])
        new = rng.choice(np.append(scores, [-1, 0.5, 2]), 5)
        level = rng.choice([0.5, 0.9, 0.999])
        low, up = ScoreConfidence.from_counts(*ClassExamples.of(scores, y)).pointwise(new, level)
        expected = [slow_pointwise(scores, y, s, level) for s in new]
        assert_allclose(np.column_stack([low, up]), expected, rtol=0, atol=1e-9)


def slow_simultaneous(scores, y, new, level):
    x = sorted(set(scores))
    counts = [(sum(v == t for v in scores), sum(y[np.array(scores) == t])) for t in x]
    n = len(scores)
    before = [sum(v < t for v in scores) for t in x]
    lengths = [4 * 2**d for d in range(20) if 4 * 2**d <= n]
    low, up = 0.0, 1.0
    for length in lengths:
        begins = set()
        for place in range(0, n, max(1, length // 4)):
            begins |= {min((i for i in range(len(x)) if before[i] >= place), default=None)}
        begins = [i for i in begins if i is not None and stretch(counts, i, length, True)]
        for i in begins:
            error = (1 - level) / (2 * len(lengths) * len(begins))
            m, s = stretch(counts, i, length, True)
            last = next(j for j in range(len(x)) if sum(c for c, _ in counts[i : j + 1]) == m)
            if new <= x[i]:
                up = min(up, exact_bound(s, m, error, True))
            if new >= x[last]:
                low = max(low, exact_bound(s, m, error, False))
    return min(low, up), max(low, up)


@pytest.mark.parametrize("seed", range(4))
def test_the_band_is_the_slow_version_and_rises(seed):
    rng = np.random.default_rng([52, seed])
    for _ in range(10):
        n = int(rng.integers(1, 50))
        scores = rng.random(n) if rng.random() < 0.5 else rng.integers(0, 6, n) / 5
        y = rng.random(n) < scores
        new = rng.choice(np.append(scores, [-1, 0.5, 2]), 5)
        confidence = ScoreConfidence.from_counts(*ClassExamples.of(scores, y))
        low, up = confidence.simultaneous(new, 0.9)
        expected = [slow_simultaneous(scores, y, s, 0.9) for s in new]
        assert_allclose(np.column_stack([low, up]), expected, rtol=0, atol=1e-9)
        low, up = confidence.simultaneous(np.sort(scores), 0.9)
        assert (np.diff(low) >= 0).all()
        assert (np.diff(up) >= 0).all()


def coverage(f, scores, new, level):
    """The exact probabilities that each interval, and the whole band, holds the curve."""
    p = f(scores)
    each, whole = np.zeros(len(new)), 0.0
    for labels in product((0, 1), repeat=len(scores)):
        y = np.array(labels)
        probability = np.prod(np.where(y == 1, p, 1 - p))
        confidence = ScoreConfidence.from_counts(*ClassExamples.of(scores, y == 1))
        low, up = confidence.pointwise(new, level)
        each += probability * ((low <= f(new)) & (f(new) <= up))
        low, up = confidence.simultaneous(new, level)
        whole += probability * ((low <= f(new)) & (f(new) <= up)).all()
    return each, whole


@pytest.mark.parametrize("level", [0.5, 0.8])
@pytest.mark.parametrize("name", CURVES)
def test_coverage_by_enumeration_is_never_below_the_level(name, level):
    """Every sequence of ten labels with its probability, scores with and without ties."""
    for scores in (np.linspace(0.05, 0.95, 10), np.repeat([0.2, 0.5, 0.7, 0.75], [3, 4, 1, 2])):
        new = np.concatenate([scores, [0.0, 0.4, 0.55, 1.0]])
        each, whole = coverage(CURVES[name], scores, new, level)
        assert each.min() >= level - 1e-12
        assert whole >= level - 1e-12


def test_the_enumeration_sees_a_curve_that_falls():
    scores = np.linspace(0.05, 0.95, 10)
    each, whole = coverage(lambda s: 1 - s, scores, scores, 0.5)
    assert each.min() < 0.3
    assert whole < 0.3


def test_long_stretches_are_rounded_outwards_and_hardly():
    rng = np.random.default_rng(53)
    n = 10**5
    scores = np.arange(n) / n
    confidence = ScoreConfidence.from_counts(*ClassExamples.of(scores, rng.random(n) < 0.4))
    new = np.array([0.1, 0.5, 0.9])
    low, up = confidence.pointwise(new, 0.9)
    expected = np.array([[0.0, 1.0]] * 3)
    lengths = [4 << d for d in range(15)]
    for i, s in enumerate(new):
        at = np.searchsorted(scores, s)
        for m in lengths:
            error = 0.1 / (2 * len(lengths))
            positive = np.diff(confidence.positive)
            if at + m <= n:
                bound = exact_bound(positive[at : at + m].sum(), m, error, True)
                expected[i, 1] = min(expected[i, 1], bound)
            if at + 1 - m >= 0:
                bound = exact_bound(positive[at + 1 - m : at + 1].sum(), m, error, False)
                expected[i, 0] = max(expected[i, 0], bound)
    assert (low <= expected[:, 0] + 1e-12).all()
    assert (up >= expected[:, 1] - 1e-12).all()
    assert_allclose(np.column_stack([low, up]), expected, atol=3e-4)


def test_many_classes_are_one_against_the_rest_and_two_mirror_each_other():
    rng = np.random.default_rng(54)
    scores, y = rng.dirichlet(np.ones(3), 300), rng.integers(0, 3, 300)
    labels = np.array(["a", "b", "c"])
    found = confidence_intervals(scores, labels[y], scores[:20], level=0.9)
    for j in range(3):
        one = confidence_intervals(scores[:, j], y == j, scores[:20, j], level=0.9)
        assert_array_equal(found.lower[:, j], one.lower[:, 1])
        assert_array_equal(found.upper[:, j], one.upper[:, 1])
        assert_array_equal(one.lower[:, 0], 1 - one.upper[:, 1])
        both = np.column_stack([1 - scores[:, j], scores[:, j]])
        again = confidence_intervals(both, y == j, both[:20], level=0.9)
        assert_array_equal(again.upper, one.upper)
    model = VennAbers().fit(scores, labels[y])
    p = model.predict_proba(scores[:20])
    own = model.predict_confidence(scores[:20], 0.9)
    assert_array_equal(own.lower, np.minimum(found.lower, p))
    assert_array_equal(own.widened, ((p < found.lower) | (p > found.upper)).any(axis=1))
    assert found.classes.tolist() == ["a", "b", "c"]
    assert len(found) == 20
    assert (found.width <= 1).all()
    exact = confidence_intervals(scores, y, scores[:20], level=0.9, method="exact")
    assert exact.width.mean() > found.width.mean()
    wide = confidence_intervals(
        scores, y, scores[:20], level=0.9, method="exact", simultaneous=True
    )
    assert wide.width.mean() > exact.width.mean()


def test_a_calibrator_has_them_from_its_examples_or_counts():
    rng = np.random.default_rng(55)
    scores = np.round(rng.random(400), 1)
    y = rng.random(400) < scores
    fitted = VennAbers("log").fit(scores, y)
    x = np.unique(scores)
    negatives, positives = ([np.sum(y[scores == t] == c) for t in x] for c in (0, 1))
    counted = VennAbers("log").fit_counts(ScoreCounts.from_counts(x, negatives, positives))
    for method in ("likelihood-ratio", "exact"):
        expected = confidence_intervals(scores, y, scores, method=method)
        expected = expected.widen(fitted.predict_proba(scores))
        for model in (fitted, counted):
            found = model.predict_confidence(scores, method=method)
            assert_array_equal(found.lower, expected.lower)
            assert_array_equal(found.upper, expected.upper)
            assert found.level == 0.95


def test_what_has_no_such_intervals_is_refused():
    with pytest.raises(NotFittedError):
        VennAbers().predict_confidence([0.5])
    model = VennAbers().fit([0.1, 0.9, 0.3], [0, 1, 1])
    for level in (0, 1, 1.5, -0.1, "x", True, np.nan):
        with pytest.raises(ValueError, match="level must lie between 0 and 1, got"):
            model.predict_confidence([0.5], level)
    model.fit([0.1, 0.9, 0.3], [0, 1, 1], sample_weight=[1, 2.5, 1])
    with pytest.raises(ValueError, match="sample_weight must be None at fit for exact"):
        model.predict_confidence([0.5], method="exact")
    model.fit_counts(ScoreCounts.from_counts([0.1, 0.9], [0.5, 1], [1, 2]))
    with pytest.raises(ValueError, match=r"counts must be integers .*, got"):
        model.predict_confidence([0.5], method="exact")
    with pytest.raises(ValueError, match="simultaneous must be False with method='likelihood"):
        model.predict_confidence([0.5], simultaneous=True)
    with pytest.raises(ValueError, match="method must be one of"):
        model.predict_confidence([0.5], method="wald")
    with pytest.raises(ValueError, match="groups must be None with method='exact'"):
        confidence_intervals([0.1, 0.9], [0, 1], [0.5], method="exact", groups=[1, 2])
    with pytest.raises(ValueError, match="y must contain at least two classes, got one class: 1"):
        confidence_intervals([0.5, 0.6], [1, 1], [0.5])
    with pytest.raises(ValueError, match="new_scores must have a column for each of 3 classes"):
        confidence_intervals(np.eye(3), [0, 1, 2], [0.5])
    few = confidence_intervals([0.1, 0.9], [0, 1], [0.5], method="exact")
    assert_array_equal(few.lower, 0)  # three examples and fewer say nothing
    assert_array_equal(few.upper, 1)


def test_copies_of_examples_in_groups_count_once():
    """Near-copies: five of each example, with scores that differ in the last digits."""
    rng = np.random.default_rng(56)
    scores = rng.random(400)
    y = rng.random(400) < scores
    new = np.linspace(0.1, 0.9, 9)
    once = confidence_intervals(scores, y, new).width[:, 1]
    groups = np.repeat(np.arange(400), 5)
    copies = np.repeat(scores, 5) + rng.uniform(0, 1e-9, 2000)
    naive = confidence_intervals(copies, np.repeat(y, 5), new).width[:, 1]
    known = confidence_intervals(copies, np.repeat(y, 5), new, groups=groups).width[:, 1]
    assert naive.mean() < 0.7 * once.mean()
    assert 0.9 < known.mean() / once.mean() < 1.1
    # groups of independent examples change little
    loose = confidence_intervals(scores, y, new, groups=rng.integers(0, 100, 400)).width[:, 1]
    assert 0.99 < loose.mean() / once.mean() < 1.2


def test_exact_intervals_take_weights_of_zero_and_one_alone():
    rng = np.random.default_rng(58)
    scores, new = rng.random(100), rng.random(20)
    y, weight = rng.random(100) < scores, rng.integers(0, 2, 100)
    there = weight > 0
    weighted = confidence_intervals(scores, y, new, sample_weight=weight, method="exact")
    kept = confidence_intervals(scores[there], y[there], new, method="exact")
    assert_array_equal(weighted.lower, kept.lower)
    with pytest.raises(ValueError, match="sample_weight and groups must be None with method='exa"):
        confidence_intervals(scores, y, new, sample_weight=weight + 1, method="exact")


def test_weights_of_two_are_examples_twice():
    rng = np.random.default_rng(57)
    scores = np.round(rng.random(100), 2)
    y, weight = rng.random(100) < scores, rng.integers(0, 4, 100)
    new = rng.random(20)
    weighted = confidence_intervals(scores, y, new, sample_weight=weight)
    repeated = confidence_intervals(np.repeat(scores, weight), np.repeat(y, weight), new)
    assert_array_equal(weighted.lower, repeated.lower)
    assert_array_equal(weighted.upper, repeated.upper)
