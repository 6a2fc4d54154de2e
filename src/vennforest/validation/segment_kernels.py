"""Compiled sums over segments."""

import numpy as np

from vennforest._jit import kernel


@kernel
def segment_sums(segment, values, n_segments):
    """Return sums (b, n_segments) of values (b, n); row i is in the segments ``segment[i]`` (c,).

    Values of 0 are skipped for speed, since most drawn labels are 0.
    """
    sums = np.zeros((len(values), n_segments))
    for k in range(len(values)):
        for i in range(len(segment)):
            value = values[k, i]
            if value != 0:
                for j in range(segment.shape[1]):
                    sums[k, segment[i, j]] += value
    return sums
