"""Packed forests beside scikit-learn's own."""

import copy
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from vennforest.forest import Membership, PackedForest


@cache
def data(n, n_classes=2):
    """Return rows (n, 20) and labels that are not easily told apart."""
    return make_classification(
        n, 20, n_informative=12, n_classes=n_classes, flip_y=0.1, random_state=0
    )


@cache
def fitted(n, n_trees, n_classes=2, max_depth=None):
    """Return a forest fitted to such data, with its packed form."""
    X, y = data(n, n_classes)
    forest = RandomForestClassifier(n_trees, max_depth=max_depth, random_state=0, n_jobs=-1)
    forest.fit(X, y)
    return forest.set_params(n_jobs=1), PackedForest.from_forest(forest)


@pytest.mark.parametrize("n_rows", (1_000, 15_000, 100_000))
@pytest.mark.parametrize("max_depth", (5, 12, None))
@pytest.mark.parametrize("n_classes", (2, 26))
def test_all_trees(n_rows, max_depth, n_classes, versus):
    forest, packed = fitted(15_000, 100, n_classes, max_depth)
    X = np.resize(data(15_000, n_classes)[0], (n_rows, 20))
    X[15_000:] += np.random.default_rng(1).normal(size=X[15_000:].shape)
    versus(
        f"all 100 trees, {n_rows:,} rows, depth {max_depth or 'unlimited'}, {n_classes} classes",
        "the forest's own predict_proba",
        lambda: packed.scores(X),
        lambda: forest.predict_proba(X),
        0.45,
        rounds=5 if n_rows < 100_000 else 3,
    )


def test_out_of_bag_of_training_rows(versus, record, benchmark):
    """Pack, read the membership and score, beside what ``oob_score=True`` adds to the fit.

    A fit that starts warm and has no tree to add computes the out-of-bag scores alone; what it
    takes without them is subtracted.
    """
    forest, _ = fitted(15_000, 200)
    X, y = data(15_000)
    everyone = np.arange(len(y))

    def warm(oob_score):
        again = copy.copy(forest).set_params(warm_start=True, oob_score=oob_score)
        with pytest.warns(UserWarning):
            again.fit(X, y)

    def ours():
        packed = PackedForest.from_forest(forest)
        return packed.scores(X, Membership.from_forest(forest, len(y)), everyone)

    def seconds(work, rounds=5):
        import time

        times = []
        for _ in range(rounds):
            start = time.perf_counter()
            work()
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    benchmark.pedantic(ours, rounds=5, warmup_rounds=1)
    record(
        "out-of-bag scores of 15,000 training rows, 200 trees",
        "what oob_score=True adds to the forest's fit",
        benchmark.stats.stats.median,
        0.1,
        seconds(lambda: warm(True)) - seconds(lambda: warm(False)),
    )
