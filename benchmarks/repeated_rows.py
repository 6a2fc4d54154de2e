"""Alarms of `Monitor` on streams in which nothing changes but how rows are sent.

    python benchmarks/repeated_rows.py [--streams 60] [--seed 205931] > results/repeated_rows.md

Of 60 streams three alarms are allowed at 1 in 20. Rows of few categories repeat by nature: of them
the last lines count false alarms, and alarms when the event becomes half as likely again.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.monitoring import Monitor

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from monitoring.test_repeats import five_times, in_turns, late, windows


def draw(rng, n, kind="measured", shift=0.0):
    if kind == "categories":
        X = rng.integers(0, 3, (n, 4)).astype(float)
        return X, (X[:, 0] - 1 + shift + rng.logistic(size=n) > 1).astype(int)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] + shift + rng.logistic(size=n) > 1).astype(int)


def make(rng, kind="measured"):
    linear = FrozenEstimator(LogisticRegression().fit(*draw(rng, 300, kind)))
    return Monitor(CalibratedClassifier(linear).fit(*draw(rng, 400, kind)), random_state=0).fit()


def once(kind, shift=0.0):
    def send(monitor, rng):
        for _ in range(10):
            monitor.update(*draw(rng, 200, kind, shift))

    return send


class Counted:
    """A monitor that counts the rows it was sent."""

    def __init__(self, monitor):
        self.monitor, self.sent = monitor, 0

    def update(self, X, y):
        self.sent += len(y)
        self.monitor.update(X, y)


STREAMS = {
    "half-overlapping windows": ("measured", windows),
    "each row five times": ("measured", five_times),
    "two batches in turns": ("measured", in_turns),
    "30% of the positive labels late": ("measured", late),
    "measured, once": ("measured", once("measured")),
    "measured, changed": ("measured", once("measured", 0.8)),
    "categories, once": ("categories", once("categories")),
    "categories, changed": ("categories", once("categories", 0.8)),
}


def main(streams, seed):
    print(f"seed {seed}\n\n| stream | alarms | of | rows that came before | rows that wait |")
    print("|---|---|---|---|---|")
    for t, (name, (kind, send)) in enumerate(STREAMS.items()):
        alarms = left = waiting = 0
        for stream in range(streams):
            rng = np.random.default_rng([seed, t, stream])
            monitor = make(rng, kind)
            counted = Counted(monitor)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                send(counted, rng)
            alarms += monitor.alarm_ is not None
            left += monitor.n_repeated_
            known = monitor.n_seen_ + monitor.n_repeated_ + monitor.n_unlabelled_
            waiting += counted.sent - known
        print(f"| {name} | {alarms} | {streams} | {left} | {waiting} |", flush=True)
    refused = 0
    for stream in range(streams):
        rng = np.random.default_rng([seed, len(STREAMS), stream])
        X, y = draw(rng, 400)
        model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, y)
        try:
            Monitor(model, random_state=0).fit().update(X[:100], y[:100])
        except InputError:
            refused += 1
    print(f"| training rows | {streams - refused} | {streams} | {refused} streams refused | 0 |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=60)
    parser.add_argument("--seed", type=int, default=205931)
    given = parser.parse_args()
    main(given.streams, given.seed)
