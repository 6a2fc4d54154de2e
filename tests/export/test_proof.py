"""Exports that answer otherwise than the model are refused."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    OneHotEncoder,
)
from sklearn.semi_supervised import LabelSpreading

from export.graphs import X, Y, of_python, run
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.export import proof, to_onnx


class Halved(LogisticRegression):
    """A subclass whose probabilities are no longer those of its coefficients."""

    def predict_proba(self, X):
        return (super().predict_proba(X) + 0.5) / 2


def test_a_model_that_is_converted_wrongly_is_refused():
    model = CalibratedClassifier(Halved(), calibrate_on="holdout").fit(X, Y)
    with pytest.raises(InputError, match=r"of Halved must answer as ONNX .* of 200 drawn rows, by"):
        to_onnx(model)
    model = CalibratedClassifier(LabelSpreading(), calibrate_on="holdout").fit(X, Y)
    with pytest.raises(InputError, match=r"must be one that skl2onnx converts: .*LabelSpreading"):
        to_onnx(model)


def test_rows_of_training_are_asked_for_where_none_can_be_drawn():
    rows = 1e7 + np.arange(400.0).reshape(200, 2)[:, :1]  # no part of the model tells their range
    y = np.arange(200) % 7 < 3
    model = CalibratedClassifier(
        make_pipeline(OneHotEncoder(sparse_output=False), LogisticRegression()),
        calibrate_on="holdout",
    ).fit(np.tile(rows[:5], (40, 1)), y)
    with pytest.raises(InputError, match="X must be rows like those of training"):
        to_onnx(model)
    graph = to_onnx(model, rows[:5])
    np.testing.assert_allclose(run(graph, "X", rows[:5])["p"], model.predict_proba(rows[:5])[:, 1])


def test_a_neighbouring_step_is_excused_in_few_rows():
    expected, excused = {"p0": np.full(200, 0.3)}, {"p0": np.arange(200) != 4}
    for n_rows in (4, 5):
        answers = {"p0": np.where(np.arange(200) < n_rows, 0.4, 0.3)}
        if n_rows == 4:
            proof.prove("Model", "ONNX", answers, expected, excused)
    with pytest.raises(InputError, match="another 'p0' for 5 of 200 drawn rows, by"):
        proof.prove("Model", "ONNX", answers, expected, excused)
    answers["p0"][:4] = 0.3
    with pytest.raises(InputError, match="another 'p0' for 1 of 200 drawn rows, by"):
        proof.prove("Model", "ONNX", answers, expected, excused)


@pytest.mark.parametrize("seed", range(3))
def test_scores_near_certainty_are_not_taken_for_those_of_examples(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(1, 1, (260, 4)).round(2)
    y = rows[:, 0] + 0.5 * rows[:, 1] + rng.normal(size=260) / 2 > 1.5
    estimator = SGDClassifier(loss="log_loss", random_state=0)  # log-odds of 10 to 100
    model = CalibratedClassifier(estimator, calibrate_on="holdout", random_state=0).fit(rows, y)
    found = run(to_onnx(model, rows, confidence=True), "X", rows)
    for part, values in of_python(model, rows).items():
        np.testing.assert_allclose(found[part], values, rtol=0, atol=1e-9, err_msg=part)
