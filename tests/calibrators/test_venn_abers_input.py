"""VennAbers as users meet it: many classes, arrays of every kind, refusals."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from vennforest.calibrators.venn_abers import step_kernels
from vennforest.calibrators.venn_abers.calibrator import VennAbers
from vennforest.counts import ScoreCounts

TOLERANCE = 1e-12


def many(seed, n=150, k=4, decimals=1):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.dirichlet(np.full(k, 0.6), n), decimals)
    true = 0.7 * scores + 0.3 / k
    y = np.array([rng.choice(k, p=p / p.sum()) for p in true])
    return scores, y


@pytest.mark.parametrize("k", [3, 7])
@pytest.mark.parametrize("merge", ["log", "brier", "midpoint"])
def test_bounds_of_many_classes_contain_what_they_are_merged_to(merge, k):
    scores, y = many(k, k=k)
    model = VennAbers(merge).fit(scores, y)
    new = np.concatenate([scores, np.eye(k), np.zeros((1, k)), many(k + 1, k=k)[0]])
    m, p = model.predict_multiprobability(new), model.predict_proba(new)
    assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert (m.lower <= p + TOLERANCE).all()
    assert (p <= m.upper + TOLERANCE).all()
    assert (m.lower.sum(axis=1) <= 1 + TOLERANCE).all()
    assert (m.upper.sum(axis=1) >= 1 - TOLERANCE).all()
    for j in range(k):  # the interval that the theorem speaks of is in it
        one = VennAbers().fit(scores[:, j], y == j).predict_multiprobability(new[:, j])
        assert (m.lower[:, j] <= one.p0).all()
        assert (m.upper[:, j] >= one.p1).all()


def test_leaving_out_of_many_classes_is_fitting_without():
    scores, y = many(0, n=30)
    left_out = np.random.default_rng(0).integers(-1, 30, 30)
    m = VennAbers().fit(scores, y).predict_multiprobability(scores[::-1], left_out)
    for i, r in enumerate(left_out):
        kept = np.arange(30) != r
        without = VennAbers().fit(scores[kept], y[kept], classes=range(4))
        expected = without.predict_multiprobability(scores[::-1][i : i + 1])
        assert_allclose(m.lower[i], expected.lower[0], rtol=0, atol=TOLERANCE)
        assert_allclose(m.upper[i], expected.upper[0], rtol=0, atol=TOLERANCE)


def test_left_out_counts_examples_as_they_were_given_also_beside_absent_ones():
    rng = np.random.default_rng(3)
    scores, y, weight = rng.random(20), rng.random(20) < 0.5, rng.integers(0, 3, 20)
    model = VennAbers().fit(scores, y, sample_weight=weight)
    for r in range(20):
        without = weight.copy()
        without[r] = 0
        expected = VennAbers().fit(scores, y, sample_weight=without)
        found = model.predict_multiprobability(scores, np.full(20, r))
        expected = expected.predict_multiprobability(scores)
        assert_allclose(found.lower, expected.lower, rtol=0, atol=TOLERANCE)
        assert_allclose(found.upper, expected.upper, rtol=0, atol=TOLERANCE)


# --- arrays of every kind --------------------------------------------------------------------


def test_single_precision_is_widened_on_both_sides():
    rng = np.random.default_rng(0)
    single = rng.random(200).astype(np.float32)
    y = rng.random(200) < single
    expected = VennAbers().fit(single.astype(float), y).predict_multiprobability(single)
    found = VennAbers().fit(single, y).predict_multiprobability(single.astype(float))
    assert_array_equal(found.lower, expected.lower)
    assert_array_equal(found.upper, expected.upper)


@pytest.mark.parametrize("scores", [np.random.default_rng(0).random(200), many(0)[0]])
def test_read_only_and_strided_arrays_need_no_other_kernels(scores):
    y = np.random.default_rng(1).integers(0, 2 if scores.ndim == 1 else 4, len(scores))
    left_out = np.arange(len(scores))
    model = VennAbers().fit(scores, y)
    expected = model.predict_multiprobability(scores, left_out)
    plain = model.predict_multiprobability(scores)
    compiled = [
        one for one in vars(step_kernels).values() if hasattr(one, "signatures") and one.signatures
    ]
    before = [len(one.signatures) for one in compiled]
    odd = np.asfortranarray(np.repeat(scores, 2, axis=0))[::2]
    fixed = [scores.copy(), y.copy(), left_out.copy(), np.full(len(y), 1.0), odd]
    for array in fixed:
        array.flags.writeable = False
    read_only, labels, left_out, weight, odd = fixed
    for one in (read_only, odd):
        model = VennAbers().fit(one, labels, sample_weight=weight)
        found = model.predict_multiprobability(one, left_out)
        assert_array_equal(found.lower, expected.lower)
        assert_array_equal(found.upper, expected.upper)
        assert_array_equal(model.predict_multiprobability(one).lower, plain.lower)
    assert [len(one.signatures) for one in compiled] == before


def test_what_was_fitted_does_not_change_with_the_arrays_it_was_given():
    rng = np.random.default_rng(0)
    scores, y, weight = rng.random(30), rng.integers(0, 2, 30), rng.random(30)
    new, left_out = scores.copy(), np.arange(30)
    expected = VennAbers().fit(scores.copy(), y, sample_weight=weight.copy())
    expected = expected.predict_multiprobability(new, left_out)
    model = VennAbers().fit(scores, y, sample_weight=weight)
    scores[:], weight[:] = 0.5, 9.0
    found = model.predict_multiprobability(new, left_out)
    assert_array_equal(found.lower, expected.lower)


def test_pickles_and_clones_are_the_same_predictor():
    scores, y = many(0)
    model = VennAbers("log").fit(scores, y)
    left_out = np.arange(len(y))
    expected = model.predict_multiprobability(scores, left_out)
    for other in (pickle.loads(pickle.dumps(model)), clone(model).fit(scores, y)):
        found = other.predict_multiprobability(scores, left_out)
        assert_array_equal(found.lower, expected.lower)
        assert other.merge == "log"


# --- refusals --------------------------------------------------------------------------------


def test_what_is_wrong_is_named_with_the_rule_and_the_value():
    model = VennAbers()
    with pytest.raises(NotFittedError):
        model.predict_multiprobability([0.5])
    model.fit([0.1, 0.9], [0, 1])
    for wrong, message in (
        ([2], r"left_out must lie between -1 \(none\) and 1 .*, got 2"),
        ([-2], r"left_out must lie between -1 .*, got -2"),
        ([0.0], r"left_out must contain integers, got float64"),
        ([0, 1], r"left_out must have shape \(1,\), got \(2,\)"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict_multiprobability([0.5], wrong)
    for wrong in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="scores must be finite, got"):
            model.predict_multiprobability([0.5, wrong])
    with pytest.raises(ValueError, match="merge must be one of"):
        VennAbers("mean").fit([0.1, 0.9], [0, 1])


def test_counts_know_no_single_examples():
    model = VennAbers().fit_counts(ScoreCounts.from_counts([0.2, 0.8], [3, 1], [1, 3]))
    with pytest.raises(ValueError, match="left_out must"):
        model.predict_multiprobability([0.5], [0])
    with pytest.raises(ValueError, match="left_out must be None after fit_counts"):
        model.predict_multiprobability([0.5], [-1])
