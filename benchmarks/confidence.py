"""Coverage and width of confidence intervals for a rising curve, and of what is done elsewhere.

    python benchmarks/confidence.py [--repetitions 400]

Ten curves; scores uniform; level .95. Each interval is asked at 41 scores. "worst" is the least
coverage of the 41 (its standard error at .95 and 400 repetitions is .011, so that the least of 41
lies about .02 below), "whole" the share of repetitions in which all 41 hold.
"""

import argparse

import numpy as np
from scipy.special import betainccinv, betaincinv
from sklearn.isotonic import IsotonicRegression

from vennforest.calibrators.confidence import ClassExamples, ScoreConfidence

CURVES = {
    "flat .3": lambda s: np.full_like(s, 0.3),
    "identity": lambda s: s,
    "one step": lambda s: np.where(s < 0.5, 0.1, 0.9),
    "four steps": lambda s: np.floor(4 * s.clip(max=0.999)) / 4 + 0.1,
    "steep": lambda s: 1 / (1 + np.exp(-40 * (s - 0.5))),
    "rare": lambda s: 0.02 * s,
    "sure": lambda s: np.where(s < 0.3, 0.0, 1.0),
    "square": lambda s: s**2,
    "root": lambda s: np.sqrt(s),
    "late": lambda s: np.where(s < 0.9, 0.05, 0.5),
}
GRID = np.linspace(0.0, 1.0, 41)
LEVEL = 0.95
BINS = 10
RESAMPLES = 100


def ours(scores, y, rng):
    return ScoreConfidence.from_counts(*ClassExamples.of(scores, y)).pointwise(GRID, LEVEL)


def ours_simultaneous(scores, y, rng):
    return ScoreConfidence.from_counts(*ClassExamples.of(scores, y)).simultaneous(GRID, LEVEL)


def bins(scores, y, rng):
    """Clopper-Pearson in ten bins of equal size, as if the share were the same within each."""
    edges = np.quantile(scores, np.linspace(0, 1, BINS + 1)[1:-1])
    cell = np.searchsorted(edges, scores)
    m, s = np.bincount(cell, minlength=BINS), np.bincount(cell, y, BINS)
    error = (1 - LEVEL) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(s > 0, betaincinv(np.maximum(s, 1), m - s + 1, error), 0)
        up = np.where(s < m, betainccinv(s + 1, np.maximum(m - s, 1), error), 1)
    at = np.searchsorted(edges, GRID)
    return low[at], up[at]


def bootstrap(scores, y, rng):
    """Percentiles of the isotonic fit to resampled examples."""
    fits = np.empty((RESAMPLES, len(GRID)))
    for b in range(RESAMPLES):
        rows = rng.integers(0, len(y), len(y))
        fits[b] = IsotonicRegression(out_of_bounds="clip").fit(scores[rows], y[rows]).predict(GRID)
    return np.quantile(fits, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)


METHODS = {
    "pointwise": ours,
    "simultaneous": ours_simultaneous,
    "bins": bins,
    "bootstrap": bootstrap,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=400)
    repetitions = parser.parse_args().repetitions
    print(f"{repetitions} repetitions, bootstrap a tenth of them\n")
    print("| n | curve | " + " | ".join(f"{name}: worst, whole, width" for name in METHODS) + " |")
    print("|" + "---|" * (2 + len(METHODS)))
    for n in (200, 2000):
        for number, (name, f) in enumerate(CURVES.items()):
            cells = []
            for method in METHODS.values():
                rng = np.random.default_rng([n, number])
                times = repetitions // 10 if method is bootstrap else repetitions
                holds, width = np.empty((times, len(GRID)), bool), 0.0
                for i in range(times):
                    scores = rng.random(n)
                    low, up = method(scores, rng.random(n) < f(scores), rng)
                    holds[i] = (low <= f(GRID)) & (f(GRID) <= up)
                    width += (up - low).mean() / times
                worst, whole = holds.mean(axis=0).min(), holds.all(axis=1).mean()
                cells.append(f"{worst:.3f}, {whole:.3f}, {width:.3f}")
            print(f"| {n} | {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
