"""The studies of forests and of folds: what they compare is what the packages do."""

import numpy as np
import pandas as pd
import pytest
from experiments.studies.confirm import first_trees, folded
from experiments.studies.folds import FOLDS, Models, model_of, ways
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import StratifiedKFold

from vennforest import CalibratedClassifier, PooledCalibration


def drawn(k, n=200):
    X, y = make_classification(n, 6, n_informative=4, n_classes=k, flip_y=0.1, random_state=k)
    return X[: n // 2], y[: n // 2], X[n // 2 :], y[n // 2 :]


@pytest.mark.parametrize("method", ["sigmoid", "temperature"])
@pytest.mark.parametrize("k", [2, 3])
def test_calibrators_over_kept_forests_are_those_of_scikit_learn(method, k):
    X, y, new, _ = drawn(k)
    pairs = list(StratifiedKFold(5).split(X, y))
    kept = [RandomForestClassifier(12, random_state=0).fit(X[a], y[a]) for a, _ in pairs]
    few = [first_trees(forest, 7) for forest in kept]
    for forests, n_trees in ((kept, 12), (few, 7)):
        forest = RandomForestClassifier(n_trees, random_state=0)
        peer = CalibratedClassifierCV(forest, method=method, cv=StratifiedKFold(5)).fit(X, y)
        found = folded(X, y, new, forests, [b for _, b in pairs], method)
        np.testing.assert_allclose(found, peer.predict_proba(new), atol=1e-9)
    assert len(kept[0].estimators_) == 12


@pytest.mark.parametrize("k", [2, 3])
def test_the_mean_and_the_refitted_model_are_those_of_the_library(k):
    X, y, new, ytest = drawn(k)
    table = pd.DataFrame(X).add_prefix("x")
    models = Models("bayes", table, y, pd.DataFrame(new).add_prefix("x"), pairs=False)
    found = models.measure(ytest)
    for way, ensemble in (("refit", False), ("folds in logs", True)):
        model = CalibratedClassifier(
            model_of("bayes"), calibrate_on="cv", cv=folds_of(models), ensemble=ensemble
        ).fit(table, y)
        p = model.predict_proba(pd.DataFrame(new).add_prefix("x"))
        assert found[way][0] == pytest.approx(-np.log(p[np.arange(len(ytest)), ytest]).mean())
    parts = [(models.out[f], models.rows[f]) for f in range(FOLDS)]
    scores, rows = (np.concatenate(part) for part in zip(*parts, strict=True))
    pool = PooledCalibration().fit(scores, y[rows], classes=np.arange(k))
    mean = np.mean([pool.predict_proba(models.new[f]) for f in range(FOLDS)], axis=0)
    assert found["folds"][0] == pytest.approx(-np.log(mean[np.arange(len(ytest)), ytest]).mean())


def folds_of(models):
    everyone = np.arange(len(models.y))
    return [(np.setdiff1d(everyone, rows), rows) for rows in models.rows]


def test_the_choice_is_by_the_losses_of_rows_left_out():
    losses = {"folds": [1.0], "refit": [2.0], "half": [1.2]}
    losses |= {"nested": [[0.3, 0.2, 0.1], [0.1, 0.1, 0.1]], "ring": [[0.1, 0.2, 0.1]]}
    expected = {"folds": 1.0, "refit": 2.0, "half": 1.2, "chosen": 2.0}
    assert ways(losses) == {**expected, "chosen by five pairs": 1.0}
