"""Other models beside that of the report, and the blend of all."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from vennforest import CalibratedClassifier
from vennforest.report import estimators, evaluate
from vennforest.report.estimators import SmallBoostingClassifier
from vennforest.report.measures import BLEND, MethodEstimates, Predictions
from vennforest.report.sections import compared_models
from vennforest.report.training import predict_by_others


def linear_rows(n=240):
    """Rows of a linear log-odds, which a small forest does not fit well."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 8))
    return X, (X @ np.arange(8) + 2 * rng.logistic(size=n) > 0).astype(int)


@pytest.fixture(scope="module")
def evaluation():
    X, y = linear_rows()
    options = {"methods": ["venn-abers"], "n_folds": 3, "n_trees": 20}
    return evaluate(X, y, compare=["logistic"], **options)


def test_models_are_trained_and_tested_on_the_folds_of_the_report(evaluation):
    X, y = linear_rows()
    predictions = evaluation.predictions
    assert list(predictions.compared) == ["", "logistic regression", BLEND]
    losses = evaluation.sections["models"].frame["loss"]
    assert losses["forest"] == pytest.approx(evaluation.methods.loc["venn-abers", "log_loss"])
    logistic = predictions.compared["logistic regression"]
    assert losses["logistic regression"] == pytest.approx(log_loss(y, logistic.p))
    # as by hand in the first fold, but for the small penalty's scale and imputation
    train, test = predictions.fold != 0, predictions.fold == 0
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X[train], y[train])
    p = model.predict_proba(X[test])
    assert np.abs(p - logistic.p[test]).mean() < 0.03
    for other in predictions.compared.values():
        np.testing.assert_allclose(other.p.sum(axis=1), 1)
    seconds = [other.seconds for other in predictions.compared.values()]
    assert min(seconds) > 0 and seconds[-1] > sum(seconds[:-1])


def test_a_blend_that_gains_more_than_chance_is_recommended_with_its_price(evaluation):
    section = evaluation.sections["models"]
    frame, sentence = section.frame, evaluation.verdict.sentence
    gain = frame.loc["forest", "loss"] - frame.loc[BLEND, "loss"]
    assert frame.loc[BLEND, "gain"] == pytest.approx(gain)
    assert frame.loc[BLEND, "gain_low"] > 0
    times = frame.loc[BLEND, "seconds"] / frame.loc["forest", "seconds"]
    assert f"{gain / frame.loc['forest', 'loss']:.1%} lower log loss" in sentence
    assert f"{times:.1f} times as long to train" in sentence
    times = frame.loc[BLEND, "predict_seconds"] / frame.loc["forest", "predict_seconds"]
    assert f"{times:.{int(times < 10)}f} times as long to predict" in sentence
    assert (
        evaluation.summary()["sections"]["models"]["numbers"]["better"] == section.numbers["better"]
    )


def test_without_others_nothing_is_compared():
    X, y = linear_rows(60)
    evaluation = evaluate(X, y, methods=["platt"], n_folds=2, n_trees=5)
    assert not evaluation.sections and not evaluation.predictions.compared


class Refusing(DummyClassifier):
    """A classifier that cannot be trained."""

    def fit(self, X, y, sample_weight=None):
        raise ValueError("no luck")


def test_a_model_that_fails_is_left_out_and_named():
    X, y = linear_rows(60)
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    classifiers, notes = {"dummy": Refusing()}, []
    others = predict_by_others(model, 1.0, classifiers, (X, y, {}), X, notes)
    assert list(others) == [""] and not classifiers
    assert notes == ["The dummy is not compared: no luck."]


def test_a_gain_within_chance_is_no_advice():
    """The mean gain is .1, and its margin over 40 rows .2."""
    rows, codes = np.arange(40), np.zeros(40, np.intp)
    p = np.where(rows < 30, 0.99, 0.2)
    others = {name: MethodEstimates(np.column_stack([q, 1 - q]), seconds=1.0)
              for name, q in (("", np.full(40, 0.6)), (BLEND, p))}  # fmt: skip
    predictions = Predictions(np.arange(2), codes, 0 * rows, rows, {}, compared=others)
    section = compared_models(predictions, "forest")
    assert section.frame.loc[BLEND, "gain"] > 0 and section.numbers["better"] == []


@pytest.mark.parametrize("k", [2, 3])
def test_small_boosting_predicts_few_rows_by_one_thread(k, monkeypatch):
    rng = np.random.default_rng(k)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % k
    model = SmallBoostingClassifier(random_state=0).fit(X, y)
    expected = HistGradientBoostingClassifier._raw_predict(model, X)
    np.testing.assert_array_equal(model._raw_predict(X), expected)
    used = []
    monkeypatch.setattr(model, "_predict_iterations", lambda *arguments: used.append(arguments[-1]))
    model.predict_proba(X)
    monkeypatch.setattr(estimators, "MIN_ROWS_FOR_THREADS", 60)
    model.predict_proba(X)
    assert used[0] == 1 and len(used) == 2 and used[1] >= 1
