"""Ranks and their tests, slowly and exactly, straight from the definitions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations


def rank_row(values, lower_is_better):
    """Rank of each value: how many are better, plus half of the others that are equal, plus 1."""
    ranks = []
    for v in values:
        better = sum((w < v) if lower_is_better else (w > v) for w in values)
        equal = sum(w == v for w in values) - 1
        ranks.append(Fraction(1 + better) + Fraction(equal, 2))
    return ranks


def friedman(table, lower_is_better):
    """Friedman's chi-square, exactly: spread of the rank sums over the spread of the ranks."""
    ranks = [rank_row(row, lower_is_better) for row in table]
    n, k = len(ranks), len(ranks[0])
    middle = Fraction(k + 1, 2)
    sums = [sum(row[j] for row in ranks) for j in range(k)]
    between = sum((s - n * middle) ** 2 for s in sums)
    within = sum((r - middle) ** 2 for row in ranks for r in row)
    return Fraction(0) if within == 0 else (k - 1) * between / within


def exhaustive_sets(k):
    """Every non-empty set of pairs of k methods that can be exactly the true equalities.

    From all sets of pairs those are kept in which whatever follows is there too.
    """
    pairs = list(combinations(range(k), 2))
    found = []
    for size in range(1, len(pairs) + 1):
        for chosen in map(set, combinations(pairs, size)):
            closed = all(
                (a, c) in chosen
                for a, b, c in permutations(range(k), 3)
                if a < c and (min(a, b), max(a, b)) in chosen and (min(b, c), max(b, c)) in chosen
            )
            if closed:
                found.append(chosen)
    return found


def bergmann_hommel(p, k, sets=None):
    """Adjusted p-value of every pair: largest size times smallest p over exhaustive sets."""
    sets = exhaustive_sets(k) if sets is None else sets
    adjusted = {}
    for pair in combinations(range(k), 2):
        values = [len(i) * min(p[q] for q in i) for i in sets if pair in i]
        adjusted[pair] = min(1.0, max(values))
    return adjusted


def bergmann_hommel_rejected(p, k, alpha):
    """Pairs outside the acceptance set: the union of I with min p > alpha / |I|."""
    accepted = set()
    for i in exhaustive_sets(k):
        if min(p[q] for q in i) > alpha / len(i):
            accepted |= i
    return set(combinations(range(k), 2)) - accepted
