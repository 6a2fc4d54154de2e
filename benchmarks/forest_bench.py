"""Packed forests beside scikit-learn's own: the forest rows of the table of speeds.

Each function returns dictionaries with the row's name, the seconds of the peer and ours (medians
of repeats that take turns), and their ratio. Run as a script it prints them as a table.
"""

import copy
import time
from functools import cache

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from vennforest.forest import Membership, PackedForest

LIMITS = {
    "out-of-bag scores of new rows": 0.25,
    "one row": 0.05,
    "all trees": 0.45,
    "out-of-bag scores of the training rows": 0.1,
}
"""The largest ratio that is good enough, by the beginning of the row's name."""


def medians(peer, ours, repeats=7):
    """Return the median seconds of two functions that take turns, after one call each."""
    peer()
    ours()
    seconds = np.empty((repeats, 2))
    for repeat in range(repeats):
        for which, work in enumerate((peer, ours)):
            start = time.perf_counter()
            work()
            seconds[repeat, which] = time.perf_counter() - start
    return np.median(seconds, axis=0)


def row(name, peer, ours, repeats=7):
    """Measure one row of the table."""
    theirs, own = medians(peer, ours, repeats)
    return {"name": name, "peer": float(theirs), "ours": float(own), "ratio": float(own / theirs)}


@cache
def data(n, n_classes=2):
    """Return rows (n, 20) and labels that are not easily told apart."""
    return make_classification(
        n, 20, n_informative=12, n_classes=n_classes, flip_y=0.1, random_state=0
    )


@cache
def fitted(n, n_trees, n_classes=2, max_depth=None):
    """Return a forest fitted to such data, with its packed form and membership."""
    X, y = data(n, n_classes)
    forest = RandomForestClassifier(n_trees, max_depth=max_depth, random_state=0, n_jobs=-1)
    forest.fit(X, y)
    return forest, PackedForest.from_forest(forest), Membership.from_forest(forest, n)


def out_of_bag_of_new_rows(n=15_000, n_trees=200, n_jobs=1):
    """Score each new row by the out-of-bag trees of a drawn training example."""
    forest, packed, membership = fitted(n, n_trees)
    forest.set_params(n_jobs=n_jobs)
    X = np.random.default_rng(1).permutation(data(n)[0])
    examples = np.random.default_rng(2).integers(0, n, n)
    return row(
        f"out-of-bag scores of new rows: {n:,} rows, {n_trees} trees, n_jobs={n_jobs}",
        lambda: forest.predict_proba(X),
        lambda: packed.scores(X, membership, examples, n_jobs=n_jobs),
    )


def one_row(n=15_000, n_trees=200):
    """Score a single row, each time another one."""
    forest, packed, membership = fitted(n, n_trees)
    forest.set_params(n_jobs=1)
    X, turns = data(n)[0], iter(range(n))
    return row(
        f"one row: out-of-bag scores, {n_trees} trees",
        lambda: forest.predict_proba(X[:1]),
        lambda: packed.scores(X[(i := next(turns)) : i + 1], membership, [i]),
        repeats=51,
    )


def all_trees(n, n_rows, n_trees, n_classes, max_depth, n_jobs=1):
    """Score rows by every tree, the same bits as the forest's own probabilities."""
    forest, packed, _ = fitted(n, n_trees, n_classes, max_depth)
    forest.set_params(n_jobs=n_jobs)
    X = np.random.default_rng(1).normal(size=(n_rows, 20)) + data(n, n_classes)[0][:1]
    X[: min(n, n_rows)] = data(n, n_classes)[0][:n_rows]
    return row(
        f"all trees: {n_rows:,} rows, {n_trees} trees, depth {max_depth or 'unlimited'}, "
        f"{n_classes} classes, n_jobs={n_jobs}",
        lambda: forest.predict_proba(X),
        lambda: packed.scores(X, n_jobs=n_jobs),
        repeats=5,
    )


def all_trees_of_every_shape():
    """Return the rows for every combination of size, depth and classes."""
    return [
        all_trees(15_000, n_rows, 100, n_classes, max_depth)
        for n_classes in (2, 26)
        for max_depth in (5, 12, None)
        for n_rows in (1_000, 15_000, 100_000)
    ]


def out_of_bag_of_training_rows(n=15_000, n_trees=200, n_jobs=1):
    """Pack, read the membership and score all training rows, beside ``oob_score=True``.

    A fit that starts warm and has no tree to add computes the out-of-bag scores alone; what it
    takes without them is subtracted.
    """
    forest, _, _ = fitted(n, n_trees)
    X, y = data(n)
    everyone = np.arange(n)

    def warm(oob_score):
        again = copy.copy(forest)
        return again.set_params(warm_start=True, oob_score=oob_score, n_jobs=n_jobs)

    def ours():
        packed = PackedForest.from_forest(forest)
        membership = Membership.from_forest(forest, n)
        return packed.scores(X, membership, everyone, n_jobs=n_jobs)

    with np.errstate(all="ignore"):
        with_scores, own = medians(lambda: warm(True).fit(X, y), ours)
        without, _ = medians(lambda: warm(False).fit(X, y), lambda: None)
    peer = float(with_scores - without)
    name = f"out-of-bag scores of the training rows: {n:,} rows, {n_trees} trees, n_jobs={n_jobs}"
    return {"name": name, "peer": peer, "ours": float(own), "ratio": float(own / peer)}


def parts_of_training_rows(n=15_000, n_trees=200):
    """Return the seconds that packing, membership and the walk take of the row before."""
    forest, packed, membership = fitted(n, n_trees)
    X, everyone = data(n)[0], np.arange(n)
    drawing, reading = medians(
        lambda: forest.estimators_samples_, lambda: Membership.from_forest(forest, n)
    )
    packing, walking = medians(
        lambda: PackedForest.from_forest(forest),
        lambda: packed.scores(X, membership, everyone, n_jobs=1),
    )
    return {
        "estimators_samples_": drawing,
        "membership, that included": reading,
        "packing": packing,
        "walk": walking,
    }


def rows():
    """Return every row."""
    return [
        *(out_of_bag_of_new_rows(n_jobs=n_jobs) for n_jobs in (1, 2)),
        one_row(),
        *(out_of_bag_of_training_rows(n_jobs=n_jobs) for n_jobs in (1, 2)),
        *all_trees_of_every_shape(),
    ]


def limit(name):
    """Return the largest ratio that is good enough for a row."""
    return next(ratio for start, ratio in LIMITS.items() if name.startswith(start))


def main():
    """Print every row as a Markdown table."""
    print("| work | scikit-learn, s | vennforest, s | ratio | at most |")
    print("|---|---|---|---|---|")
    for one in rows():
        print(
            f"| {one['name']} | {one['peer']:.4g} | {one['ours']:.4g} | {one['ratio']:.3f} "
            f"| {limit(one['name'])} |"
        )
    print()
    for part, seconds in parts_of_training_rows().items():
        print(f"- {part}: {seconds:.4f} s")


if __name__ == "__main__":
    main()
