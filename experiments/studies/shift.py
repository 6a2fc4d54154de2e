"""What bounds and intervals promise after a shift of the classes, and within groups.

    python -m experiments.studies.shift [--repetitions 2000] [--seed N]

Scores are drawn from processes whose probabilities are known; the seed is drawn where none is
given. "p_Y": frequency less the bound of the true label, in the bin where it is furthest off in
standard errors, repetitions being the units; "mean": share less the mean of p0, and mean of p1
less the share, in both of which below 0 is a failure.
"""

import argparse
import secrets

import numpy as np

from vennforest import VennAbers
from vennforest.prior import class_shares, estimate_shares, shift_bounds

BINS = np.array([0, 0.1, 0.3, 0.5, 0.7, 0.9, 1 + 1e-9])
NEW = 200


def draw(rng, n, share):
    """Scores and labels: x normal around 0 or 1.5, the score a wrong probability."""
    y = (rng.random(n) < share).astype(int)
    x = rng.normal(1.5 * y)
    return 1 / (1 + np.exp(-1.7 * (x - 0.5) - 0.3 * x**2)), y


class Deviations:
    """Sums over repetitions of y - p_Y by bin, of weight by bin, and of the mean statement."""

    def __init__(self):
        self.off, self.count, self.mean = [], [], []

    def add(self, p0, p1, y, share):
        own = np.where(y == 1, p1, p0)
        bins = np.digitize(own, BINS) - 1
        self.off.append(np.bincount(bins, y - own, len(BINS) - 1))
        self.count.append(np.bincount(bins, minlength=len(BINS) - 1))
        self.mean.append([share - p0.mean(), p1.mean() - share])

    def line(self):
        off, count = np.array(self.off), np.array(self.count)
        n, ratio = len(off), off.sum(0) / np.maximum(count.sum(0), 1)
        error = np.sqrt(((off - ratio * count) ** 2).sum(0)) / np.maximum(count.sum(0), 1)
        used = (count > 0).sum(0) >= 30
        z = np.where(used & (error > 0), ratio / np.where(error > 0, error, 1), 0)
        worst = int(np.abs(z).argmax())
        mean, spread = np.mean(self.mean, 0), np.std(self.mean, 0) / np.sqrt(n)
        return (
            f"p_Y {ratio[worst]:+.3f} ({z[worst]:+.1f}); "
            f"mean {mean[0]:+.3f} ({mean[0] / spread[0]:+.0f}), "
            f"{mean[1]:+.3f} ({mean[1] / spread[1]:+.0f})"
        )


def prior(rng, repetitions):
    """Calibrated where half are positive, new objects where one in ten is."""
    for n in (50, 200, 1000):
        found = {name: Deviations() for name in ("not shifted", "old shares known", "counted")}
        for _ in range(repetitions):
            s, y = draw(rng, n, 0.5)
            if len(set(y)) < 2:
                continue
            new, labels = draw(rng, NEW, 0.1)
            m = VennAbers("log").fit(s, y).predict_multiprobability(new)
            counted = np.array([0.9, 0.1]) / class_shares(y, None, 2)
            for name, factors in (
                ("not shifted", [1.0, 1.0]),
                ("old shares known", [0.9, 0.1]),
                ("counted", counted),
            ):
                moved = shift_bounds(m, np.array(factors))
                found[name].add(moved.p0, moved.p1, labels, 0.1)
        for name, one in found.items():
            print(f"prior .5 -> .1, {n} calibration examples, {name}: {one.line()}")


def shares(rng, repetitions):
    """Coverage and width of 95% intervals for the share among unlabelled objects."""
    for old, now in ((0.5, 0.8), (0.9, 0.7), (0.1, 0.01)):
        for n, m in ((100, 1000), (500, 500), (2000, 200), (500, 5000)):
            held, width, off = [], [], []
            for _ in range(max(50, repetitions // 5)):
                s, y = draw(rng, n, old)
                if len(set(y)) < 2:
                    continue
                new, _ = draw(rng, m, now)
                model = VennAbers("smooth").fit(s, y)
                e = estimate_shares(
                    model.predict_smooth(new),
                    model.predict_smooth(s),
                    y,
                    class_shares(y, None, 2),
                    np.arange(2),
                )
                held.append(e.lower[1] <= now <= e.upper[1])
                width.append(e.upper[1] - e.lower[1])
                off.append(e.estimate[1] - now)
            print(
                f"share {old} -> {now}, {n} calibration examples, {m} new: held "
                f"{np.mean(held):.3f} of {len(held)}, width {np.mean(width):.3f}, "
                f"error {np.mean(off):+.3f} +- {np.std(off):.3f}"
            )


def groups(rng, repetitions):
    """Three groups, of .7, .25 and .05 of the objects, in which a score means other things."""
    for n in (100, 500):
        found = {
            (g, name): Deviations() for g in range(3) for name in ("all together", "each by itself")
        }
        for _ in range(repetitions):
            (by, s, y), (who, new, labels) = grouped(rng, n), grouped(rng, NEW * 4)
            everybody = VennAbers("log").fit(s, y, classes=[0, 1]).predict_multiprobability(new)
            for g in range(3):
                mine, own = who == g, by == g
                share = labels[mine].mean()
                m = everybody[mine]
                found[g, "all together"].add(m.p0, m.p1, labels[mine], share)
                p0, p1 = np.zeros(mine.sum()), np.ones(mine.sum())
                if own.any():
                    m = VennAbers("log").fit(s[own], y[own], classes=[0, 1])
                    m = m.predict_multiprobability(new[mine])
                    p0, p1 = m.p0, m.p1
                found[g, "each by itself"].add(p0, p1, labels[mine], share)
        for (g, name), one in found.items():
            print(f"group {g} of .7, .25, .05, {n} examples, {name}: {one.line()}")


def grouped(rng, n):
    by = rng.choice(3, n, p=[0.7, 0.25, 0.05])
    s = rng.random(n)
    p = np.choose(by, [s**2, s, 1 - (1 - s) ** 2])
    return by, s, (rng.random(n) < p).astype(int)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.repetitions} repetitions")
    for number, part in enumerate((prior, shares, groups)):
        part(np.random.default_rng([options.seed, number]), options.repetitions)


if __name__ == "__main__":
    main()
