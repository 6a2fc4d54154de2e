"""Counts at scores: they add up exactly, and are compressed with the error they say."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vennforest import ScoreCounts, ScoreGrid
from vennforest._validation import InputError

EXAMPLES = st.lists(
    st.tuples(st.integers(-4, 4), st.integers(0, 2), st.integers(0, 3)), min_size=1, max_size=40
)


def table(counts, which=0):
    """Return one table as a dictionary of score and column to count."""
    x, number = counts.tables[which]
    return {
        (score, column): n
        for score, row in zip(x.tolist(), number.tolist(), strict=True)
        for column, n in enumerate(row)
        if n
    }


@given(EXAMPLES, st.integers(1, 4), st.randoms(use_true_random=False))
def test_parts_add_up_to_the_whole_in_any_order(examples, parts, random):
    scores, y, weight = map(np.array, zip(*examples, strict=True))
    if not weight.any():
        weight[0] = 1
    whole = ScoreCounts.from_scores(scores, y > 0, sample_weight=weight, classes=[False, True])
    expected = Counter()
    for s, label, w in zip(scores.tolist(), y.tolist(), weight.tolist(), strict=True):
        expected[s, int(label > 0)] += w
    assert table(whole) == {cell: n for cell, n in expected.items() if n}
    pieces = [
        ScoreCounts.from_counts(
            scores[i::parts],
            weight[i::parts] * (y[i::parts] == 0),
            weight[i::parts] * (y[i::parts] > 0),
            classes=[False, True],
        )
        for i in range(parts)
    ]
    random.shuffle(pieces)
    assert sum(pieces) == whole
    left, right = pieces[0], sum(pieces[1:]) if len(pieces) > 1 else 0
    assert (left + right if right else left) == whole
    assert whole.total == weight.sum()
    assert whole.class_totals == [int(weight[y == 0].sum()), int(weight[y > 0].sum())]


def test_integers_are_exact_to_the_last_unit():
    large = 2**62 - 1
    one = ScoreCounts.from_counts([0.5], [large], [1])
    two = ScoreCounts.from_counts([0.5, 0.7], [2**53 + 1, 0], [0, 3])
    both = one + two
    assert table(both) == {(0.5, 0): large + 2**53 + 1, (0.5, 1): 1, (0.7, 1): 3}
    assert both.total == large + 2**53 + 5
    assert one + two == two + one
    with pytest.raises(ValueError, match=r"counts must sum to at most 2\*\*63 - 1, got"):
        one + one + one
    assert (one + ScoreCounts.from_counts([0.1], [large], [0])).total == 2**63 - 1
    with pytest.raises(ValueError, match=r"negatives must be at most 2\*\*63 - 1"):
        ScoreCounts.from_counts([0.5], np.array([2**63], np.uint64), [0])
    with pytest.raises(ValueError, match=r"counts must sum to at most 2\*\*63 - 1, got"):
        ScoreCounts.from_counts([0.5], [2**63 - 1], [1])
    with pytest.raises(ValueError, match=r"sample_weight must sum to at most 2\*\*63 - 1"):
        ScoreCounts.from_scores([0.5, 0.6], [0, 1], sample_weight=[2**63 - 1, 1])


def test_weights_add_up_to_rounding_and_two_parts_commute():
    rng = np.random.default_rng(81)
    x, y, w = rng.integers(0, 5, 300) / 4, rng.random(300) < 0.4, rng.random(300) * 10.0
    parts = [
        ScoreCounts.from_scores(x[i::3], y[i::3], sample_weight=w[i::3], classes=[False, True])
        for i in range(3)
    ]
    a, b, c = parts
    assert a + b == b + a
    for found in ((a + b) + c, a + (b + c)):
        for (score, column), total in table(found).items():
            exact = sum(Fraction(one) for one in w[(x == score) & (y == column)])
            assert abs(Fraction(total) - exact) <= 1e-14 * exact


def test_one_class_against_the_rest_and_score_vectors():
    rng = np.random.default_rng(82)
    vectors = rng.integers(0, 3, (60, 3)) / 2
    y = np.array(["a", "b", "c"])[rng.integers(0, 3, 60)]
    rest = ScoreCounts.from_scores(vectors, y)
    assert len(rest.tables) == 3
    assert len(rest) == 9
    for j, label in enumerate("abc"):
        expected = Counter(
            (s, int(one == label)) for s, one in zip(vectors[:, j].tolist(), y, strict=True)
        )
        assert table(rest, j) == expected
        two = ScoreCounts.from_scores(vectors[:, j], y == label)
        assert table(two) == expected
    together = [ScoreCounts.from_scores(vectors[:, j], y == label) for j, label in enumerate("abc")]
    assert ScoreCounts.one_vs_rest(together, ["a", "b", "c"]) == rest
    kept = ScoreCounts.from_scores(vectors, y, vectors=True)
    ((x, counts),) = kept.tables
    expected = Counter((*v, label) for v, label in zip(vectors.tolist(), y, strict=True))
    found = {
        (*row.tolist(), label): n
        for row, of_row in zip(x, counts, strict=True)
        for label, n in zip("abc", of_row.tolist(), strict=True)
        if n
    }
    assert found == expected
    halves = [
        ScoreCounts.from_scores(vectors[i::2], y[i::2], classes=["a", "b", "c"], vectors=True)
        for i in range(2)
    ]
    assert halves[1] + halves[0] == kept
    with pytest.raises(ValueError, match="must all keep score vectors to be added, or none"):
        kept + rest


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=50
    ),
    st.integers(1, 12),
    st.sampled_from([1, 2**45, 2**52]),
    st.booleans(),
)
def test_compression_keeps_what_it_says(rows, size, factor, floats):
    x, negatives, positives = (np.array(column) for column in zip(*rows, strict=True))
    if not (negatives + positives).any():
        negatives[0] = 1
    kind = np.float64 if floats else np.int64
    counts = ScoreCounts.from_counts(
        x / 7, (negatives * factor).astype(kind), (positives * factor).astype(kind)
    )
    small = counts.compress(size)
    assert len(small) <= size
    assert small.total == counts.total
    assert small.error <= 1 / size * (1 + 1e-12)
    assert small.class_totals == counts.class_totals
    most = 0.0
    for score in np.union1d(x / 7, x / 7 - 0.01):
        below = [
            np.array([[*n] for s, n in zip(*one.tables[0], strict=True) if s <= score])
            .reshape(-1, 2)
            .astype(object)
            .sum(axis=0)
            for one in (counts, small)
        ]
        fallen = below[0] - below[1]
        assert (fallen >= 0).all()
        most = max(most, float(sum(fallen)))
    # the error that is stated is the error that is made
    assert most <= small.error * counts.total * (1 + 1e-12)
    assert small.error == 0 or most > 0
    assert (small + small).error <= 1 / size * (1 + 1e-12)


def test_compression_of_compressions_adds_its_errors():
    rng = np.random.default_rng(83)
    parts = [
        ScoreCounts.from_scores(rng.random(1000), rng.random(1000) < 0.5).compress(50)
        for _ in range(4)
    ]
    whole = sum(parts)
    assert 0.015 < whole.error <= 0.02
    again = whole.compress(20)
    assert whole.error < again.error <= 0.02 + 0.05
    assert ScoreCounts.from_scores([0.1, 0.2], [0, 1]).compress(2).error == 0


def test_a_grid_is_a_score_function():
    rng = np.random.default_rng(84)
    for grid in (
        ScoreGrid(),
        ScoreGrid(cells=7),
        ScoreGrid(cells=1000, low=-3, high=5),
        ScoreGrid(on="logit"),
        ScoreGrid(cells=1 << 24, on="logit"),
        ScoreGrid(cells=1 << 24),
    ):
        s = np.sort(grid.low + rng.random(2000) * (grid.high - grid.low))
        s = np.concatenate([[grid.low], s, [grid.high]])
        if grid.on == "logit":
            s = np.sort(np.concatenate([s, 10.0 ** -rng.uniform(0, 20, 500)]))
        cells = grid.cell_of(s)
        assert (np.diff(cells) >= 0).all()
        assert cells[0] == 0
        assert cells[-1] == grid.cells - 1
        np.testing.assert_array_equal(grid(grid(s)), grid(s))
        np.testing.assert_array_equal(
            grid.cell_of(grid.score_of(every := rng.integers(0, grid.cells, 3000))), every
        )
        if grid.on == "score":
            assert (np.abs(grid(s) - s) <= (grid.high - grid.low) / grid.cells * 0.5000001).all()
    # a power of two of cells from 0 to 1: the exact floor
    s = rng.random(2000)
    expected = [int(Fraction(one) * 2**20) for one in s.tolist()]
    assert ScoreGrid().cell_of(s).tolist() == expected


def test_counts_on_a_grid():
    grid = ScoreGrid(cells=10)
    counts = ScoreCounts.from_scores([0.01, 0.02, 0.95, 1.0], [0, 1, 1, 1], grid=grid)
    assert table(counts) == {(0.05, 0): 1, (0.05, 1): 1, (0.95, 1): 2}
    with pytest.raises(ValueError, match="counts must be on the same grid to be added"):
        counts + ScoreCounts.from_scores([0.01], [0], classes=[0, 1])
    with pytest.raises(ValueError, match=r"scores must be in \[0, 1\], .*, got 1.5 at position 1"):
        ScoreCounts.from_scores([0.1, 1.5], [0, 1], grid=grid)


def test_parts_without_examples_or_without_a_class():
    empty = ScoreCounts.from_scores([], [], classes=["no", "yes"])
    some = ScoreCounts.from_scores([0.3], ["yes"], classes=["no", "yes"])
    assert len(empty) == 0
    assert empty.total == 0
    assert empty + some == some
    three = ScoreCounts.from_scores(np.empty((0, 3)), [], classes=["a", "b", "c"])
    assert len(three) == 0
    with pytest.raises(ValueError, match="classes must be named where there is no example"):
        ScoreCounts.from_scores([], [])
    with pytest.raises(ValueError, match=r"y must contain at least two classes \(or name them"):
        ScoreCounts.from_scores([0.3], ["yes"])
    other = ScoreCounts.from_scores([0.3], ["yes"], classes=["maybe", "yes"])
    with pytest.raises(ValueError, match=r"same classes to be added, .*: name all of them"):
        some + other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0.5], [-1], [2]), "negatives must not be negative, got -1"),
        (([0.5], [-1.0], [2]), "negatives must be finite and not negative, got -1.0"),
        (([0.5], [np.nan], [2]), "negatives must be finite and not negative, got nan"),
        (([0.5], [1, 2], [3]), r"negatives must have shape \(1,\), got \(2,\)"),
        (([[0.5]], [1], [3]), r"scores must have shape \(m,\), got \(1, 1\)"),
        (([0.1, np.nan], [1, 1], [3, 1]), "scores must be finite, got NaN at position 1"),
    ],
)
def test_counts_that_do_not_fit_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        ScoreCounts.from_counts(*arguments)


def test_what_is_wrong_is_named_with_the_rule_and_the_value():
    for classes in ((1, 0), (0, 1, 2), ("b", "a")):
        with pytest.raises(ValueError, match="classes must be two labels in sorted order"):
            ScoreCounts.from_counts([0.2], [1], [1], classes=classes)
    with pytest.raises(ValueError, match="scores must be finite, got NaN at position 2"):
        ScoreCounts.from_scores([0.1, 0.2, np.nan], [0, 1, 0])
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative"):
        ScoreCounts.from_scores([0.1, 0.2], [0, 1], sample_weight=[1.0, -0.5])
    with pytest.raises(ValueError, match="sample_weight must not be negative, got -2"):
        ScoreCounts.from_scores([0.1, 0.2], [0, 1], sample_weight=[1, -2])
    with pytest.raises(ValueError, match="scores must have a column for each of 3 classes"):
        ScoreCounts.from_scores([0.1, 0.2, 0.3], [0, 1, 2])
    with pytest.raises(ValueError, match="grid must be None with vectors=True"):
        ScoreCounts.from_scores(np.eye(3), [0, 1, 2], grid=ScoreGrid(), vectors=True)
    for wrong in (0, 1.5, True, (1 << 24) + 1):
        with pytest.raises(InputError, match="cells must be"):
            ScoreGrid(cells=wrong)
    with pytest.raises(InputError, match='low and high must be 0 and 1 with on="logit"'):
        ScoreGrid(on="logit", high=2)
    with pytest.raises(InputError, match="high must lie above low"):
        ScoreGrid(low=1)
    with pytest.raises(InputError, match="cells must be fewer than floats between"):
        ScoreGrid(low=1, high=1 + 1e-12)
    with pytest.raises(InputError, match="size must be an integer >= 1"):
        ScoreCounts.from_scores([0.1, 0.2], [0, 1]).compress(0)
    with pytest.raises(ValueError, match="tables must be of the same examples"):
        ScoreCounts.one_vs_rest(
            [ScoreCounts.from_counts([0.5], [2], [n]) for n in (1, 1, 2)], [0, 1, 2]
        )
