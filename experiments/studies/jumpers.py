"""Conformal p-values of a stream, and the jumpers that bet on them: what monitors are beside."""

from bisect import bisect_left, bisect_right, insort

import numpy as np
from scipy.special import logsumexp

from vennforest.monitoring.stream_kernels import draw

EPSILONS = np.array([-1.0, 0.0, 1.0])
JUMPS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""Rates of the composite jumper (Vovk et al. 2021)."""


def conformal_p_values(scores, reference, seed):
    """Return ``(#{i: s_i > s_n} + U #{i: s_i = s_n}) / n`` over the reference and all before.

    U is uniform (Vovk, Gammerman & Shafer 2005, section 2.2). Compared with a reference that does
    not grow p-values would not be independent.
    """
    seen, found = sorted(reference), []
    for i, score in enumerate(scores):
        insort(seen, score)
        above = len(seen) - bisect_right(seen, score)
        equal = len(seen) - above - bisect_left(seen, score)
        found.append((above + draw(seed, i) * equal) / len(seen))
    return np.array(found)


def log_capital(p, jumps=JUMPS):
    """Return the logarithm of the mean capital over rates of jumping after each p-value.

    The capital is spread over epsilon in {-1, 0, 1}; at each step a share of it is spread again,
    and p multiplies what lies on epsilon by ``1 + epsilon (p - 1/2)`` (Vovk, Petej, Nouretdinov,
    Ahlberg, Carlsson & Gammerman 2021, Algorithm 1).
    """
    rates = np.asarray(jumps)[:, None]
    weights, scales, out = np.full((len(rates), 3), 1 / 3), np.zeros(len(rates)), np.empty(len(p))
    for t, value in enumerate(p):
        weights = ((1 - rates) * weights + rates / 3) * (1 + EPSILONS * (value - 0.5))
        total = weights.sum(axis=1, keepdims=True)
        weights /= total
        scales += np.log(total[:, 0])
        out[t] = logsumexp(scales) - np.log(len(rates))
    return out
