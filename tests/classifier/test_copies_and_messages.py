"""CalibratedClassifier as scikit-learn and its users handle it: copies, searches, messages."""

import copy
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from vennforest import CalibratedClassifier, IsotonicCalibration, PlattScaling, Venn, VennAbers
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.classifier.fitted import Once, predict_together
from vennforest.sources import Holdout


def data(n=120, seed=0, k=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, 3))
    y = np.digitize(X[:, 0] + rng.normal(size=n + 40), [0.2] if k == 2 else [-0.6, 0.6])
    return X[:n], y[:n], X[n:]


def forest(n_estimators=20, **parameters):
    return RandomForestClassifier(n_estimators, random_state=1, **parameters)


# --- copies ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "setup",
    [{}, {"subforest": "exchangeable"}, {"calibrate_on": "cv"}, {"method": "venn"}],
    ids=str,
)
def test_clones_copies_and_pickles_predict_the_same(setup):
    X, y, new = data()
    model = CalibratedClassifier(forest(), random_state=0, **setup).fit(X, y)
    expected = model.predict_proba(new)
    for other in (
        clone(model).fit(X, y),
        copy.deepcopy(model),
        pickle.loads(pickle.dumps(model)),
        model.fit(X, y),
    ):
        assert_array_equal(other.predict_proba(new), expected)
        assert repr(other) == repr(model)
    assert not hasattr(clone(model), "classes_")


def test_parameters_are_kept_as_given():
    calibrator = PlattScaling()
    model = CalibratedClassifier(forest(), method=calibrator, random_state=3)
    assert model.method is calibrator
    assert model.get_params()["estimator__n_estimators"] == 20
    model.set_params(estimator__n_estimators=7, method__targets="hard")
    X, y, _ = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X, y)
    assert len(model.estimator_.estimators_) == 7
    assert model.calibrator_.targets == "hard"
    assert not hasattr(model.estimator, "estimators_")
    assert not hasattr(calibrator, "classes_")
    assert calibrator.targets == "hard"
    assert model.estimator.random_state == 1


def test_the_merge_of_an_instance_holds_unless_another_is_asked_for():
    X, y, _ = data()
    for method, merge, expected in (
        (VennAbers("log"), "auto", "log"),
        (VennAbers("log"), "brier", "brier"),
        ("venn", "auto", "midpoint"),
        (Venn(merge="brier"), "auto", "brier"),
    ):
        model = CalibratedClassifier(GaussianNB(), method=method, merge=merge, cv=2).fit(X, y)
        assert [one.merge for one in model.calibrators_] == [expected] * 2
        assert not hasattr(model, "point_calibrator_")
    for method in ("venn-abers", "venn", Venn()):
        merge = "auto" if method == "venn-abers" else "pooled"
        model = CalibratedClassifier(GaussianNB(), method=method, merge=merge, cv=2).fit(X, y)
        assert type(model.point_calibrator_) is PooledCalibration
    model = CalibratedClassifier(GaussianNB(), method="platt", merge="log").fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_fits_with_one_seed_are_the_same_and_unset_seeds_follow_it():
    X, y, new = data()
    for estimator in (
        None,
        RandomForestClassifier(20),
        make_pipeline(StandardScaler(), RandomForestClassifier(20)),
    ):
        for setup in ({}, {"calibrate_on": "holdout"}, {"calibrate_on": "cv"}):
            if estimator is None:
                setup = {**setup, "cv": 2}
            one, same, other = (
                CalibratedClassifier(estimator, random_state=seed, **setup).fit(X, y)
                for seed in (5, 5, 6)
            )
            assert_array_equal(one.predict_proba(new), same.predict_proba(new))
            assert (one.predict_proba(new) != other.predict_proba(new)).any()
    kept = CalibratedClassifier(forest(), random_state=0).fit(X, y)
    assert kept.estimator_.random_state == 1
    state = CalibratedClassifier(
        forest(), subforest="exchangeable", merge="log", random_state=np.random.RandomState(4)
    )
    first = state.fit(X, y).predict_proba(new)
    assert (state.fit(X, y).predict_proba(new) != first).any()  # the stream goes on


def test_warm_start_of_the_estimator_changes_nothing():
    X, y, new = data()
    cold = CalibratedClassifier(forest(), random_state=0).fit(X, y)
    warm = CalibratedClassifier(forest(warm_start=True), random_state=0).fit(X, y)
    assert_array_equal(warm.fit(X, y).predict_proba(new), cold.predict_proba(new))


def test_a_second_fit_forgets_the_first():
    X, y, new = data(k=3)
    model = CalibratedClassifier(GaussianNB(), cv=3).fit(X, y)
    model.set_params(calibrate_on="holdout", random_state=0).fit(X[:, :2], y > 0)
    assert model.n_features_in_ == 2
    assert model.classes_.tolist() == [False, True]
    assert len(model.calibrators_) == 1
    fresh = clone(model).fit(X[:, :2], y > 0)
    assert_array_equal(model.predict_proba(new[:, :2]), fresh.predict_proba(new[:, :2]))


# --- inside other estimators -----------------------------------------------------------------


def test_it_works_inside_searches_ensembles_and_pipelines():
    X, y, new = data()
    model = CalibratedClassifier(forest(), random_state=0)
    grid = {"method": ["venn-abers", "venn", "platt"], "estimator__max_depth": [1, 4]}
    search = GridSearchCV(model, grid, cv=2, scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert hasattr(search.best_estimator_, "calibrator_")
    assert np.mean(cross_val_score(model, X, y, cv=3)) > 0.6
    assert cross_val_predict(model, X, y, cv=3, method="predict_proba").shape == (120, 2)
    members = [("a", model), ("b", CalibratedClassifier(GaussianNB(), method="isotonic"))]
    for outer in (
        VotingClassifier(members, voting="soft"),
        StackingClassifier(members, cv=2),
        make_pipeline(StandardScaler(), model),
        CalibratedClassifier(model, method="platt", cv=2),
    ):
        p = outer.fit(X, y).predict_proba(new)
        assert_allclose(p.sum(axis=1), 1)


def test_recalibrating_is_fitting_with_another_method():
    X, y, new = data()
    model = CalibratedClassifier(forest(), random_state=0).fit(X, y)
    others = {}
    for method in ("venn", "platt", IsotonicCalibration(), "none"):
        other = model.recalibrate(method)
        expected = CalibratedClassifier(forest(), method=method, random_state=0).fit(X, y)
        assert_array_equal(other.predict_proba(new), expected.predict_proba(new))
        assert other.estimator_ is model.estimator_
        others[str(method)] = other
    together = predict_together([model, *others.values()], new)
    for one, (bounds, p) in zip([model, *others.values()], together, strict=True):
        assert_array_equal(p, one.predict_proba(new))
        assert (bounds is not None) == hasattr(one, "predict_multiprobability")
    with pytest.raises(ValueError, match="models must share their estimators"):
        predict_together([model, clone(model).fit(X, y)], new)
    with pytest.raises(NotFittedError):
        CalibratedClassifier().recalibrate("venn")


# --- scores of any scale ---------------------------------------------------------------------


def test_many_draws_are_kept_only_where_they_are_asked_for_twice():
    class Scorer:
        partial = True
        asked = 0

        def sampled_scores(self, X):
            self.asked += 1
            yield from X

    kept, passed = Scorer(), Scorer()
    for scorer, once in ((kept, Once(kept)), (passed, Once(passed, draws=False))):
        assert list(once.sampled_scores([1, 2])) == list(once.sampled_scores([1, 2])) == [1, 2]
        assert isinstance(once.sampled_scores([1, 2]), list) == (scorer is kept)
    assert kept.asked == 1
    assert passed.asked == 2  # the third was not read


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@pytest.mark.parametrize("method", ["venn-abers", "platt", "isotonic", "temperature"])
def test_the_scale_of_decision_values_does_not_matter(method, scale):
    X, y, new = data()

    class Scaled(LogisticRegression):
        predict_proba = property()

        def decision_function(self, X):
            return super().decision_function(X) * factor

    factor = 1.0
    model = CalibratedClassifier(Scaled(), method=method, random_state=0).fit(X, y)
    assert not hasattr(model.estimators_[0], "predict_proba")
    expected = model.predict_proba(new)
    factor = scale
    model = CalibratedClassifier(Scaled(), method=method, random_state=0).fit(X, y)
    found = model.predict_proba(new)
    assert_allclose(found, expected, rtol=0, atol=1e-6)


# --- who has bounds, and what is refused -----------------------------------------------------


def test_only_venn_predictors_have_bounds():
    X, y, _ = data()
    for method in ("venn-abers", "venn", VennAbers(), Venn("bins")):
        model = CalibratedClassifier(GaussianNB(), method=method)
        assert hasattr(model, "predict_multiprobability")
        assert len(model.fit(X, y).predict_multiprobability(X)) == 120
    for method in ("platt", "isotonic", "bostrom", "beta", "temperature", "none", PlattScaling()):
        model = CalibratedClassifier(GaussianNB(), method=method).fit(X, y)
        assert not hasattr(model, "predict_multiprobability")
        named = isinstance(method, str)
        message = f"{method} gives no bounds: use venn-abers"
        with pytest.raises(
            AttributeError,
            match=message if named else "PlattScaling gives no bounds: use VennAbers",
        ):
            model.predict_multiprobability(X)


def test_nothing_is_there_before_fit():
    model = CalibratedClassifier()
    for call in (model.predict, model.predict_proba, model.predict_multiprobability):
        with pytest.raises(NotFittedError):
            call(data()[0])
    for name in ("estimator_", "estimators_", "calibrator_", "calibrators_", "calibration_y_"):
        assert not hasattr(model, name)
    model = CalibratedClassifier(GaussianNB()).fit(*data()[:2])
    with pytest.raises(AttributeError, match="with one estimator a fold there is estimators_"):
        _ = model.estimator_


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"method": "sigmoid"},
            r"method must be one of \['none', .*\] or a calibrator instance, got 'sigmoid'",
        ),
        ({"method": None}, "method must be one of .*, got None"),
        ({"method": VennAbers}, "method must be one of .*, got <class"),
        ({"calibrate_on": "prefit"}, r"calibrate_on must be one of \['auto', .*got 'prefit'"),
        (
            {"calibrate_on": Holdout},
            r"calibrate_on must be an instance of a source, got Holdout: use Holdout\(\)",
        ),
        ({"subforest": 3}, "subforest must be one of .*, got 3"),
        ({"votes": "veto"}, "votes must be one of .*, got 'veto'"),
        ({"merge": "mean"}, "merge must be one of .*, got 'mean'"),
        ({"ensemble": "yes"}, "ensemble must be a boolean, got 'yes'"),
        ({"holdout_size": 0}, "holdout_size must be a share between 0 and 1 or .*, got 0"),
        ({"holdout_size": 1.5}, "holdout_size must be a share .*, got 1.5"),
        (
            {"calibrate_on": "holdout", "holdout_size": 120},
            "holdout_size must leave examples on both sides of 120, got 120",
        ),
        (
            {"calibrate_on": "holdout", "holdout_size": 0.001},
            "holdout_size must leave examples on both sides of 120, got 0.001",
        ),
    ],
    ids=str,
)
def test_parameters_that_are_none_are_refused(parameters, message):
    X, y, _ = data()
    with pytest.raises(ValueError, match=message):
        CalibratedClassifier(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (SVC, r"estimator must be a classifier \(an instance, not fitted\), got <class"),
        (make_pipeline(StandardScaler, SVC()), r"the class StandardScaler: use StandardScaler\(\)"),
        (make_pipeline(StandardScaler(), SVC), r"the class SVC: use SVC\(\)"),
    ],
    ids=["estimator", "step", "last step"],
)
def test_classes_in_the_place_of_their_instances_are_refused_in_a_sentence(estimator, message):
    X, y, _ = data()
    with pytest.raises(TypeError, match=message):
        CalibratedClassifier(estimator).fit(X, y)


@pytest.mark.parametrize("method", ["bostrom", "beta", "none"])
def test_decision_values_are_refused_by_who_needs_probabilities_with_the_way_out(method):
    X, y, _ = data()
    with pytest.raises(ValueError, match=r"scores must be in \[0, 1\].*take any scores"):
        CalibratedClassifier(LinearSVC(), method=method).fit(X, y)


def test_what_is_no_classifier_is_refused():
    X, y, _ = data(k=3)
    with pytest.raises(TypeError, match="estimator must have predict_proba or decision_function"):
        CalibratedClassifier(Ridge()).fit(X, y)
    for wrong in ("forest", GaussianNB, 3):
        with pytest.raises(TypeError, match="estimator must be a classifier"):
            CalibratedClassifier(wrong).fit(X, y)
    with pytest.raises(ValueError, match="estimator must have one decision value per class"):
        CalibratedClassifier(SVC(decision_function_shape="ovo")).fit(X, y)
    assert CalibratedClassifier(SVC(decision_function_shape="ovo")).fit(X, y > 0).predict(X).any()


# --- import ----------------------------------------------------------------------------------


def test_importing_changes_nothing_of_the_process():
    code = """
import os, sys, warnings, numpy as np, random
np.random.seed(3); random.seed(3)
before = np.geterr(), list(warnings.filters), np.random.get_state()[1].tolist(), random.getstate()
options = np.get_printoptions()
import joblib, numba, scipy.optimize, sklearn.ensemble  # what they do is theirs
before = *before[:1], list(warnings.filters), before[2], random.getstate()
loaded = set(sys.modules)
environment, config = dict(os.environ), sklearn.get_config()
import vennforest
after = np.geterr(), list(warnings.filters), np.random.get_state()[1].tolist(), random.getstate()
assert before[0] == after[0], "numpy's error state"
assert before[1] == after[1], "warnings filters"
assert before[2] == after[2] and before[3] == after[3], "random state"
assert options == np.get_printoptions() and config == sklearn.get_config()
assert {k: v for k, v in os.environ.items() if k in environment} == environment
heavy = {"matplotlib", "pandas", "polars", "dask", "skops", "typer", "rich", "jinja2", "skrub"}
assert not heavy & set(sys.modules) - loaded, heavy & set(sys.modules) - loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_fitting_and_predicting_leave_the_process_alone():
    X, y, new = data()
    np.random.seed(3)  # noqa: NPY002
    before = np.geterr(), list(warnings.filters), np.random.get_state()[1].tolist()  # noqa: NPY002
    for method in ("venn-abers", "platt", "temperature"):
        CalibratedClassifier(KNeighborsClassifier(), method=method, random_state=0).fit(
            X, y
        ).predict_proba(new)
    CalibratedClassifier(forest(), random_state=0).fit(X, y).predict_proba(new)
    after = np.geterr(), list(warnings.filters), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert before == after


def test_venn_prediction_of_decision_values_parts_labels_at_zero():
    X, y = make_classification(300, 6, n_informative=4, flip_y=0.2, random_state=0)
    svm = LinearSVC(random_state=0)
    model = CalibratedClassifier(svm, method="venn", calibrate_on="holdout", random_state=0)
    model.fit(X[:200], y[:200])
    predicted = model.estimator_.predict(X[200:])
    intervals = model.predict_multiprobability(X[200:])
    for label in (0, 1):  # one interval for each predicted label, and another for the other
        assert len(np.unique(intervals.p0[predicted == label])) == 1
    assert len(np.unique(intervals.p0)) == 2
