"""Drift: notice that the data has changed."""

import sys

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest.monitoring import Monitor


def machines(n, seed, wear=0.0):
    """Return readings and failures; with wear, failures are likelier at equal readings."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    log_odds = -1.5 + 1.5 * X[:, 0] - X[:, 1] * X[:, 2] + wear
    return X, (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)


def main(picture=None):
    """Watch a stream that changes after 1,000 machines."""
    X, y = machines(800, seed=0)
    forest = RandomForestClassifier(100, random_state=0)
    model = CalibratedClassifier(forest, random_state=0).fit(X, y)
    (X_same, y_same), (X_worn, y_worn) = machines(1000, 1), machines(1000, 2, wear=1.2)

    # --8<-- [start:watch]
    # Labels come in by and by. If nothing changes, an alarm ever comes with probability 1/20 at
    # most.
    monitor = Monitor(model, alpha=0.05, random_state=0).fit()
    monitor.update(X_same, y_same)
    before = monitor.alarm_
    evidence = monitor.update(X_worn, y_worn)
    print(f"alarm in the first 1,000: {before}; then at {monitor.alarm_}")
    for change in monitor.explain()[:1]:
        print(f"{change.kind}: {change.what}, since {change.since}")
    # --8<-- [end:watch]

    if picture:
        from matplotlib import pyplot as plt

        figure, ax = plt.subplots(figsize=(6, 3), layout="constrained")
        ax.semilogy(np.arange(1000, 2000), np.ravel(evidence))
        ax.axhline(1 / 0.05, color="grey", linestyle="--")
        ax.set(xlabel="labelled machines", ylabel="evidence of a change")
        figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
