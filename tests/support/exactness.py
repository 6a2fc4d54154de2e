"""Bounds of drawn calibration sets beside those of the formulas: ``make exact``.

A case is one new object, perhaps with a calibration example left out, and the bounds of all its
classes: Venn–Abers of two classes and of more, and Venn with the label and bins of the score, with
ties, neighbours one ulp apart, 1e±300, classes that are missing, and weights, zero among them.

Weights are such that every sum of them is a float. So the max-min formula in floats gives the exact
number, rounded once: the quotients are rounded, and rounding keeps order, so that the largest of
the smallest quotients is the rounding of the largest of the smallest fractions. Every hundredth
calibration set is compared with fractions as well (for two classes to the last bit); every fiftieth
has weights from 1e-4 to 1e4 instead, and is compared with fractions alone.

Set number i of a seed is always the same.
"""

import argparse
import sys
from collections import Counter

import numpy as np

from oracles import formulas as oracle
from support.cases import draw_scores
from vennforest import Venn, VennAbers

MAX_EXAMPLES, N_NEW = 12, 8
"""Calibration examples of a set at most, and new objects; of each twice, once with one left out."""

WEIGHTS = [0.25, 0.5, 1.0, 2.0, 3.0, 7.0, 2.0**20]
TOLERANCE = {False: 1e-12, True: 1e-10}
"""Of exact sums of weights, and of rounded ones."""


def max_min(scores, labels, weight, new, kept):
    """(p0, p1) at each new score, from the examples that are kept for it: (2, m).

    The largest over blocks that begin at or below the score of the smallest over their ends at or
    above it of the mean label, the new object counted in.
    """
    points = np.unique(np.concatenate([scores, new]))
    at = np.searchsorted(points, scores)[:, None] == np.arange(len(points))
    sums = [((kept * part) @ at).cumsum(axis=1) for part in (weight, weight * labels)]
    W, Y = (np.hstack([np.zeros((len(new), 1)), part]) for part in sums)
    total = W[:, None, 1:] - W[:, :-1, None] + 1  # of the block from a to b
    positive = Y[:, None, 1:] - Y[:, :-1, None]
    index, number = np.arange(len(points)), np.searchsorted(points, new)[:, None]
    ends, begins = index >= number, index <= number
    with np.errstate(divide="ignore", invalid="ignore"):
        means = [(positive + label) / total for label in (0, 1)]
    smallest = [np.where(ends[:, None, :], mean, np.inf).min(axis=2) for mean in means]
    return np.array([np.where(begins, part, -np.inf).max(axis=1) for part in smallest])


def counted(categories, labels, weight, category, kept, k):
    """Bounds (m, k) of each new object's category, from the examples that are kept for it."""
    counts = (kept * weight * (categories == category[:, None])) @ (labels[:, None] == np.arange(k))
    total = counts.sum(axis=1, keepdims=True)
    return np.array([counts, counts + 1]) / (total + 1)


def of_all_classes(p0, p1):
    """Bounds [lower, upper] of every class of an object, from those of each against the rest.

    With more than two classes they contain both the bounds of a class and what normalisation makes
    of it, whatever the others are in their intervals.
    """
    if len(p0) == 1:
        return [1 - p1[0], p0[0]], [1 - p0[0], p1[0]]
    lower, upper = [], []
    for j in range(len(p0)):
        smallest = p0[j] + sum(p1[i] for i in range(len(p1)) if i != j)
        largest = p1[j] + sum(p0[i] for i in range(len(p0)) if i != j)
        lower.append(min(p0[j], p0[j] / smallest) if smallest else p0[j] * 0)
        upper.append(max(p1[j], p1[j] / largest) if largest else p1[j] * 0 + 1)
    return lower, upper


class Set:
    """A drawn calibration set, new objects, who is left out for each, and a calibrator."""

    def __init__(self, seed, number):
        rng = np.random.default_rng([seed, number])
        self.k = k = int(rng.choice([2, 2, 2, 3, 4]))
        n = int(rng.integers(1, MAX_EXAMPLES + 1))
        self.scores, self.new = draw_scores(rng, n, k), draw_scores(rng, N_NEW, k)
        same = rng.random(N_NEW) < 0.5  # on, and one ulp beside, scores of the set
        near = self.scores[rng.integers(0, n, N_NEW)]
        beside = np.nextafter(near, rng.choice([-np.inf, np.inf], near.shape))
        self.new[same] = np.where(rng.random(near.shape) < 0.4, beside, near)[same]
        self.labels = rng.integers(0, k if rng.random() < 0.9 else 1, n)
        self.is_wild = number % 50 == 7
        self.weight = None
        if self.is_wild or rng.random() < 0.5:
            weight = 10.0 ** rng.uniform(-4, 4, n) if self.is_wild else rng.choice(WEIGHTS, n)
            self.weight = np.where(rng.random(n) < 0.15, 0.0, weight)
            self.weight[rng.integers(n)] = 1.0
        self.left_out = rng.integers(-1, n, N_NEW)
        self.taxonomy = None if rng.random() < 0.7 else str(rng.choice(["label", "bins"]))
        self.uses_fractions = self.is_wild or number % 100 == 3
        self.kind = f"{'Venn–Abers' if self.taxonomy is None else 'Venn'}, " + (
            "two classes" if k == 2 else "more classes"
        )
        self.model = VennAbers() if self.taxonomy is None else Venn(self.taxonomy)
        self.model.fit(self.scores, self.labels, sample_weight=self.weight, classes=range(k))
        self.model.score_range_ = None

    def columns(self):
        """Return scores, new scores and labels of each class against the rest."""
        if self.k == 2:
            return [(self.scores, self.new, self.labels)]
        classes = range(self.k)
        return [
            (self.scores[:, j], self.new[:, j], (self.labels == j).astype(int)) for j in classes
        ]

    def categories(self):
        """Return the categories of the examples and of the new objects."""
        return self.model._category_of(self.scores), self.model._category_of(self.new)

    def bounds(self):
        """Return the library's lower and upper bounds, without and with examples left out."""
        parts = [self.model.predict_multiprobability(self.new, r) for r in (None, self.left_out)]
        return np.array([[m.lower, m.upper] for m in parts])

    def formula(self):
        """Return the exact bounds, rounded once."""
        n = len(self.labels)
        weight = np.ones(n) if self.weight is None else self.weight
        bounds = []
        for kept in (np.ones((N_NEW, n)), np.arange(n) != self.left_out[:, None]):
            if self.taxonomy is not None:
                categories, category = self.categories()
                bounds.append(counted(categories, self.labels, weight, category, kept, self.k))
                continue
            each = np.array([max_min(s, y, weight, new, kept) for s, new, y in self.columns()])
            rows = [of_all_classes(*each[:, :, i].T.tolist()) for i in range(N_NEW)]
            bounds.append(np.array(rows).swapaxes(0, 1))
        return np.array(bounds)

    def of_fractions(self, i):
        """Return the bounds of new object i from exact fractions: (2, 2, k)."""
        bounds = []
        for r in (-1, int(self.left_out[i])):
            if self.taxonomy is not None:
                categories, category = (part.tolist() for part in self.categories())
                example = categories, self.labels.tolist(), category[i], self.k
                bounds.append(np.array(oracle.venn(*example, self.weight, r), float).T)
                continue
            pairs = [
                oracle.venn_abers(s.tolist(), y.tolist(), float(new[i]), self.weight, r)
                for s, new, y in self.columns()
            ]
            bounds.append(np.array(of_all_classes(*zip(*pairs, strict=True)), float))
        return np.array(bounds)


def compare(seed, number):
    """Return the set, its largest error, and that of the formula in floats."""
    drawn = Set(seed, number)
    formula_error = 0.0
    expected = None if drawn.is_wild else drawn.formula()
    if drawn.uses_fractions:
        exact = np.stack([drawn.of_fractions(i) for i in range(N_NEW)], axis=2)
        if expected is not None:
            formula_error = float(abs(expected - exact).max())
            if drawn.k == 2:  # the second class is rounded once, by both; the first is 1 minus it
                assert np.array_equal(expected[..., -1], exact[..., -1]), (seed, number)
        expected = exact
    return drawn, float(abs(drawn.bounds() - expected).max()), formula_error


def run(count, seed):
    """Compare sets until ``count`` cases are done; return cases and worst errors, and bad sets."""
    cases, worst, bad, number = Counter(), Counter(), [], 0
    while cases.total() < count:
        drawn, error, formula_error = compare(seed, number)
        if not (error <= TOLERANCE[drawn.is_wild] and formula_error <= 1e-15):
            bad.append((number, drawn.kind, error, formula_error))
        worst[drawn.kind] = max(worst[drawn.kind], error)
        cases[drawn.kind] += 2 * N_NEW
        number += 1
    return cases, worst, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="cases in all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    cases, worst, bad = run(options.count, options.seed)
    for kind, number in sorted(cases.items()):
        print(f"{number:9,} cases of {kind}: worst error {worst[kind]:.1e}")
    for line in bad:
        print("BAD", *line)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
