"""Rows of many classes moved into their bounds, in a compiled loop."""

import numpy as np

from vennforest._jit import kernel

SMALLEST_PROBABILITY = 1e-100
"""What a zero counts as, since it may have to grow to its lower bound."""


@kernel
def scale_rows(p, lower, upper, out):
    """Write ``clip(c * p, lower, upper)``, normalised, with the factor c a row that makes it sum 1.

    The sum of a clipped row does not decrease in c and bends only where an entry meets a bound.
    Newton's step is exact where it stays within a piece of that line. Where it leaves the interval
    that must contain c the next bend is tried, so no piece is looked at for ever.
    """
    n, k = p.shape
    q, low_bend, up_bend = np.empty(k), np.empty(k), np.empty(k)
    for row in range(n):
        low, up, to = lower[row], upper[row], out[row]
        total = 0.0
        for j in range(k):
            q[j] = max(p[row, j], SMALLEST_PROBABILITY)
            total += q[j]
        outside = False  # nor is a row of NaN
        for j in range(k):
            to[j] = q[j] / total
            outside |= (to[j] < low[j]) | (to[j] > up[j])
        if not outside:
            continue
        for j in range(k):
            low_bend[j], up_bend[j] = low[j] / q[j], up[j] / q[j]
        c, least, most = 1 / total, -1.0, np.inf
        while True:  # every step narrows what contains c
            here = 0.0
            for j in range(k):
                here += min(max(c * q[j], low[j]), up[j])
            rise, after = 0.0, np.inf if here < 1 else 0.0  # the next bend where c has to go
            if here < 1:
                least = c
                for j in range(k):
                    if low_bend[j] <= c < up_bend[j]:
                        rise += q[j]
                    if low_bend[j] > c:
                        after = min(after, low_bend[j])
                    elif up_bend[j] > c:
                        after = min(after, up_bend[j])
            else:
                most = c
                for j in range(k):
                    if low_bend[j] < c <= up_bend[j]:
                        rise += q[j]
                    if up_bend[j] < c:
                        after = max(after, up_bend[j])
                    elif low_bend[j] < c:
                        after = max(after, low_bend[j])
            aim = max(c + (1 - here) / rise, 0.0) if rise > 0 else -1.0
            if min(c, after) <= aim <= max(c, after):
                c = aim
                break
            if not least < aim < most:
                aim = after
                if not least < aim < most:
                    break
            c = aim
        total = 0.0
        for j in range(k):
            to[j] = min(max(c * q[j], low[j]), up[j])
            total += to[j]
        for j in range(k):
            # clipped once more, since the division rounds
            to[j] = min(max(to[j] / total, low[j]), up[j])
