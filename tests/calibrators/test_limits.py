"""What ends a fit where it does not end by itself, and other things that hardly ever happen."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vennforest import PlattScaling, VennAbers
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core import scores as core_scores
from vennforest.calibrators.core.interface import BoundedCalibrator, Learnt
from vennforest.calibrators.core.scores import _step, fit_logistic, group, logistic
from vennforest.calibrators.maps import softmax as softmax_maps
from vennforest.calibrators.maps.softmax import _Problem, fit_multinomial
from vennforest.calibrators.venn.taxonomies import CallableTaxonomy
from vennforest.export import json_form


def loss_of(z, negative, positive, weights, b):
    p, q, _ = logistic(weights @ z + b)
    with np.errstate(divide="ignore"):
        return -(negative @ np.log(q) + positive @ np.log(p)) / (negative.sum() + positive.sum())


def test_one_step_of_platts_fit_gains_and_is_not_the_last(monkeypatch):
    rng = np.random.default_rng(3)
    z = rng.normal(size=(1, 80))
    positive = (z[0] + rng.normal(size=80) > 0.5).astype(float)
    negative = 1 - positive
    whole = fit_logistic(z, negative, positive)
    monkeypatch.setattr(core_scores, "MAX_STEPS", 1)
    first = fit_logistic(z, negative, positive)
    share = positive.mean()
    none = loss_of(z, negative, positive, np.zeros(1), np.log(share / (1 - share)))
    assert whole[2] < first[2] < none
    assert_allclose(first[2], loss_of(z, negative, positive, *first[:2]), rtol=1e-12)


def test_a_start_without_any_curvature_is_kept():
    """Log-odds of 1,000: every p (1 - p) is 0, and no step can be computed."""
    z = np.array([[-1.0, 1.0, 1.0]])
    negative, positive = np.array([1.0, 0.0, 1e-6]), np.array([0.0, 1.0, 0.0])
    start = (np.array([1000.0]), 0.0)
    weights, b, loss = fit_logistic(z, negative, positive, start=start)
    assert weights.tolist() == [1000.0] and b == 0
    assert loss == pytest.approx(1000e-6 / (2 + 1e-6))


def multinomial_data(n=60, k=3):
    rng = np.random.default_rng(4)
    codes = np.arange(n) % k
    logs = rng.normal(size=(n, k)) + np.eye(k)[codes]
    return logs, codes


@pytest.mark.parametrize("structure", ["shared", "diagonal", "full"])
def test_one_step_of_a_multinomial_fit(structure, monkeypatch):
    logs, codes = multinomial_data()
    problem = _Problem(logs, codes, None, 0.3, structure)

    def loss(fitted):
        if structure == "full":
            return problem.evaluate(np.vstack([fitted.slopes, fitted.intercepts]))[0]
        return problem.evaluate(np.vstack([np.diag(fitted.slopes), fitted.intercepts]))[0]

    whole = fit_multinomial(logs, codes, None, structure, 0.3)
    start = fit_multinomial(logs, codes, None, "diagonal", 0.3)
    monkeypatch.setattr(softmax_maps, "MAX_MULTINOMIAL_STEPS", 1)
    first = fit_multinomial(logs, codes, None, structure, 0.3, start)
    before = start if structure == "full" else fit_multinomial(logs, codes, None, structure, 1e12)
    assert loss(whole) < loss(first) < loss(before)


def test_a_step_of_few_conjugate_directions_serves_as_well(monkeypatch):
    logs, codes = multinomial_data()
    whole = fit_multinomial(logs, codes, None, "full", 0.3)
    monkeypatch.setattr(softmax_maps, "INNER_STEPS", 1)
    short = fit_multinomial(logs, codes, None, "full", 0.3)
    assert_allclose(short.slopes, whole.slopes, atol=0.01)
    assert_allclose(short.intercepts, whole.intercepts, atol=0.01)


def test_a_multinomial_fit_stays_where_no_step_gains(monkeypatch):
    """As where only rounding is left: every further loss comes out higher."""
    logs, codes = multinomial_data()
    evaluate, calls = _Problem.evaluate, []

    def rising(self, theta):
        calls.append(theta)
        loss, p = evaluate(self, theta)
        return loss * (1 + (len(calls) > 1)), p

    monkeypatch.setattr(_Problem, "evaluate", rising)
    fitted = fit_multinomial(logs, codes, None, "diagonal", 0.3)
    assert len(calls) > 30  # the step was halved
    assert_array_equal(fitted.slopes, np.eye(3))
    assert_array_equal(fitted.intercepts, np.zeros(3))


def test_an_active_set_that_is_wrong_is_not_followed(monkeypatch):
    """Non-negative least squares that call a coefficient positive which then comes out negative."""
    hessian, gradient = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, -1.0])
    theta, bounded = np.array([0.1, 0.2]), np.array([True, True])
    right = _step(hessian, gradient, theta, bounded)
    assert (theta + right >= -1e-15).all() and theta[0] + right[0] == pytest.approx(0)
    nearly = core_scores.nnls

    def wrong(matrix, target, maxiter):
        found, rest = nearly(matrix, target, maxiter=maxiter)
        return np.maximum(found, 1e-9), rest

    monkeypatch.setattr(core_scores, "nnls", wrong)
    step = _step(hessian, gradient, theta, bounded)
    assert (theta + step >= 0).all()
    assert_allclose(step, right, atol=1e-8)


@pytest.mark.parametrize("low, high", [(-3.0, 5.0), (-1e308, 1e308), (0.25, 0.25)])
def test_cells_of_scores_that_are_no_probabilities(low, high):
    x = (low / 2 + high / 2) + (high / 2 - low / 2) * np.linspace(-1, 1, 1000)
    weight, positive = np.ones(1000), (np.arange(1000) % 3 == 0).astype(float)
    cells, total, share = group(x, weight, positive, 10)
    assert total.sum() == 1000 and share.sum() == positive.sum()
    if low == -3:  # cells of equal width, each with its mean
        assert len(cells) == 11  # the last score has a cell of its own
        assert_allclose(
            cells[:10], [x[i * 100 : (i + 1) * 100].mean() for i in range(10)], atol=0.01
        )
    else:  # no width to divide
        assert len(cells) == 1000


def test_what_is_no_error_of_the_document_passes(monkeypatch):
    text = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]).to_json()

    def full(document):
        raise MemoryError

    monkeypatch.setattr(json_form, "_read", full)
    with pytest.raises(MemoryError):
        Calibrator.from_json(text)


def test_labels_that_no_array_holds_have_no_document():
    y = np.array([2**63, 2**63 + 1, 2**63, 2**63 + 1], dtype=np.uint64)
    calibrator = PlattScaling().fit([0.1, 0.4, 0.6, 0.9], y)
    with pytest.raises(ValueError, match=r"integers below 2\*\*63"):
        calibrator.to_json()


def test_bounds_alone_have_no_smooth_estimates():
    class Nothing(BoundedCalibrator):
        def _multiprobability(self, scores, absent=None):
            raise NotImplementedError

        def _fit(self, scores, codes, weight, k):
            return Learnt()

    with pytest.raises(ValueError, match="Nothing has no such estimates"):
        Nothing().fit([0.1, 0.5], [0, 1]).predict_smooth([0.5])


def half(scores):
    return np.where(scores > 0.5, "high", "low")


def test_a_taxonomy_of_ones_own_is_pickled_before_and_after_it_is_fitted():
    taxonomy = CallableTaxonomy(half)
    before = pickle.loads(pickle.dumps(taxonomy))
    assert before.function is half and not hasattr(before, "codes_")
    scores = np.array([0.2, 0.9, 0.1])
    after = pickle.loads(pickle.dumps(taxonomy.fit(scores, 2)))
    assert after.codes_ == taxonomy.codes_
    assert_array_equal(after(scores), taxonomy(scores))


def test_labels_of_one_class_and_no_scores():
    with pytest.raises(ValueError, match=r"at least one example, got 0 sample\(s\)"):
        VennAbers().fit(np.empty(0), np.empty(0))
    with pytest.raises(ValueError, match=r"at least two classes .* got one class: 'a'"):
        VennAbers().fit([0.1, 0.2], ["a", "a"])


def test_a_document_is_refused_by_its_own_error():
    with pytest.raises(InputError, match="damaged"):
        Calibrator.from_json('{"format": "vennforest-calibrator", "version": 1}')
