"""Two figures of docs/which.md that no other run has: what a leak and what time costs.

``python -m experiments.studies.advice`` draws data whose truth is known, and prints means over
repetitions.
"""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.metrics import log_loss
from sklearn.model_selection import TimeSeriesSplit
from sklearn.pipeline import make_pipeline

from vennforest import CalibratedClassifier

REPETITIONS = 20


def forest():
    """Return a small forest."""
    return RandomForestClassifier(100, random_state=0)


def selected(rng):
    """Ten of 1,000 columns of noise, chosen by the labels of all rows or inside of the pipeline."""
    X, y = rng.normal(size=(200, 1000)), rng.integers(0, 2, 200)
    new, y_new = rng.normal(size=(2000, 1000)), rng.integers(0, 2, 2000)
    step = SelectKBest(k=10).fit(X, y)
    before = CalibratedClassifier(forest(), random_state=0).fit(step.transform(X), y)
    inside = CalibratedClassifier(make_pipeline(SelectKBest(k=10), forest()), random_state=0)
    inside.fit(X, y)
    return (
        log_loss(y_new, before.predict_proba(step.transform(new))),
        log_loss(y_new, inside.predict_proba(new)),
    )


def ageing(rng):
    """A rule that turns by a right angle as time goes by: folds by chance, or in order of time."""
    n, later = 1500, 500
    X = rng.normal(size=(n + later, 4))
    angle = np.linspace(0, np.pi / 2, n + later)
    score = 3 * (np.cos(angle) * X[:, 0] + np.sin(angle) * X[:, 1])
    y = (rng.random(n + later) < 1 / (1 + np.exp(-score))).astype(int)
    found = []
    for settings in (
        {},
        {"cv": TimeSeriesSplit(5)},
        {"cv": TimeSeriesSplit(5), "ensemble": False},
    ):
        model = CalibratedClassifier(forest(), random_state=0, **settings).fit(X[:n], y[:n])
        found.append(log_loss(y[n:], model.predict_proba(X[n:])))
    return tuple(found)


def main():
    """Run and print."""
    for what, names in (
        (selected, ("chosen before, out of bag", "in the pipeline, folds")),
        (ageing, ("out of bag", "in order of time", "the same, one model of all rows")),
    ):
        rng = np.random.default_rng(0)
        values = np.array([what(rng) for _ in range(REPETITIONS)])
        error = (values[:, 1:] - values[:, :1]).std(axis=0, ddof=1).max() / np.sqrt(REPETITIONS)
        told = ", ".join(f"{n} {v:.3f}" for n, v in zip(names, values.mean(axis=0), strict=True))
        print(f"{what.__name__}: log loss of new rows: {told} (differences +- {error:.3f})")


if __name__ == "__main__":
    main()
