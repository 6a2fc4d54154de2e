"""The commands calibrate and apply: scores of any system."""

import json
import shlex
from functools import partial

import numpy as np
import pandas as pd
import pytest

from support.commands import refused, run
from vennforest import VennAbers
from vennforest.calibrators import METHODS
from vennforest.export import from_json, to_json, to_sql

# By default pandas 2 reads numbers to within a unit in the last place.
read_csv = partial(pd.read_csv, float_precision="round_trip")


def draw(n=400, seed=51):
    rng = np.random.default_rng(seed)
    scores = rng.random(n).round(3)
    return scores, np.where(rng.random(n) < scores, "yes", "no")


@pytest.fixture
def table(tmp_path):
    scores, y = draw()
    frame = pd.DataFrame({"id": np.arange(len(y)), "s": scores, "y": y})
    frame.to_csv(tmp_path / "scores.csv", index=False)
    return frame, tmp_path


def calibrate(folder, *more, data="scores.csv"):
    scores = () if "-s" in more else ("-s", "s")
    return "calibrate", folder / data, "-t", "y", "-o", folder / "c.json", *scores, *more


def apply(folder, *more, data="scores.csv", output="out.csv"):
    return "apply", folder / "c.json", folder / data, "-o", folder / output, *more


def calibrator_in(folder):
    return from_json((folder / "c.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "arrow"])
def test_what_is_written_is_the_fit_and_its_answers(table, suffix):
    frame, folder = table
    data = folder / f"scores.{suffix}"
    if suffix in ("parquet", "arrow"):
        (frame.to_parquet if suffix == "parquet" else frame.to_feather)(data)
    else:
        frame.to_csv(data, index=False, sep="\t" if suffix == "tsv" else ",")
    assert run(*calibrate(folder, data=data.name)) == 0
    fitted = VennAbers("pooled").fit(frame["s"], frame["y"])
    read = calibrator_in(folder)
    new = np.linspace(0, 1, 99)
    np.testing.assert_allclose(
        read.predict_proba(new), fitted.predict_proba(new), rtol=0, atol=1e-12
    )
    out = folder / ("out.parquet" if suffix == "arrow" else "out.csv")
    assert run(*apply(folder, data=data.name, output=out.name)) == 0
    found = pd.read_parquet(out) if out.suffix == ".parquet" else read_csv(out)
    parts = ("p", "lower", "upper", "low95", "high95")
    answers = [f"{part}({c})" for c in ("no", "yes") for part in parts]
    assert found.columns.tolist() == ["id", "s", "y", "label", *answers]
    assert found["id"].tolist() == frame["id"].tolist()
    bounds = read.predict_multiprobability(frame["s"])
    p = read.predict_proba(frame["s"])
    known = read.predict_confidence(frame["s"])
    expected = (p, bounds.lower, bounds.upper, known.lower, known.upper)
    for j, c in enumerate(("no", "yes")):
        for part, values in zip(parts, expected, strict=True):
            np.testing.assert_array_equal(found[f"{part}({c})"], values[:, j])
    assert found["label"].tolist() == read.classes_[p.argmax(axis=1)].tolist()


@pytest.mark.parametrize("method", list(METHODS))
def test_every_method(table, method, capsys):
    frame, folder = table
    assert run(*calibrate(folder, "--method", method)) == 0
    assert run(*apply(folder)) == 0
    answers = read_csv(folder / "out.csv")
    calibrator = VennAbers("pooled") if method == "venn-abers" else METHODS[method]()
    expected = calibrator.fit(frame["s"], frame["y"]).predict_proba(frame["s"])[:, 1]
    np.testing.assert_allclose(answers["p(yes)"], expected, rtol=0, atol=1e-12)
    assert ("low95(yes)" in answers) == (method == "venn-abers")
    if method != "venn-abers":
        message = "got 'confidence': a "
        assert message in refused(capsys, *apply(folder, "--columns", "p,confidence"))


@pytest.mark.parametrize(("cells", "classes", "weight"), [
    (["no", "yes"], ["no", "yes"], "w"),
    (["9", "10"], [9, 10], None),
    (["1", "01", "2", "+2", "3"], [1, 1, 2, 2, 3], "half"),
])  # fmt: skip
def test_files_of_a_folder_are_calibrated_and_applied_as_their_rows(
    tmp_path, capsys, cells, classes, weight
):
    rng = np.random.default_rng(10)
    p = rng.dirichlet(np.ones(len(set(classes))), 300).round(2)
    scores = p[:, 1] if p.shape[1] == 2 else p
    cell_of_row = np.append(np.arange(len(cells)), rng.integers(0, len(cells), 300 - len(cells)))
    frame = pd.DataFrame(scores).add_prefix("s").assign(w=rng.integers(0, 4, 300), i=range(300))
    names = [name for name in frame if name.startswith("s")]
    frame = frame.assign(half=frame["w"] / 2, y=[cells[i] for i in cell_of_row])
    frame.loc[::17, "y"] = " NA"
    (tmp_path / "table").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(300), 3)):
        frame.iloc[rows].to_parquet(tmp_path / "table" / f"{i}.parquet", index=False)
    (tmp_path / "table" / "_metadata.parquet").write_bytes(b"no table")
    entries = names if len(names) == 1 else [f"{c}={n}" for c, n in enumerate(names, 1)][::-1]
    options = [part for name in entries for part in ("-s", name)]
    options += ["--weight", weight] if weight else []
    assert run(*calibrate(tmp_path, *options, "--json", data="table")) == 0
    said = capsys.readouterr()
    assert "18 rows have no 'y' and are left out" in said.err
    is_labelled = np.arange(300) % 17 > 0
    y = np.array(classes)[cell_of_row]
    expected = VennAbers("pooled").fit(
        scores[is_labelled],
        y[is_labelled],
        sample_weight=frame[weight][is_labelled] if weight else None,
    )
    labels = expected.classes_.tolist()  # numbers in the order of numbers
    assert calibrator_in(tmp_path).classes_.tolist() == labels
    assert list(json.loads(said.out)["classes"]) == [*map(str, labels)]
    assert run(*apply(tmp_path, data="table", output="out.csv")) == 0
    answers = read_csv(tmp_path / "out.csv")
    assert answers["i"].tolist() == list(range(300))
    p = answers[[f"p({label})" for label in labels]]
    # The files' counts add up in another order, and Newton's last step follows.
    np.testing.assert_allclose(p, expected.predict_proba(scores), rtol=0, atol=1e-9)


FALLING = "".join(f"{i},{'ab'[(i < 50) != (i % 5 == 0)]}\n" for i in range(100))
ERRORS = [
    (f"s,y\n{FALLING}", [], "give --increasing no if high scores mean that 'b' is less likely"),
    ("s,y\n0.1,a\n,b\n", [], "column 's' must contain finite scores, got NaN or nothing in row 2"),
    ("s,y\n0.1,a\n0.2,a\n", [], "must have two classes or more, got 'a' alone"),
    ("s,y\n0.1,\n0.2,\n", [], "the target 'y' is missing in every row"),
    ("s,y\n0.1,a\n1.2,b\n", ["--method", "beta"], "scores must lie in [0, 1]"),
    ("s,y\n0.1,a\n0.2,b\n", ["--method", "best"], "--method must be one of"),
    ("t,y\n0.1,a\n0.2,b\n", [], "there is no column 's' in"),
    (
        "s,y\n0.1,a\n0.2,b\n0.3,c\n",
        [],
        "must name the scores, a column for each of 3 classes ('a', 'b', 'c'), got s",
    ),
]


@pytest.mark.parametrize(("text", "more", "message"), ERRORS)
def test_what_cannot_be_calibrated(tmp_path, capsys, text, more, message):
    (tmp_path / "scores.csv").write_text(text)
    assert message in refused(capsys, *calibrate(tmp_path, *more))
    assert not (tmp_path / "c.json").exists()


@pytest.mark.parametrize(("text", "more", "message"), [
    ("s\n0.1\n0.5\n1.5\n0.2\n", [], "scores must lie in [0, 1]"),
    ("s,t\n0.1,1\n,1\n", [], "must contain finite scores, got NaN or nothing in row 2"),
    ("s,p(yes)\n0.1,1\n", [], "got 'p(yes)': rename it"),
    ("s,label\n0.1,1\n", [], "got 'label': rename it"),
    ("s,id\n0.1,1\n", ["--id", "i"], "there is no column 'i' in"),
    ("s,t\n0.1,1\n", ["-s", "s", "-s", "t"], "--score must say of which class each column is"),
])  # fmt: skip
def test_what_cannot_be_applied(table, capsys, text, more, message):
    _, folder = table
    assert run(*calibrate(folder, "--method", "beta")) == 0
    (folder / "new.csv").write_text(text)
    assert message in refused(capsys, *apply(folder, *more, data="new.csv"))
    assert not (folder / "out.csv").exists()


def test_files_that_are_no_calibrator(table, capsys):
    _, folder = table
    assert "c.json: No such file" in refused(capsys, *apply(folder))
    assert run(*calibrate(folder, "--method", "beta")) == 0
    document = (folder / "c.json").read_text(encoding="utf-8")
    (folder / "c.json").write_text(document.replace('"values": [', '"values": ["x", '))
    assert "c.json: the calibrator is damaged" in refused(capsys, *apply(folder))


def pasted(text, command):
    """Run the line of an output that holds a command, as a shell would read it."""
    line = next(line for line in text.splitlines() if f"vennforest {command} " in line)
    return run(*shlex.split(line[line.index("vennforest ") :])[1:])


@pytest.mark.parametrize("columns", [["bad_p"], ["p bad"], ["good"]])
def test_the_command_that_check_prints_works_as_it_stands(tmp_path, monkeypatch, capsys, columns):
    rng = np.random.default_rng(9)
    bad = rng.random(1500)
    y = np.where(rng.random(1500) < bad**2, "bad", "good")
    frame = pd.DataFrame({"bad_p": bad, "p bad": bad, "good": 1 - bad, "y": y})
    (tmp_path / "a table").mkdir()
    frame.to_csv(tmp_path / "a table" / "off.csv", index=False)
    monkeypatch.chdir(tmp_path)
    named = [part for name in columns for part in ("--probability", name)]
    positive = ["--positive", "bad"] if columns != ["good"] else []
    assert run("check", "a table/off.csv", "-t", "y", *named, *positive) == 0
    said = capsys.readouterr().err
    assert pasted(said, "calibrate") == 0
    read = from_json((tmp_path / "calibrator.json").read_text(encoding="utf-8"))
    assert run("apply", "calibrator.json", "a table/off.csv", "-o", "out.csv") == 0
    p = read_csv(tmp_path / "out.csv")["p(bad)"]
    assert read.classes_.tolist() == ["bad", "good"] and np.abs(p - bad**2).mean() < 0.05


@pytest.mark.parametrize(("method", "way"), [("venn-abers", "no"), ("platt", "yes")])
def test_check_of_a_calibrator_is_that_of_its_answers(tmp_path, method, way, capsys):
    from vennforest.report import check

    s, y = draw(900)
    s = s if way == "yes" else 1 - s
    frame = pd.DataFrame({"s": s, "y": y})
    frame[:500].to_csv(tmp_path / "scores.csv", index=False)
    frame[500:].rename(columns={"s": "now"}).to_csv(tmp_path / "later.csv", index=False)
    assert run(*calibrate(tmp_path, "--method", method, "--increasing", way)) == 0
    command = ("check", tmp_path / "c.json", tmp_path / "later.csv", "-t", "y", "--json")
    command += ("-o", tmp_path / "r.html")
    assert "there is no column 's'" in refused(capsys, *command)
    assert run(*command, "--score", "now") == 0
    of_file = json.loads(capsys.readouterr().out)["methods"]["model"]
    p = calibrator_in(tmp_path).predict_proba(frame["s"][500:])
    expected = check(frame["y"][500:], p).methods.loc["Predictions"]
    assert of_file["log_loss"] == pytest.approx(expected["log_loss"], rel=1e-12)
    assert of_file["brier"] == pytest.approx(expected["brier"], rel=1e-12)
    assert (of_file["width"] is not None) == (method == "venn-abers")


@pytest.mark.parametrize("method", ["venn-abers", "isotonic"])
def test_apply_for_other_shares_of_the_classes(table, capsys, method):
    frame, folder = table
    share = float((frame["y"] == "yes").mean())
    assert run(*calibrate(folder, "--method", method)) == 0
    assert run(*apply(folder)) == 0
    before = read_csv(folder / "out.csv")["p(yes)"]
    assert run(*apply(folder, "--prior", "yes=0.1")) == 0
    yes, no = before * 0.1 / share, (1 - before) * 0.9 / (1 - share)
    after = read_csv(folder / "out.csv")["p(yes)"]
    np.testing.assert_allclose(after, yes / (yes + no), atol=1e-12)
    for wrong in ("maybe=0.1", "yes", "yes=often"):
        assert "--prior must be LABEL=SHARE" in refused(capsys, *apply(folder, "--prior", wrong))
    assert "1.5" in refused(capsys, *apply(folder, "--prior", "yes=1.5"))


def test_rows_without_a_score_are_kept(table, capsys):
    frame, folder = table
    has_score = (frame["id"] % 7 > 0).to_numpy()
    holes = frame.assign(s=frame["s"].where(has_score))
    holes.to_csv(folder / "holes.csv", index=False)
    holes.to_parquet(folder / "holes.parquet")
    keep = ("--missing-scores", "keep")
    for method in ("venn-abers", "beta"):
        assert run(*calibrate(folder, "--method", method)) == 0
        assert run(*apply(folder)) == 0
        expected = read_csv(folder / "out.csv")
        assert "finite scores, got NaN" in refused(capsys, *apply(folder, data="holes.csv"))
        for data in ("holes.csv", "holes.parquet"):
            assert run(*apply(folder, *keep, data=data)) == 0
            assert "Note: 58 rows have no score" in capsys.readouterr().err
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
    assert "got inf in row 2" in refused(capsys, *apply(folder, *keep, data="inf.csv"))
    assert "--missing-scores must be" in refused(capsys, *apply(folder, keep[0], "drop"))


def test_a_calibrator_as_a_query(table, capsys):
    frame, folder = table
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
    assert "dialect must be one of ['duckdb', 'postgres'," in wrong
    duckdb = pytest.importorskip("duckdb")
    answers = duckdb.sql(f"SELECT * FROM ({query}) ORDER BY id").df()
    assert len(answers) == len(frame)
    np.testing.assert_allclose(answers["p"], read_csv(folder / "out.csv")["p(yes)"], atol=1e-13)


def draw_probabilities(k=2, n=300):
    rng = np.random.default_rng(5)
    labels = ["no", "yes"] if k == 2 else ["a", "b", "c"]
    p = rng.dirichlet(np.ones(k), n)
    y = [labels[rng.choice(k, p=row)] for row in p]
    return pd.DataFrame(p, columns=[f"p({c})" for c in labels]).assign(y=y), labels


@pytest.mark.parametrize("named", [True, False])
def test_columns_of_scores_are_of_the_classes_that_their_names_say(tmp_path, capsys, named):
    frame, labels = draw_probabilities(3)
    if not named:
        frame.columns = ["u", "v", "w", "y"]
    names = list(frame)[:3]
    frame.to_csv(tmp_path / "scores.csv", index=False)
    entries = names if named else [f"{c}={n}" for c, n in zip(labels, names, strict=True)]
    options = [word for i in (2, 0, 1) for word in ("-s", entries[i])]
    if not named:
        wrong = refused(capsys, *calibrate(tmp_path, "-s", "u", "-s", "v", "-s", "w"))
        assert "by LABEL=COLUMN, such as 'a=u'" in wrong
    assert run(*calibrate(tmp_path, *options)) == 0
    expected = VennAbers("pooled").fit(frame[names], frame["y"]).predict_proba(frame[names])
    for more in ((), options):
        assert run(*apply(tmp_path, "--id", "y", *more)) == 0
        out = read_csv(tmp_path / "out.csv")[[f"p({c})" for c in labels]]
        np.testing.assert_allclose(out, expected, atol=1e-12)


@pytest.mark.parametrize("entries", [
    ["p(yes)", "p(no)"], ["p(no)", "p(yes)"], ["p(no)"], ["no=p(no)"], ["p(yes)"]
])  # fmt: skip
def test_the_probability_of_the_first_of_two_classes_is_subtracted_from_1(
    tmp_path, capsys, entries
):
    frame, _ = draw_probabilities()
    frame.to_csv(tmp_path / "scores.csv", index=False)
    options = [word for entry in entries for word in ("-s", entry)]
    assert run(*calibrate(tmp_path, *options)) == 0
    label = "no" if len(entries) == 1 and "no" in entries[0] else "yes"
    assert f"the score is that of {label!r}" in capsys.readouterr().err
    assert run(*apply(tmp_path, "--id", "y")) == 0
    expected = VennAbers("pooled").fit(frame["p(yes)"], frame["y"])
    p = expected.predict_proba(frame["p(yes)"])[:, 1]
    np.testing.assert_allclose(read_csv(tmp_path / "out.csv")["p(yes)"], p, atol=1e-9)


def test_scores_of_the_first_class_that_are_no_probabilities_are_refused(tmp_path, capsys):
    frame, _ = draw_probabilities()
    frame.assign(no=5 * frame["p(no)"]).to_csv(tmp_path / "scores.csv", index=False)
    message = refused(capsys, *calibrate(tmp_path, "-s", "no"))
    assert "must contain its probabilities, in [0, 1]" in message and "'yes=no'" in message
    twice = refused(capsys, *calibrate(tmp_path, "-s", "p(no)", "--increasing", "no"))
    assert "--increasing no must be left out" in twice


def test_check_judges_a_column_as_of_its_class_whatever_is_positive(tmp_path, capsys):
    frame, _ = draw_probabilities()
    frame.to_csv(tmp_path / "p.csv", index=False)
    command = ("check", tmp_path / "p.csv", "-t", "y", "-o", tmp_path / "c.html", "--json")
    losses = []
    for more in (["p(yes)"], ["p(yes)", "--positive", "no"], ["p(no)", "--positive", "yes"]):
        assert run(*command, "--probability", *more) == 0
        losses.append(json.loads(capsys.readouterr().out)["methods"][more[0]]["log_loss"])
    np.testing.assert_allclose(losses, losses[0], rtol=1e-9)


def test_apply_and_check_refuse_what_apply_wrote(tmp_path, capsys):
    frame, _ = draw_probabilities()
    frame.to_csv(tmp_path / "scores.csv", index=False)
    assert run(*calibrate(tmp_path, "-s", "p(yes)")) == 0
    assert run(*apply(tmp_path, "--id", "y")) == 0
    again = refused(capsys, *apply(tmp_path, data="out.csv", output="again.csv"))
    assert "'p(yes)' seem to be calibrated already" in again
    check = ("check", tmp_path / "c.json", tmp_path / "out.csv", "-t", "y")
    assert "calibrated already" in refused(capsys, *check, "-o", tmp_path / "c.html")


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
    assert "must have two classes to be exported after with_prior, got 3" in message
