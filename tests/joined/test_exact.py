"""Theorem 1 for objects that join the bags, by full enumeration in exact fractions.

Objects have a feature of two values and a label that depends on it; the trees' structure is fixed;
every example's bag counts are drawn for it by itself. All objects, labels and counts are gone
through with their probabilities, and for every value that p_Y can take the share of the label is
that value, without a tolerance.
"""

from collections import defaultdict
from fractions import Fraction
from functools import cache
from itertools import product
from math import comb, factorial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline

from oracles import joined as literal
from vennforest import CalibratedClassifier
from vennforest.joined import HonestForest
from vennforest.sources.row_hashes import hash_rows

pytestmark = pytest.mark.filterwarnings("ignore:.*(out of bag|more than once)")

SHARES = {
    2: {0: (Fraction(3, 4), Fraction(1, 4)), 1: (Fraction(1, 3), Fraction(2, 3))},
    3: {
        0: (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)),
        1: (Fraction(1, 6),) * 2 + (Fraction(2, 3),),
    },
}
STUMPS = (lambda x: x, lambda x: 0)
"""From a feature value to a leaf: a split, and a root alone."""

POISSON = [Fraction(1, factorial(c)) / Fraction(5, 2) for c in range(3)]
"""Counts up to 2 in the proportions of a Poisson distribution of mean 1."""


def binomial(n, p):
    return [comb(n, c) * p**c * (1 - p) ** (n - c) for c in range(n + 1)]


def independent(n, trees, law):
    """Yield the counts of n places in each tree, a tuple of tuples, and their probability."""
    for flat in product(range(len(law)), repeat=n * trees):
        probability = Fraction(1)
        for c in flat:
            probability *= law[c]
        yield tuple(flat[t * n : (t + 1) * n] for t in range(trees)), probability


def drawn_together(n, trees):
    """Yield the same of bags of n draws from n places, scikit-learn's."""
    one = [
        (c, Fraction(factorial(n), n**n * np.prod([factorial(i) for i in c], dtype=int).item()))
        for c in product(range(n + 1), repeat=n)
        if sum(c) == n
    ]
    for several in product(one, repeat=trees):
        probability = Fraction(1)
        for _, p in several:
            probability *= p
        yield tuple(c for c, _ in several), probability


@cache
def value(places, own, label, w, k, method, votes):
    """p_Y: what the n places and the object with its true label lead to, (k,)."""
    n, trees = len(places), len(w)
    leaves = [[STUMPS[t](x) for x, _, _ in places] for t in range(trees)]
    counts = [[c[t] for _, _, c in places] for t in range(trees)]
    codes = [y for _, y, _ in places]
    ones = [[Fraction(1)] * n] * trees
    scores, score = literal.joined_scores(
        leaves,
        [STUMPS[t](own) for t in range(trees)],
        counts,
        ones,
        codes,
        k,
        w,
        label,
        [Fraction(1)] * trees,
        votes,
    )
    if method == "venn":
        return tuple(
            literal.venn_values(
                lambda s: literal.oracle_label(s, k), scores, codes, k, score, label
            )
        )
    return tuple(literal.venn_abers_values(scores, codes, k, score, label))


def deviations(n, trees, k, bags, law, method, votes="soft"):
    """{(class j, value p): P(p_Y(j) = p, Y = j) - p P(p_Y(j) = p)}."""
    found, total = defaultdict(Fraction), Fraction(0)
    bags = list(bags)
    joining = [
        (w, p)
        for w, p in ((tuple(c[0] for c in w), p) for w, p in independent(1, trees, law))
        if 0 in w  # else no tree scores the object: its counts are drawn again
    ]
    for objects in product(product((0, 1), range(k)), repeat=n + 1):
        chance = Fraction(1)
        for x, y in objects:
            chance *= Fraction(1, 2) * SHARES[k][x][y]
        own, label = objects[n]
        for counts, of_counts in bags:
            places = tuple(
                sorted(
                    (x, y, tuple(bag[i] for bag in counts)) for i, (x, y) in enumerate(objects[:n])
                )
            )
            for w, of_w in joining:
                probability = chance * of_counts * of_w
                total += probability
                for j, p in enumerate(value(places, own, label, w, k, method, votes)):
                    found[j, p] += probability * ((label == j) - p)
    assert total > 0
    return {key: off / total for key, off in found.items()}


@pytest.mark.parametrize("method", ["venn-abers", "venn"])
@pytest.mark.parametrize("votes", ["soft", "hard"])
@pytest.mark.parametrize(
    ("n", "trees", "k"), [(1, 1, 2), (3, 1, 2), (1, 2, 3), (2, 2, 2), (2, 1, 3)]
)
def test_with_independent_counts_p_y_is_calibrated_exactly(n, trees, k, votes, method):
    bags = independent(n, trees, POISSON)
    off = deviations(n, trees, k, bags, POISSON, method, votes)
    assert len(off) > k
    assert set(off.values()) == {0}


@pytest.mark.parametrize("method", ["venn-abers", "venn"])
def test_one_tree_is_exact_whatever_its_bag(method):
    """One tree scores only those that are in its bag never: they, and the object, change nobody."""
    off = deviations(3, 1, 2, drawn_together(3, 1), binomial(3, Fraction(1, 3)), method)
    assert set(off.values()) == {0}


@pytest.mark.parametrize("method", ["venn-abers", "venn"])
def test_bags_of_n_draws_deviate_a_little_and_least_with_an_examples_own_rate(method):
    """Counts that sum to n are not exchangeable with any further one, but for constants."""
    size = {}
    for rate in (Fraction(1, 2), Fraction(1, 3)):
        off = deviations(2, 2, 2, drawn_together(2, 2), binomial(2, rate), method)
        size[rate] = float(sum(abs(d) for d in off.values())) / 2
    assert 0 < size[Fraction(1, 2)] < size[Fraction(1, 3)] < 0.02


@pytest.mark.parametrize("method", ["venn-abers", "venn"])
def test_the_enumeration_sees_an_object_that_joins_no_bag(method):
    off = deviations(2, 2, 2, independent(2, 2, POISSON), [Fraction(1)], method)
    assert sum(abs(d) for d in off.values()) > Fraction(1, 100)


# --- honest trees in Poisson bags ------------------------------------------------------------


def objects(rng, n, k=2):
    X = np.floor(rng.random((n, 2)) * [6, 3])
    noisy = X[:, 0] + 3 * rng.normal(size=n)
    return X, np.digitize(noisy, [2.5] if k == 2 else [1.5, 4.0])


@pytest.mark.parametrize("votes", ["soft", "hard"])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_honest_forests_are_the_four_steps_with_poisson_bags(k, votes, weighted):
    rng = np.random.default_rng(k)
    for case in range(4):
        X, y = objects(rng, 40, k)
        new = objects(rng, 3, k)[0]
        weight = rng.choice([0.5, 1.0, 2.0], 40) if weighted else None
        kind = [RandomForestClassifier, ExtraTreesClassifier][case % 2]
        forest = kind(5, bootstrap=True, max_leaf_nodes=7, class_weight="balanced", random_state=1)
        source = HonestForest(votes=votes)
        model = CalibratedClassifier(forest, calibrate_on=source, merge="log", random_state=case)
        model.fit(X, y, sample_weight=weight)
        # What the source draws, drawn again.
        state = np.random.RandomState(case)
        seed = int(state.randint(2**31 - 1))
        order = state.permutation(40)
        grow, fill = np.sort(order[:20]), np.sort(order[20:])
        grown = kind(5, bootstrap=True, max_leaf_nodes=7, class_weight="balanced", random_state=1)
        grown.fit(X[grow], y[grow], None if weight is None else weight[grow])
        counts = [state.poisson(1.0, 20).tolist() for _ in range(5)]
        codes = y[fill].tolist()
        of_fill = None if weight is None else weight[fill]
        weights = literal.example_weights(counts, codes, k, of_fill)
        empty = [
            [[Fraction(float(v)) for v in node[0]] for node in tree.tree_.value]
            for tree in grown.estimators_
        ]
        leaves = literal.tree_of_leaves(grown, X[fill])
        thresholds = [int(c) for c in model._state.folds[0].scorer.thresholds[0]]
        for row in new:
            h = int(hash_rows(row[None].astype(np.float32))[0])
            w = literal.bag_by_hand(h, seed, 0, 5, thresholds)
            own = [tree[0] for tree in literal.tree_of_leaves(grown, row[None])]
            found = [
                literal.joined_scores(
                    leaves,
                    own,
                    counts,
                    weights,
                    codes,
                    k,
                    w,
                    label,
                    [Fraction(1)] * 5,
                    votes,
                    empty,
                )
                for label in range(k)
            ]
            values = literal.bounds_by_hand(found, np.array(codes), k, "venn", of_fill)
            m = model.recalibrate("venn").predict_multiprobability(row[None])
            assert_allclose(m.lower[0], values.min(axis=0), rtol=0, atol=1e-9)
            assert_allclose(m.upper[0], values.max(axis=0), rtol=0, atol=1e-9)


def test_the_poisson_counts_of_an_object_are_those_of_an_example():
    X, y = objects(np.random.default_rng(0), 60)
    model = CalibratedClassifier(
        RandomForestClassifier(40), calibrate_on=HonestForest(), random_state=0
    ).fit(X, y)
    shares = model._state.folds[0].scorer.thresholds[0] / 2**64
    poisson = np.cumsum([np.exp(-1) / factorial(c) for c in range(len(shares))])
    assert_allclose(shares, poisson, rtol=0, atol=1e-15)


def test_honest_bounds_hold_where_neighbours_are_few():
    """One feature of many levels and labels of coin tosses, 30 examples, 12 trees."""
    rng = np.random.default_rng(20261122)
    right, wrong = [], []
    for repetition in range(150):
        X = rng.integers(0, 20, (90, 1)).astype(float)
        y = rng.integers(0, 2, 90)
        model = CalibratedClassifier(
            RandomForestClassifier(12, random_state=repetition),
            calibrate_on=HonestForest(),
            merge="log",
            random_state=repetition,
        ).fit(X[:60], y[:60])
        m = model.predict_multiprobability(X[60:])
        for label, sums in ((y[60:], right), (1 - y[60:], wrong)):
            p = np.where(label == 1, m.p1, m.p0)
            off = y[60:] - p
            sums.append([off[p < 0.4].sum(), off[p > 0.6].sum(), off.sum()])
    z = [np.mean(s, axis=0) / (np.std(s, axis=0, ddof=1) / len(s) ** 0.5) for s in (right, wrong)]
    assert np.abs(z[0]).max() < 4
    assert np.abs(z[1]).max() > 4


def test_steps_before_the_forest_are_fitted_to_what_grows_it():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 200)), rng.integers(0, 2, 120)
    steps = make_pipeline(SelectKBest(k=5), RandomForestClassifier(50, random_state=0))
    model = CalibratedClassifier(steps, calibrate_on=HonestForest(), random_state=0).fit(X, y)
    assert len(model.calibration_y_) == 60
    assert abs(np.mean((model.calibration_scores_ > 0.5) == model.calibration_y_) - 0.5) < 0.2
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"grow_size": 0.0}, "grow_size must lie between 0 and 1, got 0.0"),
        ({"grow_size": 1}, "grow_size must lie between 0 and 1, got 1"),
        ({"grow_size": 0.02}, "y must contain every class among the examples that the trees"),
        ({"votes": "none"}, "votes must be one of"),
        ({"n_draws": 0}, "n_draws must be"),
    ],
)
def test_parameters_are_checked(parameters, message):
    X, y = objects(np.random.default_rng(0), 40)
    with pytest.raises(ValueError, match=message):
        CalibratedClassifier(
            RandomForestClassifier(5), calibrate_on=HonestForest(**parameters), random_state=0
        ).fit(X, y)
