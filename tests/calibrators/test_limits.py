"""What ends a fit where it does not end by itself, and other things that hardly ever happen."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from vennforest import VennAbers
from vennforest.calibrators.maps import _newton_step, group_scores
from vennforest.counts import ScoreCounts


def test_a_step_that_holds_too_many_coefficients_descends_all_the_same():
    """Coefficients that a step takes below zero are held at once: not always the right set."""
    hessian = np.array([[0.43, 0.21, -0.58], [0.21, 0.57, -0.64], [-0.58, -0.64, 1.12]])
    rng, uphill = np.random.default_rng(0), 0
    for _ in range(2000):
        theta, gradient = rng.exponential(0.1, 3), rng.normal(size=3)
        bounded = np.ones(3, np.bool_)
        step = _newton_step(hessian, gradient, theta, bounded)
        assert (theta + step >= -1e-12).all()
        assert gradient @ step <= 0
        uphill += np.allclose(step, np.maximum(-gradient / np.diag(hessian), -theta))
    assert uphill


def test_cells_of_scores_that_are_no_probabilities_have_equal_width():
    x = np.linspace(-3, 5, 1000)
    positive = (np.arange(1000) % 3 == 0).astype(float)
    counts = ScoreCounts(np.arange(2), x, np.column_stack([1 - positive, positive]))
    grouped = group_scores(counts, 10)
    assert_allclose(grouped.class_totals, counts.class_totals)
    assert len(grouped) == 11  # the last score has a cell of its own
    means = [x[i * 100 : (i + 1) * 100].mean() for i in range(10)]
    assert_allclose(grouped.scores[:10], means, atol=0.01)


def test_labels_of_one_class_and_no_scores():
    with pytest.raises(ValueError, match=r"at least one example, got 0 sample\(s\)"):
        VennAbers().fit(np.empty(0), np.empty(0))
    with pytest.raises(ValueError, match=r"at least two classes .* got one class: 'a'"):
        VennAbers().fit([0.1, 0.2], ["a", "a"])
