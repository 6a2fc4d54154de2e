"""Weights of any size, and groups that leave together: compared with refits in exact fractions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from oracles import formulas as oracle
from support.cases import draw_weights
from vennforest.calibrators.base import LeftOut
from vennforest.calibrators.venn.calibrator import Venn
from vennforest.calibrators.venn_abers import calibrator
from vennforest.calibrators.venn_abers.calibrator import StepTable, VennAbers
from vennforest.counts import ScoreCounts

TOLERANCE = 1e-12


def draw_few(rng):
    """Up to twelve scores with ties and neighbours, and labels, at times of one class."""
    n = int(rng.integers(1, 13))
    kind = rng.integers(4)
    if kind == 0:
        scores = rng.normal(size=n)
    elif kind == 1:
        scores = rng.integers(0, 4, n) / 3
    elif kind == 2:
        scores = np.full(n, -0.0)
    else:
        scores = 10.0 ** rng.integers(-300, 301, n)
    return scores, rng.random(n) < rng.choice([0, 0.2, 0.5, 0.8, 1])


def places(rng, scores, n):
    near = np.concatenate([scores, np.nextafter(scores, np.inf), np.nextafter(scores, -np.inf)])
    return rng.choice(np.append(near, rng.random(2)), n)


@pytest.mark.parametrize("seed", range(10))
def test_weights_of_any_size_agree_with_exact_fractions(seed):
    """2,000 sets of weights from 1e-300 to 1e16, four new scores each, with and without all."""
    rng = np.random.default_rng([31, seed])
    for _ in range(200):
        scores, y = draw_few(rng)
        weight = draw_weights(rng, len(scores))
        new, left_out = places(rng, scores, 4), rng.integers(-1, len(scores), 4)
        table = StepTable.from_examples(scores, y, weight)
        found = np.array([table.read(new), table.read(new, LeftOut(left_out, None))])
        assert (found >= 0).all()
        assert (found <= 1).all()
        assert (found[:, 0] <= found[:, 1]).all()
        for i, s in enumerate(new):
            for j, r in enumerate((-1, left_out[i])):
                expected = np.array(oracle.venn_abers(scores, y, s, weight, r), float)
                assert_allclose(found[j, :, i], expected, rtol=0, atol=TOLERANCE)


def test_a_heavy_example_beside_light_ones():
    model = VennAbers("log").fit([1.0, 0.0], [0, 0], sample_weight=[1, 1e16], classes=[0, 1])
    m = model.predict_multiprobability([0.0, 0.5, 1.0, 2.0])
    assert_array_equal(m.p0, 0)
    assert_allclose(m.p1, [1e-16, 0.5, 0.5, 1], rtol=1e-15)
    assert_allclose(model.predict_proba([0.5])[0, 1], 1 / 3, rtol=1e-15)
    m = model.predict_multiprobability([0.0, 0.0, 1.0], [0, 1, 1])
    assert_allclose(m.p1, [1e-16, 0.5, 0.5], rtol=1e-15)


def test_counts_of_any_size_are_what_weights_are():
    rng = np.random.default_rng(32)
    for _ in range(200):
        scores, y = draw_few(rng)
        weight = draw_weights(rng, len(scores))
        new = places(rng, scores, 6)
        counted = VennAbers("log").fit_counts(
            ScoreCounts.from_counts(scores, weight * ~y, weight * y)
        )
        found = counted.predict_multiprobability(new)
        fitted = VennAbers("log").fit(scores, y, sample_weight=weight, classes=[False, True])
        expected = fitted.predict_multiprobability(new)
        assert_allclose(found.lower, expected.lower, rtol=0, atol=1e-13)
        assert_allclose(found.upper, expected.upper, rtol=0, atol=1e-13)


def test_more_weight_than_leaves_room_for_the_new_object_is_refused():
    with pytest.raises(ValueError, match=r"sample_weight must sum to at most 1e\+18, .*: divide"):
        VennAbers().fit([0.1, 0.9], [0, 1], sample_weight=[1e18, 1e16])
    with pytest.raises(ValueError, match=r"counts must sum to at most 1e\+18"):
        VennAbers().fit_counts(ScoreCounts.from_counts([0.1, 0.9], [1e18, 0], [0, 1e16]))
    m = VennAbers().fit([0.1, 0.9], [0, 1], sample_weight=[1e18, 1]).predict_multiprobability([1])
    assert_allclose([m.p0[0], m.p1[0]], [1 / 2, 1], atol=TOLERANCE)


@pytest.mark.parametrize("seed", range(3))
def test_many_weights_at_few_scores_agree_with_exact_fractions(seed):
    rng = np.random.default_rng([33, seed])
    n = 4000
    scores, y = rng.integers(0, 9, n) / 8, rng.random(n) < 0.5
    for _ in range(4):
        weight = draw_weights(rng, n)
        table = StepTable.from_examples(scores, y, weight)
        new = np.arange(-1, 18) / 16
        found = np.array(table.read(new))
        for i, s in enumerate(new):
            expected = np.array(oracle.venn_abers(scores, y, s, weight), float)
            assert_allclose(found[:, i], expected, rtol=0, atol=TOLERANCE)


# --- groups ----------------------------------------------------------------------------------


@pytest.mark.parametrize("search_cost", [0, 25, 10**9])
@pytest.mark.parametrize("seed", range(4))
def test_groups_left_out_agree_with_exact_fractions(seed, search_cost, monkeypatch):
    """4,800 new scores: by searches alone, by tables anew alone, and as the library decides."""
    monkeypatch.setattr(calibrator, "SEARCH_COST", search_cost)
    rng = np.random.default_rng([34, seed])
    for _ in range(100):
        scores, y = draw_few(rng)
        n = len(scores)
        weight = None if rng.random() < 0.4 else draw_weights(rng, n)
        if weight is not None:
            weight[rng.random(n) < 0.2] = 0
            weight[rng.integers(n)] = 1
        groups = rng.integers(0, rng.integers(1, n + 1), n)
        new, left_out = places(rng, scores, 4), rng.integers(-1, n, 4)
        model = VennAbers("log").fit(scores, y, sample_weight=weight, classes=[False, True])
        m = model.predict_multiprobability(new, left_out, groups=groups)
        assert (m.p0 <= m.p1).all()
        for i, s in enumerate(new):
            expected = oracle.venn_abers(scores, y, s, weight, left_out[i], groups)
            found = (m.p0[i], m.p1[i])
            assert_allclose(found, np.array(expected, float), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("search_cost", [0, 10**9])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", ["calibrated", "rounded", "useless", "separable"])
def test_large_groups_left_out_are_refits(shape, weighted, search_cost, monkeypatch):
    monkeypatch.setattr(calibrator, "SEARCH_COST", search_cost)
    rng = np.random.default_rng(35)
    n = 3000
    scores = rng.random(n)
    p = {"calibrated": scores, "rounded": scores, "useless": 0.5, "separable": scores > 0.5}[shape]
    y = rng.random(n) < p
    scores = np.round(scores, 2) if shape == "rounded" else scores
    weight = 10.0 ** rng.uniform(-3, 3, n) if weighted else None
    groups = np.array([f"site {g}" for g in rng.geometric(0.02, n)])
    groups[np.argsort(scores)[1000:1500]] = "one stretch of scores"
    new, left_out = np.r_[rng.choice(scores, 200), rng.random(200)], rng.integers(0, n, 400)
    model = VennAbers("log").fit(scores, y, sample_weight=weight)
    m = model.predict_multiprobability(new, left_out, groups=groups)
    for i in range(0, 400, 7):
        kept = groups != groups[left_out[i]]
        expected = VennAbers("log").fit(
            scores[kept], y[kept], sample_weight=None if weight is None else weight[kept]
        )
        expected = expected.predict_multiprobability(new[i : i + 1])
        assert_allclose(m.lower[i], expected.lower[0], rtol=0, atol=TOLERANCE)
        assert_allclose(m.upper[i], expected.upper[0], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("make", [lambda: VennAbers("log"), Venn])
def test_a_group_of_one_is_one_example(make):
    rng = np.random.default_rng(36)
    scores, y = np.round(rng.dirichlet([1, 1, 1], 60), 1), rng.integers(0, 3, 60)
    weight = rng.choice([0.0, 0.5, 3.0, 1e9], 60)
    left_out = rng.integers(-1, 60, 60)
    model = make().fit(scores, y, sample_weight=weight)
    one = model.predict_multiprobability(scores, left_out)
    for groups in (np.arange(60), -7 * np.arange(60), np.array([f"g{i}" for i in range(60)])):
        m = model.predict_multiprobability(scores, left_out, groups=groups)
        assert_allclose(m.lower, one.lower, rtol=0, atol=TOLERANCE)
        assert_allclose(m.upper, one.upper, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("make", [lambda: VennAbers("log"), Venn])
def test_everybody_left_out_leaves_nothing_known(make):
    model = make().fit([0.1, 0.4, 0.9], [0, 1, 1])
    m = model.predict_multiprobability([0.0, 0.4, 1.0], [0, 1, 2], groups=["a", "a", "a"])
    assert_array_equal(m.lower, 0)
    assert_array_equal(m.upper, 1)


@pytest.mark.parametrize("make", [VennAbers, Venn])
def test_an_absent_example_takes_the_rest_of_its_group_along(make):
    scores, y = np.array([0.1, 0.2, 0.3, 0.4]), np.array([0, 1, 0, 1])
    model = make().fit(scores, y, sample_weight=[1, 1, 1, 0])
    expected = make().fit(scores[:1], y[:1], classes=[0, 1]).predict_multiprobability([0.15])
    m = model.predict_multiprobability([0.15], [3], groups=[9, 5, 5, 5])
    assert_allclose(m.upper, expected.upper)
    alone = model.predict_multiprobability([0.15], [3], groups=[0, 1, 2, 3])
    assert_array_equal(alone.upper, model.predict_multiprobability([0.15]).upper)


@pytest.mark.parametrize("make", [VennAbers, Venn])
@pytest.mark.parametrize(
    ("left_out", "groups", "message"),
    [
        (None, [1, 2], r"left_out must be given with groups, got None"),
        ([0], [1], r"groups must have shape \(2,\), one for each calibration example, got \(1,\)"),
        ([0], [[1], [2]], r"groups must have shape \(2,\), .*, got \(2, 1\)"),
        ([0], [1.0, np.nan], r"groups must name a group for every example, got NaN"),
        ([0], np.array([1, "a"], object), r"groups must contain labels that can be sorted"),
        ([2], [1, 2], r"left_out must lie between -1 \(none\) and 1 .*, got 2"),
    ],
)
def test_groups_that_do_not_fit_are_refused(make, left_out, groups, message):
    model = make().fit([0.1, 0.9], [0, 1])
    with pytest.raises(ValueError, match=message):
        model.predict_multiprobability([0.5], left_out, groups=groups)
