"""Coverage of confidence intervals, known truth: ``python -m experiments.studies.intervals``.

Forests of 200 trees on six problems with known probabilities, calibrated out of bag, over folds and
on a held-out third; the default forest; and blends of a forest and a logistic regression. The
frequency among cases with a score is the mean of their true probabilities, by a cubic spline of 12
knots in the score, from 20,000 new cases; 300 of them are given intervals. A row of
``experiments/results/intervals.csv`` is one draw of training data and forest. The method was chosen
on the draws of set 1; sets 2, 125190, of blends 791762 and of the default 468415441 confirm it.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.tables import RESULTS, append_row, read_rows
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import SplineTransformer

from vennforest import CalibratedClassifier, MixedForestClassifier

PROBLEMS = ("logistic", "additive", "steps", "noise", "rare", "five")
SOURCES = {"out of bag": "oob", "folds": "cv", "held-out third": "holdout"}
BLEND, DEFAULT = "blend", "default"
"""Models that are no plain forest: one with a logistic regression, and the default."""
SIZES = (200, 1000, 5000)
N_TREES, N_NEW, N_ASKED = 200, 20_000, 300


def true_probability(problem, X):
    """Return the probability of the second class (n,), or of each of five classes (n, 5)."""
    line = X @ np.array([1, 0.7, 0.5, 0.3, 0, 0])
    if problem == "logistic":
        return 1 / (1 + np.exp(-1.2 * line))
    if problem == "additive":
        z = -1.3 + 1.5 * np.sin(1.5 * X[:, 0]) + X[:, 1] ** 2 + 0.8 * X[:, 2]
        return 1 / (1 + np.exp(-z))
    if problem == "steps":
        return np.array([0.1, 0.4, 0.85])[np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.6])]
    if problem == "noise":
        return np.full(len(X), 0.3)
    if problem == "rare":
        return 1 / (1 + np.exp(4.75 - 0.9 * line))
    odds = np.exp(X[:, :5] * [1.5, 1.5, 1.5, 1, 0.5] + [0.5, 0, 0, -0.5, -0.5])
    return odds / odds.sum(axis=1, keepdims=True)


def draw_rows(problem, n, rng):
    """Return rows and labels, at least two of each class."""
    while True:
        X = rng.standard_normal((n, 6))
        p = true_probability(problem, X)
        if p.ndim == 1:
            y = (rng.random(n) < p).astype(int)
        else:
            y = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :-1]).sum(axis=1)
        if np.bincount(y, minlength=2).min() >= 2:
            return X, y


def frequency_by_score(score, p):
    """Return the mean of true probabilities among cases with such a score."""
    if np.ptp(score) == 0:
        return np.full(len(score), p.mean())
    basis = SplineTransformer(12, knots="quantile", extrapolation="constant")
    Z = basis.fit_transform(score[:, None])
    return np.clip(Z @ np.linalg.lstsq(Z, p, rcond=None)[0], 0, 1)


def measure(problem, n, source, set_number, draw):
    """Return the row of one draw."""
    name = source if source in ("folds", BLEND, DEFAULT) else SOURCES[source]
    key = set_number, draw, n, sum(map(ord, problem)), sum(map(ord, name))
    rng = np.random.default_rng(key)
    X, y = draw_rows(problem, n, rng)
    X_new = rng.standard_normal((N_NEW, 6))
    p = true_probability(problem, X_new)
    estimator = RandomForestClassifier(N_TREES)
    if source == BLEND:
        estimator = [("forest", estimator), ("linear", LogisticRegression())]
    if source == DEFAULT:
        estimator = MixedForestClassifier(N_TREES)
    model = CalibratedClassifier(
        estimator,
        calibrate_on=SOURCES.get(source, "auto"),
        random_state=int(rng.integers(1 << 30)),
    ).fit(X, y)
    scores = np.mean([forest.predict_proba(X_new) for forest in model.estimators_], axis=0)
    p = np.column_stack([1 - p, p]) if p.ndim == 1 else p
    columns = [1] if p.shape[1] == 2 else range(5)
    frequency = np.column_stack([frequency_by_score(scores[:, j], p[:, j]) for j in columns])
    frequency, X_new = frequency[:N_ASKED], X_new[:N_ASKED]
    row = {"problem": problem, "rows": n, "source": source, "set": set_number, "draw": draw}
    for name, options in (
        ("95", {}),
        ("90", {"level": 0.9}),
        ("exact_95", {"method": "exact"}),
    ):
        if name == "exact_95" and source == "folds":  # not defined for an average of models
            row |= {"coverage_exact_95": "", "width_exact_95": ""}
            continue
        interval = model.predict_confidence(X_new, **options)
        lower, upper = interval.lower[:, columns], interval.upper[:, columns]
        # The frequency of a flat curve may differ from an end by rounding.
        is_inside = (lower <= frequency + 1e-12) & (frequency <= upper + 1e-12)
        row[f"coverage_{name}"] = round(float(is_inside.mean()), 4)
        row[f"width_{name}"] = round(float((upper - lower).mean()), 5)
    return row


def main():
    """Measure the draws that the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", type=int, default=3, dest="set_number")
    parser.add_argument("--draws", type=int, nargs=3, default=[20, 10, 4], help="of each size")
    parser.add_argument("--problems", nargs="+", default=PROBLEMS, choices=PROBLEMS)
    parser.add_argument("--sources", nargs="+", default=SOURCES, choices=[*SOURCES, BLEND, DEFAULT])
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "intervals.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ("problem", "rows", "source", "set", "draw")
    done = {tuple(row[name] for name in names) for row in read_rows(options.output)}
    for n, n_draws in zip(SIZES, options.draws, strict=True):
        for draw in range(n_draws):
            for source in options.sources:
                for problem in options.problems:
                    key = problem, n, source, options.set_number, draw
                    if tuple(map(str, key)) not in done:
                        append_row(options.output, measure(*key))


if __name__ == "__main__":
    main()
