"""Coverage of confidence bands and of differences: ``python -m experiments.studies.bands``.

``bands.csv``: how often the whole calibration curve, of 150 drawn ones of a kind, lies in the band
of ``calibration_band``, its mean width over the rows, and that of pointwise Clopper-Pearson
intervals in ten groups of equal count. A new curve is drawn for each set of labels. "waves" falls
in places, which the band assumes it does not.

``net_benefit.csv``: how often the interval of ``decision_curve(versus=…)`` contains the difference
of net benefit in 2,000,000 rows. "visits" has groups of four rows with one probability each.
"""

import argparse
from pathlib import Path

import numpy as np
from experiments.studies.tables import RESULTS, write_rows
from scipy.special import expit, logit

from vennforest._numerics import binomial_bound
from vennforest.metrics import calibration_band, decision_curve

LEVEL, N_CURVES, N_TABLES, N_TRUTH = 0.95, 150, 1000, 2_000_000
CURVES = ("calibrated", "overconfident", "steps", "constant", "rare", "ties", "waves")
PAIRS = ("even", "rare", "close", "visits")
THRESHOLDS = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.7])


def draw_curve(name, n, rng):
    """Return estimates (n,) and the curve as a function of estimates."""
    p = rng.beta(0.5, 20, n) if name == "rare" else rng.random(n)
    if name == "ties":
        p = p.round(1)
    if name in ("steps", "ties"):
        n_jumps = rng.integers(1, 8)
        places, heights = np.sort(rng.random(n_jumps)), np.sort(rng.random(n_jumps + 1))
        return p, lambda x: heights[np.searchsorted(places, x)]
    slope = rng.uniform(0.3, 1)
    return p, {
        "calibrated": lambda x: x,
        "overconfident": lambda x: expit(slope * logit(x)),
        "constant": lambda x: np.full(len(x), slope),
        "rare": lambda x: np.minimum(2 * slope * x, 1),
        "waves": lambda x: (x + 0.1 * np.sin(8 * np.pi * x)).clip(0, 1),
    }[name]


def measure_band(name, n, rng):
    """Return whether the band contains the curve, its width, and that of pointwise intervals."""
    p, curve = draw_curve(name, n, rng)
    y = rng.random(n) < curve(p)
    band = calibration_band(y, p, level=LEVEL, classes=[False, True])

    def bounds(x):
        lower = band.lower[np.searchsorted(band.x, x, "right") - 1]
        return lower, band.upper[np.searchsorted(band.x, x, "left")]

    x = np.concatenate([p, np.linspace(0, 1, 1001)])
    lower, upper = bounds(x)
    f = curve(x)
    groups = np.array_split(y[np.argsort(p)], 10)
    s, m = [g.sum() for g in groups], [len(g) for g in groups]
    high, low = (binomial_bound(s, m, (1 - LEVEL) / 2, upper=is_upper) for is_upper in (1, 0))
    widths = np.subtract(*bounds(p)[::-1]).mean(), (high - low).mean()
    return ((lower <= f + 1e-12) & (f <= upper + 1e-12)).all(), *widths


def draw_pair(name, n, rng):
    """Return labels, two models' probabilities and groups, each (n,), or None without groups."""
    size = 4 if name == "visits" else 1
    x = np.repeat(rng.standard_normal((n // size, 3)), size, axis=0)
    constant = {"even": 0, "rare": -3.5, "close": -1, "visits": -1}[name]
    p = expit(constant + 1.2 * x[:, 0] + 0.8 * x[:, 1])
    q = expit(constant + 1.2 * x[:, 0] + (0.7 * x[:, 1] if name == "close" else 0))
    y = rng.random(len(x)) < (expit(logit(p) + 1.5 * x[:, 2]) if size > 1 else p)
    return y, p, q, np.arange(len(x)) // size if size > 1 else None


def difference(y, p, q, groups):
    """Return the decision curve of p with its difference to that of q."""
    options = {"versus": q, "groups": groups, "level": LEVEL, "classes": [False, True]}
    return decision_curve(y, p, THRESHOLDS, **options)


def main():
    """Write both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=np.random.SeedSequence().entropy % 10**6)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print("seed", options.seed)
    rows = []
    for name in PAIRS:
        truth = difference(*draw_pair(name, N_TRUTH, rng)).difference
        for n in (100, 300, 1000, 5000):
            curves = [difference(*draw_pair(name, n, rng)) for _ in range(N_TABLES)]
            low = np.array([curve.difference_low for curve in curves])
            high = np.array([curve.difference_high for curve in curves])
            coverage, width = ((low <= truth) & (truth <= high)).mean(0), (high - low).mean(0)
            rows += [
                {"problem": name, "rows": n, "threshold": t, "difference": f"{d:.5f}",
                 "coverage": f"{c:.3f}", "width": f"{w:.5f}", "seed": options.seed}
                for t, d, c, w in zip(THRESHOLDS, truth, coverage, width, strict=True)
            ]  # fmt: skip
        print(*rows[-1].values(), flush=True)
    write_rows(options.output / "net_benefit.csv", rows)
    rows, rng = [], np.random.default_rng([options.seed, 1])
    for name in CURVES:
        for n in (100, 1000, 10_000):
            measures = [measure_band(name, n, rng) for _ in range(N_CURVES)]
            coverage, width, pointwise = np.mean(measures, axis=0)
            rows.append(
                {"curve": name, "rows": n, "coverage": f"{coverage:.3f}", "width": f"{width:.4f}",
                 "pointwise width": f"{pointwise:.4f}", "seed": options.seed}
            )  # fmt: skip
            print(*rows[-1].values(), flush=True)
    write_rows(options.output / "bands.csv", rows)


if __name__ == "__main__":
    main()
