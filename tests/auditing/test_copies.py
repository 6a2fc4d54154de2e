"""Rows that are copies of others, exactly, nearly, or made up between two."""

import numpy as np
import pandas as pd
import polars as pl
from scipy import sparse

from auditing.findings import forest, kinds
from hazards.audits import with_synthetic
from hazards.table import coin
from vennforest import audit


def test_the_rows_of_near_copies_are_named():
    rng = np.random.default_rng(0)
    X, y = rng.poisson(6, (300, 8)), rng.integers(0, 2, 300)
    order = rng.permutation(600)
    numbered = np.column_stack([np.arange(600), np.vstack([X, X])[order]])
    (finding,) = audit(forest(), pl.DataFrame(numbered), np.tile(y, 2)[order])
    assert finding.kind == "near-copies" and len(finding.rows) > 350


def test_copies_within_a_group_are_no_fault():
    rng = np.random.default_rng(1)
    X, y = coin(rng, 200, 6)
    patient = np.arange(400) % 200
    for jitter in (0.0, 1e-3):
        table = np.vstack([X, X + jitter * rng.normal(size=X.shape)])
        assert kinds(forest(), table, np.tile(y, 2), groups=patient) == []
        assert len(kinds(forest(), table, np.tile(y, 2), groups=np.arange(400))) == 1


def test_synthetic_rows_are_named():
    rng = np.random.default_rng(1)
    X, y = coin(rng, 1000, 6, 0.06)
    (finding,) = audit(forest(), *with_synthetic(X, y, rng))
    assert finding.kind == "synthetic rows" and (finding.rows >= 1000).mean() > 0.9
    rows = np.concatenate([np.arange(1000), rng.choice(np.flatnonzero(y), 880)])
    (finding,) = audit(forest(), X[rows], y[rows])
    assert finding.kind == "copies" and (y[rows][finding.rows] == 1).all()


def test_rows_of_weight_zero_are_left_out():
    rng = np.random.default_rng(2)
    X, y = coin(rng, 100, 4)
    X, y, weight = np.vstack([X, X]), np.tile(y, 2), np.repeat([1.0, 0.0], 100)
    assert kinds(forest(), X, y, sample_weight=weight) == []
    (finding,) = audit(forest(), X, y, sample_weight=np.arange(200))
    assert finding.rows.tolist() == [*range(1, 100), *range(101, 200)]


def test_sparse_tables_are_compared_exactly():
    rng = np.random.default_rng(3)
    X, y = coin(rng, 60, 3)
    assert kinds(forest(), sparse.csr_array(np.vstack([X, X])), np.tile(y, 2)) == ["copies"]
    assert kinds(forest(), sparse.csr_array(X), y) == []


def test_tables_with_nothing_to_compare():
    numbers = [np.ones((40, 2)), np.arange(40.0)[:, None], np.full((40, 2), np.nan)]
    days = pd.date_range("2024-01-01", periods=40)
    columns = ([[1]] * 40, [f"row {i}" for i in range(40)], days)
    for table in (*numbers, *(pd.DataFrame({"a": column}) for column in columns)):
        assert kinds(forest(), table, np.arange(40) % 2) == []
