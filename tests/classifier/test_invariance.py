"""Results depend on data and seed alone, to the bit: not on threads, memory or how calls divide."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from vennforest import CalibratedClassifier

FOREST = RandomForestClassifier(20, random_state=0)

SETTINGS = {
    "forest": {"estimator": FOREST},
    "exchangeable": {"estimator": FOREST, "subforest": "exchangeable", "merge": "log"},
    "few trees": {"estimator": RandomForestClassifier(12, random_state=0)},
    "bagging": {"estimator": BaggingClassifier(n_estimators=10, random_state=0)},
    "folds": {"estimator": DecisionTreeClassifier(min_samples_leaf=9, random_state=0)},
    "groups": {"estimator": FOREST, "by": 3, "method": "venn"},
    "vector": {"estimator": FOREST, "method": "vector", "calibrate_on": "holdout"},
}


def data(k=3):
    X, y = make_classification(
        210, 4, n_informative=3, n_redundant=0, n_classes=k, flip_y=0.2, random_state=0
    )
    X = X.astype(np.float32).astype(np.float64)
    X[:, 3] = X[:, 3] > 0
    return X[:150], np.array(["ant", "bee", "cat"])[y[:150]], X[150:]


def answers(name, X, y, new, n_jobs=1):
    """Return everything that a classifier predicts for new rows, one after another."""
    model = CalibratedClassifier(random_state=0, n_jobs=n_jobs, **SETTINGS[name]).fit(X, y)
    return predictions(model, new), model


def predictions(model, new):
    tables = [model.predict_proba(new)]
    if hasattr(model, "predict_multiprobability"):
        bounds = model.predict_multiprobability(new)
        intervals = model.with_prior({"ant": 0.5}).predict_confidence(new)
        tables += [bounds.lower, bounds.upper, intervals.lower, intervals.upper]
    return np.hstack(tables)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", SETTINGS)
def test_threads_memory_order_and_division_into_calls_change_nothing(name, k):
    X, y, new = data(k)
    expected, model = answers(name, X, y, new)
    strided = np.repeat(new, 2, axis=0)[::2]
    assert_array_equal(answers(name, np.asfortranarray(X), y, strided, n_jobs=2)[0], expected)
    parts = [predictions(model, new[rows]) for rows in np.split(np.arange(60), [1, 8, 9, 33])]
    assert_array_equal(np.vstack(parts), expected)
    order = np.random.default_rng(0).permutation(60)
    assert_array_equal(predictions(model, new[order]), expected[order])


@pytest.mark.parametrize("name", ["forest", "exchangeable"])
def test_the_container_of_the_rows_changes_nothing(name):
    X, y, new = data(2)
    new[0, :2] = 0.0
    expected, model = answers(name, X, y, new)
    negative, read_only = new.copy(), new.copy()
    negative[0, :2] = -0.0
    read_only.flags.writeable = False
    numbers = (negative, read_only, new.astype(np.float32), new.astype(">f8"), new.tolist())
    for rows in (*numbers, sparse.csr_array(new), sparse.csc_matrix(new)):
        assert_array_equal(predictions(model, rows), expected)


@pytest.mark.parametrize("container", ["array", "sparse", "pandas", "polars"])
def test_rows_in_single_precision_do_not_depend_on_the_other_rows(container):
    """Linear models add up numbers in an order that depends on how many rows there are."""
    X, y = make_classification(400, 30, n_informative=5, flip_y=0.2)
    X = X.astype(np.float32)
    if container == "sparse":
        X = sparse.csr_array(X)
    elif container != "array":
        names = [f"x{j}" for j in range(30)]
        X = pytest.importorskip(container).DataFrame(dict(zip(names, X.T, strict=True)))
    pipeline = make_pipeline(StandardScaler(with_mean=False), LogisticRegression())
    model = CalibratedClassifier(pipeline, calibrate_on="holdout", random_state=0).fit(X, y)
    expected = model.predict_multiprobability(X)
    parts = [model.predict_multiprobability(X[i : i + 1]) for i in range(50)]
    differs = np.vstack([part.upper for part in parts]) != expected.upper[:50]
    assert differs.any(axis=1).sum() <= 1  # where rounding parts two neighbours
