"""Slow, obvious versions of every algorithm, straight from the papers' formulas.

Nothing here is fast or clever on purpose: what the library computes is compared with these.
"""

from __future__ import annotations

from fractions import Fraction

# --- Venn–Abers ------------------------------------------------------------------------------


def isotonic_max_min(scores, labels, weights=None):
    """Isotonic fit as exact fractions: {score: max over a <= s of min over b >= s of the mean}."""
    weights = [1] * len(scores) if weights is None else weights
    totals = {}
    for s, y, w in zip(scores, labels, weights, strict=True):
        weight, positive = totals.get(float(s), (Fraction(0), Fraction(0)))
        w = Fraction(float(w))
        totals[float(s)] = (weight + w, positive + w * Fraction(float(y)))
    points = sorted(s for s in totals if totals[s][0] > 0)
    fitted = {}
    for k, s in enumerate(points):
        best = None
        for a in range(k + 1):
            weight = sum((totals[x][0] for x in points[a:k]), Fraction(0))
            positive = sum((totals[x][1] for x in points[a:k]), Fraction(0))
            smallest = None
            for b in range(k, len(points)):
                weight += totals[points[b]][0]
                positive += totals[points[b]][1]
                mean = positive / weight
                smallest = mean if smallest is None else min(smallest, mean)
            best = smallest if best is None else max(best, smallest)
        fitted[s] = best
    return fitted


def venn_abers(scores, labels, s, weights=None, left_out=-1):
    """(p0, p1) of the inductive Venn–Abers predictor at s, by refitting for both labels."""
    weights = [1] * len(scores) if weights is None else weights
    kept = [i for i in range(len(scores)) if i != left_out]
    fits = []
    for label in (0, 1):
        fitted = isotonic_max_min(
            [scores[i] for i in kept] + [s],
            [labels[i] for i in kept] + [label],
            [weights[i] for i in kept] + [1],
        )
        fits.append(fitted[float(s)])
    return tuple(fits)

# --- Venn predictors and taxonomies ----------------------------------------------------------

# --- Platt, isotonic, Boström, beta, temperature ---------------------------------------------

# --- forests: votes, out-of-bag membership and scores ----------------------------------------

# --- measures --------------------------------------------------------------------------------

# --- comparison of methods over data sets ----------------------------------------------------
