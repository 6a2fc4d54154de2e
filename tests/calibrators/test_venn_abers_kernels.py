"""Searches of convex hulls, against scans."""

import numpy as np
import pytest

from vennforest.calibrators import venn_abers_kernels as kernels

BLOCK = kernels.BLOCK_SIZE


@pytest.mark.parametrize("n", [1, 5, BLOCK, 3 * BLOCK, 9 * BLOCK + 7])
def test_the_lowest_point_is_that_of_a_scan(n):
    rng = np.random.default_rng(n)
    for _ in range(100):
        w = rng.integers(1, 4, n)
        W, Y = (np.append(0.0, np.cumsum(part)) for part in (w, rng.integers(0, w + 1)))
        hulls = kernels.hull_tree(W, Y)
        first, last = np.sort(rng.integers(0, n + 1, 2))
        rise, run = float(rng.integers(0, 9)), 8.0
        heights = Y[first : last + 1] * run - W[first : last + 1] * rise
        i = kernels.lowest_point(W, Y, hulls, first, last, rise, run)
        assert first <= i <= last and heights[i - first] == heights.min()
