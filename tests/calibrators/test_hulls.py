"""Compiled searches on the hulls of blocks of points, each beside a look at every point."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from vennforest.calibrators.venn_abers import left_out_kernels, step_kernels
from vennforest.calibrators.venn_abers.calibrator import StepTable

LEAF = left_out_kernels.LEAF


def drawn(rng, n):
    """Cumulative points of n scores, of counts, and their hulls."""
    w = rng.integers(1, 4, n)
    y = rng.integers(0, w + 1)
    W, Y = (np.append(0.0, np.cumsum(one)) for one in (w, y))
    points = W, Y, None, None
    return points, left_out_kernels.hull_tree(points)


@pytest.mark.parametrize("n", [1, LEAF - 1, LEAF, LEAF + 1, 3 * LEAF, 7 * LEAF + 5])
def test_every_point_of_a_convex_curve_is_a_corner_of_every_hull(n):
    # more corners than points, since every level holds all of them
    W = np.arange(n, dtype=float)
    corners, begins, levels = left_out_kernels.hull_tree((W, W**2, None, None))
    assert_array_equal(corners, np.tile(np.arange(n), len(levels)))
    for level, (start, stop) in enumerate(zip(levels, [*levels[1:], len(begins)], strict=True)):
        ends = begins[start:stop]
        width = LEAF << level
        assert_array_equal(np.diff(ends), [min(width, n - at) for at in range(0, n, width)])


@pytest.mark.parametrize("n", [1, 5, LEAF - 1, LEAF, 3 * LEAF, 9 * LEAF + 7])
def test_first_and_last_point_below_a_line(n):
    rng = np.random.default_rng(n)
    met = set()
    for _ in range(60):
        points, hulls = drawn(rng, n)
        W, Y = points[:2]
        rise, run = float(rng.integers(0, 9)), 8.0
        heights = Y - W * (rise / run)
        low, high = heights.min(), heights.max()
        for height in [low, high, high + 1, *rng.uniform(low - 1, high, 4)]:
            below = np.flatnonzero(heights < height)
            first = below[0] if len(below) else len(W)
            final = below[-1] if len(below) else -1
            found = [
                left_out_kernels.end_below(points, hulls, rise, run, height, last)
                for last in (False, True)
            ]
            assert found == [first, final]
            met.add(len(below) > 0)
    assert met == {False, True}


def test_search_among_sums_that_are_no_numbers_ends():
    points = np.array([0.0, np.nan, 2.0]), np.array([0.0, np.nan, 1.0]), None, None
    hulls = left_out_kernels.hull_tree(points)
    nothing = np.empty(0, np.int64), np.zeros((1, 4))
    # there is no answer; that it comes back is all
    left_out_kernels.fit_without(points, hulls, 1, 1, *nothing, 0, 1.0, 2.0)


def test_a_group_whose_weight_is_lost_beside_the_others_is_none():
    # 1e-300 beside 0.1 + 0.2 is more than a pair of numbers holds
    x = np.array([0.1, 0.2, 0.5, 0.8, 0.9])
    weight = np.array([0.1, 0.2, 1e-300, 1.0, 3.0])
    table = StepTable.from_examples(x, np.array([0, 1, 1, 0, 1]) == 1, weight)
    edges = np.array([0.3, 0.7])
    made = np.full((3, 3), np.nan)
    groups = step_kernels.group(table.x, *table.sums, edges, *made)
    assert groups == 2
    assert_allclose(made[:, :2], [[0.05 / 0.3, 3.5 / 4], [0.3, 4], [0.2, 3]], rtol=1e-14)
