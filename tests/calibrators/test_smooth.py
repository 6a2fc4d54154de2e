"""The smooth merge: Platt scaling of the same calibration scores, clipped into the bounds."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vennforest import PlattScaling, ScoreCounts, Venn, VennAbers
from vennforest.calibrators._counts import FINEST


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
