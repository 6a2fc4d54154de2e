"""Scores of users' models."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from support.cases import rounded
from vennforest.sources import model_scores


@pytest.mark.parametrize("known", [["a", "c", "d"], ["b", "d"], ["c"]])
@pytest.mark.parametrize("method", ["predict_proba", "decision_function"])
def test_a_class_that_a_model_does_not_know_has_the_least_score(known, method):
    rng = np.random.default_rng(len(known))
    own = rng.normal(size=(20, len(known)))
    if method == "decision_function" and len(known) == 2:
        own = np.column_stack([-own[:, 0], own[:, 0]])
    given = own[:, 1] if method == "decision_function" and len(known) == 2 else own
    model = SimpleNamespace(classes_=np.array(known), **{method: lambda X: given})
    scores = model_scores(model, np.empty((20, 1)), np.array(list("abcd")))
    for j, label in enumerate("abcd"):
        if label in known:
            assert_array_equal(scores[:, j], rounded(own[:, known.index(label)]))
        else:
            assert_array_equal(
                scores[:, j], 0 if method == "predict_proba" else rounded(own.min(axis=1))
            )
