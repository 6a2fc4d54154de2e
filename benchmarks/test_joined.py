"""The new object joins the bags: milliseconds an object, one thread."""

import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier

OBJECTS = 1_000


@pytest.mark.parametrize(
    ("n", "trees", "at_most"),
    [
        (1_500, 200, None),
        (5_000, 200, None),
        (15_000, 50, None),
        (15_000, 200, 0.5),
        pytest.param(15_000, 800, None, marks=pytest.mark.large),
        pytest.param(100_000, 200, None, marks=pytest.mark.large),
    ],
)
def test_joined(n, trees, at_most, benchmark, record):
    X, y = make_classification(n + OBJECTS, 20, n_informative=12, flip_y=0.1, random_state=0)
    forest = RandomForestClassifier(trees, random_state=0, n_jobs=-1)
    model = CalibratedClassifier(forest, subforest="joined", random_state=0).fit(X[:n], y[:n])
    benchmark.pedantic(
        model.predict_multiprobability, (X[n:],), rounds=5, warmup_rounds=1, iterations=1
    )
    record(
        f'bounds of an object, subforest="joined", {n:,} examples, {trees} trees',
        "the goal in milliseconds",
        1000 * benchmark.stats.stats.median / OBJECTS,
        at_most,
        unit="ms",
    )
