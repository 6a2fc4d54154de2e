"""Attributions of calibrated answers: additive, in proportion to TreeExplainer's, refused else."""

import sys
from itertools import combinations
from math import factorial

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit, logit
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from support.cases import booster
from vennforest import CalibratedClassifier, explain
from vennforest.linear import LinearClassifier

shap = pytest.importorskip("shap")

X, Y = load_breast_cancer(return_X_y=True, as_frame=True)
X, NEW, Y = X[:400], X[400:430], Y[:400]


def fitted(forest=None, data=(X, Y), **settings):
    forest = RandomForestClassifier(20, random_state=0) if forest is None else forest
    return CalibratedClassifier(forest, random_state=0, **settings).fit(*data)


def log_odds(p):
    return logit(np.clip(p, 1e-6, 1 - 1e-6))


def summed(found):
    return found.base_values + found.values.sum(axis=1)


def check_sums(found, p):
    np.testing.assert_allclose(summed(found), log_odds(p), rtol=0, atol=1e-13)


def over_fourteen(X):
    return np.asarray(X)[:, 0] > 14


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"calibrate_on": "cv", "cv": 3}, {"calibrate_on": "holdout"}, {"method": "isotonic"},
        {"subforest": "exchangeable", "merge": "log"}, {"by": over_fourteen},
        {"forest": ExtraTreesClassifier(8, bootstrap=True, random_state=0)},
    ],
    ids=lambda settings: "-".join(map(str, settings)) or "default",
)  # fmt: skip
def test_additive_to_the_last_digit(settings):
    model = fitted(**settings)
    for of in (model, model.with_prior({0: 0.9})):
        check_sums(explain(of, NEW), of.predict_proba(NEW)[:, 1])


def test_in_proportion_to_the_attributions_of_the_score():
    model = fitted(calibrate_on="cv", cv=3)
    found = explain(model, NEW)
    every = [shap.TreeExplainer(forest) for forest in model.estimators_]
    phi = np.mean([one.shap_values(NEW)[:, :, 1] for one in every], axis=0)
    base = np.mean([one.expected_value[1] for one in every])
    at_base = model.point_calibrator_.predict_proba([base])[0, 1]
    np.testing.assert_allclose(found.base_values, log_odds(at_base), rtol=1e-9)
    target = log_odds(model.predict_proba(NEW)[:, 1])
    checked = 0
    for i in range(len(NEW)):
        if abs(phi[i].sum()) >= 1e-3:
            expected = phi[i] * (target[i] - log_odds(at_base)) / phi[i].sum()
            np.testing.assert_allclose(found.values[i], expected, rtol=1e-6, atol=1e-12)
            checked += 1
    assert checked > 20


def test_near_the_base_score_attributions_stay_finite_and_add_up():
    from vennforest.explanation import _attributions

    rng = np.random.default_rng()
    phi = rng.normal(size=(200, 6, 1)) * 10.0 ** rng.integers(-9, 1, (200, 1, 1))
    phi[:, 0] -= phi.sum(axis=1) * (1 - 10.0 ** rng.integers(-16, 0, (200, 1)))  # cancel
    phi[:5] = 0
    moved = phi.sum(axis=1)
    wanted = 5 * moved + rng.normal(size=(200, 1)) * 1e-3
    values, _ = _attributions(phi, np.array([0.3]), False, wanted, lambda s: 5 * (s[None] - 0.3))
    np.testing.assert_allclose(values.sum(axis=1), wanted, rtol=0, atol=1e-13)
    near = np.abs(moved[:, 0]) < 1e-3
    assert near.sum() > 20
    assert np.abs(values[near]).max() <= 5 * np.abs(phi[near]).max() + 0.01


def test_classes_names_and_plots(tmp_path):
    pytest.importorskip("matplotlib").use("agg")
    wine, y = load_wine(return_X_y=True)
    many = fitted(data=(wine[::2], y[::2]))
    found = explain(many, wine[1::2])
    assert found.shape == (89, 13, 3)
    check_sums(found, many.predict_proba(wine[1::2]))
    forest = RandomForestClassifier(20, random_state=0)
    steps = StandardScaler(), SelectKBest(k=4), forest
    model = fitted(make_pipeline(*steps), calibrate_on="holdout")
    found = explain(model, NEW)
    scaler, select = model.estimator_[0], model.estimator_[1]
    assert found.feature_names == list(X.columns[select.get_support()])
    nested = make_pipeline(steps[0], make_pipeline(*steps[1:]))
    of_nested = explain(fitted(nested, calibrate_on="holdout"), NEW)
    assert of_nested.feature_names == found.feature_names
    np.testing.assert_allclose(found.data, select.transform(scaler.transform(NEW)))
    shap.plots.waterfall(found[0], show=False)
    model = fitted()
    assert explain(model, NEW).feature_names == list(X.columns)
    for of_arrow in (pa.Table.from_pandas(NEW), pa.RecordBatch.from_pandas(NEW)):
        np.testing.assert_array_equal(explain(model, of_arrow).values, explain(model, NEW).values)
    unnamed = explain(fitted(data=(X.to_numpy(), Y)), NEW.to_numpy())
    assert unnamed.feature_names == [f"x{j}" for j in range(X.shape[1])]


@pytest.mark.parametrize("k", [2, 3])
def test_features_of_several_models_are_matched_by_name(k):
    """Models see other features where transformers of their own, or of a fold, choose them."""
    data, y = make_classification(
        200, 6, n_informative=4, n_classes=k, n_clusters_per_class=1, random_state=0
    )
    new, linear = data[:9], LinearClassifier()
    of_some = make_pipeline(SelectKBest(k=1), linear)
    products = make_pipeline(PolynomialFeatures(2, include_bias=False), linear)
    members = [("some", of_some), ("all", linear), ("products", products)]
    model = CalibratedClassifier(members, random_state=0, cv=3).fit(data, y)
    assert min(model.blend_.values()) > 0
    found = explain(model, new)
    p = model.predict_proba(new)
    check_sums(found, p[:, 1] if k == 2 else p)
    (chosen,) = model.estimator_.members[0].folds[0].model[0].get_feature_names_out()
    names = products.fit(data, y)[0].get_feature_names_out().tolist()
    assert found.feature_names == [chosen, *(name for name in names if name != chosen)]
    columns = dict(zip(names, products[0].transform(new).T, strict=True))
    np.testing.assert_array_equal(
        found.data, np.transpose([*map(columns.get, found.feature_names)])
    )
    # One that no model of a fold sees has nothing there.
    cv = [(np.setdiff1d(np.arange(200), part), part) for part in np.array_split(np.arange(200), 3)]
    of_folds = CalibratedClassifier(make_pipeline(SelectByNumber(), linear), cv=cv)
    of_folds.fit(data, y)
    found, p = explain(of_folds, new), of_folds.predict_proba(new)
    assert found.feature_names == ["x1", "x2"]
    check_sums(found, p[:, 1] if k == 2 else p)


class SelectByNumber(SelectKBest):
    """Select a column that depends on the number of rows."""

    def __init__(self):
        super().__init__(lambda X, y: np.arange(6) == len(X) % 6, k=1)


@pytest.mark.parametrize("members", [LinearClassifier(), [(n, LinearClassifier()) for n in "ab"]])
def test_a_fold_without_a_class_is_refused(members):
    data, y = make_classification(90, random_state=0)
    y[0] = 7
    model = CalibratedClassifier(members, cv=3, random_state=0).fit(data, y)
    with pytest.raises(ValueError, match="all classes in each fold's training rows"):
        explain(model, data[:2])


def test_frozen_forests_and_forests_without_a_split():
    forest = RandomForestClassifier(20, random_state=0).fit(X[:200], Y[:200])
    model = CalibratedClassifier(FrozenEstimator(forest)).fit(X[200:], Y[200:])
    check_sums(explain(model, NEW), model.predict_proba(NEW)[:, 1])
    same = np.ones((100, 3))
    y = np.arange(100) % 3 == 0
    flat = fitted(data=(same, y), calibrate_on="holdout")
    check_sums(explain(flat, same[:2]), flat.predict_proba(same[:2])[:, 1])


def test_what_is_refused(monkeypatch):
    with pytest.raises(NotFittedError):
        explain(CalibratedClassifier(), NEW)
    data, y = make_classification(200, random_state=0)
    with pytest.raises(ValueError, match=r"must be a forest .* or a gradient booster"):
        explain(CalibratedClassifier(LogisticRegression(), method="platt").fit(data, y), data[:2])
    with pytest.raises(ValueError, match='votes must be "soft" for explanations'):
        explain(fitted(votes="hard"), NEW)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"pip install 'vennforest\[shap\]'"):
        explain(fitted(), NEW)


def boosted(package, **settings):
    if package == "scikit-learn":
        return HistGradientBoostingClassifier(max_iter=settings["n_estimators"], random_state=0)
    return booster(package, **settings)


@pytest.mark.parametrize("package", ["scikit-learn", "xgboost", "lightgbm", "catboost"])
@pytest.mark.parametrize("calibrate_on", ["cv", "holdout"])
def test_boosters_are_additive(package, calibrate_on):
    model = fitted(boosted(package, n_estimators=5), calibrate_on=calibrate_on, cv=2)
    p = explain(model, NEW)
    target = log_odds(model.predict_proba(NEW)[:, 1])
    np.testing.assert_allclose(summed(p), target, rtol=0, atol=1e-9)
    # In proportion to the attributions of the mean log-odds of the folds' models.
    every = [shap.TreeExplainer(one).shap_values(NEW) for one in model.estimators_]
    phi = np.mean(every, axis=0)
    for i in range(5):
        assert abs(np.corrcoef(phi[i], p.values[i])[0, 1]) > 1 - 1e-9


@pytest.mark.parametrize("package", ["xgboost", "lightgbm", "catboost"])
def test_boosters_of_three_classes_are_additive(package):
    wine, y = load_wine(return_X_y=True)
    model = fitted(boosted(package, n_estimators=5), data=(wine[::2], y[::2]), cv=2)
    found = explain(model, wine[1::2])
    assert found.shape == (89, 13, 3)
    target = log_odds(model.predict_proba(wine[1::2]))
    np.testing.assert_allclose(summed(found), target, rtol=0, atol=1e-9)


def shapley_values(value, d):
    """Return the Shapley values of a game of d players, by their definition."""
    phi = np.zeros(d)
    for j in range(d):
        others = [i for i in range(d) if i != j]
        for size in range(d):
            weight = factorial(size) * factorial(d - size - 1) / factorial(d)
            for known in combinations(others, size):
                phi[j] += weight * (value({*known, j}) - value(set(known)))
    return phi


def expected_value(nodes, i, row, known):
    """Return the value of a tree where features that are not known follow the training rows."""
    node = nodes[i]
    if node["is_leaf"]:
        return node["value"]
    children = [int(node["left"]), int(node["right"])]
    j = int(node["feature_idx"])
    if j in known:
        return expected_value(nodes, children[int(row[j] > node["num_threshold"])], row, known)
    shares = nodes["count"][children] / node["count"]
    return shares @ [expected_value(nodes, child, row, known) for child in children]


def test_a_tiny_booster_has_the_shapley_values_of_the_definition():
    rng = np.random.default_rng(20261127)
    rows = rng.normal(size=(200, 3))
    y = (rows[:, 0] + rows[:, 1] * rows[:, 2] + 0.5 * rng.normal(size=200) > 0).astype(int)
    booster = HistGradientBoostingClassifier(max_iter=3, max_depth=2, min_samples_leaf=5)
    model = CalibratedClassifier(booster, calibrate_on="holdout", random_state=0).fit(rows, y)
    trees = [one.nodes for (one,) in model.estimator_._predictors]
    found, baseline = explain(model, rows[:8]), model.estimator_._baseline_prediction[0, 0]
    target, checked = log_odds(model.predict_proba(rows[:8])[:, 1]), 0
    for i, row in enumerate(rows[:8]):

        def value(known, row=row):
            return sum(expected_value(nodes, 0, row, known) for nodes in trees)

        phi, at_base = shapley_values(value, 3), expit(baseline + value(set()))
        low = log_odds(model.point_calibrator_.predict_proba([at_base])[0, 1])
        np.testing.assert_allclose(found.base_values[i], low, rtol=0, atol=1e-6)
        if abs(phi.sum()) > 0.01:
            wanted = phi * (target[i] - low) / phi.sum()
            np.testing.assert_allclose(found.values[i], wanted, rtol=0, atol=1e-5)
            checked += 1
    assert checked > 4


@pytest.mark.parametrize("change", [lambda t: t[t.columns[::-1]], lambda t: t[t.columns[:2]]])
def test_rows_of_other_columns_are_refused_before_trees_are_read(change, monkeypatch):
    model = fitted()
    monkeypatch.setattr(shap, "TreeExplainer", None)
    with pytest.raises(ValueError, match="X must have the columns of training"):
        explain(model, change(NEW))


def test_other_models_are_refused():
    with pytest.raises(ValueError, match="must be a CalibratedClassifier"):
        explain(RandomForestClassifier().fit(X, Y), NEW)
