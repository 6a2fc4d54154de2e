"""New objects that change scores of calibration examples: beside refitting for each of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from oracles import formulas as oracle
from support.cases import draw_scores
from vennforest import Venn, VennAbers
from vennforest.calibrators.core.interface import normalised_bounds
from vennforest.joined.bounds import JoinedBlock, predict_joined


def draw_changes(rng, scores, m, k, share):
    """Own scores (m, k[, k]), and for each object and label some examples with new scores."""
    n = len(scores)
    pool = np.concatenate([scores, draw_scores(rng, n, k)])
    own = pool[rng.integers(0, 2 * n, (m, k))]
    offsets, rows, changed = [0], [], []
    for _ in range(m * k):
        some = np.flatnonzero(rng.random(n) < share)
        rng.shuffle(some)
        new = pool[rng.integers(0, 2 * n, len(some))].copy()
        if k == 2 and rng.random() < 0.5:
            new = np.nextafter(scores[some], rng.choice([-np.inf, np.inf], len(some)))
        rows += some.tolist()
        changed += new.tolist()
        offsets.append(len(rows))
    shape = (len(rows),) if k == 2 else (len(rows), k)
    return own, np.array(offsets), np.array(rows, np.int32), np.array(changed, float).reshape(shape)


def with_changes(scores, item, offsets, rows, changed):
    """The calibration scores that one object and label lead to."""
    here = slice(offsets[item], offsets[item + 1])
    then = scores.copy()
    then[rows[here]] = changed[here]
    return then


def draw_case(rng, k, n):
    scores = draw_scores(rng, n, k)
    y = rng.integers(0, k, n)
    weight = None if rng.random() < 0.5 else rng.choice([0.25, 1.0, 3.0, 1e3], n)
    return scores, y, weight


def test_venn_abers_is_the_fit_of_changed_scores_in_fractions():
    rng = np.random.default_rng(3)
    moved = 0
    for _ in range(400):
        scores, y, weight = draw_case(rng, 2, int(rng.integers(1, 11)))
        model = VennAbers().fit(scores, y, sample_weight=weight, classes=[0, 1])
        own, *changes = draw_changes(rng, scores, 2, 2, rng.choice([0.1, 0.5, 1.0]))
        m = predict_joined(model, JoinedBlock(own, *changes))
        for i in range(2):
            values = []
            for label in (0, 1):
                then = with_changes(scores, 2 * i + label, *changes)
                ones = np.ones(len(y)) if weight is None else weight
                fitted = oracle.isotonic_max_min([*then, own[i, label]], [*y, label], [*ones, 1.0])
                values.append(float(fitted[own[i, label]]))
            moved += values[0] > values[1]
            assert_allclose(m.p0[i], min(values), rtol=0, atol=1e-12)
            assert_allclose(m.p1[i], max(values), rtol=0, atol=1e-12)
            assert_allclose(m.lower[i, 0], 1 - max(values), rtol=0, atol=1e-12)
    assert moved > 20  # other scores for other labels: p_0 may exceed p_1


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 1.0])
@pytest.mark.parametrize("k", [2, 3])
def test_venn_abers_is_a_refit_for_each_object_and_label(k, share):
    rng = np.random.default_rng(int(100 * share) + k)
    for _ in range(60):
        n = int(rng.choice([1, 31, 32, 33, 64, 200, 700]))
        scores, y, weight = draw_case(rng, k, n)
        model = VennAbers("log").fit(scores, y, sample_weight=weight, classes=range(k))
        own, *changes = draw_changes(rng, scores, 2, k, share)
        m = predict_joined(model, JoinedBlock(own, *changes))
        for i in range(2):
            p = np.empty((k, k))
            for label in range(k):
                then = with_changes(scores, k * i + label, *changes)
                for j in range(k):
                    column = then if k == 2 else then[:, j]
                    score = own[i, label] if k == 2 else own[i, label, j]
                    positive = y == (1 if k == 2 else j)
                    refit = VennAbers("log").fit(
                        column, positive, sample_weight=weight, classes=[False, True]
                    )
                    both = refit.predict_multiprobability([score])
                    one = label == (1 if k == 2 else j)
                    p[label, j] = (both.p1 if one else both.p0)[0]
            if k == 2:
                expected = [[1 - p[:, 1].max(), p[:, 1].min()], [1 - p[:, 1].min(), p[:, 1].max()]]
            else:
                both = normalised_bounds(p.min(axis=0)[None], p.max(axis=0)[None])
                expected = np.array(both)[:, 0]
            # One subtraction from a sum of weights up to 1e3 apart
            assert_allclose([m.lower[i], m.upper[i]], expected, rtol=0, atol=1e-11)
            if weight is None and k == 2:
                assert m.p0[i] == p[:, 1].min()
                assert m.p1[i] == p[:, 1].max()


@pytest.mark.parametrize("taxonomy", ["label", "confidence-bins", "margin"])
@pytest.mark.parametrize("k", [2, 3])
def test_venn_counts_the_changed_categories(k, taxonomy):
    rng = np.random.default_rng(k)
    for _ in range(150):
        scores, y, weight = draw_case(rng, k, int(rng.integers(1, 40)))
        model = Venn(taxonomy).fit(scores, y, sample_weight=weight, classes=range(k))
        own, *changes = draw_changes(rng, scores, 3, k, rng.choice([0.0, 0.3, 1.0]))
        m = predict_joined(model, JoinedBlock(own, *changes))
        for i in range(3):
            p = np.empty((k, k))
            for label in range(k):
                categories = model.taxonomy_(with_changes(scores, k * i + label, *changes))
                category = model.taxonomy_(own[i, label][None])[0]
                both = oracle.venn(categories, y, category, k, weight)
                p[label] = [float(both[j][int(j == label)]) for j in range(k)]
            assert_allclose(m.lower[i], p.min(axis=0), rtol=0, atol=1e-12)
            assert_allclose(m.upper[i], p.max(axis=0), rtol=0, atol=1e-12)


def test_without_changes_bounds_are_the_ordinary_ones():
    rng = np.random.default_rng(0)
    scores, y = np.round(rng.random(500), 2), rng.integers(0, 2, 500)
    new = np.round(rng.random(100), 3)
    for model in (VennAbers().fit(scores, y), Venn("confidence-bins").fit(scores, y)):
        expected = model.predict_multiprobability(new)
        nothing = np.zeros(201, int), np.empty(0, np.int32), np.empty(0)
        m = predict_joined(model, JoinedBlock(np.column_stack([new, new]), *nothing))
        assert_array_equal(m.lower, expected.lower)
        assert_array_equal(m.upper, expected.upper)
