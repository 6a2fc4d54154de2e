"""The share of examples that have an exact twin, beside pairs looked at one by one."""

import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from vennforest.sources import repeats


def expected(rows, codes):
    pairs = [*zip(map(tuple, rows.tolist()), codes.tolist(), strict=True)]
    return sum(pairs.count(pair) > 1 for pair in pairs) / len(pairs)


@pytest.mark.parametrize(
    "kind",
    [np.asarray, scipy.sparse.csr_array, pd.DataFrame, pl.DataFrame, lambda X: X.astype(str)],
    ids=["numbers", "sparse", "pandas", "polars", "text"],
)
def test_share_of_twins_in_tables_of_every_kind(kind):
    rng = np.random.default_rng(1)
    for values in (2, 4, 40):
        X, codes = rng.integers(0, values, (60, 3)).astype(float), rng.integers(0, 2, 60)
        assert repeats.share_of_repeats(kind(X), codes) == expected(X, codes)


def test_no_example_has_no_twin():
    assert repeats.share_of_repeats(np.empty((0, 2)), np.empty(0, np.intp)) == 0


def test_what_cannot_be_compared_is_not_looked_at(monkeypatch):
    codes = np.zeros(6, np.intp)
    cells = pd.DataFrame({"a": [[1]] * 6})  # lists have no hash
    assert repeats.share_of_repeats(cells, codes) == 0
    text = np.array([["a"]] * 6)
    assert repeats.share_of_repeats(text, codes) == 1
    monkeypatch.setattr(repeats, "MOST_MIXED", 5)
    assert repeats.share_of_repeats(text, codes) == 0
    assert repeats.share_of_repeats(np.ones((6, 1)), codes) == 1
    monkeypatch.delitem(sys.modules, "pandas")
    assert repeats.share_of_repeats(SimpleNamespace(columns=["a"]), codes) == 0
