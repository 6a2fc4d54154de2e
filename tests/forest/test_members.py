"""Scores by the members of ensembles that are no forests."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.ensemble import BaggingClassifier
from sklearn.neighbors import KNeighborsClassifier

from vennforest.forest import Members


def test_members_that_lack_a_class_give_it_nothing():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.repeat([0, 1, 2], [20, 1, 19])
    bagging = BaggingClassifier(KNeighborsClassifier(3), 12, random_state=0).fit(X, y)
    assert {len(member.classes_) for member in bagging.estimators_} == {2, 3}
    assert_allclose(Members(bagging).mean(X), bagging.predict_proba(X), atol=1e-15)
