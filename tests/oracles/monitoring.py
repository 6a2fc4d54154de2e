"""Martingales of a stream straight from their formulas, in plain Python and exact fractions."""

import itertools
from fractions import Fraction

from oracles.hashes import mixed


def uniform(seed, at):
    """Number ``at`` of SplitMix64 started at ``seed``, in [0, 1)."""
    return (mixed((seed + (at + 1) * 0x9E3779B97F4A7C15) % 2**64) >> 11) / 2**53


def spread(weights, bets, jump):
    """Capital on each bet after a share ``jump`` of it was spread anew."""
    total = sum(weights)
    return [(1 - jump) * w + jump * total * b for w, b in zip(weights, bets, strict=True)]


def stream_columns(reference, stream, seed, of_labels, limits):
    """What each (bin, label) is to the bets: where its smoothed p-value lies among the limits."""
    out = []
    for t, (cell, hit) in enumerate(stream):
        seen = [*reference, *stream[: t + 1]]
        if of_labels:
            same = [h for c, h in seen if c == cell]
            lower, equal = sum(h < hit for h in same), sum(h == hit for h in same)
            p = (lower + uniform(seed, t) * equal) / len(same)
            out.append(2 * cell + (p >= limits[cell]))
        else:
            lower, equal = sum(c < cell for c, _ in seen), sum(c == cell for c, _ in seen)
            p = (lower + uniform(seed, t) * equal) / len(seen)
            out.append(sum(p >= limit for limit in limits))
    return out


def begun(column, factors, prior, jump, first, last):
    """Capital at ``last`` of one unit put in before example ``first``, by recursion."""
    weights = list(prior)
    for t in range(first, last + 1):
        weights = spread(weights, prior, jump) if t > first else weights
        weights = [w * row[column[t]] for w, row in zip(weights, factors, strict=True)]
    return sum(weights)


def evidence(column, factors, prior, jumps, wait):
    """Mean over rates of jumping: a mixture over the step at which betting begins."""
    out = []
    for n in range(len(column)):
        capitals = []
        for jump in jumps:
            total, still = 0.0, 1.0
            for first in range(n + 1):
                chance = still / (first + wait)
                total += chance * begun(column, factors, prior, jump, first, n)
                still -= chance
            capitals.append(total + still)
        out.append(sum(capitals) / len(jumps))
    return out


def reached_by_a_fifth(capitals):
    """The largest c so that a fifth of the copies have a capital of 5 c or more."""
    reached = [c for c in capitals if sum(other >= c for other in capitals) >= len(capitals) / 5]
    return max(reached) / 5


def law_of_columns(examples, n_reference, of_labels, limits):
    """Probability of every sequence of columns over all orders of the examples, as fractions.

    Given an order, the p-value of an example is uniform on an interval. Of labels: together with
    the sequence of bins of the stream, given which a bet has to be fair.
    """
    law = {}
    orders = list(itertools.permutations(examples))
    for order in orders:
        paths = {(): Fraction(1)}
        for t in range(n_reference, len(order)):
            cell, hit = order[t]
            seen = order[: t + 1]
            among = [h for c, h in seen if c == cell] if of_labels else [c for c, _ in seen]
            own = hit if of_labels else cell
            lower = sum(v < own for v in among)
            p = Fraction(lower, len(among)), Fraction(lower + among.count(own), len(among))
            cuts = [limits[cell]] if of_labels else limits
            edges = [Fraction(0), *cuts, Fraction(1)]
            first = 2 * cell if of_labels else 0
            step = {
                first + place: overlap(p, edge)
                for place, edge in enumerate(itertools.pairwise(edges))
            }
            paths = {
                (*path, column): chance * share
                for path, chance in paths.items()
                for column, share in step.items()
                if share
            }
        for path, chance in paths.items():
            law[path] = law.get(path, Fraction(0)) + chance / len(orders)
    return law


def overlap(one, other):
    """Share of the first interval that lies in the second."""
    common = min(one[1], other[1]) - max(one[0], other[0])
    return max(common, Fraction(0)) / (one[1] - one[0])
