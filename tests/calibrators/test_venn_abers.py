"""The inductive Venn–Abers predictor, compared with refits for every label and left-out example."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import isotonic_regression

from oracles import formulas as oracle
from vennforest.calibrators.base import LeftOut
from vennforest.calibrators.venn_abers import calibrator, step_kernels
from vennforest.calibrators.venn_abers.calibrator import StepTable, VennAbers
from vennforest.counts import ScoreCounts

TOLERANCE = 1e-12


def draw_few(rng):
    """Up to eleven scores of one of five kinds, labels and perhaps weights."""
    n = int(rng.integers(1, 12))
    kind = rng.integers(5)
    if kind == 0:
        scores = rng.normal(size=n)
    elif kind == 1:
        scores = rng.integers(0, 4, n) / 3
    elif kind == 2:
        scores = np.full(n, 0.5)
    elif kind == 3:
        scores = rng.choice([-1, 1], n) * 10.0 ** rng.integers(-300, 301, n)
    else:
        scores = np.full(n, 0.3)
        for _ in range(3):
            scores = np.where(rng.random(n) < 0.5, np.nextafter(scores, 1), scores)
    y = rng.random(n) < rng.choice([0, 0.2, 0.5, 0.8, 1])
    weight = None if rng.random() < 0.5 else rng.choice([1, 2, 0.5, 3.0, 0.1], n)
    return scores, y, weight


@pytest.mark.parametrize("seed", range(8))
def test_small_sets_agree_with_exact_fractions(seed):
    """3,200 drawn new scores: on, beside and between calibration scores, leaving out anybody."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        scores, y, weight = draw_few(rng)
        near = np.concatenate(
            [scores, np.nextafter(scores, np.inf), np.nextafter(scores, -np.inf), rng.random(2)]
        )
        new = rng.choice(near, 4)
        left_out = rng.integers(-1, len(scores), 4)
        table = StepTable.from_examples(scores, y, weight)
        found = np.array([table.read(new), table.read(new, LeftOut(left_out, None))])
        for i, s in enumerate(new):
            expected = oracle.venn_abers(scores, y, s, weight)
            without = oracle.venn_abers(scores, y, s, weight, left_out[i])
            assert_allclose(found[0, :, i], np.array(expected, float), rtol=0, atol=TOLERANCE)
            assert_allclose(found[1, :, i], np.array(without, float), rtol=0, atol=TOLERANCE)


def test_every_example_left_out_at_every_place():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5, 9):
        scores, y = rng.integers(0, 5, n) / 4, rng.random(n) < 0.5
        new, left_out = (a.ravel() for a in np.meshgrid(np.arange(-1, 10) / 8, np.arange(-1, n)))
        m = VennAbers().fit(scores, y, classes=[False, True])
        m = m.predict_multiprobability(new, left_out)
        for i, (s, r) in enumerate(zip(new, left_out, strict=True)):
            expected = oracle.venn_abers(scores, y, s, left_out=r)
            assert_allclose((m.p0[i], m.p1[i]), np.array(expected, float), atol=TOLERANCE)


def refit(scores, y, weight, s):
    """p0 and p1 by scipy's isotonic regression, once for each label of the new score."""
    values = []
    weight = np.ones(len(scores)) if weight is None else weight
    for label in (0.0, 1.0):
        points, group = np.unique(np.append(scores, s), return_inverse=True)
        total = np.bincount(group, np.append(weight, 1.0))
        mean = np.bincount(group, np.append(weight * y, label)) / total
        fit = isotonic_regression(mean, weights=total).x
        values.append(fit[np.searchsorted(points, s)])
    return values


SHAPES = {
    "calibrated": lambda rng, n: (s := rng.random(n), s),
    "rounded": lambda rng, n: (s := np.round(rng.random(n), 2), s),
    "extreme": lambda rng, n: (s := rng.beta(0.2, 0.2, n), s),
    "useless": lambda rng, n: (rng.random(n), np.full(n, 0.5)),
    "separable": lambda rng, n: (s := rng.random(n), s > 0.5),
    "reversed": lambda rng, n: (s := rng.random(n), 1 - s),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [40, 100, 500, 3000])
@pytest.mark.parametrize("shape", SHAPES)
def test_large_sets_agree_with_refits(shape, n, weighted):
    rng = np.random.default_rng(n)
    for _ in range(2 if n == 3000 else 4):
        scores, p = SHAPES[shape](rng, n)
        y = rng.random(n) < p
        weight = rng.choice([1, 2, 0.5, 3.0, 0.1], n) if weighted else None
        table = StepTable.from_examples(scores, y, weight)
        new = np.concatenate([rng.choice(scores, 20), rng.random(20)])
        left_out = rng.integers(0, n, len(new))
        nearest = np.abs(scores - new[::2, None]).argsort(axis=1)
        left_out[::2] = nearest[np.arange(20), rng.integers(0, min(n, 60), 20)]
        found = np.array([table.read(new), table.read(new, LeftOut(left_out, None))])
        for i, s in enumerate(new):
            kept = np.arange(n) != left_out[i]
            kept_weight = None if weight is None else weight[kept]
            expected = refit(scores, y, weight, s)
            without = refit(scores[kept], y[kept], kept_weight, s)
            assert_allclose(found[0, :, i], expected, rtol=0, atol=TOLERANCE)
            assert_allclose(found[1, :, i], without, rtol=0, atol=TOLERANCE)


# --- sorting and looking up ------------------------------------------------------------------


def test_zeros_of_either_sign_are_one_score_however_many_there_are():
    rng = np.random.default_rng(0)
    for n in (40, 5000):
        zeros = rng.choice([-0.0, 0.0], n)
        y = rng.random(n) < 0.3
        table = StepTable.from_examples(zeros, y, None)
        assert len(table.x) == 1
        p0, p1 = table.read(np.array([-0.0, 0.0, 5e-324, -5e-324]))
        assert_allclose(p0, [y.sum() / (n + 1)] * 3 + [0], rtol=1e-15)
        assert_allclose(p1, [(y.sum() + 1) / (n + 1)] * 2 + [1] + [p1[0]], rtol=1e-15)


@pytest.mark.parametrize(
    "scores",
    [
        [-1.7e308, 1.7e308, 0.0, 1.0],  # the range overflows
        [0.0, 5e-324, 1e-323, 1.5e-323],  # the scale of the grid would
        [0.0, 1e-300, 1e300],
        [1e300, 1e300 * (1 + 1e-15), 1.0, np.nextafter(1.0, 2), np.nextafter(1.0, 0)],
        [-1e-9, 1e-9, 0.0, 2e-9],
    ],
    ids=str,
)
def test_extreme_ranges_are_looked_up_like_any_other(scores):
    scores = np.repeat(scores, 3)
    y = np.random.default_rng(1).random(len(scores)) < 0.5
    new = np.concatenate([scores, np.nextafter(scores, np.inf), np.nextafter(scores, -np.inf)])
    new = np.append(new[np.isfinite(new)], [-1.79e308, 1.79e308, 0.0, -0.0, 5e-324, 1e-320])
    p0, p1 = StepTable.from_examples(scores, y, None).read(new)
    for i, s in enumerate(new):
        expected = np.array(oracle.venn_abers(scores, y, s), float)
        assert_allclose((p0[i], p1[i]), expected, rtol=0, atol=TOLERANCE)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=40, unique=True),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=90),
)
def test_reading_through_the_grid_counts_the_values_below(values, new):
    values = np.unique(np.array(values, float) + 0.0)
    new = np.append(np.array(new), values)
    fits, out = np.arange(len(values) + 1.0), np.empty(len(new))
    table = (values, fits, *step_kernels.guide(values))
    step_kernels.read_steps(new, *table, False, out, None)
    assert_array_equal(out, [sum(v < s for v in values) for s in new])
    step_kernels.read_steps(new, *table, True, out, None)
    assert_array_equal(out, [sum(v <= s for v in values) for s in new])
    # and sorted into parts of a range first
    ordered, numbers = np.empty(len(new)), np.empty(len(new), np.uint32)
    low = values[0] if len(values) else 0.0
    scale = step_kernels.scale_of(low, max(new.max(), low), step_kernels.PARTS)
    step_kernels.sort_into_parts(new, low, scale, ordered, numbers)
    assert_array_equal(np.sort(numbers), np.arange(len(new)))
    assert_array_equal(ordered, new[numbers])
    again = np.empty(len(new))
    step_kernels.read_steps(ordered, *table, True, again, numbers)
    assert_array_equal(again, out)


def test_a_large_table_is_read_like_a_small_one(monkeypatch):
    rng = np.random.default_rng(0)
    scores = rng.random(3000)
    new = np.concatenate([rng.random(3000), scores, [-1, 2, 0.5]])
    table = StepTable.from_examples(scores, scores > 0.5, None)
    expected = table.read(new)
    monkeypatch.setattr(calibrator, "LARGE_TABLE", 100)
    assert len(table.ones.ends) > 1000
    assert_array_equal(table.read(new), expected)


# --- properties ------------------------------------------------------------------------------

EXAMPLES = st.lists(
    st.tuples(st.integers(-64, 64), st.booleans(), st.integers(1, 3)), min_size=1, max_size=40
)


def fitted(scores, y, weight=None):
    return VennAbers().fit(scores, y, sample_weight=weight, classes=[False, True])


@settings(max_examples=150, deadline=None)
@given(EXAMPLES)
def test_bounds_are_apart_and_do_not_decrease(examples):
    scores, y, weight = map(np.array, zip(*examples, strict=True))
    m = fitted(scores / 8, y, weight).predict_multiprobability(np.arange(-1100, 1100) / 128)
    assert (m.p0 < m.p1).all()
    assert (m.p0 >= 0).all()
    assert (m.p1 <= 1).all()
    assert (np.diff(m.p0) >= 0).all()
    assert (np.diff(m.p1) >= 0).all()
    assert_array_equal(m.lower[:, 0], 1 - m.p1)
    assert_array_equal(m.upper[:, 0], 1 - m.p0)


@settings(max_examples=80, deadline=None)
@given(EXAMPLES, st.sampled_from(["cube", "scale", "shift", "float32", "exp"]))
def test_bounds_depend_on_the_order_of_the_scores_alone(examples, kind):
    scores, y, weight = map(np.array, zip(*examples, strict=True))
    scores, new = scores / 8, np.arange(-1100, 1100) / 128
    transform = {  # each maps different scores to different ones
        "cube": lambda s: s**3,
        "scale": lambda s: s * 2.0**-900,
        "shift": lambda s: s + 4096.0,
        "float32": np.float32,
        "exp": np.exp,
    }[kind]
    expected = fitted(scores, y, weight).predict_multiprobability(new)
    found = fitted(transform(scores), y, weight).predict_multiprobability(transform(new))
    assert_array_equal(found.lower, expected.lower)
    assert_array_equal(found.upper, expected.upper)


@settings(max_examples=80, deadline=None)
@given(EXAMPLES)
def test_exchanged_labels_give_exchanged_bounds(examples):
    scores, y, weight = map(np.array, zip(*examples, strict=True))
    new = np.arange(-140, 140) / 16
    m = fitted(scores / 8, y, weight).predict_multiprobability(new)
    flipped = fitted(-scores / 8, ~y, weight).predict_multiprobability(-new)
    assert_allclose(flipped.p0, 1 - m.p1, rtol=0, atol=1e-15)
    assert_allclose(flipped.p1, 1 - m.p0, rtol=0, atol=1e-15)


@settings(max_examples=80, deadline=None)
@given(EXAMPLES)
def test_a_weight_is_so_many_examples(examples):
    scores, y, weight = map(np.array, zip(*examples, strict=True))
    new = np.arange(-140, 140) / 16
    weighted = fitted(scores / 8, y, weight).predict_multiprobability(new)
    repeated = fitted(scores.repeat(weight) / 8, y.repeat(weight)).predict_multiprobability(new)
    assert_array_equal(weighted.lower, repeated.lower)
    assert_array_equal(weighted.upper, repeated.upper)
    # and so is leaving it out, of which one of several examples is another
    first = np.zeros(len(new), int)
    one = fitted(scores.repeat(weight) / 8, y.repeat(weight)).predict_multiprobability(new, first)
    lighter = weight.copy()
    lighter[0] -= 1
    if lighter.any():
        expected = fitted(scores / 8, y, lighter).predict_multiprobability(new)
        assert_allclose(one.lower, expected.lower, rtol=0, atol=TOLERANCE)
        assert_allclose(one.upper, expected.upper, rtol=0, atol=TOLERANCE)


@settings(max_examples=60, deadline=None)
@given(EXAMPLES, st.integers(1, 5))
def test_counts_of_parts_add_up_to_the_whole(examples, parts):
    scores, y, weight = map(np.array, zip(*examples, strict=True))
    scores = scores / 8
    places, negatives, positives = [], [], []
    for part in range(parts):
        s, label, w = (a[part::parts] for a in (scores, y, weight))
        for value in np.unique(s):
            places.append(value)
            negatives.append(w[(s == value) & ~label].sum())
            positives.append(w[(s == value) & label].sum())
    counts = ScoreCounts.from_counts(places, negatives, positives, classes=[False, True])
    counted = VennAbers().fit_counts(counts)
    whole, new = fitted(scores, y, weight), np.arange(-140, 140) / 16
    found, expected = counted.predict_multiprobability(new), whole.predict_multiprobability(new)
    assert_array_equal(found.lower, expected.lower)
    assert_array_equal(found.upper, expected.upper)
    assert_allclose(counted.predict_proba(new), whole.predict_proba(new), rtol=1e-9)


def test_a_new_score_above_or_below_all_others_has_bounds_of_its_own():
    m = VennAbers().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 1, 1]).predict_multiprobability([-9, 9])
    assert_allclose(m.p0, [0, 3 / 4], rtol=1e-15)  # with (9, 0): 0, then one block of 3 in 4
    assert_allclose(m.p1, [1 / 2, 1], rtol=1e-15)  # with (-9, 1): one block of 1 in 2, then 1


def test_sums_of_weights_of_very_different_size_are_kept_whole():
    scores, y, weight = [0.1, 0.2, 0.3, 0.4], [1, 0, 1, 0], [1e-25, 1.0, 1e-25, 0.3]
    model = VennAbers().fit(scores, y, sample_weight=weight)
    own, read = model.tables_[0], pickle.loads(pickle.dumps(model)).tables_[0]
    assert own.sums.W_low is not None
    for one, other in zip(own.sums, read.sums, strict=True):
        assert_array_equal(one, other)


def test_labels_of_examples_at_one_score_must_be_labels_though_their_sum_is_right():
    table = VennAbers().fit([0.1, 0.5, 0.5], [0, 1, 1]).tables_[0]
    state = table.__getstate__()
    StepTable.__new__(StepTable).__setstate__(state)
    table.examples.labels[1:] = 2, 0
    with pytest.raises(ValueError, match="labels"):
        StepTable.__new__(StepTable).__setstate__(state)
