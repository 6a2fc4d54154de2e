"""Rows that a model was trained on are recognised in a stream."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

from monitoring.drawing import draw
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.monitoring import Monitor
from vennforest.tables import table_pipeline


def test_rows_that_the_model_was_fitted_to_are_refused():
    rng = np.random.default_rng(9)
    X, y = draw(rng, 400)
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    monitor = Monitor(model, random_state=0).fit()
    with pytest.raises(InputError, match="X must be new rows, got about 100% used for training"):
        monitor.update(X[::-1], y[::-1])
    with pytest.raises(InputError, match="X must be new rows"):
        Monitor(model).fit(X[:100], y[:100])
    new, labels = draw(rng, 150)
    with pytest.warns(UserWarning, match="of the rows were used for training"):
        monitor.update(np.vstack([new, X[:50]]), np.append(labels, y[:50]))
    assert monitor.n_seen_ == 200


def test_rows_of_training_are_recognised_in_another_format():
    """Cells of a CSV file are text, those of a Parquet file are dates, booleans and numbers."""
    rng = np.random.default_rng(77_204)
    n = 300
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 400, n), "D")
    table = pd.DataFrame({"day": days, "size": rng.normal(size=n), "is_new": rng.random(n) < 0.5})
    y = rng.integers(0, 2, n)
    text = table.astype({"day": str, "size": str, "is_new": str})
    pipeline = table_pipeline(RandomForestClassifier(40, random_state=0))
    monitor = Monitor(CalibratedClassifier(pipeline, random_state=0).fit(text, y)).fit()
    for rows in (text, table):
        with pytest.raises(InputError, match="X must be new rows, got about 100% used"):
            monitor.update(rows, y)


def test_rows_of_few_different_values_are_not_taken_for_rows_of_training():
    rng = np.random.default_rng(10)
    X, y = rng.integers(0, 5, (400, 3)).astype(float), rng.integers(0, 2, 400)
    model = CalibratedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    assert len(model._state.row_sketch) == 0
    Monitor(model, random_state=0).fit().update(X[:100], y[:100])
