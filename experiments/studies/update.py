"""Updates of probabilities at another site, known truth: ``python -m experiments.studies.update``.

The log-odds of the old probabilities are normal, with a mean from -2.5 to 0 and a deviation from .7
to 2 that are drawn anew each time; the true log-odds are a function of them. A row of
``experiments/results/update.csv`` has for one function and number of labelled rows the mean over
draws of the expected log loss minus that of keeping the probabilities: of each update, and of the
choice by tests. ``coverage`` is the share of 95% intervals of the gain that contain the expected
gain of the update returned. The seed is drawn unless one is given, and is in the file; a stopped
run goes on with it.
"""

import argparse
from pathlib import Path

import numpy as np
from experiments.studies.tables import RESULTS, append_row, read_rows
from scipy.special import expit

from vennforest.validation.update import UpdateRows, by_tests

TRUTHS = {
    "calibrated": lambda z: z,
    "intercept 0.3": lambda z: z + 0.3,
    "intercept -1": lambda z: z - 1,
    "slope 0.6": lambda z: 0.6 * z,
    "curve": lambda z: -1 + 2 * np.tanh(2 * (z + 1)),
    "slope 0.6, intercept 0.5": lambda z: 0.6 * z + 0.5,
}
SIZES = (20, 50, 100, 200, 500, 1000, 2000)
CHOICES = ("keep", "intercept", "slope", "map")
N_NEW = 4_000


def expected_loss(f, q):
    """Return the mean log loss of log-odds f under true probabilities q."""
    return float(np.mean(q * np.logaddexp(0, -f) + (1 - q) * np.logaddexp(0, f)))


def draw(truth, n, rng, with_interval):
    """Return expected losses minus that of keeping, the choice, and whether the interval holds."""
    mean, deviation = rng.uniform(-2.5, 0), rng.uniform(0.7, 2)
    y = np.zeros(n, int)
    while np.ptp(y) == 0:
        z = rng.normal(mean, deviation, n)
        y = (rng.random(n) < expit(TRUTHS[truth](z))).astype(int)
    new = rng.normal(mean, deviation, N_NEW)
    q = expit(TRUTHS[truth](new))
    rows = UpdateRows(np.arange(2), expit(z), y)
    losses = {}
    for choice in CHOICES:
        p = rows.fit(choice).predict_proba(expit(new))[:, 1]
        losses[choice] = expected_loss(np.log(p) - np.log1p(-p), q)
    choice = by_tests(rows.test())[0]
    losses["auto"] = losses[choice]
    differences = {name: loss - losses["keep"] for name, loss in losses.items()}
    holds = None
    if with_interval:
        gain = rows.gains(int(rng.integers(1 << 30))).loc["auto"]
        holds = gain["gain_low"] <= -differences["auto"] <= gain["gain_high"]
    return differences, choice, holds


def main():
    """Append a row for each function and number of rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--intervals", type=int, default=100, help="draws with an interval")
    parser.add_argument("--seed", type=int, help="by default drawn")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "update.csv")
    options = parser.parse_args()
    finished = {(row["truth"], int(row["rows"])): row["seed"] for row in read_rows(options.output)}
    seed = options.seed
    if seed is None:
        seed = int([*finished.values(), np.random.default_rng().integers(1 << 31)][0])
    print(f"seed {seed}")
    for number, truth in enumerate(TRUTHS):
        for n in SIZES:
            if (truth, n) in finished:
                continue
            rng = np.random.default_rng((seed, number, n))
            draws = [draw(truth, n, rng, i < options.intervals) for i in range(options.draws)]
            row = {"truth": truth, "rows": n, "draws": options.draws, "seed": seed}
            for name in (*CHOICES[1:], "auto"):
                row[name] = round(float(np.mean([d[0][name] for d in draws])), 5)
            auto = [d[0]["auto"] for d in draws]
            row["error"] = round(float(np.std(auto) / len(auto) ** 0.5), 5)
            for name in CHOICES:
                row[f"chose {name}"] = round(float(np.mean([d[1] == name for d in draws])), 3)
            covered = [d[2] for d in draws if d[2] is not None]
            row["coverage"] = round(float(np.mean(covered)), 3) if covered else ""
            append_row(options.output, row)


if __name__ == "__main__":
    main()
