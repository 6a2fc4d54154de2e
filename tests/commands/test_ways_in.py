"""Odd cells, names and streams on their way into commands and out of them."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from vennforest import load
from vennforest._messages import harmless
from vennforest.cli import main
from vennforest.metrics._inputs import check_probabilities
from vennforest.tables import TableColumns

N = 80


@pytest.fixture
def scores(tmp_path):
    rng = np.random.default_rng(3)
    s = rng.random(N)
    frame = pd.DataFrame({"s": s, "y": np.where(rng.random(N) < s, "b", "a"), "note": "=1+1"})
    frame.to_csv(tmp_path / "scores.csv", index=False)
    command = ["calibrate", tmp_path / "scores.csv", "-s", "s", "-t", "y"]
    assert main([*map(str, command), "-o", str(tmp_path / "c.json")]) == 0
    return tmp_path


def lab(n=60, seed=0):
    rng = np.random.default_rng(seed)
    value = rng.normal(5, 2, n).round(2)
    cells = value.astype(str).astype(object)
    cells[::9], cells[4::17] = "n.d.", "-"
    return pd.DataFrame(
        {"lab": cells, "age": rng.integers(20, 80, n), "y": np.where(value > 5, "u", "v")}
    )


def fit(folder, *more):
    command = ["fit", folder / "t.csv", "-t", "y", "-o", folder / "m.skops", "--trees", "15"]
    return main([*map(str, command), *more])


def test_marks_of_missing_cells(tmp_path, capsys):
    lab().to_csv(tmp_path / "t.csv", index=False)
    assert fit(tmp_path) == 0
    advice = re.search(r"--missing (\S+)", capsys.readouterr().err.replace("'", ""))
    assert advice is not None and advice[1].rstrip(".") in ("-,n.d.", "-,n.d")
    assert fit(tmp_path, "--missing", "n.d.,-") == 0
    model = load(tmp_path / "m.skops")
    columns = model.estimators_[0][0]
    assert columns.kinds_ == ["number", "number"] and columns.missing == ["n.d.", "-"]
    output = tmp_path / "p.csv"
    assert (
        main(["predict", *map(str, (tmp_path / "m.skops", tmp_path / "t.csv", "-o", output))]) == 0
    )
    X = lab().drop(columns="y")
    assert np.allclose(pd.read_csv(output)["p(u)"], model.predict_proba(X)[:, 0], rtol=1e-12)
    blank = X.replace({"lab": {"n.d.": None, "-": None}})
    assert np.array_equal(model.predict_proba(X), model.predict_proba(blank))


@pytest.mark.parametrize("option", ["--missing", "--decimal", "--keep", "--groups", "--types"])
def test_an_example_takes_no_options_of_files(option, tmp_path, capsys):
    page = str(tmp_path / "p.html")
    assert main(["report", "--example", "iris", option, "x", "-o", page]) == 2
    assert "an example has no such options" in capsys.readouterr().err


def test_marks_among_numbers_and_in_frames():
    X = pd.DataFrame({"a": [1.0, -999.0, 3.0], "b": [" ? ", "2", "x"], "c": ["?", "1", "2"]})
    columns = TableColumns(missing=["?", "-999"]).fit(X)
    read = columns.transform(X)
    assert columns.kinds_ == ["number", "text", "number"]
    assert np.isnan(read["a"][1]) and read["b"][0] is None and np.isnan(read["c"][0])


def test_brackets_are_no_calibrator(scores, capsys):
    (scores / "b.json").write_text("[" * 200_000)
    assert main(["apply", str(scores / "b.json"), str(scores / "scores.csv")]) == 2
    assert "contains no calibrator" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["m.pkl", "m.joblib", "m.JSON", "m.csv"])
def test_names_that_promise_another_format(tmp_path, capsys, name):
    lab().to_csv(tmp_path / "t.csv", index=False)
    assert fit(tmp_path, "-o", str(tmp_path / name)) == 2
    assert "must end in .skops" in capsys.readouterr().err


def test_columns_that_differ_by_case(tmp_path):
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"SCORE": 1 - rng.random(N), "score": rng.random(N), "y": [0, 1] * 40})
    for name in ("t.parquet", "t.csv"):
        (frame.to_parquet if name.endswith("t") else frame.to_csv)(tmp_path / name, index=False)
        command = ["calibrate", str(tmp_path / name), "-s", "score", "-t", "y", "--method", "platt"]
        assert main([*command, "-o", str(tmp_path / f"{name}.json")]) == 0
    found = [json.loads((tmp_path / f"t.{s}.json").read_text()) for s in ("parquet", "csv")]
    assert found[0]["about"]["scores"] == ["score"]


@pytest.mark.parametrize("decimals", [2, 3, 4])
def test_rounded_probabilities_are_taken(decimals):
    p = np.random.default_rng(4).dirichlet(np.ones(5), 200)
    with pytest.warns(UserWarning, match="as rounded ones"):
        got = check_probabilities(p.round(decimals))
    assert np.abs(got.sum(axis=1) - 1).max() < 1e-12
    assert np.abs(got - p).max() < 3 * 10.0**-decimals
    wrong = p.round(decimals)
    wrong[17, 0] += 0.1
    with pytest.raises(
        ValueError, match=r"sum to 1 within 0\.\d+, got a sum of .* in row 18: give"
    ):
        check_probabilities(wrong)


def test_what_steers_is_written_out():
    assert harmless("a\x1b[31m\u202eb\tc\n") == "a\\x1b[31m\\u202eb\tc\n"
