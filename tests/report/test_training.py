"""Training in cross-validation: what is predicted by which model, beside others."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from support.report_data import table_of
from vennforest import CalibratedClassifier, Multiprobability
from vennforest.report import evaluate
from vennforest.report.measures import BLEND, MethodEstimates
from vennforest.report.training import _predicted, notes_of_folds, pool_folds, predict_by_others


def test_models_are_trained_and_tested_on_the_folds_of_the_report(blended, linear_rows):
    X, y = linear_rows()
    predictions = blended.predictions
    assert list(predictions.compared) == ["", "logistic regression", BLEND]
    losses = blended.sections["models"].frame["loss"]
    assert losses["forest"] == pytest.approx(blended.methods.loc["venn-abers", "log_loss"])
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


class Refusing(DummyClassifier):
    """A classifier that cannot be trained."""

    def fit(self, X, y, sample_weight=None):
        raise ValueError("no luck")


def test_a_model_that_fails_is_left_out_and_named(linear_rows):
    X, y = linear_rows(60)
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    classifiers, notes = {"dummy": Refusing()}, []
    others = predict_by_others(model, 1.0, classifiers, (X, y, {}), X, notes)
    assert list(others) == [""] and not classifiers
    assert notes == ["The dummy is not compared: no luck."]


def test_a_fold_has_the_intervals_of_its_model_at_level_95():
    X, y = load_iris(return_X_y=True)
    model = CalibratedClassifier(LogisticRegression(max_iter=500), random_state=0).fit(X, y)
    confidence = _predicted(model, ["venn-abers"], X[::9])["venn-abers"].confidence
    expected = model.predict_confidence(X[::9], level=0.95)
    np.testing.assert_allclose(confidence.lower, expected.lower, atol=1e-12)
    np.testing.assert_allclose(confidence.upper, expected.upper, atol=1e-12)


def test_a_class_that_a_fold_never_saw_has_probability_0_and_no_interval():
    p, ends = np.array([[0.4, 0.6]]), np.array([[0.3, 0.5]])
    confidence = Multiprobability(ends, ends + 0.2, np.array(["a", "b"]))
    estimates = {"platt": MethodEstimates(p, None, confidence)}
    folds = [(np.array([0]), np.array([0, 1]), estimates)]
    pooled = pool_folds(folds, "platt", 1, np.array(["a", "b", "c"]), np.array([0]))
    assert pooled.p.tolist() == [[0.4, 0.6, 0.0]]
    assert pooled.confidence.lower.tolist() == [[0.3, 0.5, 0.0]]
    assert pooled.confidence.upper.tolist() == [[0.5, 0.7, 1.0]]


def test_every_row_is_predicted_once_by_a_forest_not_trained_on_it():
    # Labels without any relation to the one feature, which names the row: whoever has seen a row
    # knows its label, whoever has not guesses.
    rng = np.random.default_rng(1)
    X, y = rng.permutation(200)[:, None] * 1.0, rng.integers(2, size=200)
    evaluation = evaluate(X, y, n_folds=4, n_trees=30)
    assert evaluation.methods.loc["none", "accuracy"] < 0.65
    predictions = evaluation.predictions
    assert np.bincount(predictions.fold).tolist() == [50] * 4
    shares = [y[predictions.fold == i].mean() for i in range(4)]
    assert max(shares) - min(shares) < 0.03
    for estimates in predictions.estimates.values():
        np.testing.assert_allclose(estimates.p.sum(axis=1), 1)
        if estimates.bounds is not None:
            assert (estimates.bounds.lower <= estimates.p + 1e-12).all()
            assert (estimates.p <= estimates.bounds.upper + 1e-12).all()
        if estimates.confidence is not None:
            low, high = estimates.confidence.lower, estimates.confidence.upper
            assert (low <= estimates.p).all() and (estimates.p <= high).all()
            assert 0.01 < np.mean(high - low) < 0.9


@pytest.mark.parametrize("grouped", [False, True])
def test_the_numbers_of_a_method_do_not_depend_on_the_methods_compared(grouped):
    """Widened to contain the point of another method, intervals were too wide for this one."""
    X, y = table_of(120, 21)
    groups = np.arange(120) // 2 if grouped else None
    options = {"groups": groups, "n_folds": 2, "n_trees": 10}
    together = evaluate(X, y, **options).predictions.estimates
    for method in ("venn-abers", "venn", "platt"):
        alone = evaluate(X, y, methods=[method], **options).predictions.estimates
        for kind in ("bounds", "confidence"):
            first, second = getattr(together[method], kind), getattr(alone[method], kind)
            if first is not None:
                np.testing.assert_array_equal(first.lower, second.lower)
                np.testing.assert_array_equal(first.upper, second.upper)
        np.testing.assert_array_equal(together[method].p, alone[method].p)


def test_warnings_of_folds_that_differ_in_counts_are_one_note():
    texts = ["6 of 22 rows are new", "column 3 is odd", "5 of 1,023 rows are new"]
    assert notes_of_folds([*texts, "column 4 is odd", "column 3 is odd"]) == [
        "In folds, for example: 6 of 22 rows are new.",
        "In folds: column 3 is odd.",
        "In folds: column 4 is odd.",
    ]
