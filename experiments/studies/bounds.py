"""Deviation of Venn–Abers bounds, known truth: ``python -m experiments.studies.bounds``.

In every repetition a training set of a process with known probabilities is drawn, a forest is grown
and calibrated, and 200 new objects are given bounds. The bound that belongs to the true label is
calibrated if, among the objects for which it is near .2, two in ten are of the class (Vovk & Petej
2014, Theorem 1). ``experiments/results/bounds.csv`` has, for every setting, process and forest
size, the bin with the largest deviation in standard errors of that frequency from the bound;
repetitions are the independent units, so standard errors are those of a ratio of sums. It also has
the means of truth − p0 and p1 − truth, which should not be negative, and the mean width. Seeds are
drawn from the system.
"""

import argparse
import secrets
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.tables import RESULTS, append_row
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

from vennforest import CalibratedClassifier, MixedForestClassifier

BIN_EDGES = (0.1, 0.3, 0.5, 0.7, 0.9)
BIN_NAMES = ("< .1", ".1 to .3", ".3 to .5", ".5 to .7", ".7 to .9", "> .9")
N_NEW = 200
MIN_REPETITIONS = 30
"""Effective repetitions that must reach a bin."""


def sigmoid(x):
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def _normals(rng, n):
    X = rng.normal(size=(n, 5))
    return X, sigmoid(1.5 * X[:, 0] + X[:, 1])


def _noise(rng, n):
    return rng.normal(size=(n, 5)), np.full(n, 0.5)


def _flipped(rng, n):
    X = rng.normal(size=(n, 5))
    return X, np.where(X[:, 0] + X[:, 1] > 0, 0.8, 0.2)


def _rare(rng, n):
    X = rng.normal(size=(n, 5))
    return X, sigmoid(1.5 * X[:, 0] + X[:, 1] - 5.2)


def _levels_coin(rng, n):
    return rng.integers(60, size=(n, 1)).astype(float), np.full(n, 0.5)


def _binary(rng, n):
    X = rng.integers(2, size=(n, 5)).astype(float)
    return X, sigmoid(2 * X[:, 0] + X[:, 1] - X[:, 2] - 1)


def _three(rng, n):
    X = rng.normal(size=(n, 5))
    weights = np.exp(np.column_stack([1.5 * X[:, 0], X[:, 1], -X[:, 0] - 0.5]))
    return X, weights / weights.sum(axis=1, keepdims=True)


INDEPENDENT = {
    "normals": _normals,
    "noise": _noise,
    "flipped": _flipped,
    "rare": _rare,
    "levels-coin": _levels_coin,
    "binary": _binary,
    "three": _three,
}


def draw_sample(process, n, rng):
    """Return X, y, groups or None, new X and the new objects' true probabilities (m, k)."""
    if process == "near-copies":  # groups of ten near-copies with one label, which is a coin's
        y = np.repeat(rng.permutation(np.arange(n // 10) % 2), 10)
        X = np.repeat(rng.normal(size=(n // 10, 5)), 10, axis=0)
        X += 0.01 * rng.normal(size=X.shape)
        return X, y, np.repeat(np.arange(n // 10), 10), *_noise_new(rng)
    if process == "doubled":  # every row twice
        X, y, _, X_new, truth = draw_sample("normals", n // 2, rng)
        twice = rng.permutation(np.repeat(np.arange(n // 2), 2))
        return X[twice], y[twice], None, X_new, truth
    while True:
        X, truth = INDEPENDENT[process](rng, n + N_NEW)
        truth = np.column_stack([1 - truth, truth]) if truth.ndim == 1 else truth
        y = (rng.random(n)[:, None] > truth[:n].cumsum(axis=1)[:, :-1]).sum(axis=1)
        if len(np.unique(y)) == truth.shape[1]:
            return X[:n], y, None, X[n:], truth[n:]


def _noise_new(rng):
    return rng.normal(size=(N_NEW, 5)), np.full((N_NEW, 2), 0.5)


def _frozen(forest, X, y, seed):
    half = len(y) // 2
    model = CalibratedClassifier(FrozenEstimator(forest.fit(X[:half], y[:half])), merge="log")
    return model.fit(X[half:], y[half:])


def _calibrated(**parameters):
    def fit(forest, X, y, seed):
        if "cv" in parameters:  # the trees of all folds together are as many
            parameters["cv"] = KFold(parameters["cv"].n_splits, shuffle=True, random_state=seed)
            forest.n_estimators = max(1, forest.n_estimators // parameters["cv"].n_splits)
        return CalibratedClassifier(forest, random_state=seed, **parameters).fit(X, y)

    return fit


SETTINGS = {
    "default": _calibrated(calibrate_on="oob"),
    "out of bag, all trees, not widened": _calibrated(calibrate_on="oob", merge="log"),
    "out of bag, exchangeable": _calibrated(
        calibrate_on="oob", merge="log", subforest="exchangeable"
    ),
    "held-out third": _calibrated(calibrate_on="holdout", merge="log"),
    "frozen": _frozen,
    "2 folds": _calibrated(calibrate_on="cv", cv=KFold(2), merge="log"),
    "5 folds": _calibrated(calibrate_on="cv", cv=KFold(5), merge="log"),
}
GROUPS_NAMED = "5 folds, groups named"
MIXED = "default forest"
BLEND = "blend with logistic regression"


def fit_setting(setting, forest, X, y, groups, seed):
    """Return a fitted classifier of a setting."""
    if setting == MIXED:
        mixed = MixedForestClassifier(forest.n_estimators)
        return CalibratedClassifier(mixed, random_state=seed).fit(X, y)
    if setting == BLEND:
        members = [("forest", forest), ("linear", LogisticRegression())]
        return CalibratedClassifier(members, random_state=seed).fit(X, y)
    if setting == GROUPS_NAMED:
        return CalibratedClassifier(forest, random_state=seed).fit(X, y, groups=groups)
    return SETTINGS[setting](forest, X, y, seed)


def deviation_sums(lower, upper, truth):
    """Return numerators and denominators (9, 2): six bins, truth − p0, p1 − truth and width.

    The label of a new object is not drawn: with true probability q of the class it counts with
    weight q as one whose bound is the upper one, and with weight 1 − q as one of the lower one.
    """
    columns = slice(1, None) if truth.shape[1] == 2 else slice(None)
    low, up, q = (a[:, columns].ravel() for a in (lower, upper, truth))
    sums = np.ones((9, 2))
    sums[:6] = 0
    for bound, label, weight in ((up, 1, q), (low, 0, 1 - q)):
        bins = np.searchsorted(BIN_EDGES, bound, side="right")
        np.add.at(sums[:, 0], bins, weight * (label - bound))
        np.add.at(sums[:, 1], bins, weight)
    sums[6:, 0] = (q - low).mean(), (up - q).mean(), (up - low).mean()
    return sums


def ratio_and_error(numerators, denominators):
    """Return a ratio of sums over repetitions, its standard error, and effective repetitions.

    The standard error is that of the delta method (Cochran, *Sampling Techniques*, section 6.4).
    """
    total = denominators.sum()
    if total == 0:
        return np.nan, np.nan, 0.0
    ratio, n = numerators.sum() / total, len(numerators)
    error = np.sqrt(((numerators - ratio * denominators) ** 2).sum() * n / (n - 1)) / total
    return ratio, error, total**2 / (denominators**2).sum()


def measure(setting, process, n, n_trees, repetitions, seed):
    """Return a row of the table."""
    sums = []
    for stream in np.random.SeedSequence(seed).spawn(repetitions):
        rng = np.random.default_rng(stream)
        X, y, groups, X_new, truth = draw_sample(process, n, rng)
        model_seed = int(rng.integers(2**31))
        forest = RandomForestClassifier(n_trees, random_state=model_seed)
        model = fit_setting(setting, forest, X, y, groups, model_seed)
        bounds = model.predict_multiprobability(X_new)
        sums.append(deviation_sums(bounds.lower, bounds.upper, truth))
    sums = np.array(sums)
    bins = [ratio_and_error(sums[:, i, 0], sums[:, i, 1]) for i in range(6)]
    judged = [i for i, (_, error, count) in enumerate(bins) if count >= MIN_REPETITIONS and error]
    worst = max(judged, key=lambda i: abs(bins[i][0] / bins[i][1]), default=None)
    below, above, width = sums[:, 6:, 0].mean(axis=0)
    return {
        "setting": setting,
        "process": process,
        "rows": n,
        "trees": n_trees,
        "repetitions": repetitions,
        "worst_bin": "" if worst is None else BIN_NAMES[worst],
        "deviation": "" if worst is None else f"{bins[worst][0]:.4f}",
        "standard_error": "" if worst is None else f"{bins[worst][1]:.4f}",
        "truth_minus_p0": f"{below:.4f}",
        "p1_minus_truth": f"{above:.4f}",
        "width": f"{width:.4f}",
    }


def main():
    """Measure the settings and processes asked for, and append them to the table."""
    processes = [*INDEPENDENT, "near-copies", "doubled"]
    settings = [*SETTINGS, GROUPS_NAMED, MIXED, BLEND]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=settings)
    parser.add_argument("--processes", nargs="+", default=processes, choices=processes)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--trees", type=int, nargs="+", default=[100])
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "bounds.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for process in options.processes:
        for n_trees in options.trees:
            for setting in options.settings:
                seed = secrets.randbits(64)
                row = measure(setting, process, options.rows, n_trees, options.repetitions, seed)
                append_row(options.output, row)
                print(setting, process, n_trees, row["deviation"], flush=True)


if __name__ == "__main__":
    main()
