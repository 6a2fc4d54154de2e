"""Sums over segments, against one segment after the other."""

import numpy as np

from vennforest.validation.segment_kernels import segment_sums


def test_every_row_counts_in_each_of_its_segments(rng):
    n, n_segments = int(rng.integers(1, 40)), 7
    segment = rng.integers(0, n_segments, (n, 3))
    values = rng.normal(size=(4, n)) * (rng.random((4, n)) < 0.5)
    expected = [
        [sum(row[i] * np.sum(segment[i] == s) for i in range(n)) for s in range(n_segments)]
        for row in values
    ]
    np.testing.assert_allclose(segment_sums(segment, values, n_segments), expected, atol=1e-12)
