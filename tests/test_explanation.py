"""Attributions of calibrated answers: additive, in proportion to TreeExplainer's, refused else."""

import sys

import numpy as np
import pytest
from scipy.special import logit
from sklearn.datasets import load_breast_cancer, load_wine, make_classification
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vennforest import CalibratedClassifier, explain

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
        p, lower, upper = explain(of, NEW, interval=True)
        ends = of.predict_confidence(NEW)
        check_sums(p, of.predict_proba(NEW)[:, 1])
        check_sums(lower, ends.lower[:, 1])
        check_sums(upper, ends.upper[:, 1])
        assert (explain(of, NEW).values == p.values).all()


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
    from vennforest.explanation import _share_out

    rng = np.random.default_rng()
    phi = rng.normal(size=(200, 6, 1)) * 10.0 ** rng.integers(-9, 1, (200, 1, 1))
    phi[:, 0] -= phi.sum(axis=1) * (1 - 10.0 ** rng.integers(-16, 0, (200, 1)))  # cancel
    phi[:5] = 0
    moved = phi.sum(axis=1)
    wanted = 5 * moved + rng.normal(size=(200, 1)) * 1e-3
    values = _share_out(phi, moved, wanted, np.full((200, 1), 5.0))
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
    pipeline = make_pipeline(StandardScaler(), SelectKBest(k=4), forest)
    model = fitted(pipeline, calibrate_on="holdout")
    found = explain(model, NEW)
    scaler, select = model.estimator_[0], model.estimator_[1]
    assert found.feature_names == list(X.columns[select.get_support()])
    np.testing.assert_allclose(found.data, select.transform(scaler.transform(NEW)))
    shap.plots.waterfall(found[0], show=False)
    assert explain(fitted(), NEW).feature_names == list(X.columns)
    assert explain(fitted(data=(X.to_numpy(), Y)), NEW.to_numpy()).feature_names is None


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
    with pytest.raises(ValueError, match="must be a forest"):
        explain(CalibratedClassifier(LogisticRegression(), method="platt").fit(data, y), data[:2])
    with pytest.raises(ValueError, match='votes must be "soft" for explanations'):
        explain(fitted(votes="hard"), NEW)
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(ImportError, match=r"pip install 'vennforest\[shap\]'"):
        explain(fitted(), NEW)
