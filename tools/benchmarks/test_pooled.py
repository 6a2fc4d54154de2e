"""The pool beside the forest whose scores it calibrates."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from vennforest import PooledCalibration


@pytest.mark.parametrize(("k", "at_most"), [(2, 0.15), (26, 0.5)])
def test_fit_of_the_pool(k, at_most, versus):
    X, y = make_classification(
        15_000, 20, n_informative=10, n_classes=k, n_clusters_per_class=1, random_state=0
    )
    forest = RandomForestClassifier(200, oob_score=True, random_state=0, n_jobs=1).fit(X, y)
    scores = forest.oob_decision_function_
    scores = scores[:, 1] if k == 2 else scores
    peer = RandomForestClassifier(200, random_state=0, n_jobs=1)
    versus(
        f"PooledCalibration.fit, 15,000 scores, {k} classes",
        "fit of the forest, 200 trees, 20 features",
        lambda: PooledCalibration().fit(scores, y),
        lambda: peer.fit(X, y),
        at_most,
        rounds=3,
    )


@pytest.mark.parametrize("k", [2, 26])
def test_predict_of_the_pool(k, versus):
    X, y = make_classification(
        15_000, 20, n_informative=10, n_classes=k, n_clusters_per_class=1, random_state=0
    )
    forest = RandomForestClassifier(200, random_state=0, n_jobs=1).fit(X, y)
    scores = forest.predict_proba(X)
    noisy = 0.7 * scores + 0.3 * np.random.default_rng(0).dirichlet(np.ones(k), len(y))
    scores, noisy = (scores[:, 1], noisy[:, 1]) if k == 2 else (scores, noisy)
    pool = PooledCalibration().fit(noisy, y)
    versus(
        f"PooledCalibration.predict_proba, 15,000 scores, {k} classes",
        "predict_proba of the forest",
        lambda: pool.predict_proba(scores),
        lambda: forest.predict_proba(X),
        None,
        rounds=5,
    )
