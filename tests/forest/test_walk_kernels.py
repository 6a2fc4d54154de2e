"""Scores of packed forests against scikit-learn's trees, to the last bit."""

import numpy as np
import pytest
import sklearn
from packaging.version import Version
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from oracles import formulas as oracle
from vennforest import MixedForestClassifier
from vennforest.forest import Members, Membership, PackedForest

# scikit-learn's own: it sums a column of the largest float32 numbers to see whether all are finite,
# and finds the drawn bootstrap samples small.
pytestmark = [
    pytest.mark.filterwarnings("ignore:invalid value encountered in reduce:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Using the fractional value max_samples"),
]


def draw_case(seed):
    """A small fitted forest of drawn kind, its training rows, and rows to score."""
    rng = np.random.default_rng(seed)
    n, n_features = int(rng.integers(2, 70)), int(rng.integers(1, 6))
    k = int(rng.integers(2, 7))
    X = rng.normal(size=(n, n_features)) * 10.0 ** rng.integers(-3, 4)
    if rng.random() < 0.4:
        X = X.round()
    if rng.random() < 0.3:
        X[:, 0] = 1.5
    with_missing = rng.random() < 0.4
    if with_missing:
        X[rng.random(X.shape) < 0.25] = np.nan
    codes = rng.integers(0, k, n)
    codes[:2] = [0, 1]  # at least two classes
    y = np.array([f"class {c}" for c in "dacbfe"])[codes] if rng.random() < 0.5 else codes * 3 - 4
    kinds = [RandomForestClassifier, ExtraTreesClassifier, MixedForestClassifier]
    kind = kinds[rng.choice(3, p=[0.4, 0.35, 0.25])]
    forest = kind(
        n_estimators=int(rng.integers(1, 12)),
        criterion=str(rng.choice(["gini", "entropy", "log_loss"])),
        max_depth=[None, 1, 2, 4][rng.integers(4)],
        min_samples_leaf=[1, 1, 3, n][rng.integers(4)],
        max_samples=[None, None, 0.3, max(1, n // 2)][rng.integers(4)],
        class_weight=[None, "balanced", "balanced_subsample"][rng.integers(3)],
        random_state=int(seed),
        **({} if kind is MixedForestClassifier else {"bootstrap": True}),
    )
    weight = rng.integers(1, 4, n) * 0.7 if rng.random() < 0.3 else None
    if rng.random() < 0.3:
        forest.set_params(max_leaf_nodes=int(rng.integers(2, 9)))
    if len(np.unique(y)) == 2 and not with_missing:  # for others scikit-learn has no constraints
        forest.set_params(monotonic_cst=rng.integers(-1, 2, n_features))
    forest.fit(X, y, sample_weight=weight)
    new = np.concatenate([X, rng.normal(size=(20, n_features)) * np.nanmax(np.abs(X))])
    late = Version(sklearn.__version__) >= Version("1.9")  # constraints and missing values together
    if (not with_missing or rng.random() < 0.5) and (late or forest.monotonic_cst is None):
        new[-5:, rng.integers(n_features)] = np.nan  # also where training had none
    new[-7:-5] = [0.0], [-0.0]
    return forest, X, new, rng


def expected(forest, X, trees_of_row, votes):
    means = np.array(oracle.forest_scores(forest, X.astype(np.float32), trees_of_row, votes))
    return means[:, 1] if means.shape[1] == 2 else means


@pytest.mark.parametrize("seed", range(30))
def test_scores_equal_the_trees_own_to_the_last_bit(seed):
    forest, X, new, rng = draw_case(seed)
    n = len(X)
    ours = PackedForest.from_forest(forest)
    membership = Membership.from_forest(forest, n)
    out_of_bag = oracle.out_of_bag(forest, n)
    assert membership.counts().tolist() == [len(trees) for trees in out_of_bag]

    examples = rng.integers(-1, n, len(new))
    everyone = list(range(len(ours)))
    chosen = [everyone if e < 0 else out_of_bag[e] for e in examples]
    for votes in ("soft", "hard"):
        np.testing.assert_array_equal(
            ours.scores(new, membership, examples, votes=votes),
            expected(forest, new, chosen, votes),
        )
        np.testing.assert_array_equal(
            ours.scores(X, membership, np.arange(n), votes=votes),
            expected(forest, X, out_of_bag, votes),
        )
        np.testing.assert_array_equal(
            ours.scores(new, votes=votes), expected(forest, new, [everyone] * len(new), votes)
        )
        answers = np.stack(oracle.tree_answers(forest, new.astype(np.float32), votes), axis=1)
        if answers.shape[2] == 2:
            answers = answers[:, :, 1]
        of_trees = Members(forest, votes)
        np.testing.assert_array_equal(of_trees.per_member(of_trees.check(new)), answers)
    proba = forest.set_params(n_jobs=1).predict_proba(new)
    np.testing.assert_array_equal(ours.scores(new), proba[:, 1] if proba.shape[1] == 2 else proba)


def forest_with_threshold(threshold, missing_left, value=None):
    """A forest of one tree whose root has this threshold."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    forest = RandomForestClassifier(1, bootstrap=False, random_state=0).fit(X, [0, 1, 1, 1])
    tree = forest.estimators_[0].tree_
    assert tree.node_count == 3
    state = tree.__getstate__()
    state["nodes"] = state["nodes"].copy()
    state["nodes"]["threshold"][0] = threshold
    state["nodes"]["missing_go_to_left"][0] = missing_left
    tree.__setstate__(state)
    return forest


EDGES = [0.0, -0.0, 1e-320, -1e-320, 1e-45, -1e-45, 1e-40, 0.1, -0.1, 1.0, 3.4028235e38]
EDGES += [1e39, -1e39, np.inf, -np.inf, 1e300, -1e300, 16777217.0, -16777217.0]
EDGES += [0.5 + 2.0**-26, 0.5 - 2.0**-27]


def neighbours(value):
    """float32 numbers around a float64 one, zeros and the largest ones."""
    largest = np.finfo(np.float32).max
    smallest = np.float32(1e-45)
    up, down = np.float32(np.inf), np.float32(-np.inf)
    with np.errstate(over="ignore", under="ignore"):
        near = np.float32(value)
        found = [near, np.nextafter(near, up), np.nextafter(near, down)]
    found += [np.float32(0.0), np.float32(-0.0), largest, -largest, smallest, -smallest]
    finite = [x for x in found if np.isfinite(x)]
    return np.array([*finite, np.float32(np.nan)], dtype=np.float32)


@pytest.mark.parametrize("missing_left", [0, 1])
def test_edge_thresholds_decide_as_the_tree_does(missing_left):
    for threshold in EDGES:
        forest = forest_with_threshold(threshold, missing_left)
        feature = forest.estimators_[0].tree_.feature[0]
        x = neighbours(threshold)
        X = np.zeros((len(x), 2), np.float32)
        X[:, feature] = x
        ours = PackedForest.from_forest(forest).scores(X)
        np.testing.assert_array_equal(ours, forest.predict_proba(X)[:, 1], str(threshold))
        by_hand = np.where(np.isnan(x), not missing_left, x.astype(np.float64) > threshold)
        np.testing.assert_array_equal(ours > 0.5, by_hand, str(threshold))
    leaves = RandomForestClassifier(4, random_state=0).fit(np.ones((6, 3)), [0, 1, 1, 0, 1, 1])
    ours, X = PackedForest.from_forest(leaves), np.array([[np.nan] * 3, [-0.0, 1e38, -1e38]])
    assert len(ours.nodes) == 4 and ours.depth == 0
    np.testing.assert_array_equal(ours.scores(X), leaves.predict_proba(X)[:, 1])


@pytest.mark.parametrize(
    ("kind", "min_samples_leaf"), [(RandomForestClassifier, 1), (ExtraTreesClassifier, 5)]
)
def test_larger_forest_with_many_classes(kind, min_samples_leaf):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 10))
    y = (X[:, :3].sum(axis=1) * 6 + rng.normal(size=3000)).round().clip(-13, 12).astype(int)
    forest = kind(25, min_samples_leaf=min_samples_leaf, bootstrap=True, random_state=0).fit(X, y)
    ours = PackedForest.from_forest(forest)
    new = rng.normal(size=(9_000, 10))  # more than one block
    np.testing.assert_array_equal(ours.scores(new), forest.predict_proba(new))
    assert ours.nodes.nbytes + ours.roots.nbytes <= 16 * len(ours.nodes) + 4 * 25
    distinct = np.unique(
        np.concatenate([t.tree_.value[t.tree_.children_left < 0, 0] for t in forest.estimators_]),
        axis=0,
    )
    assert sorted(map(tuple, ours.distributions)) == sorted(map(tuple, distinct))
    assert (len(distinct) > 2000) == (min_samples_leaf > 1)  # one table that has to grow
