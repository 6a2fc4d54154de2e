"""CalibratedClassifier as an estimator of scikit-learn: copies, seeds, refits, searches."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from support.cases import draw_rows
from vennforest import CalibratedClassifier, PlattScaling, Venn, VennAbers


def forest():
    return RandomForestClassifier(15, random_state=1)


def naive_bayes(**settings):
    """Return a model of few folds and no pool."""
    return CalibratedClassifier(GaussianNB(), **{"merge": "log", "cv": 2, **settings})


def test_parameters_are_kept_as_given():
    calibrator = PlattScaling()
    model = CalibratedClassifier(forest(), method=calibrator, random_state=3)
    assert model.method is calibrator
    assert model.get_params()["estimator__n_estimators"] == 15
    model.set_params(estimator__n_estimators=7, method__targets="hard")
    X, y, _ = draw_rows()
    model.fit(X, y)
    assert len(model.estimator_.estimators_) == 7
    assert model.calibrator_.targets == calibrator.targets == "hard"
    assert not hasattr(model.estimator, "estimators_") and not hasattr(calibrator, "classes_")
    assert model.estimator.random_state == 1


def test_fits_with_one_seed_are_the_same_and_unset_seeds_follow_it():
    X, y, new = draw_rows()
    unset = RandomForestClassifier(10)
    for estimator, source in (
        (None, "auto"),
        (unset, "holdout"),
        (make_pipeline(StandardScaler(), unset), "auto"),
        (make_pipeline(StandardScaler(), unset), "cv"),
    ):
        one, same, other = (
            CalibratedClassifier(
                estimator, calibrate_on=source, merge="log", cv=2, random_state=seed
            )
            .fit(X, y)
            .predict_proba(new)
            for seed in (5, 5, 6)
        )
        assert_array_equal(one, same)
        assert (one != other).any()
    kept = CalibratedClassifier(forest(), merge="log", random_state=0).fit(X, y)
    assert kept.estimator_.random_state == 1
    state = CalibratedClassifier(
        forest(), subforest="exchangeable", merge="log", random_state=np.random.RandomState(4)
    )
    first = state.fit(X, y).predict_proba(new)
    assert (state.fit(X, y).predict_proba(new) != first).any()  # the stream goes on


def test_a_second_fit_forgets_the_first():
    X, y, new = draw_rows(k=3)
    model = naive_bayes().fit(X, y)
    model.set_params(calibrate_on="holdout", random_state=0).fit(X[:, :2], y > 0)
    assert model.n_features_in_ == 2
    assert model.classes_.tolist() == [False, True]
    assert len(model.calibrators_) == 1
    fresh = clone(model).fit(X[:, :2], y > 0)
    assert_array_equal(model.predict_proba(new[:, :2]), fresh.predict_proba(new[:, :2]))


def test_settings_that_change_after_fit_wait_for_the_next():
    X, y, _ = draw_rows()
    model = naive_bayes().fit(X, y)
    p, bounds = model.predict_proba(X), model.predict_multiprobability(X)
    model.set_params(method="platt", merge="auto")
    assert_array_equal(model.predict_proba(X), p)
    assert_array_equal(model.predict_multiprobability(X).lower, bounds.lower)
    model.fit(X, y)
    assert not hasattr(model, "predict_multiprobability")
    model.set_params(method="venn-abers")
    assert not hasattr(model, "predict_multiprobability")


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X, y, _ = draw_rows()
    model = naive_bayes().fit(X, y)
    p = model.predict_proba(X)
    with pytest.raises(ValueError, match="two classes"):
        model.fit(X, np.zeros(len(y)))
    assert_array_equal(model.predict_proba(X), p)


def test_it_works_inside_searches_ensembles_and_pipelines():
    X, y, new = draw_rows()
    model = CalibratedClassifier(forest(), merge="log", random_state=0)
    grid = {"method": ["venn-abers", "platt"], "estimator__max_depth": [1, 4]}
    search = GridSearchCV(model, grid, cv=2, scoring="neg_log_loss").fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert hasattr(search.best_estimator_, "calibrator_")
    assert np.mean(cross_val_score(model, X, y, cv=2)) > 0.6
    assert cross_val_predict(model, X, y, cv=2, method="predict_proba").shape == (120, 2)
    members = [("a", model), ("b", CalibratedClassifier(GaussianNB(), method="isotonic"))]
    for outer in (
        VotingClassifier(members, voting="soft"),
        StackingClassifier(members, cv=2),
        make_pipeline(StandardScaler(), model),
        CalibratedClassifier(model, method="platt", cv=2),
    ):
        p = outer.fit(X, y).predict_proba(new)
        assert_allclose(p.sum(axis=1), 1)


def test_only_venn_predictors_have_bounds():
    X, y, _ = draw_rows()
    for method in ("venn-abers", VennAbers(), Venn("bins")):
        model = naive_bayes(method=method)
        assert hasattr(model, "predict_multiprobability")
        assert len(model.fit(X, y).predict_multiprobability(X)) == 120
    for method in ("isotonic", "none", PlattScaling()):
        model = naive_bayes(method=method, merge="auto").fit(X, y)
        with pytest.raises(AttributeError, match="predict_multiprobability") as caught:
            model.predict_multiprobability(X)
        assert str(caught.value.__cause__).endswith("gives no bounds: use VennAbers")


def test_nothing_is_there_before_fit():
    model = CalibratedClassifier()
    for call in (model.predict, model.predict_proba, model.predict_multiprobability):
        with pytest.raises(NotFittedError):
            call(draw_rows()[0])
    for name in ("estimator_", "estimators_", "calibrator_", "calibrators_", "calibration_y_"):
        assert not hasattr(model, name)
    model = naive_bayes().fit(*draw_rows()[:2])
    with pytest.raises(AttributeError, match="with one estimator per fold there is estimators_"):
        _ = model.estimator_


def test_fitting_and_predicting_leave_the_process_alone():
    X, y, new = draw_rows()
    np.random.seed(3)  # noqa: NPY002
    before = np.geterr(), list(warnings.filters), np.random.get_state()[1].tolist()  # noqa: NPY002
    for estimator, method in ((KNeighborsClassifier(), "platt"), (forest(), "venn-abers")):
        model = CalibratedClassifier(estimator, method=method, random_state=0)
        model.fit(X, y).predict_proba(new)
    after = np.geterr(), list(warnings.filters), np.random.get_state()[1].tolist()  # noqa: NPY002
    assert before == after


def test_importances_are_the_mean_over_models():
    X, y, _ = draw_rows(n=90)
    model = CalibratedClassifier(forest(), calibrate_on="cv", cv=2, random_state=0).fit(X, y)
    means = np.mean([fitted.feature_importances_ for fitted in model.estimators_], axis=0)
    assert_allclose(model.feature_importances_, means)
    assert not hasattr(naive_bayes().fit(X, y), "feature_importances_")
