"""A calibrator as a table and as SQL: equal to what it answers itself."""

import os

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.exceptions import NotFittedError

from support.exported import ask, draw, of_logits, of_probabilities, tables
from vennforest import VennAbers
from vennforest._validation import InputError
from vennforest.calibrators import BetaCalibration, IsotonicCalibration, PlattScaling, Venn
from vennforest.export import table_of, to_sql

REFUSED = [np.nan, np.inf, -np.inf, None]


@pytest.mark.parametrize("calibrator", list(tables()), ids=str)
def test_a_table_answers_what_its_calibrator_answers(calibrator):
    table = table_of(calibrator)
    assert (np.diff(table.start) > 0).all()
    new = ask(calibrator, 3000, table.start)
    at = np.searchsorted(table.start, new, side="right") - 1
    assert (at >= 0).all()
    assert_array_equal(table.p[at], calibrator.predict_proba(new)[:, 1])
    if table.p0 is not None:
        bounds = calibrator.predict_multiprobability(new)
        assert_array_equal(table.p0[at], bounds.p0)
        assert_array_equal(table.p1[at], bounds.p1)
    columns = [one for one in table[1:] if one is not None]
    assert all(any(one[i] != one[i + 1] for one in columns) for i in range(len(table.start) - 1))


def test_what_is_no_table_says_so():
    scores, y = draw()
    with pytest.raises(ValueError, match=r"constant between scores, .*: use to_json or to_sql"):
        table_of(PlattScaling().fit(scores, y))
    with pytest.raises(ValueError, match="constant between scores"):
        table_of(Venn(np.rint).fit(scores, y))
    with pytest.raises(ValueError, match="classes must be two for a table"):
        table_of(VennAbers().fit(np.eye(3), [0, 1, 2]))
    with pytest.raises(NotFittedError):
        table_of(VennAbers())


def run_in_duckdb(sql, scores, name="score"):
    """Return the columns that the query adds, in the order of the scores."""
    duckdb = pytest.importorskip("duckdb")
    import pyarrow as pa

    given = pa.table({"row": np.arange(len(scores)), name: pa.array(scores, pa.float64())})
    with duckdb.connect() as connection:
        connection.register("scores", given)
        found = connection.sql(f"SELECT * FROM ({sql}) ORDER BY row").to_arrow_table()
    assert found.column_names[:2] == ["row", name]
    return {column: found[column] for column in found.column_names[2:]}


def check_in_duckdb(calibrator, n, steps=None):
    table = table_of(calibrator) if steps else None
    edges = table.start if steps else ()
    new = ask(calibrator, n, edges)
    found = run_in_duckdb(to_sql(calibrator), [*new.tolist(), *REFUSED])
    for column in found.values():
        assert column[len(new) :].to_pylist() == [None] * len(REFUSED)
    answer = {name: column[: len(new)].to_numpy() for name, column in found.items()}
    if hasattr(calibrator, "predict_multiprobability"):
        bounds = calibrator.predict_multiprobability(new)
        assert_array_equal(answer["p0"], bounds.p0)
        assert_array_equal(answer["p1"], bounds.p1)
    return answer["p"], calibrator.predict_proba(new)[:, 1]


@pytest.mark.parametrize("calibrator", list(tables()), ids=str)
def test_sql_of_tables_is_equal_to_the_last_bit(calibrator):
    found, expected = check_in_duckdb(calibrator, 2000, steps=True)
    assert_array_equal(found, expected)


@pytest.mark.slow
def test_sql_is_equal_on_ten_million_scores():
    rng = np.random.default_rng(74)
    scores = rng.random(20_000)
    y = (rng.random(20_000) < scores**2).astype(int)
    n = int(os.environ.get("SCORES", 10_000_000))
    for calibrator in (VennAbers("log").fit(scores, y),):
        found, expected = check_in_duckdb(calibrator, n, steps=True)
        assert_array_equal(found, expected)


@pytest.mark.parametrize("calibrator", list(of_probabilities()), ids=str)
def test_sql_of_formulas_is_equal_but_for_the_last_digits(calibrator):
    found, expected = check_in_duckdb(calibrator, 2000)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("calibrator", list(of_logits()), ids=str)
def test_sql_of_decision_values(calibrator):
    new = np.concatenate([np.linspace(-30, 30, 501), [1e6, -1e6, 1e300, -1e300, 0.0]])
    found = run_in_duckdb(to_sql(calibrator), [*new.tolist(), *REFUSED])["p"]
    expected = calibrator.predict_proba(new)[:, 1]
    np.testing.assert_allclose(found[: len(new)].to_numpy(), expected, rtol=0, atol=1e-13)
    assert found[len(new) :].to_pylist() == [None] * len(REFUSED)


def test_scores_that_python_refuses_are_null():
    scores, y = draw()
    beta = BetaCalibration().fit(scores, y)
    found = run_in_duckdb(to_sql(beta), [-0.1, np.nextafter(1, 2), 0.3])["p"]
    assert found.to_pylist()[:2] == [None, None]
    assert found.to_pylist()[2] is not None


def test_names_are_quoted_and_a_table_of_steps_may_be_apart():
    duckdb = pytest.importorskip("duckdb")
    import pyarrow as pa

    scores, y = draw()
    model = VennAbers("log").fit(scores, y)
    name = 'my "score"; DROP TABLE scores; --'
    found = run_in_duckdb(to_sql(model, score=name), scores.tolist(), name)["p"]
    assert_array_equal(found.to_numpy(), model.predict_proba(scores)[:, 1])
    given = pa.table({"score": scores, "row": np.arange(len(scores))})
    steps = pa.table(table_of(model)._asdict())
    sql = to_sql(model, "duckdb", table="given", steps="steps")
    assert len(sql) < 1000
    with duckdb.connect() as connection:
        connection.register("given", given)
        connection.register("steps", steps)
        rows = connection.sql(f"SELECT p FROM ({sql}) ORDER BY row").to_arrow_table()
    assert_array_equal(rows["p"].to_numpy(), model.predict_proba(scores)[:, 1])


def test_dialects():
    scores, y = draw()
    model = VennAbers().fit(scores, y)
    assert "ASOF LEFT JOIN" in to_sql(model, "duckdb")
    assert "t.`my ``score`" in to_sql(model, "spark", score="my `score")
    assert "width_bucket" in to_sql(model, "postgres")
    assert "ORDER BY s.start DESC LIMIT 1" in to_sql(model, "postgres", steps="steps")
    for wrong in ("mysql", "", None):
        with pytest.raises(InputError, match="dialect must be one of"):
            to_sql(model, wrong)
    with pytest.raises(InputError, match="score must be a name, got ''"):
        to_sql(model, score="")
    three = VennAbers().fit(np.eye(3), [0, 1, 2])
    with pytest.raises(InputError, match="score must name a column of scores for each of 3"):
        to_sql(three)
    with pytest.raises(ValueError, match="a formula must be of a taxonomy that has one"):
        to_sql(Venn(np.rint).fit(scores, y))


def test_the_query_of_a_calibrator_with_prior():
    scores, y = draw()
    for plain in (VennAbers("log"), IsotonicCalibration(), PlattScaling()):
        moved = plain.fit(scores, y).with_prior({1: 0.1}, instead_of={1: float(y.mean())})
        new = ask(moved, 300)
        found = run_in_duckdb(to_sql(moved), new.tolist())
        p = moved.predict_proba(new)[:, 1]
        assert found["p"].to_numpy() == pytest.approx(p, abs=1e-12)
        if "p0" in found:
            bounds = moved.predict_multiprobability(new)
            assert found["p0"].to_numpy() == pytest.approx(bounds.p0, abs=1e-12)
            assert found["p1"].to_numpy() == pytest.approx(bounds.p1, abs=1e-12)
        if isinstance(plain, PlattScaling):
            with pytest.raises(ValueError, match="constant between scores"):
                table_of(moved)
            continue
        table = table_of(moved)
        row = np.searchsorted(table.start, new, side="right") - 1
        for name, values in (("p0", table.p0), ("p1", table.p1), ("p", table.p)):
            assert (values is None) == (name not in found), name
            if values is not None:
                assert values[row] == pytest.approx(found[name].to_numpy(), abs=1e-12)
