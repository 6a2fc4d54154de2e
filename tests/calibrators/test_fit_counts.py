"""Every calibrator fitted to counts is what it is when fitted to the examples."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from support.cases import CALIBRATORS
from vennforest import ScoreCounts, Venn, VennAbers
from vennforest.calibrators import METHODS, Uncalibrated


def draw(rng, n, levels):
    scores = rng.integers(0, levels + 1, n) / levels
    return scores, (rng.random(n) < scores**1.5).astype(int)


def counted(scores, y, parts=3, weight=None):
    """Count parts of the examples, and add the counts."""
    return sum(
        ScoreCounts.from_scores(
            scores[i::parts],
            y[i::parts],
            sample_weight=None if weight is None else weight[i::parts],
            classes=np.unique(y),
        )
        for i in range(parts)
    )


@pytest.mark.parametrize("calibrator", [*CALIBRATORS, Uncalibrated()], ids=str)
def test_two_classes(calibrator):
    rng = np.random.default_rng(91)
    new = np.linspace(0, 1, 41)
    for n, levels in ((9, 4), (200, 30)):
        scores, y = draw(rng, n, levels)
        y[:2] = 0, 1
        some = rng.random(n) * 3 + 0.1
        some[2:4] = 0
        for weight in (None, some):
            rows = calibrator.fit(scores, y, sample_weight=weight).predict_proba(new)
            counts = calibrator.fit_counts(counted(scores, y, weight=weight))
            assert_allclose(counts.predict_proba(new), rows, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", list(METHODS))
def test_score_vectors_serve_every_calibrator(name):
    rng = np.random.default_rng(93)
    p = rng.multinomial(8, [0.5, 0.3, 0.2], 150) / 8
    y = np.array(["a", "b", "c"])[[rng.choice(3, p=(row + 0.1) / 1.3) for row in p]]
    calibrator = METHODS[name]()
    rows = calibrator.fit(p, y).predict_proba(p)
    counts = counted(p, y)
    assert len(counts) < 50
    found = calibrator.fit_counts(counts).predict_proba(p)
    assert_allclose(found, rows, rtol=0, atol=1e-11)


def test_no_examples_are_known():
    counts = ScoreCounts.from_scores([0.2, 0.8, 0.4], [0, 1, 1])
    for one in (VennAbers(), Venn(), Venn("bins")):
        one.fit_counts(counts)
        with pytest.raises(ValueError, match="left_out must be None after fit_counts"):
            one.predict_multiprobability([0.5], [0])
    with pytest.raises(ValueError, match="counts must contain at least one example, got none"):
        VennAbers().fit_counts(ScoreCounts.from_scores([], [], classes=[0, 1]))
