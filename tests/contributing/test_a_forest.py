"""A kind of forest, added from outside as CONTRIBUTING.md says: out of bag, saved, loaded."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.validation import check_array, validate_data

import vennforest
from vennforest import CalibratedClassifier
from vennforest.contributing import ForestKind, forest_kinds, register_forest


class HalvedForest(ClassifierMixin, BaseEstimator):
    """Trees, each grown on half of the rows drawn without replacement."""

    def __init__(self, n_estimators=20, random_state=None, lie=False):
        self.n_estimators = n_estimators
        self.random_state = random_state
        self.lie = lie

    def fit(self, X, y):
        X, y = validate_data(self, X, y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        rng = np.random.RandomState(self.random_state)
        self.bags_, self.estimators_ = [], []
        for _ in range(self.n_estimators):
            bag = rng.permutation(len(X))[: len(X) // 2]
            tree = DecisionTreeClassifier(random_state=rng.randint(2**31 - 1))
            self.estimators_.append(tree.fit(X[bag], codes[bag]))
            self.bags_.append(rng.permutation(len(X))[: len(X) // 2] if self.lie else bag)
        return self

    def predict_proba(self, X):
        rows = check_array(X)
        return np.mean([tree.predict_proba(rows) for tree in self.estimators_], axis=0)

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def check(forest):
    if len(forest.bags_) != len(forest.estimators_):
        raise ValueError("bags_ must be of every tree")


if "halved-forest" not in [kind.name for kind in forest_kinds()]:
    register_forest(
        ForestKind(
            "halved-forest",
            fits=lambda estimator: isinstance(estimator, HalvedForest),
            samples=lambda forest, n: forest.bags_,
            ensemble_type=HalvedForest,
            attributes=("classes_", "n_features_in_", "bags_", "estimators_"),
            check=check,
        )
    )

X, y = make_classification(300, flip_y=0.2, random_state=0)
LABELS = np.array(["no", "yes"])[y]


def test_out_of_bag_scores_are_by_the_trees_that_did_not_see_the_row():
    forest = HalvedForest(random_state=0)
    model = CalibratedClassifier(forest, random_state=0).fit(X, LABELS)
    assert model.calibrate_on_ == "oob"
    alone = clone(forest).fit(X, LABELS)
    for i in range(0, 300, 50):
        free = [t for t, b in zip(alone.estimators_, alone.bags_, strict=True) if i not in b]
        own = np.mean([tree.predict_proba(X[i : i + 1])[0, 1] for tree in free])
        assert model.calibration_scores_[i] == pytest.approx(own, abs=1e-12)


def test_a_forest_that_tells_wrong_bags_is_calibrated_on_folds():
    model = CalibratedClassifier(HalvedForest(random_state=0, lie=True), random_state=0)
    assert model.fit(X, LABELS).calibrate_on_ == "cv"
    with pytest.raises(ValueError, match="leaves contain other examples"):
        model.set_params(calibrate_on="oob").fit(X, LABELS)


@pytest.mark.parametrize("subforest", ["all", "exchangeable"])
def test_it_is_saved_and_loaded(tmp_path, subforest):
    forest = HalvedForest(random_state=0)
    model = CalibratedClassifier(forest, subforest=subforest, random_state=0).fit(X, LABELS)
    vennforest.save(model, tmp_path / "model.skops")
    again = vennforest.load(tmp_path / "model.skops")
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    ours, theirs = again.predict_multiprobability(X), model.predict_multiprobability(X)
    assert np.array_equal(ours.lower, theirs.lower)
    assert np.array_equal(ours.upper, theirs.upper)


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="name must be new"):
        register_forest(ForestKind("forest", fits=lambda _: False, samples=lambda *_: []))
