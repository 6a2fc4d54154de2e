"""One hash a row, from its description in integers, and the draws by it."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats

from oracles.hashes import draw_by_hand, hash_by_hand
from vennforest.sources.row_hashes import draw_examples, hash_rows


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_hash_is_the_one_described_on_every_machine(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5)) * 10.0 ** rng.integers(-30, 30, (50, 5))
    X[rng.random(X.shape) < 0.2] = 0
    X[rng.random(X.shape) < 0.1] = np.nan
    X = X.astype(kind)
    expected = [hash_by_hand(row, kind) for row in X.tolist()]
    assert hash_rows(X).tolist() == expected
    negative = np.where(X == 0, kind(-0.0), X)
    other_nan = np.where(np.isnan(X), -X, X)
    for same in (negative, other_nan, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        assert hash_rows(same).tolist() == expected
    columns, pointers = np.nonzero(X)[1], np.append(0, np.cumsum((X != 0).sum(axis=1)))
    shuffled = sparse.csr_array((X[X != 0], columns, pointers), X.shape)[:, ::-1][:, ::-1]
    for same in (sparse.csr_array(X), sparse.csc_matrix(X), sparse.coo_array(X), shuffled):
        assert hash_rows(same).tolist() == expected
    drawn = draw_examples(hash_rows(X), 2**31 - 5, 1000)
    assert drawn.tolist() == [draw_by_hand(h, 2**31 - 5, 1000) for h in expected]


def test_a_row_of_text_and_numbers_is_hashed_cell_by_cell():
    texts, numbers = ["a", "$1,000.00", "a", "1"], [1.5, 0.0, -0.0, np.nan]
    lists = [["x"], ["y"], [], None]
    table = pd.DataFrame({"text": texts, "number": numbers, "list": lists})
    expected = [hash_by_hand(cells) for cells in zip(texts, numbers, lists, strict=True)]
    for same in (table, table.to_numpy(), table.astype({"number": "float32"})):
        assert hash_rows(same).tolist() == expected
    days = pd.DataFrame({"day": pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-01"])})
    first, second, third = hash_rows(days).tolist()
    assert first == third != second
    assert hash_rows(days.astype("datetime64[s]")).tolist() == [first, second, third]


def test_draws_are_uniform_and_differ_with_the_seed():
    rng = np.random.default_rng(0)
    hashes = hash_rows(rng.normal(size=(40_000, 3)).astype(np.float32))
    for seed in (0, 1, 2**31 - 2):
        draw = draw_examples(hashes, seed, 97)
        assert stats.chisquare(np.bincount(draw, minlength=97)).pvalue > 1e-3
    # Rows that differ in one bit, and seeds that follow each other: independent
    near = hash_rows(np.arange(40_000, dtype=np.float32)[:, None])
    first, other = draw_examples(near, 0, 10), draw_examples(near, 1, 10)
    for a, b in ((first, other), (first[1:], first[:-1])):
        table = np.bincount(10 * a + b, minlength=100)
        assert stats.chisquare(table).pvalue > 1e-3
