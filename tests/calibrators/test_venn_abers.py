"""The inductive Venn–Abers predictor, compared with refits for every label and left-out example."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import isotonic_regression
from sklearn.exceptions import NotFittedError

from oracles import formulas as oracle
from support.cases import draw_scores
from vennforest import VennAbers
from vennforest.calibrators import venn_abers
from vennforest.calibrators.intervals import interval_curves, read_intervals
from vennforest.counts import count_examples

TOLERANCE = 1e-12
pytestmark = pytest.mark.filterwarnings("ignore:the scores of")  # of drawn labels


def fitted(scores, y, weight=None, k=2):
    """A predictor of classes 0 ... k - 1 for scores of any range."""
    model = VennAbers("log", on="score").fit(scores, y, sample_weight=weight, classes=range(k))
    model.score_range_ = None
    return model


def bounds_of(model, new, left_out=None):
    m = model.predict_multiprobability(new, left_out)
    return np.array([m.p0, m.p1])


def draw_few(rng):
    """Up to eleven scores of any kind, labels and perhaps weights."""
    n = int(rng.integers(1, 12))
    y = (rng.random(n) < rng.choice([0, 0.2, 0.5, 0.8, 1])).astype(int)
    weight = [None, rng.choice([1, 2, 0.5, 3.0, 0.1], n), 10.0 ** rng.uniform(-3, 3, n)]
    return draw_scores(rng, n, 2), y, weight[rng.integers(3)]


def compare(scores, y, weight, new, left_out, tolerance=TOLERANCE):
    """Compare bounds with exact fractions, with all examples and with one left out."""
    model = fitted(scores, y, weight)
    bounds = bounds_of(model, new), bounds_of(model, new, left_out)
    for i, s in enumerate(new):
        for found, r in zip(bounds, (-1, left_out[i]), strict=True):
            expected = np.array(oracle.venn_abers(scores, y, s, weight, r), float)
            assert_allclose(found[:, i], expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("n_draws", [40, pytest.param(400, marks=pytest.mark.slow)])
def test_small_sets_agree_with_exact_fractions(rng, n_draws):
    """New scores on, beside and between calibration scores, leaving out any example."""
    for _ in range(n_draws):
        scores, y, weight = draw_few(rng)
        near = [scores, np.nextafter(scores, np.inf), np.nextafter(scores, -np.inf), rng.random(2)]
        new, left_out = rng.choice(np.concatenate(near), 4), rng.integers(-1, len(scores), 4)
        compare(scores, y, weight, new, left_out)


def test_ties_between_lines_that_rounding_breaks():
    """The negative example at 1 is on the line of p0 at .5, beside one of equal slope."""
    scores = [0] * 4 + [0.25] * 2 + [0.5] * 4 + [1] * 2
    weight = [0.7, 0.5, 0.5, 0.8, 0.4, 0.3, 0.9, 0.3, 0.4, 0.4, 0.6, 0.2]
    compare(scores, [1] * 8 + [0, 1, 0, 1], weight, np.full(12, 0.5), np.arange(12))


def test_very_different_weights_keep_seven_digits():
    rng = np.random.default_rng(9)
    for _ in range(15):
        weight, left_out = rng.choice([1.0, 1e9], 9), rng.integers(0, 9, 3)
        compare(rng.random(9), rng.integers(0, 2, 9), weight, rng.random(3), left_out, 1e-6)


def refit(scores, y, weight, s):
    """p0 and p1 by scipy's isotonic regression, once for each label of the new score."""
    bounds = []
    weight = np.ones(len(scores)) if weight is None else weight
    for label in (0.0, 1.0):
        points, group = np.unique(np.append(scores, s), return_inverse=True)
        total = np.bincount(group, np.append(weight, 1.0))
        mean = np.bincount(group, np.append(weight * y, label)) / total
        fit = isotonic_regression(mean, weights=total).x
        bounds.append(fit[np.searchsorted(points, s)])
    return bounds


SHAPES = {
    "calibrated": lambda rng, n: (s := rng.random(n), s),
    "rounded": lambda rng, n: (s := np.round(rng.random(n), 2), s),
    "extreme": lambda rng, n: (s := rng.beta(0.2, 0.2, n), s),
    "useless": lambda rng, n: (rng.random(n), np.full(n, 0.5)),
    "separable": lambda rng, n: (s := rng.random(n), s > 0.5),
    "reversed": lambda rng, n: (s := rng.random(n), 1 - s),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [40, 1500])
@pytest.mark.parametrize("shape", SHAPES)
def test_large_sets_agree_with_refits(shape, n, weighted):
    rng = np.random.default_rng(n)
    for _ in range(1 if n == 1500 else 3):
        scores, p = SHAPES[shape](rng, n)
        y = (rng.random(n) < p).astype(int)
        weight = rng.choice([1, 2, 0.5, 3.0, 0.1], n) if weighted else None
        new = np.concatenate([rng.choice(scores, 20), rng.random(20)])
        left_out = rng.integers(0, n, len(new))
        nearest = np.abs(scores - new[::2, None]).argsort(axis=1)
        left_out[::2] = nearest[np.arange(20), rng.integers(0, min(n, 60), 20)]
        model = fitted(scores, y, weight)
        bounds = bounds_of(model, new), bounds_of(model, new, left_out)
        for i, s in enumerate(new):
            kept = np.arange(n) != left_out[i]
            without = refit(scores[kept], y[kept], None if weight is None else weight[kept], s)
            assert_allclose(bounds[0][:, i], refit(scores, y, weight, s), rtol=0, atol=TOLERANCE)
            assert_allclose(bounds[1][:, i], without, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_scores_put_together_have_the_bounds_of_all_scores(rng, shape, weighted, monkeypatch):
    for n in rng.integers(10, 400, 20):
        scores, p = SHAPES[shape](rng, n)
        scores, p = np.repeat(scores, 2), np.repeat(p, 2)
        n = len(scores)
        y = (rng.random(n) < p).astype(int)
        weight = rng.choice([1, 2, 0.5, 3.0, 0.1], n) if weighted else rng.integers(1, 100, n)
        new = np.concatenate([scores, np.nextafter(scores, np.inf), rng.random(50)])
        left_out = np.append(np.arange(2 * n) % n, np.full(50, -1))
        expected = [
            (rows, bounds_of(fitted(scores, y, weight), new, rows)) for rows in (None, left_out)
        ]
        with monkeypatch.context() as constants:
            constants.setattr(venn_abers, "MAX_TABLE_SCORES", 8)
            constants.setattr(venn_abers, "N_SPREAD_SCORES", 4)
            constants.setattr(venn_abers, "N_END_SCORES", 1)
            constants.setattr(venn_abers, "N_DIGITS", 40)
            model = fitted(scores, y, weight)
            (table,) = model._tables
            assert table.condensed() is table
            assert_allclose(table.weights.sum(axis=0), model.weights_[0].sum(axis=0))
            tolerance = TOLERANCE if weighted else 0
            for rows, bounds in expected:
                assert_allclose(bounds_of(model, new, rows), bounds, rtol=0, atol=tolerance)
        if shape == "useless" and n > 200:
            assert len(table.x) < n / 2


@pytest.mark.parametrize("rare", [0, 1])
def test_bounds_among_thousands_of_one_label_are_up_to_a_thousandth_wider(rng, rare):
    scores = np.sort(rng.normal(size=80_000))
    rate = 1e-4 * np.exp(scores if rare else -scores)
    y = np.where(rng.random(len(scores)) < rate, rare, 1 - rare)
    labels = np.column_stack([y == 0, y == 1]).astype(float)
    table = venn_abers.StepTable(scores, labels)
    condensed = table.condensed()
    assert len(condensed.x) < 30_000
    assert condensed.condensed() is condensed
    new = np.concatenate([scores, np.nextafter(scores, np.inf)])
    exact, bounds = np.empty((2, 2, len(new)))
    table.look_up(new, exact)
    condensed.look_up(new, bounds)
    assert_array_equal(bounds[1 - rare], exact[1 - rare])
    of_label, exact_of_label = (p[1] if rare else 1 - p[0] for p in (bounds, exact))
    assert (of_label >= exact_of_label).all()
    assert (of_label <= exact_of_label * (1 + 2.0**-venn_abers.N_DIGITS) + 1e-15).all()
    assert (of_label > exact_of_label).any()


def test_zeros_of_either_sign_are_one_score():
    zeros = np.array([-0.0, 0.0, 0.0, -0.0])
    model = fitted(zeros, [0, 1, 0, 0])
    assert len(model.scores_[0]) == 1
    p0, p1 = bounds_of(model, [-0.0, 0.0, 5e-324, -5e-324])
    assert_allclose(p0, [1 / 5] * 3 + [0], rtol=1e-15)
    assert_allclose(p1, [2 / 5, 2 / 5, 1, 2 / 5], rtol=1e-15)


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
    y = np.random.default_rng(1).integers(0, 2, len(scores))
    new = np.concatenate([scores, np.nextafter(scores, np.inf), np.nextafter(scores, -np.inf)])
    new = np.append(new[np.isfinite(new)], [-1.79e308, 1.79e308, 0.0, -0.0, 5e-324, 1e-320])
    expected = [np.array(oracle.venn_abers(scores, y, s), float) for s in new]
    assert_allclose(bounds_of(fitted(scores, y), new).T, expected, rtol=0, atol=TOLERANCE)


EXAMPLES = st.lists(
    st.tuples(st.integers(-64, 64), st.booleans(), st.integers(1, 3)), min_size=1, max_size=40
)
NEW = np.arange(-1100, 1100) / 128


@settings(max_examples=25, deadline=None)
@given(EXAMPLES, st.sampled_from(["cube", "scale", "shift", "float32", "exp"]))
def test_bounds_depend_on_the_order_of_the_scores_alone(examples, kind):
    scores, y, weight = map(np.array, zip(*examples, strict=True))
    transform = {  # each maps different scores to different ones
        "cube": lambda s: s**3,
        "scale": lambda s: s * 2.0**-900,
        "shift": lambda s: s + 4096.0,
        "float32": np.float32,
        "exp": np.exp,
    }[kind]
    expected = bounds_of(fitted(scores / 8, y, weight), NEW)
    bounds = bounds_of(fitted(transform(scores / 8), y, weight), transform(NEW))
    assert_array_equal(bounds, expected)


def many(seed, n=150, k=4):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.dirichlet(np.full(k, 0.6), n), 1)
    true = 0.7 * scores + 0.3 / k
    return scores, np.array([rng.choice(k, p=p / p.sum()) for p in true])


@pytest.mark.parametrize("k", [3, 7])
@pytest.mark.parametrize("merge", ["log", "brier", "midpoint"])
def test_bounds_of_many_classes_contain_what_they_are_merged_to(merge, k):
    scores, y = many(k, k=k)
    model = VennAbers(merge, on="score").fit(scores, y)
    new = np.concatenate([scores, np.eye(k), np.zeros((1, k)), many(k + 1, k=k)[0]])
    m, p = model.predict_multiprobability(new), model.predict_proba(new)
    assert_allclose(p.sum(axis=1), 1, atol=TOLERANCE)
    assert ((m.lower <= p + TOLERANCE) & (p <= m.upper + TOLERANCE)).all()
    assert (m.lower.sum(axis=1) <= 1 + TOLERANCE).all()
    assert (m.upper.sum(axis=1) >= 1 - TOLERANCE).all()
    for j in range(k):  # the interval that the theorem is about is in it
        one = fitted(scores[:, j], y == j).predict_multiprobability(new[:, j])
        assert (m.lower[:, j] <= one.p0).all()
        assert (m.upper[:, j] >= one.p1).all()


def test_leaving_out_is_fitting_without_also_beside_absent_examples():
    rng = np.random.default_rng(3)
    scores, y = many(0, n=30)
    weight = rng.integers(0, 3, 30)
    model = fitted(scores, y, weight, k=4)
    for r in range(-1, 30, 3):
        without = weight.copy()
        if r >= 0:
            without[r] = 0
        m = model.predict_multiprobability(scores, np.full(30, r))
        expected = fitted(scores, y, without, k=4).predict_multiprobability(scores)
        assert_allclose(m.lower, expected.lower, rtol=0, atol=TOLERANCE)
        assert_allclose(m.upper, expected.upper, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("method", ["likelihood-ratio", "exact"])
def test_confidence_intervals_are_those_of_the_examples_or_counts(method):
    rng = np.random.default_rng(55)
    for k in (2, 3):
        scores = np.round(rng.dirichlet(np.ones(k), 200), 1)
        scores = scores[:, 1] if k == 2 else scores
        y = rng.integers(0, k, 200)
        model = VennAbers("log", on="score").fit(scores, y)
        curves = interval_curves(scores, y, k, 0.9, method)
        expected = read_intervals(curves, scores[:20], np.arange(k), 0.9)
        expected = expected.widen(model.predict_proba(scores[:20]))
        counts = count_examples(np.arange(k), scores, y, None)
        counted = VennAbers("log", on="score").fit_counts(counts)
        for calibrator in (model, counted, model):
            intervals = calibrator.predict_confidence(scores[:20], 0.9, method)
            assert_array_equal(intervals.lower, expected.lower)
            assert_array_equal(intervals.upper, expected.upper)
            assert_array_equal(intervals.widened, expected.widened)
            assert intervals.level == 0.9


def test_intervals_of_many_scores_are_nearly_those_of_single_ones(rng):
    n = 150_000
    scores = rng.beta(1, 4, n)
    y = (rng.random(n) < scores).astype(int)
    model = VennAbers("log").fit(scores, y)
    assert len(model._tables[0].x) < n / 4
    new = rng.choice(scores, 5_000)
    curves = interval_curves(scores, y, 2, 0.95)
    of_all = read_intervals(curves, new, model.classes_, 0.95)
    intervals = model.predict_confidence(new)
    width, width_of_all = (i.upper[:, 1] - i.lower[:, 1] for i in (intervals, of_all))
    assert width.mean() == pytest.approx(width_of_all.mean(), rel=0.05)
    contains = (intervals.lower[:, 1] <= new) & (new <= intervals.upper[:, 1])
    assert contains.mean() > 0.9


def test_a_fit_does_not_change_with_the_arrays_it_was_given():
    rng = np.random.default_rng(0)
    scores, y, weight = rng.random(30), rng.integers(0, 2, 30), rng.random(30) + 0.1
    new, left_out = scores.copy(), np.arange(30)
    expected = bounds_of(fitted(scores.copy(), y, weight.copy()), new, left_out)
    model = fitted(scores, y, weight)
    scores[:], weight[:] = 0.5, 9.0
    assert_array_equal(bounds_of(model, new, left_out), expected)


def test_wrong_input_is_named_with_the_rule_and_the_value():
    model = VennAbers("log")
    for method in (model.predict_multiprobability, model.predict_confidence):
        with pytest.raises(NotFittedError):
            method([0.5])
    with pytest.raises(ValueError, match="at least one example, got 0"):
        model.fit(np.empty(0), np.empty(0))
    with pytest.raises(ValueError, match=r"at least two classes .* got one class: 'a'"):
        model.fit([0.1, 0.2], ["a", "a"])
    model.fit([0.1, 0.9, 0.3], [0, 1, 1], sample_weight=[1, 2.5, 1])
    for left_out, message in (([3], "between -1 and 2, got 3"), ([0.0], "must be 1 integers")):
        with pytest.raises(ValueError, match=message):
            model.predict_multiprobability([0.5], left_out)
    for options, message in (
        ({"level": 1.5}, "level must lie between 0 and 1, both excluded, got"),
        ({"method": "wald"}, "method must be one of"),
        ({"method": "exact"}, r"sample_weight must be integers .*, got a sum of 2\.5"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict_confidence([0.5], **options)
    with pytest.raises(ValueError, match=r"sample_weight must sum to at most 1e\+15"):
        VennAbers("log").fit([0.1, 0.9], [0, 1], sample_weight=[1e15, 1e15])


@pytest.mark.parametrize("k", [2, 3, 12])
@pytest.mark.parametrize("merge", ["pooled", "log"])
@pytest.mark.parametrize("shares", [None, {0: 0.5}])
def test_top_labels_are_those_of_the_tables_of_all_classes(k, merge, shares, monkeypatch):
    monkeypatch.setattr("vennforest._numerics.NUMBERS_IN_BLOCK", 40)  # several blocks
    rng = np.random.default_rng([20261127, k])
    logits = rng.normal(size=(150, k)) * 2
    y = np.append(np.arange(k), (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)[k:])
    scores = logits[:, 1] - logits[:, 0] if k == 2 else logits
    model = VennAbers(merge).fit(scores, y)
    model = model if shares is None else model.with_prior(shares)
    top, p = model.predict_top_label(scores), model.predict_proba(scores)
    bounds, intervals = model.predict_multiprobability(scores), model.predict_confidence(scores)
    at = np.arange(len(p)), p.argmax(axis=1)
    np.testing.assert_array_equal(top.labels, model.predict(scores))
    expected = (p, bounds.lower, bounds.upper, intervals.lower, intervals.upper)
    for values, table in zip(top[1:], expected, strict=True):
        np.testing.assert_allclose(values, table[at], rtol=0, atol=1e-15)
