"""Copies, near-copies and synthetic examples are found; honest tables are not taken for them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

from vennforest.sources.hazards import Copies, find_copies, warn_of_repeats

NONE = Copies(0.0, 0.0)


def coin(n, d, rng):
    return rng.normal(size=(n, d)), rng.integers(0, 2, n)


def doubled(X, y, rng, jitter=0.0):
    order = rng.permutation(2 * len(y))
    both = np.vstack([X, X + jitter * rng.normal(size=X.shape)])
    return both[order], np.concatenate([y, y])[order]


def smote(X, y, rng, wanted, k=5):
    """Add points on the lines from examples of class 1 to their nearest neighbours."""
    rare = X[y == 1]
    away = np.linalg.norm(rare[:, None] - rare[None], axis=2)
    near = np.argsort(away, axis=1)[:, 1 : k + 1]
    one = rng.integers(0, len(rare), wanted)
    other = near[one, rng.integers(0, k, wanted)]
    made = rare[one] + rng.random((wanted, 1)) * (rare[other] - rare[one])
    return np.vstack([X, made]), np.concatenate([y, np.ones(wanted, int)])


def patients(rng):
    of = np.repeat(np.arange(100), 5)
    X = rng.normal(size=(100, 5))[of] + 0.02 * rng.normal(size=(500, 5))
    return np.column_stack([of, X]), rng.integers(0, 2, 100)[of]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    "make",
    [
        lambda rng: doubled(*coin(400, 6, rng), rng),
        lambda rng: doubled(*coin(400, 6, rng), rng, jitter=1e-3),
        lambda rng: doubled(rng.poisson(6, (400, 8)).astype(float), coin(400, 1, rng)[1], rng),
        patients,
    ],
    ids=["exact", "jitter", "counts", "patients"],
)
def test_copies_are_found_beside_a_column_that_numbers_the_rows(make, seed):
    rng = np.random.default_rng(seed)
    X, y = make(rng)
    numbered = np.column_stack([rng.permutation(len(y)), X])
    for table in (X, numbered, pd.DataFrame(numbered), pl.DataFrame(numbered)):
        assert find_copies(table, y).copied > 0.7


@pytest.mark.parametrize("seed", range(2))
def test_oversampling_is_found(seed):
    rng = np.random.default_rng(seed)
    X, _ = coin(1000, 6, rng)
    y = (rng.random(1000) < 0.06).astype(int)
    assert find_copies(*smote(X, y, rng, 880)).synthetic > 0.2
    again = np.concatenate([np.arange(1000), rng.choice(np.flatnonzero(y), 880)])
    assert find_copies(X[again], y[again]).copied > 0.4
    assert find_copies(X, y) == NONE


def honest(rng):
    n, d = int(rng.integers(1, 600)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d))
    kind = rng.integers(0, 5)
    if kind == 1:
        X = rng.integers(0, rng.integers(2, 6), (n, d)).astype(float)
    elif kind == 2:
        X = X.round(1)
    elif kind == 3:
        X = np.exp(2 * X)
    elif kind == 4:
        X = np.column_stack([X, rng.integers(0, 3, (n, 3)), np.arange(n)])
    p = 1 / (1 + np.exp(-3 * rng.integers(0, 3) * (X[:, 0] - np.median(X[:, 0]))))
    return X, (rng.random(n) < p).astype(int)


def test_honest_tables_are_not_taken_for_copies():
    rng = np.random.default_rng(20)
    assert sum(find_copies(*honest(rng)) != NONE for _ in range(100)) <= 1


@pytest.mark.slow
def test_honest_tables_are_not_taken_for_copies_in_a_thousand_draws():
    rng = np.random.default_rng(6_418_773)
    assert sum(find_copies(*honest(rng)) != NONE for _ in range(1000)) <= 5


def test_sparse_tables_are_compared_exactly():
    rng = np.random.default_rng(3)
    X, y = coin(60, 3, rng)
    assert find_copies(scipy.sparse.csr_array(np.vstack([X, X])), np.tile(y, 2)).copied == 1
    assert find_copies(scipy.sparse.csr_array(X), y) == NONE


def test_texts_that_come_twice_are_found():
    texts = [f"text {i}" for i in range(100)]
    y = np.arange(120) % 2
    assert find_copies(texts + texts[:20], y).copied == pytest.approx(40 / 120)
    assert find_copies(np.array(texts), y[:100]) == NONE


def test_columns_that_cannot_be_taken_are_not_compared():
    class Table:
        columns = ("a",)

        def __getitem__(self, name):
            raise KeyError(name)

    assert find_copies(Table(), np.arange(40) % 2) == NONE


def test_tables_with_nothing_to_compare():
    y = np.arange(40) % 2
    assert find_copies(np.ones((40, 2)), y) == NONE
    assert find_copies(np.arange(40.0)[:, None], y) == NONE
    assert find_copies(pd.DataFrame({"a": [[1]] * 40}), y) == NONE
    assert find_copies(pd.DataFrame({"a": [f"row {i}" for i in range(40)]}), y) == NONE
    assert find_copies(np.full((40, 2), np.nan), y) == NONE


def test_the_warning_names_the_way_out():
    rng = np.random.default_rng(4)
    X, y = coin(200, 4, rng)
    with pytest.warns(UserWarning, match="groups="):
        warn_of_repeats(*doubled(X, y, rng))
    rare = (rng.random(200) < 0.2).astype(int)
    with pytest.warns(UserWarning, match="SMOTE"):
        warn_of_repeats(*smote(X, rare, rng, 120))
