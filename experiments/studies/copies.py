"""Tables of few distinct rows, out of bag and in folds: ``python -m experiments.studies.copies``.

Four columns of categories and one of whole numbers below ``levels``, whose size sets the share of
distinct rows; two classes, of known probabilities. ``experiments/results/copies.csv`` has, for each
number of rows and share, the log loss above that of the true probabilities (both 10⁻⁴), the
coverage of `predict_confidence` at .95 of the mean frequency among the tenth of new cases whose
scores are nearest and of the frequency at the very score, and the mean width of the intervals.
"""

import argparse
import warnings

import numpy as np
from experiments.studies.tables import RESULTS, append_row
from scipy.special import expit
from scipy.stats import norm

from vennforest import CalibratedClassifier

LEVELS = (1, 2, 4, 16)
N_NEW = 3_000


def draw(n, levels, rng):
    """Return rows (n, 5) and the probability of the second class, (n,)."""
    X = np.column_stack([rng.integers(0, 3, (n, 4)), rng.integers(0, levels, n)]).astype(float)
    spread = norm.ppf((X[:, 4] + 0.5) / levels)
    z = -2 + X[:, 0] + 0.8 * X[:, 1] - 0.5 * X[:, 2] * X[:, 3] + 0.7 * spread
    return X, expit(z)


def figures(n, levels, source, seed):
    """Return the share of distinct rows, the excess loss, both coverages and the width."""
    rng = np.random.default_rng([seed, n, levels])
    X, p = draw(n, levels, rng)
    y = (rng.random(n) < p).astype(int)
    new, p_new = draw(N_NEW, levels, rng)
    model = CalibratedClassifier(calibrate_on=source, random_state=seed).fit(X, y)
    scores = np.mean([fold.score(new) for fold in model._state.folds], axis=0)
    _, cell = np.unique(scores, return_inverse=True)
    at_score = (np.bincount(cell, p_new) / np.bincount(cell))[cell]
    order, window = np.argsort(scores, kind="stable"), np.ones(N_NEW // 10 + 1)
    around = np.empty(N_NEW)
    around[order] = np.convolve(p_new[order], window, "same") / np.convolve(
        np.ones(N_NEW), window, "same"
    )
    q = model.predict_proba(new)[:, 1].clip(1e-12, 1 - 1e-12)
    excess = p_new * np.log(p_new / q) + (1 - p_new) * np.log((1 - p_new) / (1 - q))
    interval = model.predict_confidence(new)
    low, high = interval.lower[:, 1], interval.upper[:, 1]
    covered = [((low <= truth) & (truth <= high)).mean() for truth in (around, at_score)]
    return [len(np.unique(X, axis=0)) / n, excess.mean(), *covered, (high - low).mean()]


def main():
    """Write a row for each number of rows, number of levels and source."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("-o", "--output", default=RESULTS / "copies.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ("distinct", "excess_log_loss", "around_score", "at_score", "width")
    for n in (400, 2_000):
        for levels in LEVELS:
            for source in ("oob", "cv"):
                drawn = [figures(n, levels, source, seed) for seed in range(options.draws)]
                means, errors = np.mean(drawn, 0), np.std(drawn, 0) / options.draws**0.5
                row = {name: f"{mean:.4f}" for name, mean in zip(names, means, strict=True)}
                row |= {"around_score_error": f"{errors[2]:.4f}"}
                append_row(options.output, {"rows": n, "levels": levels, "source": source} | row)
                print(n, levels, source, row, flush=True)


if __name__ == "__main__":
    main()
