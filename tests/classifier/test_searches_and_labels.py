"""What scikit-learn does around the classifier: searches, and several labels."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import make_classification, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier

from vennforest import CalibratedClassifier


def test_every_label_of_several_is_calibrated_by_itself():
    X, Y = make_multilabel_classification(160, n_classes=3, random_state=0)
    single = CalibratedClassifier(RandomForestClassifier(15), random_state=0)
    model = MultiOutputClassifier(single).fit(X[:120], Y[:120])
    assert model.predict(X[120:]).shape == (40, 3)
    for j, p in enumerate(model.predict_proba(X[120:])):
        bounds = model.estimators_[j].predict_multiprobability(X[120:])
        assert (bounds.lower <= p).all() and (p <= bounds.upper).all()
        alone = CalibratedClassifier(RandomForestClassifier(15), random_state=0)
        assert_array_equal(p, alone.fit(X[:120], Y[:120, j]).predict_proba(X[120:]))
    with pytest.raises(ValueError, match="y must have one column, got several: use sklearn"):
        single.fit(X, Y)


def test_a_search_chooses_settings_of_the_estimator_and_the_method():
    X, y = make_classification(200, flip_y=0.3, random_state=0)
    model = CalibratedClassifier(RandomForestClassifier(20, random_state=0), random_state=0)
    grid = {"estimator__min_samples_leaf": [1, 30], "method": ["venn-abers", "platt", "none"]}
    search = GridSearchCV(model, grid, scoring="neg_log_loss", cv=3, error_score="raise")
    search.fit(X, y)
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all() and len(np.unique(scores)) == 6
    assert search.best_params_ == search.cv_results_["params"][int(scores.argmax())]
    best = search.best_estimator_
    assert best.method == search.best_params_["method"]
    leaf = search.best_params_["estimator__min_samples_leaf"]
    assert best.estimator_.min_samples_leaf == leaf
    assert search.predict_proba(X).shape == (200, 2)
