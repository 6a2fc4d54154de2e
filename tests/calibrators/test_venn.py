import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from oracles import formulas as oracle
from support.cases import draw_categorised, draw_weights
from vennforest.calibrators.venn import taxonomies as tx
from vennforest.calibrators.venn.calibrator import Venn

TAXONOMIES = [*tx.NAMED, lambda s: np.floor(4 * s.reshape(len(s), -1)[:, 0].clip(-1, 1))]


def assert_equals_oracle(m, expected):
    lower = np.array([[float(low) for low, _ in row] for row in expected])
    upper = np.array([[float(up) for _, up in row] for row in expected])
    np.testing.assert_allclose(m.lower, lower, rtol=0, atol=1e-12)
    np.testing.assert_allclose(m.upper, upper, rtol=0, atol=1e-12)


def test_bounds_equal_the_oracle_over_drawn_cases():
    rng = np.random.default_rng(0)
    for _ in range(3000):
        k, calibration, new, weight = draw_categorised(rng)
        n, m = len(calibration), len(new)
        if weight is not None:
            weight = weight if rng.random() < 0.5 else draw_weights(rng, n)
            weight[rng.random(n) < 0.2] = 0.0
            weight[rng.integers(n)] = 1.0
        labels = rng.integers(0, k, n)
        left_out = None if rng.random() < 0.3 else rng.integers(-1, n, m)
        grouped = left_out is not None and rng.random() < 0.5
        groups = rng.choice([-7, 0, 3, 40], n) if grouped else None
        taxonomy = TAXONOMIES[rng.integers(len(TAXONOMIES))]
        venn = Venn(taxonomy).fit(calibration, labels, sample_weight=weight, classes=range(k))
        got = venn.predict_multiprobability(new, left_out, groups=groups)
        category_of = venn.taxonomy_
        expected = [
            oracle.venn(
                category_of(calibration).tolist(),
                labels,
                int(category_of(new[i : i + 1])[0]),
                k,
                weight,
                -1 if left_out is None else left_out[i],
                groups,
            )
            for i in range(m)
        ]
        assert_equals_oracle(got, expected)


def test_label_taxonomy_from_end_to_end_equals_the_oracle():
    rng = np.random.default_rng(1)
    for _ in range(1000):
        k, calibration, new, _ = draw_categorised(rng)
        labels = rng.integers(0, k, len(calibration))
        got = Venn().fit(calibration, labels, classes=range(k)).predict_multiprobability(new)
        categories = [oracle.label_category(s) for s in calibration]
        expected = [oracle.venn(categories, labels, oracle.label_category(s), k) for s in new]
        assert_equals_oracle(got, expected)


def test_bounds_by_hand():
    scores = np.array([[0.6, 0.3, 0.1], [0.5, 0.5, 0.0], [0.1, 0.8, 0.1], [0.4, 0.3, 0.3]])
    venn = Venn().fit(scores, ["a", "b", "b", "a"], classes=["a", "b", "c"])
    m = venn.predict_multiprobability([[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
    np.testing.assert_allclose(m.lower, [[2 / 4, 1 / 4, 0], [0, 1 / 2, 0], [0, 0, 0]])
    np.testing.assert_allclose(m.upper, [[3 / 4, 2 / 4, 1 / 4], [1 / 2, 1, 1 / 2], [1, 1, 1]])
    assert m.classes.tolist() == ["a", "b", "c"]


def test_every_interval_of_a_category_has_the_same_width():
    rng = np.random.default_rng(2)
    scores = rng.dirichlet(np.ones(3), 200)
    venn = Venn("confidence-bins").fit(scores, rng.integers(0, 3, 200))
    m = venn.predict_multiprobability(scores)
    np.testing.assert_allclose(m.width, m.width[:, :1] * np.ones(3))
    assert (m.lower.sum(axis=1) <= 1 + 1e-12).all()
    assert (m.upper.sum(axis=1) >= 1 - 1e-12).all()


def test_leaving_out_the_heaviest_example_keeps_precision():
    scores, y, weight = np.full(4, 0.2), np.array([0, 0, 1, 1]), np.array([1e20, 1.0, 2.0, 3.0])
    venn = Venn().fit(scores, y, sample_weight=weight)
    m = venn.predict_multiprobability(scores, left_out=[0, 1, 2, 3])
    assert_equals_oracle(m, [oracle.venn([0] * 4, y, 0, 2, weight, i) for i in range(4)])
    assert m.lower[0, 0] == pytest.approx(1 / 7)


def test_leaving_out_counts_examples_as_given_to_fit():
    scores, y = np.array([0.1, 0.2, 0.3, 0.9]), np.array([1, 0, 1, 0])
    weight = np.array([0.0, 1.0, 1.0, 1.0])
    venn = Venn().fit(scores, y, sample_weight=weight)
    m = venn.predict_multiprobability(np.full(5, 0.15), left_out=[-1, 0, 1, 2, 3])
    # Example 0 never counted, example 3 lies in the other category.
    np.testing.assert_allclose(m.lower[:, 1], [1 / 3, 1 / 3, 1 / 2, 0, 1 / 3])


@settings(deadline=None)
@given(st.data())
def test_a_weight_is_so_many_observations(data):
    n = data.draw(st.integers(1, 10))
    drawn = st.lists(st.integers(0, 8), min_size=n, max_size=n)
    scores = np.array(data.draw(drawn)) / 8
    y = np.array(data.draw(drawn)) % 2
    counts = np.array(data.draw(drawn)) % 4
    counts[0] = 1
    name = data.draw(st.sampled_from(list(tx.NAMED)))
    weighted = Venn(name).fit(scores, y, sample_weight=counts, classes=[0, 1])
    repeated = Venn(name).fit(np.repeat(scores, counts), np.repeat(y, counts), classes=[0, 1])
    new = np.linspace(0, 1, 33)
    one, two = weighted.predict_multiprobability(new), repeated.predict_multiprobability(new)
    np.testing.assert_allclose(one.lower, two.lower, rtol=0, atol=1e-12)
    np.testing.assert_allclose(one.upper, two.upper, rtol=0, atol=1e-12)


@pytest.mark.parametrize("labels", [[1, 2], [-1, 1], ["no", "yes"], [False, True], [0.0, 1.0]])
def test_any_labels_give_what_0_and_1_give(labels):
    rng = np.random.default_rng(3)
    scores, y = rng.random(50), rng.integers(0, 2, 50)
    plain, named = Venn().fit(scores, y), Venn().fit(scores, np.array(labels)[y])
    np.testing.assert_array_equal(plain.predict_proba(scores), named.predict_proba(scores))
    assert named.predict(scores).tolist() == np.array(labels)[plain.predict(scores)].tolist()


def test_float32_scores_are_widened_on_both_sides():
    scores = np.array([0.1, 0.7, 0.70001], dtype=np.float32)
    venn = Venn(tx.NeighbourCells(3)).fit(scores, [0, 1, 0])
    one = venn.predict_multiprobability(scores)
    two = venn.predict_multiprobability(scores.astype(np.float64))
    np.testing.assert_array_equal(one.lower, two.lower)
    np.testing.assert_allclose(one.lower[:, 1], [0, 1 / 2, 0])


def test_two_columns_are_the_second_one():
    p = np.random.default_rng(4).random(20)
    both, y = np.column_stack([1 - p, p]), np.arange(20) % 2
    one, two = Venn("margin").fit(p, y), Venn("margin").fit(both, y)
    np.testing.assert_array_equal(one.predict_proba(p), two.predict_proba(both))


@pytest.mark.parametrize("merge", ["midpoint", "log", "brier"])
def test_probabilities_are_the_merged_bounds(merge):
    rng = np.random.default_rng(5)
    scores = rng.dirichlet(np.ones(4), 40)
    venn = Venn("nearest", merge=merge).fit(scores, rng.integers(0, 4, 40))
    m, p = venn.predict_multiprobability(scores), venn.predict_proba(scores)
    np.testing.assert_array_equal(p, m.merge(merge))
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert (p >= m.lower - 1e-12).all() and (p <= m.upper + 1e-12).all()


def test_copies_predict_the_same():
    rng = np.random.default_rng(6)
    scores, y = rng.random(30), rng.integers(0, 2, 30)
    fixed = tx.NeighbourCells(4).fit(rng.random(100), 2)
    for taxonomy in ["nearest", tx.ConfidenceBins(3), fixed.__call__]:
        venn = Venn(taxonomy).fit(scores, y)
        expected = venn.predict_proba(scores)
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(venn)).predict_proba(scores), expected
        )
        np.testing.assert_array_equal(clone(venn).fit(scores, y).predict_proba(scores), expected)


def test_nested_parameters_can_be_set():
    venn = Venn(tx.ConfidenceBins(3)).set_params(taxonomy__bins=7)
    assert venn.fit([0.1, 0.9], [0, 1]).counts_.shape == (14, 2)


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ([0], r"left_out must have shape \(2,\), got \(1,\)"),
        ([0.0, 1.0], "left_out must contain integers, got float64"),
        ([0, 3], "left_out must lie between -1 .* and 2 .*, got 3"),
        ([-2, 0], "left_out must lie between -1 .* and 2 .*, got -2"),
    ],
)
def test_a_wrong_left_out_is_refused(left_out, message):
    venn = Venn().fit([0.1, 0.2, 0.9], [0, 1, 1])
    with pytest.raises(ValueError, match=message):
        venn.predict_multiprobability([0.3, 0.4], left_out)


@pytest.mark.parametrize("merge", ["auto", "smoothest", None])
def test_a_wrong_merge_is_refused(merge):
    with pytest.raises(ValueError, match="merge must be one of"):
        Venn(merge=merge).fit([0.1, 0.9], [0, 1])


def test_wrong_input_is_refused():
    venn = Venn().fit([0.1, 0.9], [0, 1])
    with pytest.raises(ValueError, match="scores must be finite, got NaN at position 1"):
        venn.predict_multiprobability([0.1, np.nan])
    with pytest.raises(ValueError, match="scores must have a column for each of 2 classes"):
        venn.predict_multiprobability(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="sample_weight must have a finite sum, got inf"):
        Venn().fit([0.1, 0.9], [0, 1], sample_weight=[1e308, 1e308])
    assert len(venn.predict_multiprobability([], left_out=[])) == 0


def test_read_only_and_strided_scores():
    scores = np.random.default_rng(7).dirichlet(np.ones(3), 30)
    y = np.arange(30) % 3
    expected = Venn("margin").fit(scores, y).predict_proba(scores)
    strided = np.asfortranarray(np.repeat(scores, 2, axis=0))[::2]
    strided.flags.writeable = False
    got = Venn("margin").fit(strided, y).predict_proba(strided)
    np.testing.assert_array_equal(got, expected)
