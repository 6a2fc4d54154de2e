"""Masked logits mean the same to every map: a class that is impossible in its row."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from vennforest import ScoreCounts, TemperatureScaling
from vennforest._messages import CalibrationWarning
from vennforest.calibrators import METHODS
from vennforest.export import from_json, to_json
from vennforest.scores import MASKED, MIN_MASK_DISTANCE, find_mask_distance, read_scores

MASKS = (-np.inf, -800.0, -1e4, -1e9, float(np.finfo(np.float32).min))
OTHERS = ("bostrom", "none", "venn")  # maps of the largest score alone, and none


def draw(rng, k, n=400):
    """Return logits (n, k), masks (n, k) and labels, of which none is masked."""
    logits = rng.normal(size=(n, k)) * 2
    is_masked = rng.random((n, k)) < 0.25
    is_masked[np.arange(n), rng.integers(0, k, n)] = False
    y = np.where(is_masked, -np.inf, logits / 1.5 + rng.gumbel(size=(n, k))).argmax(axis=1)
    return logits, is_masked, y


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("method", METHODS)
def test_every_mask_gives_every_map_the_same_answers(rng, method, k):
    logits, is_masked, y = draw(rng, k)
    answers = []
    for mask in MASKS:
        scores = np.where(is_masked, mask, logits)
        with warnings.catch_warnings():
            warnings.simplefilter("error", CalibrationWarning)
            model = METHODS[method]().fit(scores, y, classes=range(k))
            answers.append(model.predict_proba(scores))
        assert model.on_ == "logit"
        assert_allclose(answers[-1], answers[0], rtol=1e-12, err_msg=str(mask))
    assert np.isfinite(answers[0]).all()
    assert_allclose(answers[0].sum(axis=1), 1)
    counts = ScoreCounts.from_scores(scores, y, classes=range(k))
    of_counts = METHODS[method]().fit_counts(counts).predict_proba(scores)
    assert_allclose(of_counts, answers[0], rtol=1e-6, atol=1e-9)
    assert_allclose(from_json(to_json(model)).predict_proba(scores), answers[0], rtol=1e-12)
    if method in OTHERS:
        return
    # An impossible class keeps next to nothing, and the others what they have without masks.
    assert answers[0][is_masked].mean() < 0.03
    p = softmax(np.where(is_masked, -np.inf, logits) / 1.5, axis=1)
    assert np.abs(answers[0] - p).mean() < 0.08


@pytest.mark.parametrize("k", [2, 3])
def test_a_label_that_is_masked_does_not_count_for_the_temperature(rng, k):
    logits, is_masked, y = draw(rng, k)
    is_masked[:, -1] |= rng.random(len(y)) < 0.1
    is_masked[is_masked.all(axis=1), 0] = False
    scores, n = np.where(is_masked, -1e9, logits), int(is_masked[np.arange(len(y)), y].sum())
    with pytest.warns(CalibrationWarning, match=f"{n} calibration examples have a label whose"):
        model = TemperatureScaling().fit(scores, y)
    possible = ~is_masked[np.arange(len(y)), y]
    assert_allclose(
        model.temperature_, TemperatureScaling().fit(scores[possible], y[possible]).temperature_
    )


def test_logits_that_are_far_apart_without_a_gap_are_not_masked(rng):
    """As log-likelihoods of naive Bayes are, whose temperature is in the hundreds."""
    z = rng.normal(size=(2_000, 3)) * 1_500
    y = (z / 700 + rng.gumbel(size=z.shape)).argmax(axis=1)
    read = read_scores(z, 3)
    assert (read.values > MASKED).all()
    assert 500 < TemperatureScaling().fit(z, y).temperature_ < 1_000


def test_the_distance_of_masks_is_that_of_the_first_wide_gap():
    for _ in range(300):
        rng = np.random.default_rng()
        distances = np.exp(rng.uniform(-3, 20, rng.integers(1, 30)))
        largest = 0.0  # the slow version: one after the other, until one is too far
        for distance in np.sort(distances):
            if distance >= max(MIN_MASK_DISTANCE, 10 * largest):
                break
            largest = distance
        assert_allclose(find_mask_distance(distances), max(MIN_MASK_DISTANCE, 10 * largest))


def test_new_rows_are_read_alone(rng):
    logits, is_masked, y = draw(rng, 3)
    scores = np.where(is_masked, -1e4, logits)
    model = TemperatureScaling().fit(scores, y)
    together = model.predict_proba(scores)
    alone = np.vstack([model.predict_proba(row[None]) for row in scores[:40]])
    assert_allclose(alone, together[:40], rtol=1e-12)
