"""CalibratedClassifier beside the forest it calibrates, and beside scikit-learn's calibration."""

import gc
import os
import resource
import subprocess
import sys
import tempfile
from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest.forest import PackedForest


@pytest.fixture(scope="module")
def data():
    return make_classification(15_000, 20, n_informative=8, flip_y=0.1, random_state=0)


def forest(**params):
    return RandomForestClassifier(200, random_state=0, **params)


@pytest.fixture(scope="module")
def models(data):
    return forest().fit(*data), CalibratedClassifier(forest(), random_state=0).fit(*data)


@pytest.mark.parametrize(
    ("against", "peer", "at_most"),
    [
        ("the forest's own fit", lambda X, y: forest().fit(X, y), 1.05),
        ("the forest's fit with oob_score=True", lambda X, y: forest(oob_score=True).fit(X, y), 1),
    ],
)
def test_fit(against, peer, at_most, data, versus):
    versus(
        "CalibratedClassifier(forest).fit, 15,000 × 20, 200 trees",
        against,
        lambda: CalibratedClassifier(forest(), random_state=0).fit(*data),
        lambda: peer(*data),
        at_most,
        rounds=2,
    )


def test_the_default(data, versus):
    versus(
        "CalibratedClassifier().fit, 15,000 × 20, 300 trees",
        "RandomForestClassifier(300).fit",
        lambda: CalibratedClassifier(random_state=0).fit(*data),
        lambda: RandomForestClassifier(300, random_state=0).fit(*data),
        1.3,
        rounds=2,
    )


@pytest.mark.parametrize("k", (2, 10))
def test_the_default_of_few_rows(k, versus):
    data = make_classification(
        1_000, 20, n_informative=8, n_classes=k, n_clusters_per_class=1, flip_y=0.1, random_state=0
    )
    versus(
        f"CalibratedClassifier().fit, 1,000 × 20, 300 trees, {k} classes",
        "RandomForestClassifier(300).fit",
        lambda: CalibratedClassifier(random_state=0).fit(*data),
        lambda: RandomForestClassifier(300, random_state=0).fit(*data),
        1.15,
        rounds=3,
    )


@pytest.fixture(scope="module")
def default_and_forest(data):
    forest = RandomForestClassifier(300, random_state=0, n_jobs=-1).fit(*data)
    return CalibratedClassifier(random_state=0).fit(*data), forest.set_params(n_jobs=1)


@pytest.mark.parametrize(
    "what", ("predict_proba", "predict_multiprobability", "predict_confidence")
)
def test_the_default_predicts(what, data, default_and_forest, versus):
    model, own = default_and_forest
    versus(
        f"CalibratedClassifier().{what} of 15,000 rows",
        "RandomForestClassifier(300).predict_proba",
        lambda: getattr(model, what)(data[0]),
        lambda: own.predict_proba(data[0]),
        None,
        rounds=9,
    )


def test_fit_beside_cross_validation(data, versus):
    versus(
        "whole fit",
        'CalibratedClassifierCV(forest, method="isotonic", cv=5).fit',
        lambda: CalibratedClassifier(forest(), random_state=0).fit(*data),
        lambda: CalibratedClassifierCV(forest(), method="isotonic", cv=5).fit(*data),
        0.25,
        rounds=1,
    )


@cache
def fitted(k, n_jobs):
    """Return rows, and a model of them with default settings."""
    X, y = make_classification(
        15_000, 20, n_informative=8, n_classes=k, n_clusters_per_class=1, flip_y=0.1, random_state=0
    )
    return X, CalibratedClassifier(forest(n_jobs=-1), random_state=0, n_jobs=n_jobs).fit(X, y)


@pytest.mark.parametrize("what", ("predict_proba", "predict_multiprobability"))
@pytest.mark.parametrize(("k", "n_jobs", "at_most"), [(2, 1, 0.35), (2, 2, 0.35), (26, 1, None)])
def test_predict(k, n_jobs, at_most, what, versus):
    X, model = fitted(k, n_jobs)
    own = model.estimator_.set_params(n_jobs=n_jobs)
    versus(
        f"default {what} of 15,000 rows, 200 trees, {k} classes, n_jobs={n_jobs}",
        "the forest's own predict_proba",
        lambda: getattr(model, what)(X),
        lambda: own.predict_proba(X),
        at_most,
        rounds=9,
    )


def test_predict_one_row(data, models, versus):
    own, model = models
    own.set_params(n_jobs=1)
    row = data[0][:1]
    versus(
        "predict_proba of one row",
        "the forest's own",
        lambda: model.predict_proba(row),
        lambda: own.predict_proba(row),
        0.05,
        rounds=101,
    )


@pytest.mark.parametrize("n", (100_000, pytest.param(1_000_000, marks=pytest.mark.large)))
def test_memory(n, record):
    """Bytes a row of what a fitted model holds beyond the forest and its packed form."""
    X, y = make_classification(n, 5, n_informative=3, n_redundant=0, random_state=0)
    small = RandomForestClassifier(300, max_samples=500, random_state=0, n_jobs=-1)
    model = CalibratedClassifier(small, random_state=0).fit(X, y)
    model.predict_proba(X[:10])  # what is made at the first use counts too
    record(
        f"memory beyond the forest and its packed form, {n:,} rows × 300 trees",
        "bytes a row",
        bytes_of(model, (RandomForestClassifier, PackedForest)) / n,
        60,
        unit="B",
    )


def bytes_of(thing, without):
    """Add up the arrays that can be reached from an object, not through the given types."""
    seen, total, queue = set(), 0, [thing]
    while queue:
        one = queue.pop()
        if id(one) in seen or isinstance(one, (*without, type)) or callable(one):
            continue
        seen.add(id(one))
        if isinstance(one, np.ndarray):
            base = one
            while isinstance(base.base, np.ndarray):
                base = base.base
            if id(base) not in seen or base is one:
                seen.add(id(base))
                total += base.nbytes
            continue
        if type(one).__module__.startswith(("vennforest", "builtins")):
            queue.extend(gc.get_referents(one))
            queue.extend(vars(one).values() if hasattr(one, "__dict__") else ())
    return total


def run(code, **environment):
    """Return what a new Python process prints, as a number."""
    env = {**os.environ, **environment}
    out = subprocess.run(
        [sys.executable, "-c", code], env=env, check=True, capture_output=True, text=True
    )
    return float(out.stdout)


def taken(*arguments, folder=None):
    """Return the processor's seconds that a new Python process takes, which others do not move."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True, cwd=folder)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


PEER = "import sklearn.ensemble, pandas"


@pytest.mark.parametrize(
    ("work", "at_most"), [("import vennforest", 0.1), ("from vennforest import VennAbers", 1.4)]
)
def test_import(work, at_most, record):
    pairs = [(taken("-c", PEER), taken("-c", work)) for _ in range(7)]
    peer, ours = np.median(pairs, axis=0)
    record(work, PEER, float(ours), at_most, float(peer))


def test_one_row_by_the_command(record, tmp_path):
    X, y = make_classification(1000, 10, random_state=0)
    table = pd.DataFrame(X, columns=list("abcdefghij")).assign(town=np.tile(["Ulm", "Bern"], 500))
    table.assign(y=y).to_csv(tmp_path / "train.csv", index=False)
    table.head(1).to_csv(tmp_path / "one.csv", index=False)

    def command(*arguments):
        return taken("-m", "vennforest", *arguments, folder=tmp_path)

    predict = ["predict", "model.skops", "one.csv", "-o", "out.csv"]
    command("fit", "train.csv", "--target", "y", "-o", "model.skops")
    command(*predict)  # kernels are compiled once
    pairs = [(taken("-c", PEER), command(*predict)) for _ in range(7)]
    peer, ours = np.median(pairs, axis=0)
    record("vennforest predict of one row, default fit", PEER, float(ours), 1.5, float(peer))


def test_first_call(record):
    code = """
import time
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from vennforest import CalibratedClassifier
X, y = load_breast_cancer(return_X_y=True)
forest = RandomForestClassifier(10, random_state=0)
start = time.perf_counter()
forest.fit(X, y)
own = time.perf_counter() - start
start = time.perf_counter()
CalibratedClassifier(forest, random_state=0).fit(X, y).predict_proba(X)
print(time.perf_counter() - start - own)
"""
    with tempfile.TemporaryDirectory() as cache:
        first = run(code, NUMBA_CACHE_DIR=cache, PYTHONWARNINGS="ignore")
        later = [run(code, NUMBA_CACHE_DIR=cache, PYTHONWARNINGS="ignore") for _ in range(5)]
    record("first fit and predict after install (compilation)", "seconds", first, 15)
    record("first fit and predict of a later process", "seconds", float(np.median(later)), 1)
