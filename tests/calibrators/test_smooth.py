"""The smooth merge: Platt scaling of the same calibration scores, clipped into the bounds."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vennforest import PlattScaling, ScoreCounts, Venn, VennAbers
from vennforest.calibrators.core.interface import NUMBERS, blocks
from vennforest.calibrators.core.scores import FINEST, MOST_LOG_ODDS
from vennforest.calibrators.maps.log_odds import MANY, fit_platt, fit_platt_to_counts
from vennforest.calibrators.venn_abers.calibrator import StepTable, Sums, _group


def drawn(n, kind, seed=0):
    rng = np.random.default_rng(seed)
    scores = {
        "uniform": lambda: rng.random(n),
        "forest": lambda: rng.binomial(100, rng.beta(0.5, 0.5, n)) / 100,
        "extreme": lambda: rng.beta(0.1, 0.1, n),
        "decision values": lambda: 3 * rng.normal(size=n),
    }[kind]()
    p = scores**1.3 if scores.min() >= 0 else 1 / (1 + np.exp(-scores))
    return scores, (rng.random(n) < p).astype(int)


KINDS = ("uniform", "forest", "extreme", "decision values")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("calibrator", (VennAbers, lambda merge: Venn(merge=merge)))
def test_is_platt_scaling_clipped(kind, calibrator):
    for seed in range(20):
        scores, y = drawn(80, kind, seed)
        new = drawn(50, kind, seed + 100)[0]
        model = calibrator("smooth").fit(scores, y)
        platt = PlattScaling(on="score" if kind == "decision values" else "logit").fit(scores, y)
        assert_allclose(model.predict_smooth(new), platt.predict_proba(new), atol=1e-9)
        m = model.predict_multiprobability(new)
        clipped = np.clip(platt.predict_proba(new)[:, 1], m.p0, m.p1)
        assert_allclose(model.predict_proba(new)[:, 1], clipped, atol=1e-9)


@pytest.mark.parametrize("kind", ("uniform", "extreme", "decision values"))
def test_groups_of_many_scores_hardly_move_it(kind):
    scores, y = drawn(4 * FINEST, kind)
    new = np.linspace(scores.min(), scores.max(), 5001)
    platt = PlattScaling(on="score" if kind == "decision values" else "logit").fit(scores, y)
    found = VennAbers().fit(scores, y).predict_smooth(new)
    assert_allclose(found, platt.predict_proba(new), atol=1e-5)


def test_many_scores_within_one_cell():
    scores = 1e-300 * np.linspace(1, 2, 2 * FINEST)
    y = np.arange(len(scores)) % 3 == 0
    p = VennAbers().fit(scores, y).predict_smooth([1.5e-300])
    assert_allclose(p[:, 1], 1 / 3, atol=1e-3)


def test_scores_beyond_probabilities_count_as_the_nearer_end():
    scores, y = drawn(60, "uniform")
    model = VennAbers().fit(scores, y)
    assert_array_equal(model.predict_smooth([-3.0, 7.0]), model.predict_smooth([0.0, 1.0]))


@pytest.mark.parametrize("kind", KINDS)
def test_many_classes_stay_in_bounds_and_sum_to_one(kind):
    rng = np.random.default_rng(1)
    columns = np.column_stack([drawn(90, kind, seed)[0] for seed in range(4)])
    y = rng.integers(0, 4, 90)
    for merge in ("smooth", "log", "brier", "midpoint"):
        model = VennAbers(merge).fit(columns, y)
        m, p = model.predict_multiprobability(columns), model.predict_proba(columns)
        assert_allclose(p.sum(axis=1), 1, atol=1e-12)
        assert (p >= m.lower - 1e-12).all()
        assert (p <= m.upper + 1e-12).all()


def test_without_smooth_merge_there_is_none():
    scores, y = drawn(30, "uniform")
    with pytest.raises(ValueError, match=r'merge must be "smooth" for smooth estimates, got'):
        VennAbers("log").fit(scores, y).predict_smooth(scores)


def test_it_is_fitted_when_it_is_needed_and_anew_with_every_fit():
    scores, y = drawn(300, "uniform")
    model = VennAbers().fit(scores, y)
    before = pickle.dumps(model)
    model.predict_multiprobability(scores)
    assert "_smooth" not in vars(model)
    expected = model.predict_proba(scores)
    assert model.smooth_ is model.smooth_
    assert pickle.dumps(model) == before  # what can be made again is not kept
    assert_array_equal(pickle.loads(before).predict_proba(scores), expected)
    assert_array_equal(copy.deepcopy(model).predict_proba(scores), expected)
    other = model.smooth_
    model.fit(scores, 1 - y)
    assert model.smooth_ != other
    assert VennAbers("log").fit(scores, y).smooth_ is None
    counts = ScoreCounts.from_counts([0.2, 0.7], [3, 1], [1, 3])
    counted = VennAbers().fit(scores, y).fit_counts(counts)
    assert_array_equal(
        counted.predict_proba([0.4]),
        VennAbers().fit_counts(counts).predict_proba([0.4]),
    )


def test_threads_that_need_it_at_once_get_the_same():
    scores, y = drawn(2000, "uniform")
    expected = VennAbers().fit(scores, y).predict_proba(scores)
    for _ in range(10):
        model = VennAbers().fit(scores, y)
        with ThreadPoolExecutor(8) as pool:
            for p in pool.map(model.predict_proba, [scores] * 8):
                assert_array_equal(p, expected)


# --- what makes it fast changes nothing ------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weighted", (False, True))
def test_counts_are_fitted_like_examples_however_many(kind, weighted):
    rng = np.random.default_rng(5)
    for seed, n in enumerate((3, 40, MANY, 3 * MANY, 9_999)):
        scores, y = drawn(n, kind, seed)
        weight = rng.choice([0.1, 1, 2, 30], n) if weighted else np.ones(n)
        x, place = np.unique(scores, return_inverse=True)
        total, positive = np.bincount(place, weight), np.bincount(place, weight * y)
        on = "score" if kind == "decision values" else "logit"
        found = fit_platt_to_counts(x, total, positive, on)
        expected = fit_platt(scores, y.astype(float), weight, on=on)
        assert_allclose(found(x), expected(x), atol=1e-11)


@pytest.mark.parametrize("shape", ("separable", "nearly", "one positive", "no signal"))
def test_a_start_from_stretches_of_scores_leads_to_the_same_maximum(shape):
    rng = np.random.default_rng(1)
    x = np.sort(rng.random(5 * MANY))
    y = {
        "separable": x > 0.7,
        "nearly": (x > 0.7) ^ (rng.random(len(x)) < 1e-3),
        "one positive": np.arange(len(x)) == 17,
        "no signal": rng.random(len(x)) < 0.2,
    }[shape].astype(float)
    found = fit_platt_to_counts(x, np.ones(len(x)), y, "logit")
    expected = fit_platt(x, y, on="logit")
    assert_allclose(found(x), expected(x), atol=1e-9)


@pytest.mark.parametrize("kind", ("uniform", "extreme", "decision values"))
@pytest.mark.parametrize("weighted", (False, True))
def test_groups_are_those_of_cells_of_the_log_odds(kind, weighted):
    scores, y = drawn(2 * FINEST, kind)
    weight = np.random.default_rng(3).choice([0.1, 1, 2.5], len(y)) if weighted else None
    table = StepTable.from_examples(scores, y == 1, weight)
    x, probabilities = table.x, kind != "decision values"
    found = _group(x, table.sums, probabilities)
    low, high = x[0], x[-1]
    if probabilities:
        with np.errstate(divide="ignore"):
            low, high = np.log([low, high]) - np.log1p([-low, -high])
        low, high = np.clip([low, high], -MOST_LOG_ODDS, MOST_LOG_ODDS)
    edges = np.linspace(low, high, FINEST + 1)[1:-1]
    edges = 1 / (1 + np.exp(-edges)) if probabilities else edges
    cell = np.searchsorted(edges, x, side="right")
    whole, positive = table.sums.counts()
    there = np.unique(cell)
    expected = [np.bincount(cell, column)[there] for column in (x * whole, whole, positive)]
    expected[0] /= expected[1]
    # an edge that rounds otherwise may move one score to the next cell
    assert abs(len(found[0]) - len(there)) <= 2
    if len(found[0]) == len(there):
        differ = [np.abs(a - b) > 1e-9 for a, b in zip(found, expected, strict=True)]
        assert np.sum(differ) <= 12
    assert_allclose([found[1].sum(), found[2].sum()], [whole.sum(), positive.sum()], rtol=1e-12)


def test_blocks_give_what_the_whole_gives():
    rng = np.random.default_rng(0)
    for n, k in ((0, 1), (1, 1), (NUMBERS, 1), (NUMBERS + 1, 1), (3 * NUMBERS, 7), (5, 99_999)):
        assert [i for block in blocks(n, k) for i in range(n)[block]] == list(range(n))
    scores, y = drawn(300, "uniform")
    smooth = VennAbers().fit(scores, y).smooth_
    new = rng.random(3 * NUMBERS + 5)
    parts = [smooth.read(new[i : i + 1000]) for i in range(0, len(new), 1000)]
    assert_array_equal(smooth.read(new), np.concatenate(parts))
    columns = np.column_stack([drawn(90, "uniform", seed)[0] for seed in range(4)])
    model = VennAbers().fit(columns, rng.integers(0, 4, 90))
    new = rng.random((NUMBERS, 4))
    whole = model.predict_multiprobability(new)
    for i in range(0, len(new), 1111):
        part = model.predict_multiprobability(new[i : i + 1111])
        assert_array_equal(part.lower, whole.lower[i : i + 1111])
        assert_array_equal(part.upper, whole.upper[i : i + 1111])


@pytest.mark.parametrize("merge", ("smooth", "log", "brier", "midpoint"))
def test_probabilities_are_the_merged_bounds_to_the_last_bit(merge):
    for kind in KINDS:
        scores, y = drawn(2000, kind)
        new = drawn(NUMBERS + 77, kind, 1)[0]
        model = VennAbers(merge).fit(scores, y)
        smooth = model.predict_smooth(new) if merge == "smooth" else None
        expected = model.predict_multiprobability(new).merge(merge, smooth)
        assert_array_equal(model.predict_proba(new), expected)


def test_every_cell_with_scores_is_a_group_the_last_ones_too():
    x = np.linspace(-3, 5, 4 * FINEST)
    W = np.arange(len(x) + 1.0)
    mean, weight, positive = _group(x, Sums(W, W / 2), False)
    edges = np.linspace(-3, 5, FINEST + 1)[1:-1]
    expected = np.bincount(np.searchsorted(edges, x, side="right"))
    assert_array_equal(weight, expected)
    assert_array_equal(positive, expected / 2)
    assert (np.diff(mean) > 0).all()
