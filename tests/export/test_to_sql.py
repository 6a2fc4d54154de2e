"""A calibrator as SQL: equal to what it predicts itself."""

import numpy as np
import pytest

from support.exported import draw, of_logits
from vennforest import VennAbers
from vennforest._validation import InputError
from vennforest.calibrators import Venn
from vennforest.export import to_sql

REFUSED = [np.nan, np.inf, -np.inf, None]


def run_in_duckdb(sql, scores):
    """Return the column p of a query, in the order of the scores."""
    duckdb = pytest.importorskip("duckdb")
    import pyarrow as pa

    given = pa.table({"row": np.arange(len(scores)), "score": pa.array(scores, pa.float64())})
    with duckdb.connect() as connection:
        connection.register("scores", given)
        return connection.sql(f"SELECT * FROM ({sql}) ORDER BY row").to_arrow_table()["p"]


@pytest.mark.parametrize("calibrator", list(of_logits()), ids=str)
def test_sql_of_decision_values(calibrator):
    new = np.concatenate([np.linspace(-30, 30, 501), [1e6, -1e6, 1e300, -1e300, 0.0]])
    found = run_in_duckdb(to_sql(calibrator), [*new.tolist(), *REFUSED])
    expected = calibrator.predict_proba(new)[:, 1]
    np.testing.assert_allclose(found[: len(new)].to_numpy(), expected, rtol=0, atol=1e-13)
    assert found[len(new) :].to_pylist() == [None] * len(REFUSED)


def test_dialects():
    scores, y = draw()
    model = VennAbers().fit(scores, y)
    assert "ASOF LEFT JOIN" in to_sql(model, "duckdb")
    assert "t.`my ``score`" in to_sql(model, "spark", score="my `score")
    assert "width_bucket" in to_sql(model, "postgres")
    for wrong in ("mysql", "", None):
        with pytest.raises(InputError, match="dialect must be one of"):
            to_sql(model, wrong)
    three = VennAbers().fit(np.eye(3), [0, 1, 2])
    with pytest.raises(InputError, match="score must name a column of scores for each of 3"):
        to_sql(three)
    with pytest.raises(ValueError, match="the taxonomy must have a formula, got"):
        to_sql(Venn(np.rint).fit(scores, y))


@pytest.mark.parametrize("name", ["p", "P", "p0", "Low95"])
def test_a_score_is_not_named_like_an_added_column(name):
    model = VennAbers().fit(*draw())
    with pytest.raises(InputError, match="score must name columns apart from the added ones"):
        to_sql(model, score=name, confidence=True)


def test_added_columns_of_classes_differ_without_regard_to_case():
    scores = np.eye(3)[[0, 1, 2] * 4]
    model = VennAbers().fit(scores, ["a", "b", "c"] * 4)
    with pytest.raises(InputError, match="apart from the added ones.* got 'P_B'"):
        to_sql(model, score=["x", "P_B", "z"])
    with pytest.raises(InputError, match="score must name different columns, got 'x' twice"):
        to_sql(model, score=["x", "x", "z"])
    model = VennAbers().fit(scores, ["A", "a", "c"] * 4)
    with pytest.raises(InputError, match="labels that differ without regard to case, got 'p._A'"):
        to_sql(model, score=["x", "y", "z"])
