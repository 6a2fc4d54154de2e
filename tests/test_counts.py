"""Counts at scores: they add up, come from Arrow, and are coarsened with the error they say."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from vennforest import ScoreCounts, VennAbers, counts, update
from vennforest._validation import InputError
from vennforest.metrics import calibration_error, decision_curve

EXAMPLES = st.lists(
    st.tuples(st.integers(-4, 4), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=40
)


def table(counts):
    """Return the weights above zero by score, or score vector, and class number."""
    scores = [tuple(np.atleast_1d(row).tolist()) for row in counts.scores]
    cells = Counter()
    for score, weights in zip(scores, counts.weights.tolist(), strict=True):
        for code, weight in enumerate(weights):
            if weight:
                cells[*score, code] += weight
    return cells


def same(one, two):
    return (
        np.array_equal(one.classes, two.classes)
        and np.array_equal(one.scores, two.scores)
        and np.array_equal(one.weights, two.weights)
    )


@settings(deadline=None, max_examples=50)
@given(EXAMPLES, st.integers(1, 4), st.sampled_from([2, 3]), st.randoms(use_true_random=False))
def test_parts_add_up_to_the_whole_in_any_order(examples, parts, k, random):
    scores, y, weight = map(np.array, zip(*examples, strict=True))
    if not weight.any():
        weight[0] = 1
    y = y.clip(max=k - 1)
    x = scores / 4 if k == 2 else np.column_stack([scores, scores**2, -scores]) / 4
    whole = ScoreCounts.from_scores(x, y, sample_weight=weight, classes=range(k))
    expected = Counter()
    for s, label, w in zip(x.tolist(), y.tolist(), weight.tolist(), strict=True):
        expected[*np.atleast_1d(s).tolist(), label] += w
    assert table(whole) == {cell: n for cell, n in expected.items() if n}
    pieces = []
    for i in range(parts):
        rows = np.arange(i, len(y), parts)
        rows = rows if weight[rows].any() else rows[:0]
        some = weight[rows] if len(rows) else None
        pieces.append(
            ScoreCounts.from_scores(x[rows], y[rows], sample_weight=some, classes=range(k))
        )
    random.shuffle(pieces)
    assert same(sum(pieces), whole)
    assert whole.total == weight.sum()
    assert whole.class_totals.tolist() == np.bincount(y, weight, k).tolist()


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=50
    ),
    st.integers(1, 12),
)
def test_coarsening_keeps_what_it_says(rows, n_scores):
    x, negatives, positives = (np.array(column, float) for column in zip(*rows, strict=True))
    if not (negatives + positives).any():
        negatives[0] = 1
    weight = np.append(negatives, positives)
    counts = ScoreCounts.from_scores(
        np.tile(x / 7, 2), np.repeat([0, 1], len(x)), sample_weight=weight, classes=[0, 1]
    )
    small = counts.coarsen(n_scores)
    assert len(small) <= n_scores
    assert_allclose(small.class_totals, counts.class_totals)
    assert small.error <= 1 / n_scores * (1 + 1e-12)
    largest = 0.0
    for score in np.union1d(x / 7, x / 7 - 0.01):
        below = [c.weights[c.scores <= score].sum(axis=0) for c in (counts, small)]
        assert (below[0] - below[1] >= -1e-9).all()
        largest = max(largest, float((below[0] - below[1]).sum()))
    # the error that is stated is the error that is made
    assert largest <= small.error * counts.total * (1 + 1e-12)
    assert small.error == 0 or largest > 0
    assert (small + small).error <= 1 / n_scores * (1 + 1e-12)
    assert small.error <= small.coarsen(1).error <= small.error + 1


def test_score_vectors_are_coarsened_on_a_lattice():
    rng = np.random.default_rng(84)
    p = rng.dirichlet([1, 1, 1], 5000)
    y = (p.cumsum(axis=1) < rng.random((5000, 1))).sum(axis=1)
    counts = ScoreCounts.from_scores(p, y)
    small = counts.coarsen(1000)
    assert 100 < len(small) <= 1000
    assert_allclose(small.scores.sum(axis=1), 1)
    assert_allclose(small.class_totals, counts.class_totals)
    for j in range(3):
        grid = np.linspace(0, 1, 200)
        before, after = (
            np.array([c.weights[c.scores[:, j] <= s].sum() for s in grid]) for c in (counts, small)
        )
        assert np.abs(before - after).max() <= small.error * 5000
    assert 0 < small.error < 0.2
    for j, column in enumerate(counts.columns()):  # one class against the rest
        assert same(column, ScoreCounts.from_scores(p[:, j], (y == j).astype(int)))


@pytest.mark.parametrize("k", [2, 3])
def test_record_batches_are_counted_like_arrays(k, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(85)
    p = np.round(rng.dirichlet(np.ones(k), 500), 2)
    y = np.array(["no", "so", "yes"])[rng.integers(0, k, 500) * (2 if k == 2 else 1)]
    weight = rng.integers(0, 3, 500)
    order = np.argsort(y, kind="stable")[::-1]  # a class at a time, the last one first
    columns = {f"s{j}": p[order, j] for j in range(k)}
    frame = pa.table({**columns, "y": pa.array(y[order]), "w": weight[order]})
    score = "s1" if k == 2 else {"yes": "s2", "no": "s0", "so": "s1"}
    x = p[:, 1] if k == 2 else p
    for some in (frame, frame.set_column(k, "y", frame["y"].dictionary_encode())):
        found = ScoreCounts.from_batches(
            some.to_batches(max_chunksize=70), score=score, target="y", weight="w"
        )
        assert same(found, ScoreCounts.from_scores(x, y, sample_weight=weight))
    batches = frame.to_batches(max_chunksize=70)
    assert same(
        ScoreCounts.from_batches(batches, score=score, target="y"), ScoreCounts.from_scores(x, y)
    )
    if k == 2:  # the probability of the first class
        of_first = ScoreCounts.from_batches(batches, score={"no": "s0"}, target="y")
        assert same(of_first, ScoreCounts.from_scores(1 - p[:, 0], y))
    monkeypatch.setattr(counts, "MAX_SCORES", 40)
    small = ScoreCounts.from_batches(batches, score=score, target="y")
    assert len(small) <= 40
    assert small.total == 500 and small.error > 0


def test_rows_that_cannot_be_counted_are_refused():
    pa = pytest.importorskip("pyarrow")
    good = {"s": [0.1, 0.2], "y": ["a", "b"], "w": [1.0, 2.0]}

    def count(weight="w", classes=None, **change):
        batches = [pa.RecordBatch.from_pydict(part) for part in (good, {**good, **change})]
        return ScoreCounts.from_batches(
            batches, score="s", target="y", weight=weight, classes=classes
        )

    assert count().total == 6
    for change, message in (
        ({"s": [0.3, None]}, "'s' must be finite, got nan"),
        ({"y": [None, "a"]}, "'y' must have a label in every row, got 1"),
        ({"y": ["a", "c"], "classes": ["a", "b"]}, r"labels of classes \['a', 'b'\], got 'c'"),
        ({"y": ["a", "c"]}, r"'y' must have 2 classes for 1 column.* got 3: \['a'"),
        ({"w": [1.0, -1.0]}, "'w' must not be negative, got -1"),
        ({"w": [1.0, 1e10]}, r"'w' must differ by a factor of at most 1e\+09"),
    ):
        with pytest.raises(InputError, match=message):
            count(**change)
    with pytest.raises(InputError, match=r"'y' must have 2 classes .*got 0"):
        ScoreCounts.from_batches([], score="s", target="y")


def test_labels_are_sorted_and_all_parts_know_them():
    one = ScoreCounts.from_scores([0.3, 0.1], ["yes", "no"])
    assert one.classes.tolist() == ["no", "yes"]
    assert one.scores.tolist() == [0.1, 0.3]
    none = ScoreCounts.from_scores([], [], classes=["no", "yes"])
    assert len(none) == 0 and none.total == 0
    assert same(none + one, one)
    with pytest.raises(ValueError, match="classes must be named where there is no example"):
        ScoreCounts.from_scores([], [])
    with pytest.raises(ValueError, match=r"y must contain at least two classes \(or name them"):
        ScoreCounts.from_scores([0.3], ["yes"])
    other = ScoreCounts.from_scores([0.3], ["yes"], classes=["maybe", "yes"])
    with pytest.raises(ValueError, match=r"same classes to be added, .*: name all of them"):
        one + other


def test_wrong_input_is_named_with_the_rule_and_the_value():
    for scores, weight, message in (
        ([0.1, np.nan], None, "scores must be finite, got NaN in row 1"),
        ([0.1, 0.2], [1.0, -0.5], "sample_weight must be finite and not negative, got -0.5"),
        ([0.1, 0.2], [1.0, 2e9], r"sample_weight must differ by .* 1e\+09, got 1 and 2e\+09"),
    ):
        with pytest.raises(ValueError, match=message):
            ScoreCounts.from_scores(scores, [0, 1], sample_weight=weight)
    ScoreCounts.from_scores([0.1, 0.2, 0.3], [0, 1, 1], sample_weight=[1.0, 1e9, 0])
    with pytest.raises(InputError, match="n_scores must be an integer >= 1"):
        ScoreCounts.from_scores([0.1, 0.2], [0, 1]).coarsen(0)


@pytest.mark.parametrize("fit", [
    lambda s, y: ScoreCounts.from_scores(s, y), lambda s, y: VennAbers("log").fit(s, y),
    lambda s, y: update(s, y), lambda s, y: calibration_error(y, s),
])  # fmt: skip
def test_labels_with_the_index_of_the_scores_in_another_order_are_announced(fit):
    rng = np.random.default_rng(0)
    s = pd.Series(rng.random(200))
    y = pd.Series((rng.random(200) < s).astype(int))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(s, y)
        fit(s, y.set_axis(np.arange(200) + 7))  # an index that names other rows
    with pytest.warns(UserWarning, match="y has the index of the rows in another order"):
        fit(s, y.sample(frac=1, random_state=0))


@pytest.mark.parametrize(("scores", "weights", "message"), [
    ([1.0, 2.0], [[1, -1], [0, 1]], "weights of counts must be finite, not negative"),
    ([1.0, 2.0], [[1, np.nan], [0, 1]], "weights of counts must be finite"),
    ([1.0, 2.0], [[1.0], [1.0]], r"of shape \(2, 2\)"),
    ([1.0, np.nan], [[1, 0], [0, 1]], "scores must be finite, got NaN in row 1"),
])  # fmt: skip
def test_counts_made_by_hand_are_checked_before_a_fit(scores, weights, message):
    counted = ScoreCounts(np.arange(2), np.array(scores), np.array(weights, float))
    with pytest.raises(ValueError, match=message):
        VennAbers().fit_counts(counted)


def test_counts_made_by_hand_may_come_in_any_order():
    rng = np.random.default_rng(1)
    scores, weights = rng.permutation(30) / 30, rng.integers(1, 5, (30, 2)).astype(float)
    order = np.argsort(scores)
    p = [
        VennAbers().fit_counts(ScoreCounts(np.arange(2), s, w)).predict_proba(scores)
        for s, w in ((scores, weights), (scores[order], weights[order]))
    ]
    assert np.array_equal(*p)


def test_batches_without_rows_count_nothing_wherever_they_come():
    pa = pytest.importorskip("pyarrow")
    empty = [pa.record_batch({"s": pa.array([], kind), "y": pa.array([], kind)})
             for kind in (pa.null(), pa.float64())]  # fmt: skip
    some = pa.record_batch({"s": [0.1, 0.4], "y": ["a", "b"]})
    expected = ScoreCounts.from_batches([some], score="s", target="y")
    for batches in ([*empty, some], [some, *empty]):
        found = ScoreCounts.from_batches(batches, score="s", target="y")
        assert table(found) == table(expected)


def test_a_level_is_checked_where_nothing_is_compared():
    with pytest.raises(ValueError, match="level must"):
        decision_curve([0, 1], [0.2, 0.7], [0.5], level=2.0)


def test_decimals_are_the_nearest_numbers():
    pa = pytest.importorskip("pyarrow")
    from decimal import Decimal

    from vennforest.tables.read import plain_array

    values = np.random.default_rng().integers(0, 10**9, 500) / 1e9
    cells = pa.array([Decimal(repr(v)).quantize(Decimal("1e-9")) for v in values.tolist()])
    batch = pa.record_batch({"s": cells, "y": pa.array(np.arange(500) % 2)})
    counts = ScoreCounts.from_batches([batch], score="s", target="y")
    assert counts.scores.tolist() == np.unique(values).tolist()
    assert plain_array(cells, "s").to_pylist() == values.tolist()
