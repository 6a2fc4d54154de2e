"""Columns of new rows that differ from training are named, and unchanged ones are not."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from support.tables import read_table
from vennforest import CalibratedClassifier
from vennforest._messages import CalibrationWarning
from vennforest.sources.training_columns import (
    NewColumns,
    TrainingColumns,
    columns_of_frame,
    differences_of,
)
from vennforest.tables import TableColumns, table_pipeline


def table(rng, n=1500):
    return pd.DataFrame({
        "income": rng.normal(size=n),
        "age": rng.integers(18, 90, n),
        "city": rng.choice(list("abc"), n),
        "name": [f"firm {i}" for i in rng.integers(0, 10**6, n)],
        "member": rng.choice([True, False], n),
        "rare": np.where(rng.random(n) < 0.01, 1.0, np.nan),
        "flag": (rng.random(n) < 0.002).astype(int),
        "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
    })  # fmt: skip


CHANGES = {
    "income": [(None, "missing"), (lambda c: c * 100, "range"), (lambda c: c * 0, "constant"),
               (lambda c: c.where(np.arange(len(c)) % 8 > 0), "missing")],
    "age": [(lambda c: c * 12, "range"), (lambda c: c * 0 + 40, "constant")],
    "city": [(None, "missing"), (lambda c: c.str.upper(), "unknown"), (lambda _: "a", "constant")],
    "member": [(lambda _: True, "constant"), (None, "missing")],
    "seen": [(None, "missing"), (lambda c: c + pd.Timedelta(9999, "D"), None)],
    "name": [(lambda c: c + " ltd", None)],  # new names are no surprise
    "rare": [(None, None)],
    "flag": [(lambda c: c * 0, None)],
}  # fmt: skip


@pytest.mark.parametrize("convert", [lambda X: X, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_column_that_differs_from_training_is_named(name, convert):
    rng = np.random.default_rng(0)
    training, X = table(rng), table(rng, 400)
    summary = TrainingColumns.of(columns_of_frame(convert(training)), len(training))
    summary._check_state()
    assert differences_of(summary, convert(X)) == []
    for change, kind in CHANGES[name]:
        new = X.assign(**{name: None if change is None else change(X[name])})
        differences = differences_of(summary, convert(new))
        assert [(d.name, d.kind) for d in differences] == ([] if kind is None else [(name, kind)])
        assert kind is None or repr(name) in differences[0].message
        assert differences_of(summary, convert(new[:19])) == []


def test_differences_do_not_depend_on_the_parts_that_rows_come_in():
    rng = np.random.default_rng(1)
    summary = TrainingColumns.of(columns_of_frame(table(rng)), 1500)
    X = table(rng, 400).sort_values(["city", "member"])  # parts are constant, the whole is not
    X["income"] = X["income"] * 50
    parts = NewColumns(summary)
    for start in range(0, 400, 17):
        part = X.iloc[start : start + 17]
        parts.add(columns_of_frame(part), len(part))
    assert list(parts.differences()) == differences_of(summary, X)
    assert [d.name for d in differences_of(summary, X)] == ["income"]


@pytest.mark.parametrize("kind", ["table", "frame"])
def test_a_classifier_of_data_frames_warns_once_a_column_and_answers(kind):
    rng = np.random.default_rng(2)
    X = table(rng, 300)
    y = (X["income"] + rng.normal(size=300) > 0).astype(int)
    forest = RandomForestClassifier(8, random_state=0)
    if kind == "table":
        estimator = table_pipeline(forest, random_state=0)
        X = X.assign(income=X["income"].astype(str), member=X["member"].astype(str))
    else:
        X = X[["income", "age"]]
        estimator = make_pipeline(FunctionTransformer(lambda X: X.fillna(0)), forest)
    model = CalibratedClassifier(estimator, random_state=0).fit(X, y)
    for predict in (model.predict_proba, model.predict_confidence, model.predict_multiprobability):
        with pytest.warns(CalibrationWarning, match="column 'income' is missing in 100%") as caught:
            predict(X.assign(income=None if kind == "table" else np.nan))
        assert len(caught) == 1
    assert model._state.column_differences(X) == []


@pytest.mark.skipif(
    "VENNFOREST_DATA" not in os.environ, reason="VENNFOREST_DATA names no folder of data sets"
)
def test_unchanged_samples_are_seldom_warned_of():
    """Of 500 random samples of 20 to 1,000 rows, at most 1 in 100 has a difference."""
    rng, n_warned, n_samples = np.random.default_rng(3), 0, 0
    paths = sorted(Path(os.environ["VENNFOREST_DATA"]).glob("*.csv.gz"))
    paths = [path for path in paths if path.stat().st_size < 30_000]  # others take long
    for path in paths:
        X = read_table(path)
        X = TableColumns().fit_transform(X.iloc[rng.permutation(len(X))[:5_000]])
        for _ in range(-(-500 // len(paths))):
            order = rng.permutation(len(X))
            n = int(rng.integers(20, max(21, min(1_000, len(X) // 2))))
            training, new = X.iloc[order[n:]], X.iloc[order[:n]]
            summary = TrainingColumns.of(columns_of_frame(training), len(training))
            n_warned, n_samples = n_warned + bool(differences_of(summary, new)), n_samples + 1
    assert n_samples >= 500 and n_warned <= n_samples / 100
