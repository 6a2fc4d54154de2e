"""Packed forests, out-of-bag membership, and scores by the members of other ensembles."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

from vennforest.forest import Members, Membership, PackedForest, members

# scikit-learn's own: it sums a column of the largest float32 numbers to see whether all are finite,
# and finds the drawn bootstrap samples small.
pytestmark = [
    pytest.mark.filterwarnings("ignore:invalid value encountered in reduce:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:Using the fractional value max_samples"),
]


@pytest.mark.parametrize("n_classes", [2, 5])
def test_out_of_bag_scores_are_scikit_learns(n_classes):
    X, y = make_classification(
        300, 8, n_informative=6, n_classes=n_classes, flip_y=0.2, random_state=1
    )
    forest = RandomForestClassifier(40, oob_score=True, random_state=2).fit(X, y)
    membership = Membership.from_forest(forest, len(X))
    ours = PackedForest.from_forest(forest).scores(X, membership, np.arange(len(X)))
    theirs = forest.oob_decision_function_
    np.testing.assert_array_equal(ours, theirs[:, 1] if n_classes == 2 else theirs)


@pytest.mark.parametrize(("n_classes", "n_jobs"), [(2, 3), (3, 2)])
def test_threads_and_batches_change_no_bit(monkeypatch, n_classes, n_jobs):
    X, y = make_classification(400, 7, n_informative=5, n_classes=n_classes, random_state=0)
    forest = RandomForestClassifier(40, random_state=0).fit(X, y)
    membership = Membership.from_forest(forest, len(X))
    ours = PackedForest.from_forest(forest)
    examples = np.random.default_rng(0).integers(-1, len(X), len(X))
    whole = ours.scores(X, membership, examples)
    monkeypatch.setattr(members, "MIN_WALKS_PER_THREAD", 1000)
    np.testing.assert_array_equal(ours.scores(X, membership, examples, n_jobs=n_jobs), whole)
    with joblib.parallel_config("threading", n_jobs=n_jobs):
        np.testing.assert_array_equal(ours.scores(X, membership, examples), whole)
    for size in (1, 13, 300):
        monkeypatch.setattr(members, "ROWS_PER_BLOCK", size)
        monkeypatch.setattr(members, "MIN_ROWS_PER_BLOCK", 1)
        np.testing.assert_array_equal(ours.scores(X, membership, examples), whole)
        parts = [slice(i, i + size) for i in range(0, len(X), size)]
        by_part = [ours.scores(X[part], membership, examples[part]) for part in parts]
        np.testing.assert_array_equal(np.concatenate(by_part), whole)
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_array_equal(ours.scores(X[order], membership, examples[order]), whole[order])


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    X[X.abs() < 0.4] = 0.0
    forest = RandomForestClassifier(9, random_state=0).fit(X, rng.integers(0, 2, 80))
    return forest, PackedForest.from_forest(forest), X


BAD_ROWS = {
    "columns in another order": lambda X: X[["b", "a", "c"]],
    "another name": lambda X: X.rename(columns={"a": "z"}),
    "too few columns": lambda X: X[["a", "b"]],
    "one row as a vector": lambda X: X.to_numpy()[0],
    "three dimensions": lambda X: X.to_numpy()[None],
    "no rows": lambda X: X.iloc[:0],
    "infinite": lambda X: X * np.inf,
    "array beyond float32": lambda X: X.to_numpy() * 1e300,
    "too many columns of an array": lambda X: np.ones((2, 4)),
    "text": lambda X: X.astype(str) + "x",
    "NaN in sparse": lambda X: scipy.sparse.csr_array(X.where(X != 0, np.nan)),
}


@pytest.mark.parametrize("name", BAD_ROWS)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_rows_are_refused_in_the_forests_words(fitted, name):
    forest, ours, X = fitted
    largest = np.tile(np.finfo(np.float32).max, (2, 3))  # whose sum overflows
    np.testing.assert_array_equal(ours.check_rows(largest), largest)
    bad = BAD_ROWS[name](X)
    with pytest.raises(ValueError) as theirs:
        forest.predict_proba(bad)
    with pytest.raises(ValueError) as error:
        ours.check_rows(bad)
    assert str(error.value) == str(theirs.value)


def test_packing_leaves_the_forest_alone_and_pickles(fitted):
    forest, ours, X = fitted
    before = pickle.dumps(forest)
    PackedForest.from_forest(forest).scores(X)
    Membership.from_forest(forest, len(X))
    assert pickle.dumps(forest) == before
    again = pickle.loads(pickle.dumps(ours))
    np.testing.assert_array_equal(again.scores(X), ours.scores(X))
    np.testing.assert_array_equal(copy.deepcopy(ours).scores(X), ours.scores(X))


def test_a_forest_of_too_many_nodes_is_refused(monkeypatch):
    X, y = make_classification(30, random_state=0)
    forest = RandomForestClassifier(3, random_state=0).fit(X, y)
    n_nodes = sum(tree.tree_.node_count for tree in forest.estimators_)
    monkeypatch.setattr(members, "MAX_NODES", n_nodes)
    assert len(PackedForest.from_forest(forest).nodes) == n_nodes
    monkeypatch.setattr(members, "MAX_NODES", n_nodes - 1)
    with pytest.raises(ValueError, match=f"at most {n_nodes - 1} nodes, got {n_nodes}"):
        PackedForest.from_forest(forest)


def test_members_that_lack_a_class_give_it_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.repeat([0, 1, 2], [20, 1, 19])
    bagging = BaggingClassifier(KNeighborsClassifier(3), 12, random_state=0).fit(X, y)
    assert {len(member.classes_) for member in bagging.estimators_} == {2, 3}
    assert_allclose(Members(bagging).mean(X), bagging.predict_proba(X), atol=1e-15)
