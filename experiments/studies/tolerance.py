"""What the report says of probabilities whose truth is known: ``python -m studies.tolerance``.

Estimates are drawn from four distributions. Labels are drawn with these as their probabilities, or
with others, which differ from them by a mean of 4 points: by a shift of the log-odds, by estimates
that are too extreme or not extreme enough, or in their upper half alone. What is printed is the
share of draws in which the page, at a tolerance of 2 points, says to recalibrate (or to collect
more rows, in brackets).
"""

import argparse
import secrets
from collections import Counter

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from vennforest.report import report

TOLERANCE = 0.02
DISTRIBUTIONS = {
    "uniform": lambda rng, n: rng.random(n),
    "beta(2, 5)": lambda rng, n: rng.beta(2, 5, n),
    "beta(½, ½)": lambda rng, n: rng.beta(0.5, 0.5, n),
    "beta(1, 9)": lambda rng, n: rng.beta(1, 9, n),
}
ERRORS = {
    "shifted": lambda p, a: expit(logit(p) + a),
    "too extreme": lambda p, a: expit(logit(p) / (1 + a)),
    "not extreme enough": lambda p, a: expit(logit(p) * (1 + a)),
    "upper half": lambda p, a: np.where(p > np.median(p), expit(logit(p) - a), p),
}


def true_probabilities(estimates, error, size):
    """Return probabilities (n,) whose mean distance from the estimates (n,) is the given one."""
    p = estimates.clip(1e-9, 1 - 1e-9)
    amount = brentq(lambda a: np.abs(ERRORS[error](p, a) - p).mean() - size, 0, 20)
    return ERRORS[error](p, amount)


def actions(name, error, n, draws, rng):
    """Return how often the page says what to do, by the word for it."""
    found = Counter()
    for _ in range(draws):
        p = DISTRIBUTIONS[name](rng, n)
        truth = p if error is None else true_probabilities(p, error, 2 * TOLERANCE)
        y = (rng.random(n) < truth).astype(np.intp)
        found[report(y, p, positive=1, tolerance=TOLERANCE).advice().action] += 1
    return found


def main():
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 500])
    parser.add_argument("--draws", type=int, default=400)
    parser.add_argument("--estimates", nargs="+", default=list(DISTRIBUTIONS))
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    options = parser.parse_args()
    print(f"seed {options.seed}, {options.draws} draws")
    print("| rows | estimates | calibrated |", " | ".join(f"{e}, 4 points" for e in ERRORS), "|")
    print("|---|---|" + "---|" * (1 + len(ERRORS)), flush=True)
    for n in options.rows:
        for name in options.estimates:
            rng = np.random.default_rng([options.seed, n, list(DISTRIBUTIONS).index(name)])
            cells = []
            for error in (None, *ERRORS):
                found = actions(name, error, n, options.draws, rng)
                bad, more = found["recalibrate"] + found["stop"], found["collect"]
                shares = [f"{100 * x / options.draws:.1f} %" for x in (bad, more)]
                cells.append(f"{shares[0]} ({shares[1]})")
            print(f"| {n:,} | {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
