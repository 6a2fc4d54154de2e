"""Coverage of intervals by score: ``python -m experiments.studies.interval_designs``.

Scores are uniform, or ten levels, and labels drawn from a frequency that does not fall with the
score. A row of ``experiments/results/interval_designs.csv`` is a design and a number of rows: the
seed, which is drawn; the share of draws whose interval contains the frequency, at 400 equally
spaced scores and beside jumps, as mean, by tenth of the scores, and at the worst score; and the
mean width.
"""

import secrets

import numpy as np
from experiments.studies.tables import RESULTS, append_row, read_rows

from vennforest.calibrators.intervals import intervals_at_scores
from vennforest.counts import count_examples

SIZES = {300: 500, 2000: 300, 8000: 150}
"""Numbers of rows, and of draws."""

LEVELS = np.arange(10) / 10
STEPS = {  # places of the steps, and the frequencies between them
    "constant, .3": ((), (0.3,)),
    "constant, .03": ((), (0.03,)),
    "jump": ((0.97,), (0.05, 0.8)),
    "three steps": ((1 / 3, 2 / 3), (0.1, 0.4, 0.85)),
    "ten levels": (tuple(LEVELS[1:] - 0.05), tuple(0.05 + LEVELS)),
}
SMOOTH = {
    "logistic": lambda score: 1 / (1 + np.exp(2 - 4 * score)),
    "gentle": lambda score: 1 / (1 + np.exp(1.5 - score)),
    "square": lambda score: 0.02 + 0.9 * score**2,
    "rare": lambda score: 1 / (1 + np.exp(6 - 4 * score)),
}
DESIGNS = (*STEPS, *SMOOTH)


def frequency(design, scores):
    """Return the frequency of the event at scores (n,)."""
    if design in SMOOTH:
        return SMOOTH[design](scores)
    edges, values = STEPS[design]
    return np.array(values)[np.searchsorted(edges, scores, "right")]


def new_scores(design, n):
    """Return the scores at which intervals are read: equally spaced, and beside jumps."""
    if design == "ten levels":
        return LEVELS
    edges = np.array(STEPS[design][0] if design in STEPS else ())
    beside = (edges[:, None] + np.array([-12, -3, -0.5, 0.5, 3, 12]) / n).ravel()
    return np.sort(np.append((np.arange(400) + 0.5) / 400, beside[beside < 1]))


def measure(design, n, n_draws):
    """Return the row of one design and number of rows."""
    seed = secrets.randbits(32)
    rng = np.random.default_rng(seed)
    new = new_scores(design, n)
    truth, covered, width = frequency(design, new), np.zeros(len(new)), 0.0
    for _ in range(n_draws):
        scores = rng.choice(LEVELS, n) if design == "ten levels" else rng.random(n)
        event = (rng.random(n) < frequency(design, scores)).astype(np.intp)
        counts = count_examples(np.arange(2), scores, event, np.ones(n))
        curve = intervals_at_scores(counts.scores, counts.weights.sum(axis=1), counts.weights[:, 1])
        lower, upper = curve.at(new)
        covered += (lower <= truth + 1e-12) & (truth <= upper + 1e-12)
        width += float((upper - lower).mean())
    covered /= n_draws
    row = {"design": design, "rows": n, "seed": seed, "draws": n_draws}
    row |= {"coverage": round(float(covered.mean()), 4)}
    tenth = np.minimum((10 * new + 1e-9).astype(int), 9)
    for k in range(10):
        row[f"coverage_{k + 1}"] = round(float(covered[tenth == k].mean()), 4)
    return row | {"worst": round(float(covered.min()), 4), "width": round(width / n_draws, 5)}


def main():
    """Measure the designs that the file does not have yet."""
    path = RESULTS / "interval_designs.csv"
    done = {(row["design"], row["rows"]) for row in read_rows(path)}
    for design in DESIGNS:
        for n, n_draws in SIZES.items():
            if (design, str(n)) not in done:
                append_row(path, measure(design, n, n_draws))


if __name__ == "__main__":
    main()
