"""Models that were trained on the rows that are to calibrate them."""

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.tree import DecisionTreeClassifier

from auditing.findings import forest, kinds
from hazards.table import coin
from vennforest import CalibratedClassifier
from vennforest.auditing.memory import remembers


def test_nothing_is_said_of_few_rows_or_a_model_that_learns_nothing():
    X, y = coin(np.random.default_rng(7), 100, 6)
    assert not remembers(DecisionTreeClassifier().fit(X[:30], y[:30]), X[:30], y[:30])
    for strategy in ("prior", "uniform"):
        assert not remembers(DummyClassifier(strategy=strategy).fit(X, y), X[::-1], y)


def test_rows_that_a_calibrated_classifier_was_trained_on_are_found_among_new_ones():
    rng = np.random.default_rng(8)
    X, y = coin(rng, 400, 5)
    model = CalibratedClassifier(forest(), method="platt").fit(X, y)
    assert kinds(model, X, y) == []
    assert kinds(model, X[:200], y[:200]) == ["training rows"]
    assert kinds(model, *coin(rng, 200, 5)) == []
