"""Classifiers that have a name on the command line, and others."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from support.report_data import table_of
from vennforest._validation import InputError
from vennforest.report import estimators, evaluate
from vennforest.report.estimators import ESTIMATORS, SmallBoostingClassifier
from vennforest.tables import table_pipeline


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


QUICK = {"n_folds": 2, "n_trees": 10, "methods": ["venn-abers"]}


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_every_named_estimator(name):
    if name in ("lightgbm", "xgboost", "catboost"):
        pytest.importorskip(name)
    X, y = table_of(90, 12)
    X["word"] = np.where(X["b"] > 0, "left", "right")
    X.iloc[3, 0] = np.nan
    with threadpool_limits(1):  # boosting spreads 60 rows over threads
        evaluation = evaluate(X, y, estimator=name, **QUICK)
        evaluation.model.fit(X, y).predict_proba(X)
    assert evaluation.methods.loc["none", "name"].startswith("Raw ")
    assert evaluation.findings.auc.value >= 0.5


def test_an_estimator_of_ones_own():
    X, y = table_of(90, 13)
    model = LogisticRegression(C=0.5)
    evaluation = evaluate(X.to_numpy(), y, estimator=model, n_folds=2, methods=["platt"])
    assert evaluation.methods.loc["none", "name"] == "Raw LogisticRegression"
    assert evaluation.model.estimator is model
    for wrong in ("forest", LogisticRegression, 7):
        with pytest.raises(ValueError, match="estimator must be"):
            evaluate(X, y, estimator=wrong)


def test_an_estimator_that_reads_columns_by_name_is_refused():
    X = pd.DataFrame({"a": np.arange(40.0), "t": ["u", "v"] * 20})
    with pytest.raises(InputError, match=r"estimator must be a classifier of numbers .* Pipeline"):
        evaluate(X, np.arange(40) % 2, estimator=table_pipeline(LogisticRegression()))
