"""Columns that are judged by their cells alone."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.linear_model import LogisticRegression

from auditing.findings import kinds


@pytest.mark.parametrize("convert", [lambda t: t.set_axis(["a"] * 4, axis=1), pa.table])
def test_columns_are_judged_whatever_their_names_and_library(convert):
    rng = np.random.default_rng(4)
    y = np.arange(80) % 2
    table = pd.DataFrame({"a": rng.random(80), "b": rng.random(80), "leak": y, "c": rng.random(80)})
    assert kinds(LogisticRegression(), convert(table), y) == ["leaking column"]
    twice = convert(pd.concat([table.drop(columns="leak").assign(d=rng.random(80))] * 2))
    assert kinds(LogisticRegression(), twice, np.r_[y, y]) == ["copies"]
