"""Packed forests beside scikit-learn, ONNX Runtime and treelite (``pip install treelite``)."""

import copy
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from threadpoolctl import threadpool_limits

from vennforest.forest import Membership, PackedForest


@cache
def data(n, n_classes=2, n_columns=20):
    """Return rows (n, d) and labels that are not easily told apart."""
    return make_classification(
        n, n_columns, n_informative=12, n_classes=n_classes, flip_y=0.1, random_state=0
    )


@cache
def fitted(n, n_trees, n_classes=2, max_depth=None, n_columns=20):
    """Return a forest fitted to such data, with its packed form."""
    X, y = data(n, n_classes, n_columns)
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
        lambda: packed.scores(packed.check_rows(X)),
        lambda: forest.predict_proba(X),
        0.45,
        rounds=5 if n_rows < 100_000 else 3,
    )


def scores_in_onnx_runtime(forest):
    """Return a function that scores rows by the forest as skl2onnx converts it."""
    skl2onnx = pytest.importorskip("skl2onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    types = skl2onnx.common.data_types.FloatTensorType([None, forest.n_features_in_])
    graph = skl2onnx.to_onnx(
        forest, initial_types=[("X", types)], options={id(forest): {"zipmap": False}}
    )
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 2
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda X: session.run(["probabilities"], {"X": X})[0]


def scores_in_treelite(forest):
    """Return a function that scores rows by treelite's general tree inference library."""
    treelite = pytest.importorskip("treelite")
    model = treelite.sklearn.import_model(forest)

    def score(X):
        with threadpool_limits(2, user_api="openmp"):  # of one thread in `make bench`
            return treelite.gtil.predict(model, X, nthread=2)

    return score


def scores_in_scikit_learn(forest):
    """Return a function that scores rows by the forest's own ``predict_proba``."""
    threaded = copy.copy(forest).set_params(n_jobs=2)
    return threaded.predict_proba


@pytest.mark.parametrize(
    ("name", "peer", "at_most"),
    [
        ("ONNX Runtime", scores_in_onnx_runtime, {2: 0.15, 10: 0.35}),
        ("treelite", scores_in_treelite, {2: 0.1, 10: 0.15}),
        ("scikit-learn", scores_in_scikit_learn, {2: 0.35, 10: 0.65}),
    ],
)
@pytest.mark.parametrize(("n_classes", "n_columns"), [(2, 20), (10, 50)])
@pytest.mark.parametrize("n_rows", (1, 20_000))
def test_other_runtimes(name, peer, at_most, n_classes, n_columns, n_rows, versus):
    forest, packed = fitted(20_000, 300, n_classes, None, n_columns)
    scores_of_peer = peer(forest)
    X = data(20_000, n_classes, n_columns)[0][:n_rows].astype(np.float32)
    versus(
        f"all 300 trees, {n_rows:,} rows, {n_classes} classes, {n_columns} columns, two threads",
        name,
        lambda: packed.scores(packed.check_rows(X), n_jobs=2),
        lambda: scores_of_peer(X),
        at_most[n_classes] if n_rows > 1 else 2.0,
        rounds=3 if n_rows > 1 else 101,
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
        rows = packed.check_rows(X)
        return packed.scores(rows, Membership.from_forest(forest, len(y)), everyone)

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
        0.5,
        seconds(lambda: warm(True)) - seconds(lambda: warm(False)),
    )
