"""Venn–Abers bounds around the probability of a pool."""

import numpy as np
import pytest

from vennforest.calibrators import PooledCalibration, VennAbers
from vennforest.export import from_json, to_json


def drawn(k, kind, rng):
    z = rng.normal(size=(300, k))
    y = np.where(rng.random(300) < 0.7, z.argmax(axis=1), rng.integers(0, k, 300))
    if kind == "probabilities":
        z = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return (z[:, 1] if k == 2 else z), y


@pytest.mark.parametrize("kind", ["probabilities", "logits"])
@pytest.mark.parametrize("k", [2, 3])
def test_bounds_contain_the_probability_of_the_pool(k, kind):
    rng = np.random.default_rng(seed := np.random.SeedSequence().entropy)
    scores, y = drawn(k, kind, rng)
    calibrator, log = VennAbers("pooled").fit(scores, y), VennAbers("log").fit(scores, y)
    p = calibrator.predict_proba(scores)
    expected = PooledCalibration().fit(scores, y).predict_proba(scores)
    np.testing.assert_allclose(p, expected, rtol=1e-6)  # the search of the maps ends at about 1e-7
    for left_out in (None, np.arange(300)):
        m, narrow = (c.predict_multiprobability(scores, left_out) for c in (calibrator, log))
        np.testing.assert_array_equal(m.lower, np.minimum(narrow.lower, p), err_msg=str(seed))
        np.testing.assert_array_equal(m.upper, np.maximum(narrow.upper, p), err_msg=str(seed))
    read = from_json(to_json(calibrator, confidence=True))
    # A formula adds up in another order than the rows of a matrix.
    np.testing.assert_allclose(read.predict_proba(scores), p, rtol=1e-13)
    shifted = calibrator.with_prior({0: 0.9})
    m, p = shifted.predict_multiprobability(scores), shifted.predict_proba(scores)
    assert (m.lower <= p + 1e-12).all() and (p <= m.upper + 1e-12).all()


def test_the_mean_of_a_rare_event_is_its_rate():
    rng = np.random.default_rng(0)
    ratios = []
    for _ in range(10):
        scores = rng.beta(1, 20, 2_000)
        y = rng.random(2_000) < 0.4 * scores
        means = [
            VennAbers(merge).fit(scores, y).predict_proba(scores)[:, 1].mean()
            for merge in ("log", "pooled")
        ]
        ratios.append(means / y.mean())
    log, pooled = np.mean(ratios, axis=0)
    assert log > 1.1 and abs(pooled - 1) < 0.02
