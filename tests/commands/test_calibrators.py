"""The commands ``apply``, ``sql`` and ``show``: what calibrators and models contain and answer."""

import errno
import hashlib
import json
import os
from typing import get_args

import numpy as np
import pandas as pd
import pytest

import vennforest
from commands.calibrating import apply, calibrate, calibrator_in, draw_probabilities, read_csv
from report.reading import named_in, numbers_in
from support.commands import refused, run
from vennforest import VennAbers
from vennforest.calibrators import METHODS
from vennforest.calibrators.bounded import has_bounds
from vennforest.export import from_json, to_json, to_sql
from vennforest.export.sql import Dialect


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    s = rng.random(90).round(3)
    y = np.where(rng.random(90) < s, "yes", "no")
    frame = pd.DataFrame({"s": s, "town": rng.choice(["Ulm", "東京"], 90), "y": y})
    frame.to_csv(tmp_path / "t.csv", index=False)
    return tmp_path / "t.csv"


def lines(text):
    return {line[:22].strip(): line[22:] for line in text.splitlines()}


def test_a_model_says_what_it_is(data, tmp_path, capsys):
    model = tmp_path / "m.skops"
    assert run("fit", data, "-t", "y", "-o", model, "--trees", 15, "--jobs", 1) == 0
    capsys.readouterr()
    assert run("show", model) == 0
    out, err = capsys.readouterr()
    assert err == ""
    entries = lines(out)
    assert entries["File"].startswith(str(model)) and entries["Target"] == "y"
    assert entries["N rows"] == "90" and entries["Columns"] == "s number, town text"
    assert entries["Estimator"].startswith("Blend of mixed-forest (")
    assert entries["Method"] == "venn-abers" and entries["Calibrate on"] == "oob and cv"
    assert run("show", model, "--json") == 0
    header = json.loads(capsys.readouterr().out)
    labels = pd.read_csv(data)["y"].value_counts().to_dict()
    assert header["measures"]["rows"] == 90 and header["class_counts"] == labels
    assert sorted(numbers_in(entries["Class counts"])) == sorted(labels.values())
    shown = [value for value in header["measures"].values() if isinstance(value, float)]
    assert numbers_in(entries["Measures"])[-1] == pytest.approx(shown[-1], rel=0.001)
    assert header["description"]["written"].endswith("+00:00")
    vennforest.save(vennforest.VennAbers().fit([0.1, 0.9] * 10, [0, 1] * 10), model)
    assert run("show", model) == 0
    entries = lines(capsys.readouterr().out)
    assert entries["Method"] == "VennAbers()" and "Target" not in entries


@pytest.mark.parametrize("method", ["venn-abers", "platt", "temperature"])
def test_a_calibrator_says_what_it_is(data, tmp_path, capsys, method):
    file = tmp_path / "c.json"
    command = ("calibrate", data, "-s", "s", "-t", "y", "-o", file, "--method", method)
    assert run(*command) == 0
    capsys.readouterr()
    assert run("show", file, "--json") == 0
    about = json.loads(capsys.readouterr().out)
    share = (pd.read_csv(data)["y"] == "yes").mean()
    assert about["bounds"] == has_bounds(METHODS[method]) and about["increasing"] is True
    assert about["rows"] == 90 and about["scores"] == ["s"] and about["target"] == "y"
    assert about["classes"] == pytest.approx({"no": 1 - share, "yes": share})
    assert run("show", file) == 0
    entries = lines(capsys.readouterr().out)
    assert entries["Calibrator"] == f"{METHODS[method].__name__}()" and "Prior" not in entries


def test_what_cannot_be_shown(data, tmp_path, capsys):
    for path, message in (
        (tmp_path / "no.skops", "No such file"),
        (data, "is not a model file"),
        (tmp_path, "Is a directory"),
    ):
        assert message in refused(capsys, "show", path)


def test_the_record_of_a_calibrator_survives_later_steps(tmp_path, capsys):
    rng = np.random.default_rng(3)
    p = rng.beta(2, 8, 600)
    y = (rng.random(600) < p).astype(int)
    data, file = tmp_path / "t.csv", tmp_path / "c.json"
    pd.DataFrame({"p": p, "y": y}).to_csv(data, index=False)
    options = ("-s", "p", "-t", "y", "--update", "auto", "--mean", "1=.07", "-o", file)
    assert run("calibrate", data, *options) == 0
    calibrator = from_json(file.read_text())
    assert calibrator.predict_proba(p)[:, 1].mean() == pytest.approx(0.07)
    half = p[p < np.median(p)]  # the mean is that of the rows of calibrate, in every other table
    assert calibrator.predict_proba(half)[:, 1].mean() < 0.06
    file.write_text(to_json(calibrator.with_prior({1: 0.2})))
    vennforest.save(calibrator.with_prior({1: 0.2}), tmp_path / "c.skops")
    for path in (file, tmp_path / "c.skops"):
        capsys.readouterr()
        assert run("show", path, "--json") == 0
        record = json.loads(capsys.readouterr().out)
        assert record["sha256"] == hashlib.sha256(data.read_bytes()).hexdigest()
        assert record["rows"] == 600 and record["target"] == "y" and record["data"] == "t.csv"
        assert record["command"].startswith("vennforest") and record["date"]
        assert {test["choice"] for test in record["update"]["tests"]} >= {"keep", "slope"}
        assert [step["step"] for step in record["steps"]] == ["with_mean", "with_prior"]
        assert record["steps"][0]["1"] == pytest.approx(0.07)


def test_the_record_of_a_model_survives_later_steps(data, tmp_path, capsys):
    model = tmp_path / "m.skops"
    assert run("fit", data, "-t", "y", "-o", model, "--trees", 15, "--jobs", 1) == 0
    vennforest.save(vennforest.load(model).with_prior({"yes": 0.2}), model)
    capsys.readouterr()
    assert run("show", model, "--json") == 0
    record = json.loads(capsys.readouterr().out)
    assert record["sha256"] == hashlib.sha256(data.read_bytes()).hexdigest()
    assert record["target"] == "y" and record["steps"][0]["yes"] == pytest.approx(0.2)


@pytest.mark.parametrize(("text", "more", "message"), [
    ("s\n0.1\n0.5\n1.5\n0.2\n", [], "scores must lie in [0, 1]"),
    ("s,t\n0.1,1\n,1\n", [], "must contain finite scores, got NaN or nothing in row 2"),
    ("s,p(yes)\n0.1,1\n", [], "got 'p(yes)': rename it"),
    ("s,label\n0.1,1\n", [], "got 'label': rename it"),
    ("s,id\n0.1,1\n", ["--id", "i"], "there is no column 'i' in"),
    ("s,t\n0.1,1\n", ["-s", "s", "-s", "t"], "--score must say of which class each column is"),
])  # fmt: skip
def test_what_cannot_be_applied(scored, capsys, text, more, message):
    _, folder = scored
    assert run(*calibrate(folder, "--method", "beta")) == 0
    (folder / "new.csv").write_text(text)
    assert message in refused(capsys, *apply(folder, *more, data="new.csv"))
    assert not (folder / "out.csv").exists()


def test_files_that_are_no_calibrator(scored, capsys):
    _, folder = scored
    missing = f"{folder / 'c.json'}: {os.strerror(errno.ENOENT)}"
    assert refused(capsys, *apply(folder)) == missing
    assert run(*calibrate(folder, "--method", "beta")) == 0
    document = (folder / "c.json").read_text(encoding="utf-8")
    (folder / "c.json").write_text(document.replace('"values": [', '"values": ["x", '))
    assert "c.json: the calibrator is damaged" in refused(capsys, *apply(folder))


@pytest.mark.parametrize("method", ["venn-abers", "isotonic"])
def test_apply_for_other_shares_of_the_classes(scored, capsys, method):
    frame, folder = scored
    share = float((frame["y"] == "yes").mean())
    assert run(*calibrate(folder, "--method", method)) == 0
    assert run(*apply(folder)) == 0
    before = read_csv(folder / "out.csv")["p(yes)"]
    assert run(*apply(folder, "--prior", "yes=0.1")) == 0
    yes, no = before * 0.1 / share, (1 - before) * 0.9 / (1 - share)
    after = read_csv(folder / "out.csv")["p(yes)"]
    np.testing.assert_allclose(after, yes / (yes + no), atol=1e-12)
    expected = "--prior must be LABEL=SHARE"
    wrong = dict.fromkeys(("maybe=0.1", "yes", "yes=often"), expected) | {"yes=1.5": "1.5"}
    for entry, message in wrong.items():
        assert message in refused(capsys, *apply(folder, "--prior", entry))


def test_rows_without_a_score_are_kept(scored, capsys):
    frame, folder = scored
    has_score = (frame["id"] % 7 > 0).to_numpy()
    holes = frame.assign(s=frame["s"].where(has_score))
    holes.to_csv(folder / "holes.csv", index=False)
    holes.to_parquet(folder / "holes.parquet")
    keep = ("--missing-scores", "keep")
    for method in ("venn-abers", "beta"):
        assert run(*calibrate(folder, "--method", method)) == 0
        assert run(*apply(folder)) == 0
        expected = read_csv(folder / "out.csv")
        without_a_score = refused(capsys, *apply(folder, data="holes.csv"))
        assert named_in(without_a_score) == {"s"} and numbers_in(without_a_score)[0] == 1
        for data in ("holes.csv", "holes.parquet"):
            assert run(*apply(folder, *keep, data=data)) == 0
            assert 58 in numbers_in(capsys.readouterr().err) and (~has_score).sum() == 58
            rows = read_csv(folder / "out.csv")
            assert rows["id"].tolist() == frame["id"].tolist()
            assert rows.loc[~has_score, "label":].isna().all(axis=None)
            pd.testing.assert_frame_equal(rows[has_score], expected[has_score])
    drop = calibrate(folder, "--missing-scores", "drop", "--json", data="holes.csv")
    assert run(*drop) == 0
    assert json.loads(capsys.readouterr().out)["n_rows"] == has_score.sum()
    (folder / "empty.csv").write_text("id,s,y\n1,,yes\n2,,no\n")
    assert run(*apply(folder, *keep, data="empty.csv")) == 0
    assert read_csv(folder / "out.csv").loc[:, "label":].isna().all(axis=None)
    (folder / "inf.csv").write_text("id,s,y\n1,,yes\n2,inf,no\n")
    for command, message in (
        (apply(folder, *keep, data="inf.csv"), "got inf in row 2"),
        (apply(folder, keep[0], "drop"), "--missing-scores must be"),
    ):
        assert message in refused(capsys, *command)


def test_a_calibrator_as_a_query(scored, capsys):
    frame, folder = scored
    assert run(*calibrate(folder)) == run(*apply(folder)) == 0
    capsys.readouterr()
    assert run("sql", folder / "c.json", "--table", "frame", "--confidence") == 0
    query = capsys.readouterr().out
    assert query == to_sql(calibrator_in(folder), table="frame", score="s", confidence=True) + "\n"
    options = ("--dialect", "postgres", "--score", "other", "--json")
    assert run("sql", folder / "c.json", *options) == 0
    expected = to_sql(calibrator_in(folder), "postgres", score="other")
    assert json.loads(capsys.readouterr().out) == {"sql": expected}
    wrong = refused(capsys, "sql", folder / "c.json", "--dialect", "access")
    assert named_in(wrong) == {*get_args(Dialect), "access"}
    duckdb = pytest.importorskip("duckdb")
    answers = duckdb.sql(f"SELECT * FROM ({query}) ORDER BY id").df()
    assert len(answers) == len(frame)
    np.testing.assert_allclose(answers["p"], read_csv(folder / "out.csv")["p(yes)"], atol=1e-13)


def test_apply_and_check_refuse_what_apply_wrote(tmp_path, capsys):
    frame, _ = draw_probabilities()
    frame.to_csv(tmp_path / "scores.csv", index=False)
    assert run(*calibrate(tmp_path, "-s", "p(yes)")) == 0
    assert run(*apply(tmp_path, "--id", "y")) == 0
    again = refused(capsys, *apply(tmp_path, data="out.csv", output="again.csv"))
    assert {"p(yes)", "label"} == named_in(again)
    check = ("check", tmp_path / "c.json", tmp_path / "out.csv", "-t", "y")
    assert refused(capsys, *check, "-o", tmp_path / "c.html") == again


def test_sql_of_a_table_says_what_it_needs(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("s,y\n1,2\n", encoding="utf-8")
    message = refused(capsys, "sql", tmp_path / "t.csv")
    assert "t.csv is not a calibrator: vennforest calibrate writes these" in message


def test_sql_of_what_has_no_formula_is_refused_in_a_sentence(tmp_path, capsys):
    scores = np.random.default_rng(3).dirichlet(np.ones(3), 90)
    labels = np.array(["a", "b", "c"])[scores.argmax(axis=1)]
    moved = VennAbers().fit(scores, labels).with_prior({"a": 0.5})
    (tmp_path / "moved.json").write_text(to_json(moved), encoding="utf-8")
    columns = [part for label in "abc" for part in ("-s", f"{label}=p_{label}")]
    message = refused(capsys, "sql", tmp_path / "moved.json", *columns)
    with pytest.raises(ValueError) as of_the_library:
        to_sql(moved, score={label: f"p_{label}" for label in "abc"})
    assert message == str(of_the_library.value)
