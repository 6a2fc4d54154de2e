"""What a model says of its training rows, each without its own label."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

import vennforest
from vennforest import (
    CalibratedClassifier,
    PlattScaling,
    VennAbers,
)
from vennforest.calibrators import METHODS, PooledCalibration
from vennforest.classifier import prediction
from vennforest.tables import table_pipeline


def data(n=90, k=2, seed=0):
    X, y = make_classification(
        n, 5, n_informative=4, n_redundant=0, n_classes=k, flip_y=0.2, random_state=seed
    )
    return X, np.array(["a", "b", "c"])[y]


def forest(trees=20):
    return RandomForestClassifier(trees, random_state=0, max_depth=4)


def flipped(y, i):
    other = y.copy()
    other[i] = next(label for label in np.unique(y) if label != y[i])
    return other


@pytest.fixture(autouse=True)
def fewer_folds(monkeypatch):
    monkeypatch.setattr(prediction, "N_REFITS", 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("k", [2, 3])
def test_no_row_is_predicted_with_its_own_label(method, k):
    # A frozen model scores a row whatever its label: the whole prediction has to stay.
    X, y = data(70, k)
    frozen = FrozenEstimator(GaussianNB().fit(X[:40], y[:40]))
    X, y = X[40:], y[40:]

    def fit(labels):
        return CalibratedClassifier(frozen, method=method).fit(X, labels)

    before = fit(y)
    for i in (7,) if method in ("pooled", "venn-abers") else (0, 7, 29):
        after = fit(flipped(y, i))
        assert_array_equal(before.oob_probability_[i], after.oob_probability_[i])
        if hasattr(before, "predict_multiprobability"):
            mine, other = before.oob_multiprobability_, after.oob_multiprobability_
            assert_array_equal(mine.lower[i], other.lower[i])
            assert_array_equal(mine.upper[i], other.upper[i])
        if method not in ("none", "venn", "bostrom"):  # others do hear of it
            assert (before.oob_probability_ != after.oob_probability_).any()


@pytest.mark.parametrize("merge", ["auto", "log"])
def test_rows_are_calibrated_without_the_part_they_are_in(merge):
    X, y = data()
    model = CalibratedClassifier(forest(), merge=merge, random_state=0).fit(X, y)
    scores, p, bounds = (
        model.calibration_scores_,
        model.oob_probability_,
        model.oob_multiprobability_,
    )
    part = np.random.RandomState(0).permutation(90) % 2
    for held in range(2):
        rows, rest = part == held, part != held
        slow = VennAbers().fit(scores[rest], y[rest]).predict_multiprobability(scores[rows])
        expected = slow.merge("log")
        if merge == "auto":
            expected = PooledCalibration().fit(scores[rest], y[rest]).predict_proba(scores[rows])
            slow = slow.widen(expected)
        assert_allclose(p[rows], expected, atol=1e-12)
        assert_allclose(bounds.lower[rows], slow.lower, atol=1e-12)
        assert_allclose(bounds.upper[rows], slow.upper, atol=1e-12)


def test_each_row_has_the_score_of_the_model_that_did_not_see_it():
    X, y = data()
    folds = KFold(4, shuffle=True, random_state=1)
    proba = cross_val_predict(GaussianNB(), X, y, cv=folds, method="predict_proba")
    for ensemble in (True, False):
        model = CalibratedClassifier(GaussianNB(), method="none", cv=folds, ensemble=ensemble)
        assert_allclose(model.fit(X, y).oob_probability_, proba)
    weight = np.where(np.arange(90) % 10 == 3, 0.0, 1.0)
    model.fit(X, y, sample_weight=weight)
    assert_array_equal(np.isnan(model.oob_probability_).any(axis=1), weight == 0)
    several = [(np.arange(45), np.arange(45, 90)), (np.arange(60), np.arange(60, 90))]
    model = CalibratedClassifier(GaussianNB(), method="none", cv=several).fit(X, y)
    first, second = (GaussianNB().fit(X[a], y[a]) for a, _ in several)
    got = model.oob_probability_
    assert np.isnan(got[:45]).all()
    assert_allclose(got[45:60], first.predict_proba(X[45:60]))
    assert_allclose(got[60:], (first.predict_proba(X[60:]) + second.predict_proba(X[60:])) / 2)


def test_out_of_bag_rows_agree_with_the_forest():
    X, y = data()
    few = RandomForestClassifier(3, random_state=0, oob_score=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that some rows are out of bag for no tree
        model = CalibratedClassifier(few, method="none", calibrate_on="oob", random_state=0)
        got = model.fit(X, y).oob_probability_
    assert 0 < np.isnan(got).any(axis=1).sum() < 50
    decision = model.estimator_.oob_decision_function_
    seen = ~np.isnan(got).any(axis=1)
    assert_allclose(got[seen], decision[seen])


@pytest.mark.parametrize(
    "options",
    [
        {"calibrate_on": "holdout", "merge": "brier"},
        {"subforest": "exchangeable", "merge": "log"},
        {"calibrate_on": "cv", "cv": 3, "method": "venn"},
        {"calibrate_on": "cv", "cv": 3, "ensemble": False, "method": "venn"},
        {"estimator": BaggingClassifier(GaussianNB(), 20, random_state=0)},  # the pool
        {"calibrate_on": "cv", "cv": ShuffleSplit(3, random_state=0), "merge": "log"},
    ],
    ids=str,
)
def test_every_source_says_which_rows_it_scored(options, tmp_path):
    X, y = data(120)
    model = CalibratedClassifier(**{"estimator": forest(), "random_state": 0, **options}).fit(X, y)
    p, bounds = model.oob_probability_, model.oob_multiprobability_
    assert p.shape == bounds.lower.shape == (120, 2)
    scored = ~np.isnan(p[:, 1])
    rows = np.concatenate([part.rows for part in model._state.folds])
    assert_array_equal(np.flatnonzero(scored), np.unique(rows))
    codes = np.concatenate([part.codes for part in model._state.folds])
    assert_array_equal(model.classes_[codes], y[rows])
    inside = (p[scored] >= bounds.lower[scored]) & (p[scored] <= bounds.upper[scored])
    assert inside.all()
    vennforest.save(model, tmp_path / "model.skops")
    again = vennforest.load(tmp_path / "model.skops")
    assert_array_equal(again.oob_probability_, p)
    platt = model.recalibrate("platt")
    assert_array_equal(np.isnan(platt.oob_probability_[:, 1]), ~scored)


def test_groups_leave_as_a_whole():
    X, y = data(60)
    groups = np.repeat(np.arange(15), 4)
    frozen = FrozenEstimator(GaussianNB().fit(*data(60, seed=1)))
    for method in ("venn-abers", "platt", "venn"):

        def fit(labels, method=method):
            own = CalibratedClassifier(frozen, method=method, merge="midpoint")
            return own.fit(X, labels, groups=groups)

        before, after = fit(y), fit(flipped(y, 8))
        mates = groups == groups[8]
        assert_array_equal(before.oob_probability_[mates], after.oob_probability_[mates])
        if method == "venn-abers":
            assert_array_equal(
                before.oob_multiprobability_.lower[mates], after.oob_multiprobability_.lower[mates]
            )
    model = CalibratedClassifier(GaussianNB(), cv=GroupKFold(3)).fit(X, y, groups=groups)
    assert not np.isnan(model.oob_probability_).any()


def test_what_cannot_be_said_is_refused_in_a_sentence():
    X, y = data(60)
    model = CalibratedClassifier(forest(), calibrate_on="training").fit(X, y)
    with pytest.raises(AttributeError, match='calibrate_on="training" has seen every row'):
        _ = model.oob_probability_
    model = CalibratedClassifier(forest(), method="platt", random_state=0).fit(X, y)
    assert not hasattr(model, "oob_multiprobability_")
    for ask in (
        lambda: model.oob_multiprobability_,
        lambda: model.predict_multiprobability(X),
    ):
        with pytest.raises(AttributeError, match=r"(platt|PlattScaling) gives no bounds: use"):
            ask()
    assert not hasattr(PlattScaling(), "predict_multiprobability")
    own = CalibratedClassifier(method=PlattScaling())
    with pytest.raises(AttributeError, match="PlattScaling gives no bounds"):
        _ = own.predict_multiprobability
    assert not hasattr(CalibratedClassifier(method="nonsense"), "predict_multiprobability")
    assert CalibratedClassifier.predict_multiprobability.__doc__.startswith("Return lower")
    with pytest.raises(AttributeError, match="not fitted"):
        _ = CalibratedClassifier().oob_probability_


def test_importances_are_of_the_columns():
    X, y = data(90)
    model = CalibratedClassifier(forest(), random_state=0).fit(X, y)
    assert_allclose(model.feature_importances_, model.estimator_.feature_importances_)
    folds = CalibratedClassifier(forest(), calibrate_on="cv", cv=2, random_state=0).fit(X, y)
    each = [one.feature_importances_ for one in folds.estimators_]
    assert_allclose(folds.feature_importances_, np.mean(each, axis=0))
    none = CalibratedClassifier(GaussianNB(), cv=2).fit(X, y)
    with pytest.raises(AttributeError, match="GaussianNB has no feature_importances_: sklearn"):
        _ = none.feature_importances_
    mixed = CalibratedClassifier(make_pipeline(PCA(2), forest()), random_state=0).fit(X, y)
    with pytest.raises(AttributeError, match="of the features that its steps make"):
        _ = mixed.feature_importances_
    frame = pd.DataFrame(X, columns=list("vwxyz")).assign(
        town=np.where(y == "a", "Ulm", "Bern"), v=np.nan, w=np.tile(["p", "q", "r"], 30)
    )
    table = CalibratedClassifier(table_pipeline(forest(), random_state=0), random_state=0)
    found = table.fit(frame, y).feature_importances_
    assert found.shape == (6,)
    assert_allclose(found.sum(), 1)
    assert found[0] == 0
    assert found.argmax() == 5


def test_a_table_with_text_is_answered_with_the_recipe():
    X, y = data(60)
    table = pd.DataFrame(X, columns=list("vwxyz")).assign(
        town=["Ulm", "Bern"] * 30, day=pd.date_range("2020-01-01", periods=60)
    )
    with pytest.raises(vennforest._validation.InputError) as caught:
        CalibratedClassifier(random_state=0).fit(table, y)
    assert "MixedForestClassifier, got text or dates in 'town', 'day': use" in str(caught.value)
    assert "CalibratedClassifier(table_pipeline(MixedForestClassifier(" in str(caught.value)
    assert "from vennforest.tables import table_pipeline" in str(caught.value)
    with pytest.raises(ValueError, match="must contain numbers for LogisticRegression"):
        CalibratedClassifier(LogisticRegression(), cv=2).fit(table, y)
    model = CalibratedClassifier(table_pipeline(forest()), random_state=0).fit(table, y)
    assert model.predict(table).shape == (60,)
    numbers = table[list("vwxyz")].astype(str).astype(object)  # scikit-learn takes these
    CalibratedClassifier(forest(), random_state=0).fit(numbers, y)
    with pytest.raises(ValueError, match="holdout_size"):  # another error stays what it is
        CalibratedClassifier(table_pipeline(forest()), calibrate_on="holdout", holdout_size=60).fit(
            table, y
        )
