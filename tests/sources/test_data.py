"""Folds of a user's own source."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.naive_bayes import GaussianNB

from support.cases import draw_rows
from vennforest import CalibratedClassifier
from vennforest.classifier.training_rows import predict_examples


class Columns:
    """A source whose scores have one column, or one for each of two classes."""

    def __init__(self, two):
        self.two = two

    def folds(self, estimator, data, **settings):
        past, recent = np.array_split(np.arange(len(data)), 2)
        model = data.rows(past).fit(estimator)
        fold = data.rows(recent).fold(model)
        both = np.column_stack([1 - fold.scores, fold.scores])
        return [replace(fold, scores=both if self.two else fold.scores)]


@pytest.mark.parametrize("method", ["venn-abers", "platt"])
def test_scores_of_a_source_in_one_column_or_two_are_the_same(method):
    X, y, new = draw_rows()
    one, two = (
        CalibratedClassifier(GaussianNB(), method=method, calibrate_on=Columns(k)).fit(X, y)
        for k in (False, True)
    )
    assert_array_equal(one.predict_proba(new), two.predict_proba(new))
    expected, found = (predict_examples(model._fitted) for model in (one, two))
    assert_array_equal(expected, found)
