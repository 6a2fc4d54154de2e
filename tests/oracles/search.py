"""The loss of a choice, corrected by the bootstrap, row by row."""

from fractions import Fraction

import numpy as np

from vennforest.search import BOOTSTRAPS


def bootstrap_corrected(losses, weight, unit, random):
    """Tsamardinos et al. (2018), algorithm 3: choose on drawn rows, judge on the others."""
    n, settings = losses.shape
    names = sorted(set(unit))
    exact = [[Fraction(float(v)) for v in row] for row in losses]
    w = [Fraction(float(v)) for v in weight]
    found = []
    for _ in range(BOOTSTRAPS):
        units = [names[at] for at in random.randint(len(names), size=len(names))]
        rows = [i for one in units for i in range(n) if unit[i] == one]
        left = sorted(set(range(n)) - set(rows))
        if not left:
            continue
        drawn = [sum(w[i] * exact[i][s] for i in rows) for s in range(settings)]
        best = drawn.index(min(drawn))
        found.append(sum(w[i] * exact[i][best] for i in left) / sum(w[i] for i in left))
    return float(np.mean([float(value) for value in found]))
