"""How often the report calls probabilities miscalibrated: ``python -m studies.tolerance``.

Estimates are drawn from four distributions, five vectors of each. Labels are drawn with these as
their probabilities, or with others, which differ from them by a given mean: by a shift of the
log-odds, by estimates that are too extreme or not extreme enough, or in their upper half alone.
What is printed is the share of draws in which ``Measures.exceeds`` says so at a tolerance of 2
points.
"""

import argparse
from dataclasses import replace

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from vennforest.metrics import calibration_error
from vennforest.report.measures import BINS, CALIBRATION_TESTS, MethodEstimates, measure

TOLERANCE = 0.02
VECTORS = 5
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


def share_called_off(name, error, size, n, draws, rng):
    """Return in which share of draws the size of the miscalibration is said to exceed 2 points."""
    said = 0
    for _ in range(VECTORS):
        p = DISTRIBUTIONS[name](rng, n)
        truth = p if error is None else true_probabilities(p, error, size)
        table, codes = np.column_stack([1 - p, p]), (rng.random(n) < truth).astype(np.intp)
        first = measure(MethodEstimates(table, None), codes, np.array([0, 1]), 1)
        for _ in range(draws // VECTORS):  # what chance gives depends on the estimates alone
            y = (rng.random(n) < truth).astype(np.intp)
            pvalue = 2 * min(test(y, p, classes=[0, 1]).pvalue for test in CALIBRATION_TESTS)
            found = calibration_error(y, p, bins=BINS, classes=[0, 1])
            said += replace(first, calibration_error=found, pvalue=pvalue).exceeds(TOLERANCE)
    return said / (draws // VECTORS * VECTORS)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[500, 2000, 20_000])
    parser.add_argument("--draws", type=int, default=500)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    print("| rows | estimates | calibrated |", " | ".join(f"{e}, 4 points" for e in ERRORS), "|")
    print("|---|---|" + "---|" * (1 + len(ERRORS)))
    for n in options.rows:
        for name in DISTRIBUTIONS:
            cases = [(None, 0.0), *((error, 2 * TOLERANCE) for error in ERRORS)]
            found = [share_called_off(name, *case, n, options.draws, rng) for case in cases]
            print(f"| {n:,} | {name} |", " | ".join(f"{100 * x:.1f} %" for x in found), "|")


if __name__ == "__main__":
    main()
