"""Compiled loops that count the examples of two classes at each score."""

import numpy as np

from vennforest._jit import kernel


@kernel
def split_by_class(scores, codes):
    """Return the scores of class 0 and those of class 1, in any order."""
    parts = np.empty(len(scores))
    i, j = 0, len(scores) - 1
    for k in range(len(scores)):
        parts[i] = parts[j] = scores[k]  # one of the two positions is written to again
        if codes[k]:
            j -= 1
        else:
            i += 1
    return parts[:i], parts[i:]


@kernel
def count_two_classes(first, second):
    """Return the distinct scores (m,) of two sorted arrays, and the counts of each at them, (m, 2).

    ``first`` are the scores of the first class, ``second`` those of the second.
    """
    n = len(first) + len(second)
    scores, counts = np.empty(n), np.zeros((n, 2))
    i, j, m = 0, 0, 0
    while i < len(first) or j < len(second):
        in_first = j == len(second) or (i < len(first) and first[i] <= second[j])
        score = first[i] if in_first else second[j]
        if m == 0 or score != scores[m - 1]:
            scores[m] = score
            m += 1
        if in_first:
            counts[m - 1, 0] += 1
            i += 1
        else:
            counts[m - 1, 1] += 1
            j += 1
    if m == n:
        return scores, counts
    return scores[:m].copy(), counts[:m].copy()
