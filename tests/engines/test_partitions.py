"""Bags by partition: what each tree saw, and who scores whom, against the obvious loops."""

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator

import vennforest
from support.partitions import Partitions
from vennforest import CalibratedClassifier
from vennforest.engines._partitions import (
    bags_of,
    bottom_sample,
    grow_crew,
    join_forests,
    plan_crews,
)
from vennforest.sources.data import TrainingData

LABELS = np.array(["a", "b", "c"])


def draw(seed, n=120, k=2, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    return X, LABELS[y]


def slow_scores(model, X, home, crews, votes="soft"):
    """Each row scored by the trees whose partitions do not hold it, one after another."""
    owners = [crew.partition for crew in crews for _ in range(crew.n_trees)]
    k = len(model.classes_)
    out = np.zeros((len(X), k))
    for i, row in enumerate(X):
        said = []
        for tree, held in zip(model.estimator_.estimators_, owners, strict=True):
            if home[i] != held:
                p = tree.predict_proba(row[None])[0]
                said.append(np.eye(k)[p.argmax()] if votes == "hard" else p)
        out[i] = np.mean(said, axis=0)
    return out[:, 1] if k == 2 else out


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [2, 3])
def test_every_row_is_scored_by_the_trees_of_other_partitions(seed, k):
    rng = np.random.default_rng(seed)
    X, y = draw(seed, k=k)
    n_partitions = [2, 5, 30][seed]
    home = rng.integers(0, n_partitions, len(X))
    home[:n_partitions] = np.arange(n_partitions)
    kind = (RandomForestClassifier, ExtraTreesClassifier)[seed % 2]
    forest = kind(20, max_depth=5, random_state=seed)
    votes = ("soft", "hard")[seed % 3 == 0]
    source = Partitions(home, votes=votes)
    model = CalibratedClassifier(forest, calibrate_on=source, random_state=0).fit(X, y)
    crews = plan_crews(forest, n_partitions)
    assert sum(crew.n_trees for crew in crews) == 20 == len(model.estimator_.estimators_)
    wanted = slow_scores(model, X, home, crews, votes)
    assert np.allclose(model.calibration_scores_, wanted, rtol=0, atol=1e-12)
    # And the trees saw their own partitions alone: grown from these rows, they come out the same.
    first = 0
    for crew in crews:
        rows = np.flatnonzero(home == crew.partition)
        codes = np.searchsorted(model.classes_, y[rows])
        if len(np.unique(codes)) == k:
            alone = kind(crew.n_trees, max_depth=5, random_state=crew.seed).fit(X[rows], y[rows])
            for j in range(crew.n_trees):
                tree = model.estimator_.estimators_[first + j].tree_
                assert np.array_equal(tree.value, alone.estimators_[j].tree_.value)
                assert np.array_equal(tree.threshold, alone.estimators_[j].tree_.threshold)
        first += crew.n_trees


@pytest.mark.parametrize("n_partitions", [2, 8, 64])
@pytest.mark.parametrize("n_trees", [1, 7, 200])
def test_the_plan_uses_every_partition_alike(n_partitions, n_trees):
    forest = RandomForestClassifier(n_trees, random_state=5)
    if n_trees == 1:
        with pytest.raises(ValueError, match="no partition is in every tree's bag"):
            plan_crews(forest, n_partitions)
        return
    crews = plan_crews(forest, n_partitions)
    sizes = [crew.n_trees for crew in crews]
    assert sum(sizes) == n_trees
    assert max(sizes) - min(sizes) <= 1
    assert bags_of(crews, n_partitions).counts().min() > 0
    assert len({crew.partition for crew in crews}) == min(n_partitions, n_trees)
    assert len({crew.seed for crew in crews}) == len(crews)


def test_a_class_that_a_partition_lacks_is_known_to_its_trees():
    X, y = draw(1, k=3)
    home = np.where(y == "c", 0, np.arange(len(y)) % 4)  # one class in one partition alone
    forest = RandomForestClassifier(12, class_weight={"a": 2, "c": 5}, random_state=1)
    model = CalibratedClassifier(forest, calibrate_on=Partitions(home), random_state=0).fit(X, y)
    trees = model.estimator_.estimators_
    assert all(tree.tree_.value.shape[2] == 3 for tree in trees)
    assert all(list(tree.classes_) == [0, 1, 2] for tree in trees)
    # Rows of weight zero stand for missing classes: they are in no leaf, and count for nothing.
    share_of_c = [tree.tree_.value[:, 0, 2].max() for tree in trees]
    assert sum(share > 0 for share in share_of_c) == 3
    p = model.predict_proba(X)
    assert np.allclose(p.sum(axis=1), 1)
    assert (p >= 0).all()


def test_rows_for_missing_classes_leave_the_bags_as_they_are():
    X, y = draw(2, k=2)
    some = TrainingData(X, np.searchsorted(["a", "b"], y), np.array(["a", "b", "c"]))
    crew = plan_crews(RandomForestClassifier(3, bootstrap=False, random_state=0), 3)[0]
    forest = RandomForestClassifier(3, bootstrap=False, max_features=None, min_samples_leaf=7)
    with_c = grow_crew(forest, some, crew)
    plain = RandomForestClassifier(
        1, bootstrap=False, max_features=None, min_samples_leaf=7, random_state=crew.seed
    ).fit(X, y)
    assert np.array_equal(with_c.classes_, ["a", "b", "c"])
    one, other = with_c.estimators_[0].tree_, plain.estimators_[0].tree_
    assert one.node_count == other.node_count
    assert np.array_equal(one.n_node_samples, other.n_node_samples)
    assert np.allclose(one.value[:, 0, :2], other.value[:, 0])
    assert (one.value[:, 0, 2] == 0).all()


@pytest.mark.parametrize("method", ["venn-abers", "venn"])
def test_an_exchangeable_answer_leaves_out_the_example_whose_trees_it_takes(method):
    X, y = draw(3, k=2)
    home = np.arange(len(X)) % 6
    source = Partitions(home, subforest="exchangeable")
    forest = RandomForestClassifier(12, max_depth=4, random_state=2)
    model = CalibratedClassifier(
        forest, method=method, calibrate_on=source, random_state=0, merge="log"
    ).fit(X, y)
    new = draw(4)[0][:30]
    fold = model._state.folds[0]
    drawn_scores, drawn_left_out = fold.draw(new)
    crews = plan_crews(forest, 6)
    m = model.predict_multiprobability(new)
    whole = slow_scores(model, new, np.full(30, -1), crews)
    assert np.allclose(fold.score(new), whole)
    assert len(set(home[drawn_left_out])) == 6
    for i, left in enumerate(drawn_left_out):
        score = slow_scores(model, new[i : i + 1], [home[left]], crews)[0]
        assert drawn_scores[i] == pytest.approx(score, abs=1e-12)
        keep = np.arange(len(X)) != left
        calibrator = vennforest.VennAbers() if method == "venn-abers" else vennforest.Venn()
        calibrator.fit(model.calibration_scores_[keep], y[keep], classes=["a", "b"])
        bounds = calibrator.predict_multiprobability([drawn_scores[i]])
        assert np.allclose(bounds.lower[0], m.lower[i], rtol=0, atol=1e-9)
        assert np.allclose(bounds.upper[0], m.upper[i], rtol=0, atol=1e-9)


def test_the_forest_tells_no_bags_that_it_never_drew():
    X, y = draw(7)
    model = CalibratedClassifier(
        RandomForestClassifier(8), calibrate_on=Partitions(np.arange(120) % 4)
    ).fit(X, y)
    again = CalibratedClassifier(FrozenEstimator(model.estimator_), calibrate_on="oob")
    with pytest.raises(ValueError, match="frozen model was trained on"):
        again.fit(X, y)
    one = join_forests([RandomForestClassifier(2).fit(X, y), RandomForestClassifier(3).fit(X, y)])
    assert len(one.estimators_) == 5 == one.n_estimators


def test_smallest_keys_of_all_are_among_the_smallest_of_each():
    rng = np.random.default_rng(9)
    for _ in range(200):
        keys = rng.integers(0, 2**64, int(rng.integers(1, 60)), dtype=np.uint64)
        size = int(rng.integers(1, 30))
        whole = np.sort(keys)[:size]
        assert np.array_equal(keys[bottom_sample(keys, size)], whole)
        parts = np.array_split(keys, 3)
        some = np.concatenate([part[bottom_sample(part, size)] for part in parts])
        assert np.array_equal(some[bottom_sample(some, size)], whole)
