"""Forests over partitions, in one process: what they are equal to, and what they refuse."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from report.reading import numbers_in
from support.partitions import (
    FEATURES,
    Partitions,
    check_forest,
    cut,
    draw_features,
    engine_of,
)
from vennforest import CalibratedClassifier
from vennforest._messages import CalibrationWarning, InputError
from vennforest.engines import _forest
from vennforest.engines._forest import fit_partitions, grow_crew, plan_crews

FOREST = RandomForestClassifier(10, max_depth=4)


def fit(model, parts, features=FEATURES, target="y"):
    return fit_partitions(model, engine_of(parts), features, target)


@pytest.mark.parametrize(("k", "votes"), [(2, "soft"), (3, "soft"), (2, "hard"), (3, "hard")])
def test_a_forest_over_partitions_is_that_of_one_machine(k, votes):
    """Every row is scored by the trees of other partitions; some partitions grow none."""
    frame = draw_features(k=k)
    sizes = [60, 0, 90, 30] if k == 2 else [20] * 11
    home = np.repeat(np.arange(len(sizes) + 1), [*sizes, 240 - sum(sizes)])
    forest = FOREST if k == 2 else ExtraTreesClassifier(10, max_depth=4)
    model = CalibratedClassifier(forest, votes=votes, random_state=3)
    fitted = fit(model, cut(frame, *sizes))
    alone = model.set_params(calibrate_on=Partitions(home, votes), votes="soft")
    alone.fit(frame[FEATURES], frame["y"])
    if votes == "soft":
        check_forest(fitted, alone, draw_features(60, seed=8)[FEATURES])
    scores, expected = (np.sort(m.calibration_scores_, axis=0) for m in (fitted, alone))
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    assert fitted.calibrate_on_ == "partitions"
    assert len(np.unique(home)) in numbers_in(fitted.calibrate_on_reason_)
    if votes == "hard":
        trees, X = fitted.estimator_.estimators_, frame[FEATURES].to_numpy()
        shares = np.mean([np.eye(k)[tree.predict_proba(X).argmax(axis=1)] for tree in trees], 0)
        scores = fitted._state.folds[0].score(frame[FEATURES])
        np.testing.assert_allclose(scores, shares[:, 1] if k == 2 else shares, atol=1e-12)


@pytest.mark.parametrize("method", ["venn-abers", "isotonic"])
def test_many_rows_calibrate_as_counts(method, monkeypatch):
    monkeypatch.setattr(_forest, "MAX_SCORES", 299)
    frame = draw_features(300)
    model = CalibratedClassifier(FOREST, method=method, random_state=1)
    fitted = fit(model, cut(frame, 100, 150))
    assert fitted._state.folds[0].weight.sum() == 300
    assert len(fitted.calibration_scores_) < 300
    monkeypatch.undo()
    rows = fit(model, cut(frame, 100, 150))
    X = frame[FEATURES]
    np.testing.assert_allclose(fitted.predict_proba(X), rows.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_partitions", [2, 8, 64])
@pytest.mark.parametrize("n_trees", [1, 7, 200])
def test_the_plan_uses_every_partition_alike(n_partitions, n_trees):
    forest, numbers = RandomForestClassifier(n_trees, random_state=5), [*range(3, n_partitions + 3)]
    if n_trees == 1:
        with pytest.raises(ValueError, match="no partition is in every tree's bag"):
            plan_crews(forest, numbers)
        return
    crews = plan_crews(forest, numbers)
    sizes = [crew.n_estimators for crew in crews.values()]
    assert sum(sizes) == n_trees and max(sizes) - min(sizes) <= 1
    assert len(crews) == min(n_partitions, n_trees) and set(crews) <= set(numbers)
    assert len({crew.random_state for crew in crews.values()}) == len(crews)


def test_a_class_that_a_partition_lacks_is_known_to_its_trees():
    frame = draw_features(k=3).sort_values("y", ascending=False)  # one class in one partition
    n = int((frame["y"] == "zero").sum())
    forest = RandomForestClassifier(12, class_weight={"no": 2, "zero": 5}, random_state=1)
    model = fit(CalibratedClassifier(forest, random_state=0), cut(frame, n, 50, 50))
    trees = model.estimator_.estimators_
    assert all(tree.tree_.value.shape[2] == 3 for tree in trees)
    # Rows of weight zero stand for missing classes: they are in no leaf, and count for nothing.
    assert sum(tree.tree_.value[:, 0, 2].max() > 0 for tree in trees) == 3
    assert np.allclose(model.predict_proba(frame[FEATURES]).sum(axis=1), 1)


def test_rows_for_missing_classes_leave_the_bags_as_they_are():
    frame = draw_features(120)
    X, y = frame[FEATURES].to_numpy(), frame["y"].to_numpy(str)
    options = {"bootstrap": False, "max_features": None, "min_samples_leaf": 7}
    forest, classes = RandomForestClassifier(1, **options, random_state=11), ["no", "yes", "zero"]
    plain = clone(forest).fit(X, y)
    with_class = grow_crew(forest, X, y, np.array(classes))
    assert np.array_equal(with_class.classes_, classes)
    tree, expected = with_class.estimators_[0].tree_, plain.estimators_[0].tree_
    assert np.array_equal(tree.n_node_samples, expected.n_node_samples)
    assert np.allclose(tree.value[:, 0, :2], expected.value[:, 0])
    assert (tree.value[:, 0, 2] == 0).all()


def test_the_forest_tells_no_bags_that_it_never_drew():
    frame = draw_features(120)
    X, y = frame[FEATURES], frame["y"]
    model = fit(CalibratedClassifier(FOREST), cut(frame, 30, 30, 30))
    again = CalibratedClassifier(FrozenEstimator(model.estimator_), calibrate_on="oob")
    with pytest.raises(ValueError, match="frozen model was trained on"):
        again.fit(X, y)


@pytest.mark.parametrize("column", ["u", "y"])
def test_partitions_that_change_are_refused(column):
    frame = draw_features(100)
    rng = np.random.default_rng(0)

    def run(columns, task):  # the second partition is read in another order each time
        other = frame[50:].assign(**{column: rng.permutation(frame[column][50:])})
        return engine_of([frame[:50], other])(columns, task)

    message = "partition 1: the rows must be the same each time that they are read, got others"
    with pytest.raises(InputError, match=message):
        fit_partitions(CalibratedClassifier(FOREST), run, FEATURES, "y")
    shuffled = engine_of([frame[:50], frame[50:]])

    def reordered(columns, task):
        parts = [frame[:50], frame[50:].sample(frac=1, random_state=rng.integers(99))]
        return shuffled(columns, task) if rng.random() < 0.5 else engine_of(parts)(columns, task)

    fit_partitions(CalibratedClassifier(FOREST), reordered, FEATURES, "y")


@pytest.mark.parametrize("value", [np.inf, 1e39])
def test_an_infinite_feature_is_refused(value):
    frame = draw_features(100).astype({"v": float})
    frame.loc[60, "v"] = value
    with pytest.raises(InputError, match="partition 1: Input X contains infinity or a value too"):
        fit(CalibratedClassifier(FOREST), cut(frame, 50))


def test_what_a_forest_over_partitions_refuses():
    frame = draw_features(100)
    parts, model = cut(frame, 50), CalibratedClassifier(FOREST)
    with pytest.raises(InputError, match="at least two partitions with rows, got 1"):
        fit(model, cut(frame, 0))
    with pytest.raises(InputError, match="must contain two classes or more"):
        fit(model, cut(frame.assign(y="no"), 50))
    with pytest.raises(InputError, match="partition 0: column 'y' must contain numbers, got '"):
        fit(model, parts, ["y", "v"], "u")
    for name, value in (("calibrate_on", "cv"), ("by", "u"), ("subforest", "exchangeable")):
        with pytest.raises(InputError, match=f"{name} must be .* where trees are grown on part"):
            fit(CalibratedClassifier(FOREST).set_params(**{name: value}), parts)
    with pytest.raises(InputError, match="estimator must be a RandomForestClassifier"):
        fit(CalibratedClassifier(LogisticRegression()), parts)


def test_a_forest_over_partitions_leaves_rows_without_a_label_out():
    frame = draw_features(100)
    missing = frame["y"].where(~frame.index.isin([3, 44, 70]), None)
    model = CalibratedClassifier(FOREST, random_state=0)
    with pytest.warns(CalibrationWarning, match="^3 rows have no 'y' and are left out$"):
        fitted = fit(model, cut(frame.assign(y=missing), 50))
    expected = fit(
        model, [part.drop(index=[3, 44, 70], errors="ignore") for part in cut(frame, 50)]
    )
    X = frame[FEATURES]
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))
