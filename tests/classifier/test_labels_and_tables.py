"""Labels and tables of every type give the same probabilities, or are refused."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.ensemble import BaggingClassifier, ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from oracles import formulas as oracle
from support.cases import draw_grid, rounded
from vennforest import CalibratedClassifier
from vennforest._validation import InputError


def test_columns_of_one_name_are_refused():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "b"])
    for estimator in (None, LogisticRegression(), GaussianNB()):
        with pytest.raises(InputError, match="different names, got two of the name 'b'"):
            CalibratedClassifier(estimator).fit(X, np.arange(60) % 2)


def test_a_column_may_be_called_like_an_attribute_of_arrow_tables():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"column_names": rng.integers(0, 2, 60), "b": rng.normal(size=60)})
    expected = CalibratedClassifier(GaussianNB()).fit(X.to_numpy(), X["b"] > 0)
    model = CalibratedClassifier(GaussianNB()).fit(X, X["b"] > 0)
    assert_array_equal(model.predict_proba(X), expected.predict_proba(X.to_numpy()))


def forest():
    return RandomForestClassifier(15, random_state=1)


SETUPS = [
    {"estimator": forest()},
    {"estimator": forest(), "method": "venn", "calibrate_on": "holdout"},
    {"estimator": LogisticRegression(), "merge": "log"},
    {"estimator": LinearSVC(), "method": "platt", "ensemble": False},
    {"estimator": BaggingClassifier(GaussianNB(), 10, random_state=0), "method": "isotonic"},
    {"estimator": DecisionTreeClassifier(max_depth=3, random_state=0), "calibrate_on": "training"},
]
each_setup = pytest.mark.parametrize("setup", SETUPS, ids=str)


def model_of(setup):
    return CalibratedClassifier(random_state=0).set_params(**setup)


LABELS = [
    np.array([-1, 1]),
    np.array(["no", "yes"], dtype=object),
    np.array([False, True]),
    np.array([2.0, 7.0]),
    np.array([3, 200], dtype=np.uint8),
]


@each_setup
def test_labels_of_any_kind_give_what_0_and_1_give(setup):
    X, y, new = draw_grid()
    expected = model_of(setup).fit(X, y)
    p, labels = expected.predict_proba(new), expected.predict(new)
    for names in LABELS:
        model = model_of(setup).fit(X, names[y])
        assert_array_equal(model.classes_, names)
        assert_array_equal(model.calibration_y_, names[expected.calibration_y_])
        assert_array_equal(model.predict_proba(new), p)
        assert_array_equal(model.predict(new), names[labels])
        assert model.predict(new).dtype == names.dtype


def test_labels_in_any_container():
    X, y, new = draw_grid(k=3)
    names = np.array(["a", "b", "c"])[y]
    expected = model_of(SETUPS[1]).fit(X, y).predict_proba(new)
    for container in (
        names.tolist(),
        pd.Series(names),
        pd.Series(names, dtype="string"),
        pd.Categorical(names, categories=["c", "b", "a"]),
        pl.Series(names),
    ):
        model = model_of(SETUPS[1]).fit(X, container)
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert_array_equal(model.predict_proba(new), expected)


@each_setup
def test_data_frames_give_what_arrays_give(setup):
    X, y, new = draw_grid()
    expected = model_of(setup).fit(X, y).predict_proba(new)
    index = np.random.default_rng(0).permutation(len(X)) // 2  # which does not matter
    names = list("abcd")
    for table, labels, rows in (
        (pl.DataFrame(X, names), y, pl.DataFrame(new, names)),
        (
            pd.DataFrame(X, index, names),
            pd.Series(y, index[::-1]),
            pd.DataFrame(new, np.zeros(len(new)), names),
        ),
    ):
        model = model_of(setup).fit(table, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert_allclose(model.predict_proba(rows), expected, rtol=1e-9, atol=1e-12)
        assert model.n_features_in_ == 4
        assert model.feature_names_in_.tolist() == names
    assert not hasattr(model.fit(X, y), "feature_names_in_")


@pytest.mark.parametrize("setup", SETUPS[:4], ids=str)
def test_sparse_tables_give_what_dense_ones_give(setup):
    X, y, new = draw_grid()
    X, new = np.where(X > 0.3, X, 0), np.where(new > 0.3, new, 0)
    expected = model_of(setup).fit(X, y).predict_proba(new)
    for form in (sparse.csr_array, sparse.csc_matrix):
        p = model_of(setup).fit(form(X), y).predict_proba(form(new))
        assert_allclose(p, expected, rtol=0, atol=1e-3 if "LinearSVC" in str(setup) else 1e-7)


def test_missing_values_go_where_the_trees_learnt_to_send_them():
    X, y, new = draw_grid()
    X[::5, 0] = X[::7, 2] = new[::3, 0] = np.nan
    for estimator in (forest(), ExtraTreesClassifier(15, bootstrap=True, random_state=0)):
        model = CalibratedClassifier(estimator, method="none", subforest="all").fit(X, y)
        expected = model.estimator_.predict_proba(new)
        assert_array_equal(model.predict_proba(new)[:, 1], rounded(expected[:, 1]))
        model = CalibratedClassifier(estimator, random_state=0).fit(X, y)
        trees = oracle.out_of_bag(model.estimator_, len(X))
        expected = oracle.forest_scores(model.estimator_, X, trees, "soft")
        assert_array_equal(model.calibration_scores_, rounded(np.array(expected)[:, 1]))
        other_nan = np.where(np.isnan(new), -np.nan, new)
        assert_array_equal(model.predict_proba(other_nan), model.predict_proba(new))
    with pytest.raises(ValueError, match="NaN"):
        CalibratedClassifier(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="infinity"):
        CalibratedClassifier(forest()).fit(np.where(np.isnan(X), np.inf, X), y)
