"""Bags by partition: what each tree saw, and who scores whom, against the obvious loops."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator

import vennforest
from vennforest import CalibratedClassifier
from vennforest.sources import Partitions
from vennforest.sources.base import TrainingData
from vennforest.sources.partitions import bags_of, bottom_sample, grow, join_forests, plan

LABELS = np.array(["a", "b", "c"])


def draw(seed, n=120, k=2, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(np.float32)
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    return X, LABELS[y]


def slow_scores(model, X, home, crews, votes="soft"):
    """Each row scored by the trees whose partitions do not hold it, one after another."""
    owners = [crew.partitions for crew in crews for _ in range(crew.n_trees)]
    k = len(model.classes_)
    out = np.zeros((len(X), k))
    for i, row in enumerate(X):
        said = []
        for tree, held in zip(model.estimator_.estimators_, owners, strict=True):
            if home[i] not in held:
                p = tree.predict_proba(row[None])[0]
                said.append(np.eye(k)[p.argmax()] if votes == "hard" else p)
        out[i] = np.mean(said, axis=0)
    return out[:, 1] if k == 2 else out


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [2, 3])
def test_every_row_is_scored_by_the_trees_of_other_partitions(seed, k):
    rng = np.random.default_rng(seed)
    X, y = draw(seed, k=k)
    n_partitions, per_tree = [(2, 1), (5, 1), (7, 3), (4, 2), (9, 8), (30, 1)][seed]
    home = rng.integers(0, n_partitions, len(X))
    home[:n_partitions] = np.arange(n_partitions)
    kind = (RandomForestClassifier, ExtraTreesClassifier)[seed % 2]
    forest = kind(20, max_depth=5, random_state=seed)
    votes = ("soft", "hard")[seed % 3 == 0]
    source = Partitions(home * 10 + 3, per_tree=per_tree, votes=votes)  # any labels will do
    model = CalibratedClassifier(forest, calibrate_on=source, random_state=0).fit(X, y)
    crews = plan(forest, n_partitions, per_tree)
    assert sum(crew.n_trees for crew in crews) == 20 == len(model.estimator_.estimators_)
    wanted = slow_scores(model, X, home, crews, votes)
    assert np.allclose(model.calibration_scores_, wanted, rtol=0, atol=1e-12)
    # And the trees saw their own partitions alone: grown from these rows, they come out the same.
    first = 0
    for crew in crews:
        rows = np.concatenate([np.flatnonzero(home == p) for p in crew.partitions])
        codes = np.searchsorted(model.classes_, y[rows])
        if len(np.unique(codes)) == k:
            alone = kind(crew.n_trees, max_depth=5, random_state=crew.seed).fit(X[rows], y[rows])
            for j in range(crew.n_trees):
                tree = model.estimator_.estimators_[first + j].tree_
                assert np.array_equal(tree.value, alone.estimators_[j].tree_.value)
                assert np.array_equal(tree.threshold, alone.estimators_[j].tree_.threshold)
        first += crew.n_trees


@pytest.mark.parametrize("n_partitions", [2, 3, 8, 64])
@pytest.mark.parametrize("n_trees", [2, 7, 64, 200])
@pytest.mark.parametrize("per_tree", [1, 2, 7])
def test_the_plan_uses_every_partition_alike(n_partitions, n_trees, per_tree):
    forest = RandomForestClassifier(n_trees, random_state=5)
    if per_tree >= n_partitions:
        with pytest.raises(ValueError, match=r"per_tree must be below .* got"):
            plan(forest, n_partitions, per_tree)
        return
    try:
        crews = plan(forest, n_partitions, per_tree)
    except ValueError as error:
        assert "no partition is in every tree's bag" in str(error)
        assert n_trees < n_partitions
        return
    assert sum(crew.n_trees for crew in crews) == n_trees
    assert max(c.n_trees for c in crews) - min(c.n_trees for c in crews) <= 1
    assert all(len(set(crew.partitions)) == per_tree for crew in crews)
    membership = bags_of(crews, n_partitions)
    assert membership.counts().min() > 0
    times = np.bincount([p for crew in crews for p in crew.partitions], minlength=n_partitions)
    if len(crews) == n_partitions:
        assert (times == per_tree).all()
    else:
        assert times.sum() == per_tree * n_trees
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
    some = TrainingData(X, y, np.searchsorted(["a", "b"], y), np.array(["a", "b", "c"]))
    crew = plan(RandomForestClassifier(3, bootstrap=False, random_state=0), 3, 1)[0]
    forest = RandomForestClassifier(3, bootstrap=False, max_features=None, min_samples_leaf=7)
    with_c = grow(forest, some, crew)
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
    scorer = model._state.folds[0].scorer
    (drawn,) = list(scorer.sampled_scores(new))
    crews = plan(forest, 6, 1)
    m = model.predict_multiprobability(new)
    whole = slow_scores(model, np.repeat(new, 1, axis=0), np.full(30, -1), crews)
    assert np.allclose(scorer.whole(new), whole)
    assert len(set(home[drawn.left_out])) == 6
    for i, left in enumerate(drawn.left_out):
        score = slow_scores(model, new[i : i + 1], [home[left]], crews)[0]
        assert drawn.scores[i] == pytest.approx(score, abs=1e-12)
        keep = np.arange(len(X)) != left
        calibrator = vennforest.VennAbers() if method == "venn-abers" else vennforest.Venn()
        calibrator.fit(model.calibration_scores_[keep], y[keep], classes=["a", "b"])
        bounds = calibrator.predict_multiprobability([drawn.scores[i]])
        assert np.allclose(bounds.lower[0], m.lower[i], rtol=0, atol=1e-9)
        assert np.allclose(bounds.upper[0], m.upper[i], rtol=0, atol=1e-9)


def test_weights_groups_frames_and_sparse_rows():
    import pandas as pd
    from scipy.sparse import csr_array

    X, y = draw(5, n=90)
    groups = np.arange(90) // 3
    forest = RandomForestClassifier(9, random_state=1)
    source = Partitions(5)
    model = CalibratedClassifier(forest, calibrate_on=source, random_state=0)
    model.fit(X, y, groups=groups)
    home = model._state.folds[0].scorer.homes
    assert (home.reshape(30, 3) == home[::3, None]).all()
    assert sorted(np.bincount(home)) == [18] * 5
    frame = pd.DataFrame(X, columns=["u", "v", "w"])
    for other in (frame, csr_array(X)):
        again = CalibratedClassifier(forest, calibrate_on=source, random_state=0)
        again.fit(other, y, groups=groups)
        assert np.array_equal(again.calibration_scores_, model.calibration_scores_)
        assert np.array_equal(again.predict_proba(other), model.predict_proba(X))
    given = CalibratedClassifier(forest, calibrate_on=Partitions(home), random_state=0)
    weight = np.where(np.arange(90) % 4 == 0, 0.0, 2.0)
    given.fit(X, y, sample_weight=weight)
    kept = CalibratedClassifier(forest, calibrate_on=Partitions(home[weight > 0]), random_state=0)
    kept.fit(X[weight > 0], y[weight > 0], sample_weight=weight[weight > 0])
    assert np.array_equal(given.predict_proba(X), kept.predict_proba(X))
    with pytest.raises(ValueError, match="of must keep every group in one partition"):
        CalibratedClassifier(forest, calibrate_on=Partitions(np.arange(90) % 2)).fit(
            X, y, groups=groups
        )


def test_groups_within_given_partitions_change_no_score():
    X, y = draw(5)
    groups = np.arange(len(y)) // 3
    source = Partitions(groups % 4)
    forest = RandomForestClassifier(8)
    model = CalibratedClassifier(forest, calibrate_on=source, random_state=0)
    grouped = clone(model).fit(X, y, groups=groups)
    model.fit(X, y)
    assert np.array_equal(grouped.calibration_scores_, model.calibration_scores_)
    assert len(grouped.calibration_scores_) == len(y)


def test_what_is_refused():
    X, y = draw(6)
    forest = RandomForestClassifier(4)

    def fit(source, estimator=forest):
        CalibratedClassifier(estimator, calibrate_on=source).fit(X, y)

    with pytest.raises(ValueError, match=r"partition of every row, got None, .* for vennforest"):
        fit(Partitions(None))
    with pytest.raises(ValueError, match="of must be an integer >= 2, got 1"):
        fit(Partitions(1))
    with pytest.raises(ValueError, match="of must be at most 120, the number of examples, got 121"):
        fit(Partitions(121))
    with pytest.raises(ValueError, match="of must name two partitions or more, got one"):
        fit(Partitions(np.zeros(120)))
    with pytest.raises(ValueError, match=r"have shape \(120,\)"):
        fit(Partitions(np.zeros(119)))
    with pytest.raises(ValueError, match="per_tree must be below the number of partitions, 3"):
        fit(Partitions(3, per_tree=3))
    with pytest.raises(ValueError, match="per_tree must be an integer >= 1, got 0"):
        fit(Partitions(3, per_tree=0))
    with pytest.raises(ValueError, match="n_draws must be an integer >= 1, got 0"):
        fit(Partitions(3, n_draws=0))
    with pytest.raises(ValueError, match="subforest must be one of"):
        fit(Partitions(3, subforest="joined"))
    for wrong in (BaggingClassifier(), FrozenEstimator(forest.fit(X, y))):
        with pytest.raises(ValueError, match="estimator must be a RandomForestClassifier or an"):
            fit(Partitions(3), wrong)


def test_the_forest_tells_no_bags_that_it_never_drew():
    X, y = draw(7)
    model = CalibratedClassifier(RandomForestClassifier(8), calibrate_on=Partitions(4)).fit(X, y)
    again = CalibratedClassifier(FrozenEstimator(model.estimator_), calibrate_on="oob")
    with pytest.raises(ValueError, match="frozen model was trained on"):
        again.fit(X, y)
    one = join_forests([RandomForestClassifier(2).fit(X, y), RandomForestClassifier(3).fit(X, y)])
    assert len(one.estimators_) == 5 == one.n_estimators


@pytest.mark.parametrize("subforest", ["all", "exchangeable"])
def test_it_is_saved_and_loaded(subforest, tmp_path):
    X, y = draw(8)
    source = Partitions(4, subforest=subforest)
    model = CalibratedClassifier(RandomForestClassifier(8), calibrate_on=source).fit(X, y)
    vennforest.save(model, tmp_path / "model.skops")
    again = vennforest.load(tmp_path / "model.skops")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    m, n = model.predict_multiprobability(X), again.predict_multiprobability(X)
    assert np.array_equal(m.lower, n.lower)
    scorer = model._state.folds[0].scorer
    scorer.homes[0] = 4
    with pytest.raises(ValueError, match="homes"):
        vennforest.save(model, tmp_path / "forged.skops")


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


def test_training_rows_are_predicted_without_their_own_label():
    X, y = draw(10, n=60)
    source = Partitions(4)
    model = CalibratedClassifier(
        RandomForestClassifier(8, max_depth=3), calibrate_on=source, merge="log", random_state=0
    ).fit(X, y)
    bounds = model.oob_multiprobability_
    for i in (0, 17, 59):
        keep = np.arange(60) != i
        one = vennforest.VennAbers().fit(model.calibration_scores_[keep], y[keep])
        wanted = one.predict_multiprobability(model.calibration_scores_[i : i + 1])
        assert np.allclose(bounds.lower[i], wanted.lower[0], rtol=0, atol=1e-9)
        assert np.allclose(bounds.upper[i], wanted.upper[0], rtol=0, atol=1e-9)


@pytest.mark.parametrize("subforest", ["all", "exchangeable"])
def test_groups_of_objects_are_calibrated_apart(subforest):
    X, y = draw(11, n=120)
    site = np.arange(120) % 2
    model = CalibratedClassifier(
        RandomForestClassifier(8, max_depth=3),
        calibrate_on=Partitions(4, subforest=subforest),
        by=lambda rows: np.asarray(rows)[:, 3],
        merge="log",
        random_state=0,
    ).fit(np.column_stack([X, site]), y)
    p = model.predict_proba(np.column_stack([X, site]))
    assert np.allclose(p.sum(axis=1), 1)
    m = model.predict_multiprobability(np.column_stack([X, site]))
    assert ((m.lower <= p + 1e-12) & (p <= m.upper + 1e-12)).all()
