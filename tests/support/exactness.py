"""Bounds of drawn calibration sets beside those of the formulas: ``make exact``.

A case is one new object, perhaps with a calibration example or its group left out, and the bounds
of all its classes: Venn–Abers of two classes and of more, and Venn with every named taxonomy, with
ties, neighbours one ulp apart, 1e±300, classes that are missing, and weights, zero among them.

Weights are such that every sum of them is a float. So the max-min formula in floats gives the exact
number, rounded once: the quotients are rounded, and rounding keeps order, so that the largest of
the smallest quotients is the rounding of the largest of the smallest fractions. Every hundredth
calibration set is compared with fractions as well (for two classes to the last bit); every fiftieth
has weights of any size instead, and is compared with fractions alone.

Set number i of a seed is always the same.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from oracles import formulas as oracle
from support.cases import draw_scores, draw_weights
from vennforest import Venn, VennAbers
from vennforest.calibrators.venn.taxonomies import NAMED

MOST, NEW = 12, 8
"""Calibration examples of a set at most, and new objects; of each twice, once with one left out."""

WEIGHTS = [0.25, 0.5, 1.0, 2.0, 3.0, 7.0, 2.0**20]
TOLERANCE = 1e-12


def max_min(scores, labels, weight, new, kept):
    """(p0, p1) at each new score, from the examples that are kept for it: (2, m).

    The largest over blocks that begin at or below the score of the smallest over their ends at or
    above it of the mean label, the new object counted in.
    """
    points = np.unique(np.concatenate([scores, new]))
    at = np.searchsorted(points, scores)[None, :] == np.arange(len(points))[:, None]
    heavy = kept * weight
    zero = np.zeros((len(new), 1))
    W = np.hstack([zero, (heavy @ at.T).cumsum(axis=1)])
    Y = np.hstack([zero, ((heavy * labels) @ at.T).cumsum(axis=1)])
    place = np.searchsorted(points, new)
    total = W[:, None, 1:] - W[:, :-1, None] + 1  # of the block from a to b
    positive = Y[:, None, 1:] - Y[:, :-1, None]
    here = np.arange(len(points))
    ends = here[None, None, :] >= place[:, None, None]
    begins = here[None, :] <= place[:, None]
    total = np.where(ends & begins[:, :, None], total, np.nan)
    found = []
    for label in (0, 1):
        mean = np.where(ends, (positive + label) / total, np.inf)
        found.append(np.where(begins, mean.min(axis=2), -np.inf).max(axis=1))
    return np.array(found)


def counted(categories, labels, weight, category, kept, k):
    """Bounds (m, k) of each new object's category, from the examples that are kept for it."""
    heavy = kept * weight * (categories[None, :] == category[:, None])
    counts = heavy @ (labels[:, None] == np.arange(k))
    total = counts.sum(axis=1, keepdims=True)
    lower, upper = counts / (total + 1), (counts + 1) / (total + 1)
    return np.where(total > 0, [lower, upper], [[[0.0]], [[1.0]]])


class Set:
    """A drawn calibration set, new objects, who is left out for each, and a calibrator."""

    def __init__(self, seed, number):
        rng = np.random.default_rng([seed, number])
        self.k = int(rng.choice([2, 2, 2, 3, 4]))
        n = int(rng.integers(1, MOST + 1))
        self.scores = draw_scores(rng, n, self.k)
        self.new = draw_scores(rng, NEW, self.k)
        same = rng.random(NEW) < 0.5  # on, and one ulp beside, scores of the set
        near = self.scores[rng.integers(0, n, NEW)]
        near = np.nextafter(near, rng.choice([-np.inf, np.inf], near.shape))
        near = np.where(rng.random(near.shape) < 0.4, near, self.scores[rng.integers(0, n, NEW)])
        self.new[same] = near[same]
        self.labels = rng.integers(0, self.k if rng.random() < 0.9 else 1, n)
        self.wild = number % 50 == 7
        self.weight = None
        if self.wild:
            self.weight = draw_weights(rng, n)
        elif rng.random() < 0.5:
            self.weight = rng.choice(WEIGHTS, n)
        if self.weight is not None:
            self.weight[rng.random(n) < 0.15] = 0.0
            self.weight[rng.integers(n)] = 1.0
        self.left_out = rng.integers(-1, n, NEW)
        self.groups = rng.integers(0, 4, n) if rng.random() < 0.4 else None
        self.taxonomy = None if rng.random() < 0.6 else sorted(NAMED)[rng.integers(len(NAMED))]
        with_fractions = self.wild or number % 100 == 3
        self.fractions = range(NEW) if with_fractions else ()
        self.kind = f"{'Venn–Abers' if self.taxonomy is None else 'Venn'}, " + (
            "two classes" if self.k == 2 else "more classes"
        )

    def bounds(self):
        """Return what the library says: lower and upper, all examples kept and some left out."""
        model = VennAbers() if self.taxonomy is None else Venn(self.taxonomy)
        model.fit(self.scores, self.labels, sample_weight=self.weight, classes=range(self.k))
        if self.taxonomy is not None:
            self.categories, self.category = (
                model.taxonomy_(self.scores),
                model.taxonomy_(self.new),
            )
        whole = model.predict_multiprobability(self.new)
        without = model.predict_multiprobability(self.new, self.left_out, groups=self.groups)
        return np.array([[m.lower, m.upper] for m in (whole, without)])

    def kept(self):
        """Tell which examples are kept for each new object: (2, NEW, n)."""
        n = len(self.labels)
        group = np.arange(n) if self.groups is None else self.groups
        gone = group[None, :] == group[self.left_out][:, None]
        return np.array([np.ones((NEW, n)), ~(gone & (self.left_out >= 0)[:, None])])

    def columns(self):
        """Return scores, new scores and labels of each class against the rest."""
        if self.k == 2:
            return [(self.scores, self.new, self.labels)]
        return [
            (self.scores[:, j], self.new[:, j], (self.labels == j).astype(int))
            for j in range(self.k)
        ]

    def formula(self):
        """Return the exact bounds, rounded once."""
        n = len(self.labels)
        weight = np.ones(n) if self.weight is None else self.weight
        found = []
        for kept in self.kept():
            if self.taxonomy is not None:
                arguments = self.categories, self.labels, weight, self.category, kept, self.k
                found.append(counted(*arguments))
                continue
            each = np.array([max_min(s, y, weight, new, kept) for s, new, y in self.columns()])
            rows = [of_all_classes(*each[:, :, i].T.tolist()) for i in range(NEW)]
            found.append(np.array(rows).swapaxes(0, 1))
        return np.array(found)

    def of_fractions(self, i):
        """Return the bounds of new object i from exact fractions: (2, 2, k)."""
        found = []
        for r in (-1, int(self.left_out[i])):
            groups = self.groups
            if self.taxonomy is not None:
                pairs = oracle.venn(
                    self.categories.tolist(), self.labels.tolist(), int(self.category[i]), self.k,
                    self.weight, r, groups,
                )  # fmt: skip
                found.append(np.array(pairs, float).T)
                continue
            each = [
                oracle.venn_abers(s.tolist(), y.tolist(), float(new[i]), self.weight, r, groups)
                for s, new, y in self.columns()
            ]
            found.append(np.array(of_all_classes(*zip(*each, strict=True)), float))
        return np.array(found)


def of_all_classes(p0, p1):
    """Bounds [lower, upper] of every class of an object, from those of each against the rest.

    Of two classes only the second is asked. Of more, they hold both what is asked of a class and
    what normalisation makes of it, with whatever the intervals of the others hold.
    """
    if len(p0) == 1:
        return [1 - p1[0], p0[0]], [1 - p0[0], p1[0]]
    lower, upper = [], []
    for j in range(len(p0)):
        least = p0[j] + sum(p1[i] for i in range(len(p1)) if i != j)
        most = p1[j] + sum(p0[i] for i in range(len(p0)) if i != j)
        lower.append(min(p0[j], p0[j] / least) if least else p0[j] * 0)
        upper.append(max(p1[j], p1[j] / most) if most else p1[j] * 0 + 1)
    return lower, upper


def compare(seed, number):
    """Return the kind, the largest error of a set, and that of the formula in floats."""
    drawn = Set(seed, number)
    found = drawn.bounds()
    own = 0.0
    if not drawn.wild:
        wanted = drawn.formula()
    if drawn.fractions:
        exact = np.stack([drawn.of_fractions(i) for i in drawn.fractions], axis=2)
        if not drawn.wild:
            own = float(abs(wanted - exact).max())
            if drawn.k == 2:  # the second class is rounded once, by both; the first is 1 minus it
                assert np.array_equal(wanted[..., -1], exact[..., -1]), (seed, number)
        wanted = exact
    return drawn.kind, float(abs(found - wanted).max()), own


def run(count, seed, seconds=0, state=None, show=False):
    """Compare sets until ``count`` cases are done; return the counts, worst errors and bad sets."""
    done = {"sets": 0, "cases": {}, "worst": {}, "fractions": 0, "bad": []}
    if state is not None and state.exists():
        done = json.loads(state.read_text())
    cases, start = Counter(done["cases"]), time.monotonic()
    while cases.total() < count and not 0 < seconds < time.monotonic() - start:
        number = done["sets"]
        kind, error, own = compare(seed, number)
        if not (error <= TOLERANCE and own <= 1e-15):
            done["bad"].append([number, kind, error, own])
        done["worst"][kind] = max(done["worst"].get(kind, 0.0), error)
        done["fractions"] += number % 100 == 3 or number % 50 == 7
        cases[kind] += 2 * NEW
        done["sets"], done["cases"] = number + 1, dict(cases)
        if number % 1000 == 999:
            if state is not None:
                state.write_text(json.dumps(done))
            if show:
                print(f"{cases.total():,} cases, {len(done['bad'])} bad", flush=True)
    if state is not None:
        state.write_text(json.dumps(done))
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000, help="cases in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="stop then; 0: never")
    parser.add_argument("--state", type=Path, help="a file to go on from")
    options = parser.parse_args()
    done = run(options.count, options.seed, options.seconds, options.state, show=True)
    print(
        f"{sum(done['cases'].values()):,} cases of {done['sets']:,} calibration sets of seed "
        f"{options.seed}, {done['fractions']:,} sets compared with fractions too"
    )
    for kind, number in sorted(done["cases"].items()):
        print(f"{number:9,}  {kind}: worst error {done['worst'][kind]:.1e}")
    for bad in done["bad"]:
        print("BAD", *bad)
    sys.exit(bool(done["bad"]))


if __name__ == "__main__":
    main()
