"""Decisions and thresholds from their definitions, slowly."""

import math
from math import comb


def expected(p, costs):
    """Expected cost of every decision, in fractions."""
    return [sum(q * row[d] for q, row in zip(p, costs, strict=True)) for d in range(len(costs[0]))]


def tail(k, n, share):
    """P(Bin(n, share) >= k), summed."""
    return sum(comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(max(k, 0), n + 1))


def precise_threshold(scores, labels, share, delta):
    """Every threshold of the fixed sequence with its own list of the starts still alive."""
    n = len(scores)

    def starts(number):
        first = next(k for k in range(1, n + 2) if share**k <= delta / number * (1 + 1e-9) or k > n)
        return [first * 2**i for i in range(number)]

    # the largest number of starts that there is room for
    number = max((m for m in range(1, 64) if starts(m)[-1] <= n), default=0)
    if not number:
        return None
    unused = starts(number)
    alive, best = [], None
    for t in sorted(set(scores), reverse=True):
        above = [y for s, y in zip(scores, labels, strict=True) if s >= t]
        alive += [u for u in unused if u <= len(above)]
        unused = [u for u in unused if u > len(above)]
        if not alive:
            continue
        if tail(sum(above), len(above), share) <= delta * len(alive) / number:
            best = t
        else:
            alive = []
    return best


def recalling_threshold(scores, labels, share, delta):
    """The largest score at which the positives at or above it are too many for a lower recall."""
    own = [s for s, y in zip(scores, labels, strict=True) if y]
    sound = [t for t in set(scores) if tail(sum(s >= t for s in own), len(own), share) <= delta]
    return max(sound, default=None)


def quiet_threshold(scores, labels, share, delta):
    """The smallest score at which the false alarms are too few for a larger share of them."""
    others = [s for s, y in zip(scores, labels, strict=True) if not y]
    n = len(scores)
    sound = [
        t
        for t in [*set(scores), math.nextafter(max(scores), math.inf)]
        if 1 - tail(sum(s >= t for s in others) + 1, n, share) <= delta
    ]
    return min(sound, default=None)


def specific_threshold(scores, labels, share, delta):
    """Just above the smallest score that leaves too many of the others at or below it."""
    others = [s for s, y in zip(scores, labels, strict=True) if not y]
    sound = [
        t for t in set(scores) if tail(sum(s <= t for s in others), len(others), share) <= delta
    ]
    return math.nextafter(min(sound), math.inf) if sound else None


def promised_quantity(promise, groups, threshold, costs=(1, 3)):
    """The quantity for a random row, a score and a label, of a random group.

    Of recall and specificity the row is of the class, or not, in a group that has such rows.
    """

    def mean(values):
        return sum(values) / len(values)

    if promise in ("recall", "specificity"):
        is_recall = promise == "recall"
        rows = [[s >= threshold for s, y in group if y == is_recall] for group in groups]
        share = mean([mean(flags) for flags in rows if flags])
        return share if is_recall else 1 - share
    flagged = mean([mean([s >= threshold for s, _ in group]) for group in groups])
    hits = mean([mean([s >= threshold and y for s, y in group]) for group in groups])
    misses = mean([mean([s < threshold and y for s, y in group]) for group in groups])
    if promise == "precision":
        return hits / flagged if flagged else 1.0
    alarms = flagged - hits
    return alarms if promise == "false_alarms" else costs[0] * alarms + costs[1] * misses
