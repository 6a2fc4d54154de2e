"""A calibrator as SQL: equal to what it predicts itself."""

import re
import sqlite3
from contextlib import closing
from typing import get_args

import numpy as np
import pytest

from support.exported import draw, of_logits
from support.systems import SYSTEMS
from vennforest import TemperatureScaling, VennAbers
from vennforest._validation import InputError
from vennforest.calibrators import IsotonicCalibration, PooledCalibration, Venn
from vennforest.export import to_sql
from vennforest.export.sql import MAX_CLASSES_OF_QUERY, Dialect

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


DIALECTS = [name for name in get_args(Dialect) if name != "duckdb"]


def parts_of(query, dialect):
    """Return the numbers, names of columns and kinds of joins of a query, in a fixed order."""
    sqlglot = pytest.importorskip("sqlglot")
    exp = sqlglot.exp
    if dialect == "oracle":  # sqlglot does not read its suffix of doubles
        query = re.sub(r"(e[+-]?\d+)d", r"\1", query)
    tree = sqlglot.parse_one(query, read=dialect)
    literals = [node.this for node in tree.find_all(exp.Literal)]
    numbers = sorted(float(text) for text in literals if "e" in text)
    names = {node.name for node in tree.find_all(exp.Column)} - {"*"}
    sides = sorted(node.side or node.kind for node in tree.find_all(exp.Join))
    return numbers, {name for name in names if not name.startswith("column")}, sides


@pytest.fixture(scope="module")
def queried():
    """Models, the names of their scores, and the parts of their queries in one dialect."""
    scores, y = draw(n=80, levels=12)
    three = np.random.default_rng(20261127).dirichlet(np.ones(3), 15)
    models = (
        (VennAbers().fit(scores, y), "my score"),
        (PooledCalibration().fit(scores, y), "my score"),
        (VennAbers().fit(three, three.argmax(axis=1)), {1: "b", 0: "a", 2: "c"}),
    )
    return [
        (model, names, parts_of(to_sql(model, score=names), "duckdb")) for model, names in models
    ]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_has_the_numbers_names_and_joins_of_one(dialect, queried):
    for model, names, ours in queried:
        query = to_sql(model, dialect, score=names)
        assert parts_of(query, dialect) == ours
        # A decimal type would hold fewer digits than a double.
        plain = re.search(r"[^'\d.]\d[\d.]*e[+-]?\d+(?![d\d'])", query)
        assert (plain is None) == (dialect in ("oracle", "postgres", "snowflake", "redshift"))
        assert not re.search(r"\d\.\d+(?![\de])", query)


def test_dialects():
    scores, y = draw()
    model = VennAbers().fit(scores, y)
    pytest.importorskip("sqlglot")
    assert "t.`my ``score`" in to_sql(model, "spark", score="my `score")
    assert "FROM a.b:c@{x} AS t" in to_sql(model, "snowflake", table="a.b:c@{x}")
    for wrong in ("access", "", None):
        with pytest.raises(InputError, match="dialect must be one of"):
            to_sql(model, wrong)
    three = VennAbers().fit(np.eye(3), [0, 1, 2])
    with pytest.raises(InputError, match="score must name the scores, a column for each of 3"):
        to_sql(three)
    with pytest.raises(InputError, match="score must say of which class each column is"):
        to_sql(three, score=["a", "b", "c"])
    with pytest.raises(ValueError, match="the taxonomy must have a formula, got"):
        to_sql(Venn(np.rint).fit(scores, y))


def test_more_classes_than_a_query_is_planned_for_are_refused():
    k = MAX_CLASSES_OF_QUERY + 1
    model = TemperatureScaling().fit(np.eye(k) * 0.9 + 0.1 / k, np.arange(k))
    with pytest.raises(InputError, match=r"at most 25 classes for SQL, got 26: use to_onnx"):
        to_sql(model, score={j: f"s{j}" for j in range(k)})


@pytest.mark.parametrize("name", ["p", "P", "p0", "Low95"])
def test_a_score_may_have_the_name_of_an_added_column(name):
    duckdb = pytest.importorskip("duckdb")
    model, rows = VennAbers("log").fit(*draw()), np.linspace(0, 1, 9)
    query = to_sql(model, score=name, table="scores", confidence=True)
    with duckdb.connect() as connection:
        connection.execute(f'CREATE TABLE scores ("{name}" DOUBLE)')
        connection.executemany("INSERT INTO scores VALUES (?)", [[x] for x in rows.tolist()])
        columns = connection.sql(query).fetchnumpy()
    assert set(columns) == {
        name,
        *(f"{key}_calibrated" for key in ("p", "p0", "p1", "low95", "high95")),
    }
    order = np.argsort(columns[name])
    np.testing.assert_allclose(columns["p_calibrated"][order], model.predict_proba(rows)[:, 1])


def test_added_columns_of_classes_differ_without_regard_to_case():
    scores = np.eye(3)[[0, 1, 2] * 4]
    model = VennAbers().fit(scores, ["a", "b", "c"] * 4)
    assert "p_b_calibrated" in to_sql(model, score={"a": "x", "b": "P_B", "c": "z"})
    with pytest.raises(InputError, match="score must name each column once"):
        to_sql(model, score={"a": "x", "b": "x", "c": "z"})
    model = VennAbers().fit(scores, ["A", "a", "c"] * 4)
    with pytest.raises(InputError, match=r"differ without regard to case, got 'p\d?_A'"):
        to_sql(model, score={"A": "x", "a": "y", "c": "z"})


def test_scores_at_each_step_and_beside_it_in_every_database_run():
    """The step tables are read at each boundary and one unit in the last place either side."""
    rng = np.random.default_rng(20261127)
    scores = np.round(rng.random(600), 3)
    model = VennAbers("log").fit(scores, rng.random(600) < scores)
    at = model._tables[0].starts()
    new = np.concatenate([at, *(np.nextafter(at, end) for end in (-9, 9)), [np.nan] * 3])
    expected = model.predict_proba(new[:-3])[:, 1]
    for name in ("duckdb", "postgres", "sqlite"):
        try:
            (answers,) = SYSTEMS[name]([(model, new)], False)
        except pytest.skip.Exception as reason:
            print(f"{name}: not run, {reason}")
            continue
        np.testing.assert_allclose(answers["p"][:-3], expected, rtol=0, atol=1e-15, err_msg=name)
        print(f"{name}: {len(new) - 3} scores, {np.sum(answers['p'][:-3] != expected)} differ")


def test_sqlite_refuses_text_that_is_no_number():
    pytest.importorskip("sqlglot")
    model = VennAbers("log").fit(*draw())
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE scores (id INTEGER, score TEXT)")
        connection.execute("INSERT INTO scores VALUES (1, 'high'), (2, '0.25'), (3, NULL)")
        rows = connection.execute(f"{to_sql(model, 'sqlite')} ORDER BY id").fetchall()
    p = [row[-1] for row in rows]
    assert p[0] is p[2] is None
    assert p[1] == pytest.approx(model.predict_proba([0.25])[0, 1])


def test_two_logits_and_one_of_the_first_class_may_be_minus_infinite():
    duckdb = pytest.importorskip("duckdb")
    p = np.linspace(0.1, 0.9, 40)
    logits = np.log(np.column_stack([1 - p, p]))
    y = np.arange(40) % 3 == 0
    two = TemperatureScaling(on="logit").fit(logits, y)
    rows = np.array([[-np.inf, 0.5], [0.25, -np.inf], [0.1, 0.7], [-np.inf, -np.inf]])
    table = ", ".join(f"({i}, '{a}'::DOUBLE, '{b}'::DOUBLE)" for i, (a, b) in enumerate(rows))
    source = f"(SELECT * FROM (VALUES {table}) AS v(row, a, b))"
    query = to_sql(two, table=source, score={False: "a", True: "b"})
    found = duckdb.sql(f"SELECT p FROM ({query}) ORDER BY row").fetchnumpy()["p"]
    np.testing.assert_allclose(found[:3], two.predict_proba(rows[:3])[:, 1], 0, 1e-12)
    assert np.ma.getmaskarray(found).tolist() == [False, False, False, True]
    query = to_sql(two, table=source, score={False: "a"})
    found = duckdb.sql(f"SELECT p FROM ({query}) ORDER BY row").fetchnumpy()["p"]
    of_first = np.where(np.isinf(rows[:, 0]), 745.0, -rows[:, 0])
    np.testing.assert_allclose(found, two.predict_proba(of_first)[:, 1], 0, 1e-12)


def test_the_column_of_the_first_class_must_be_its_probability():
    """Isotonic calibration takes any score of the second class, of the first one none but p."""
    scores, y = draw()
    model = IsotonicCalibration(on="score").fit(scores, y)
    query = to_sql(model, score={0: "score"})
    found = run_in_duckdb(query, [0.0, 0.25, 1.0, 1.5, -0.5])
    expected = model.predict_proba([1.0, 0.75, 0.0])[:, 1]
    np.testing.assert_allclose(found[:3].to_numpy(), expected, rtol=0, atol=1e-13)
    assert found[3:].to_pylist() == [None, None]
