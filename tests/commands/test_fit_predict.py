"""The commands fit and predict: the same answer however a table comes, and one sentence else."""

import gzip
import io
import json
import subprocess
import sys
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from sklearn.naive_bayes import GaussianNB

import vennforest
from vennforest.cli import main
from vennforest.persistence import read_header
from vennforest.persistence.archive import FORMAT

TARGET = "what happened"
CLASSES = ["1e3", "lower", "no way", "yes "]
POINTS = [f"p({c})" for c in CLASSES]
BOUNDS = [f"{bound}({c})" for c in CLASSES for bound in ("lower", "upper")]
ENDS = ("lower", "upper", "low95", "high95")
COLUMNS = ["label", "probability", *ENDS]
COLUMNS += [f"{what}({c})" for c in CLASSES for what in ("p", *ENDS)]

# By default pandas 2 reads numbers to within a unit in the last place.
read_csv = partial(pd.read_csv, float_precision="round_trip")


def make_table(n, seed=0):
    rng = np.random.default_rng(seed)
    day = pd.Timestamp("2015-01-01")
    frame = pd.DataFrame(
        {
            "id": [f"{i:05d}" for i in range(n)],
            "âge": rng.integers(18, 90, n).astype(str),
            "city": rng.choice(["Zürich", "東京", "New, York", 'say "hi"'], n),
            "company": [f"firm {i} Ltd" for i in rng.integers(0, 2500, n)],
            "joined": (day + pd.to_timedelta(rng.integers(0, 3000, n), "D")).strftime("%d/%m/%Y"),
            "seen": (day + pd.to_timedelta(rng.integers(0, 9**8, n), "s")).strftime("%Y-%m-%d %X"),
            "vip": rng.choice(["True", "False"], n),
            "const": "k",
            "empty": None,
            "target": rng.normal(size=n).astype(str),
            "code": rng.choice(["1", "02", "x3"], n),
            "lower": (rng.normal(size=n) * 1e6).round().astype(int).astype(str),
        }
    ).astype(object)
    for name in ("âge", "city", "joined", "target", "code", "vip"):
        frame.loc[rng.random(n) < 0.1, name] = None
    scale = frame["âge"].fillna("50").astype(float) / 20 + (frame["vip"] == "True") * 1.5
    scale = scale + rng.normal(size=n)
    frame[TARGET] = np.array(["no way", "1e3", "yes ", "lower"], dtype=object)[
        np.digitize(scale, [2.5, 3.5, 5])
    ]
    return frame


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    make_table(400).to_csv(folder / "train.csv", index=False)
    make_table(130, seed=1).drop(columns=TARGET).to_csv(folder / "new.csv", index=False)
    command = ["fit", folder / "train.csv", "--target", TARGET, "-o", folder / "m.skops"]
    assert run(*command, "--drop", "id", "--trees", 25, "--jobs", 1) == 0
    assert run("predict", folder / "m.skops", folder / "new.csv", "-o", folder / "p.parquet") == 0
    return folder


def run(*arguments):
    return main([str(argument) for argument in arguments])


def refused(capsys, *arguments):
    """Return the one sentence that a command is refused with."""
    capsys.readouterr()
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("Error: ") and err.count("\n") == 1, err
    assert "Traceback" not in err
    return err.removeprefix("Error: ").strip()


def test_what_is_written(folder):
    out = pd.read_parquet(folder / "p.parquet")
    assert list(out.columns) == COLUMNS and len(out) == 130
    p = out[POINTS].to_numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    classes = np.array(["1e3", "lower", "no way", "yes "])
    assert (out["label"] == classes[p.argmax(axis=1)]).all()
    np.testing.assert_array_equal(out["probability"], p.max(axis=1))
    for j, c in enumerate(classes):
        assert (out[f"lower({c})"] - p[:, j]).max() < 1e-15
        assert (p[:, j] - out[f"upper({c})"]).max() < 1e-15
        mine = out["label"] == c
        np.testing.assert_array_equal(out["upper"][mine], out[f"upper({c})"][mine])
    # Rows are divided by their sums last, which may move a value on a bound by a rounding.
    assert (out["lower"] - out["probability"]).max() < 1e-15
    assert (out["probability"] - out["upper"]).max() < 1e-15
    header = read_header(folder / "m.skops")
    assert header["target"] == TARGET and header["classes"] == classes.tolist()
    kinds = header["columns"]
    assert kinds == {
        "âge": "number",
        "city": "text",
        "company": "text",
        "joined": "date",
        "seen": "date",
        "vip": "boolean",
        "const": "text",
        "empty": "empty",
        "target": "number",
        "code": "text",
        "lower": "number",
    }


def test_python_predicts_the_same(folder):
    model = vennforest.load(folder / "m.skops")
    out = pd.read_parquet(folder / "p.parquet")
    X = read_csv(folder / "new.csv")  # whatever pandas takes the columns for
    np.testing.assert_array_equal(model.predict_proba(X), out[POINTS].to_numpy())
    bounds = model.predict_multiprobability(X[::-1])
    best = model.predict_proba(X[::-1]).argmax(axis=1)
    np.testing.assert_array_equal(bounds.lower[np.arange(130), best], out["lower"][::-1])


def test_what_is_written_of_each_class_can_be_chosen(folder, tmp_path, capsys):
    output = tmp_path / "o.parquet"
    command = ("predict", folder / "m.skops", folder / "new.csv", "-o", output)
    assert run(*command, "--columns", "p, bounds") == 0
    plain, out = pd.read_parquet(output), pd.read_parquet(folder / "p.parquet")
    assert list(plain) == [name for name in COLUMNS if "95" not in name]
    pd.testing.assert_frame_equal(out[list(plain)], plain)
    model = vennforest.load(folder / "m.skops")
    known = model.predict_confidence(read_csv(folder / "new.csv"))
    for j, label in enumerate(model.classes_.tolist()):
        np.testing.assert_array_equal(out[f"low95({label})"], known.lower[:, j])
        np.testing.assert_array_equal(out[f"high95({label})"], known.upper[:, j])
    assert (out["low95"] <= out["probability"]).all()
    assert (out["high95"] >= out["probability"]).all()
    assert run(*command, "--columns", "confidence", "--positive", "yes ") == 0
    assert list(pd.read_parquet(output)) == ["label", "low95(yes )", "high95(yes )"]
    assert run(*command, "--columns", "confidence", "--level", "0.9") == 0
    wide, out = out, pd.read_parquet(output)
    assert list(out)[1:3] == ["low90", "high90"]
    assert (out["low90"] >= wide["low95"] - 1e-12).all()
    assert (out["high90"] <= wide["high95"] + 1e-12).all()
    message = refused(capsys, *command, "--level", "95")
    assert message.startswith("level must lie between 0 and 1, got 95")
    message = refused(capsys, *command, "--columns", "p,width")
    assert message.startswith("--columns must be some of p,bounds,confidence, got 'width'")


@pytest.mark.parametrize("size", [3, 129])
def test_batches_make_no_difference(folder, tmp_path, size):
    expected = pd.read_parquet(folder / "p.parquet")
    for name in ("new.csv", "new.parquet", "new.arrow"):
        source = folder / name
        if not source.exists():
            frame = read_csv(folder / "new.csv")
            (frame.to_parquet if name.endswith("parquet") else frame.to_feather)(source)
        rows = ("--rows-at-once", size)
        output = tmp_path / "o.parquet"
        assert run("predict", folder / "m.skops", source, "-o", output, *rows) == 0
        pd.testing.assert_frame_equal(pd.read_parquet(output), expected, check_exact=True)


def test_types_and_formats_make_no_difference(folder, tmp_path):
    expected = pd.read_parquet(folder / "p.parquet")
    frame = read_csv(folder / "new.csv")
    frame["joined"] = pd.to_datetime(frame["joined"], format="%d/%m/%Y")
    frame["seen"] = pd.to_datetime(frame["seen"]).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")
    frame["âge"] = frame["âge"].astype("Int64")
    frame["vip"] = frame["vip"].astype("boolean")
    frame[["city", "code", "const"]] = frame[["city", "code", "const"]].astype("category")
    frame["empty"] = frame["empty"].astype(object)
    frame = frame[frame.columns[::-1]]
    frame.to_parquet(tmp_path / "a.parquet", row_group_size=17)
    frame.to_feather(tmp_path / "b.arrow")
    text = read_csv(folder / "new.csv", dtype=str)
    text["target"] = text["target"].str.replace(".", ",")
    text.to_csv(tmp_path / "c.csv", sep=";", index=False, encoding="utf-8-sig")
    with gzip.open(tmp_path / "d.csv.gz", "wb") as out:
        out.write((folder / "new.csv").read_bytes())
    for name in ("a.parquet", "b.arrow", "c.csv", "d.csv.gz"):
        output = tmp_path / "out.csv"
        assert run("predict", folder / "m.skops", tmp_path / name, "-o", output) == 0, name
        read = read_csv(output, dtype={"label": str})
        for column in COLUMNS:
            np.testing.assert_array_equal(read[column], expected[column], err_msg=name)


def test_identifiers_are_carried_along(folder, tmp_path):
    output = tmp_path / "o.parquet"
    ids = ("--id", "id", "--id", "city")
    assert run("predict", folder / "m.skops", folder / "new.csv", "-o", output, *ids) == 0
    out = pd.read_parquet(output)
    new = read_csv(folder / "new.csv", dtype=str)
    assert list(out.columns) == ["id", "city", *COLUMNS]
    assert out["id"].tolist() == new["id"].tolist() == [f"{i:05d}" for i in range(130)]
    pd.testing.assert_series_equal(out["city"], new["city"], check_dtype=False)
    frame = read_csv(folder / "new.csv")
    frame["id"] = pd.Categorical(frame["id"])
    frame.to_parquet(tmp_path / "n.parquet")
    assert run("predict", folder / "m.skops", tmp_path / "n.parquet", "-o", output, *ids) == 0
    assert pq.read_schema(output).field("id").type == pa.int64()


def test_all_columns_are_carried_along(folder, tmp_path, capsys):
    output = tmp_path / "o.parquet"
    frame = read_csv(folder / "new.csv", dtype=str).rename(columns={"lower": "LOWER"})
    frame.assign(lower="1").to_csv(tmp_path / "n.csv", index=False)
    command = ("predict", folder / "m.skops", tmp_path / "n.csv", "-o", output, "--keep")
    message = refused(capsys, *command)
    assert message.startswith(
        "carried must name columns apart from those of the output, got 'lower'"
    )
    assert run(*command, "--positive", "lower") == 0  # then no column is called so
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("Wrote ") and err.count("\n") == 1
    out = pd.read_parquet(output)
    mine = ["label", *(f"{what}(lower)" for what in ("p", *ENDS))]
    assert list(out.columns) == [*frame.columns, "lower", *mine]
    pd.testing.assert_frame_equal(out[list(frame)], frame, check_dtype=False)
    arrays = (folder / "new.csv", "-o", output, "--keep", "--id", "city", "--positive", "yes ")
    assert run("predict", folder / "m.skops", *arrays) == 0
    first = list(pd.read_parquet(output))
    new = list(read_csv(folder / "new.csv"))
    assert first[: len(new)] == ["city", *(name for name in new if name != "city")]
    expected = pd.read_parquet(folder / "p.parquet")
    out = pd.read_parquet(output)
    for column in ("label", "p(yes )", "lower(yes )", "upper(yes )"):
        np.testing.assert_array_equal(out[column], expected[column])
    message = refused(capsys, "predict", folder / "m.skops", *arrays[:-1], "yes")
    wanted = "positive must be one of ['1e3', 'lower', 'no way', 'yes '], got 'yes'"
    assert message == f"{wanted}: did you mean 'yes '?"


def test_a_model_without_names_keeps_all_columns(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    model = vennforest.CalibratedClassifier(GaussianNB(), cv=2).fit(X, X[:, 0] > 0)
    vennforest.save(model, tmp_path / "m.skops")
    pd.DataFrame(X, columns=list("abc")).to_csv(tmp_path / "n.csv", index=False)
    command = ("predict", tmp_path / "m.skops", tmp_path / "n.csv", "-o", tmp_path / "o.csv")
    assert run(*command, "--keep") == 0
    out = read_csv(tmp_path / "o.csv")
    assert list(out)[:4] == ["a", "b", "c", "label"]
    np.testing.assert_array_equal(out["p(True)"], model.predict_proba(X)[:, 1])


def test_standard_input_and_output(folder, tmp_path, capsysbinary, monkeypatch):
    def piped(content, output="-"):
        stdin = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr(sys, "stdin", stdin)
        return run("predict", folder / "m.skops", "-", "-o", output), *capsysbinary.readouterr()

    assert run("predict", folder / "m.skops", folder / "new.csv", "-o", tmp_path / "o.csv") == 0
    capsysbinary.readouterr()
    code, out, err = piped(gzip.compress((folder / "new.csv").read_bytes()))
    assert code == 0 and out == (tmp_path / "o.csv").read_bytes()
    assert err == b"Note: The model does not use the column 'id'.\n"
    assert piped(b"") == (2, b"", b"Error: standard input is empty\n")
    code, _, err = piped(b"a,b\n1,2\n", tmp_path / "p.csv")
    assert err.startswith(b"Error: the table lacks the columns")
    assert not (tmp_path / "p.csv").exists()
    assert run("predict", folder / "m.skops", folder / "new.csv", "-o", "-", "--json") == 2
    assert b"--json prints where the output would go" in capsysbinary.readouterr().err
    assert run("predict", "-", "-", "-o", tmp_path / "p.csv") == 2
    assert b"only one input can be standard input" in capsysbinary.readouterr().err
    assert run("fit", folder / "train.csv", "-t", TARGET, "-o", "-") == 2
    assert b"the model must be a file, got -" in capsysbinary.readouterr().err


def test_a_model_says_what_it_is(folder, tmp_path, capsys):
    assert run("show", folder / "m.skops") == 0
    out, err = capsys.readouterr()
    assert err == ""
    said = {line[:12].strip(): line[12:].strip() for line in out.splitlines() if line[0] != " "}
    assert said["Trained on"] == "400 rows of train.csv"
    assert said["Target"] == TARGET
    assert "'no way' " in said["Classes"] and "%" in said["Classes"]
    assert said["Columns"].startswith("3 number, 4 text, 2 date, 1 boolean, 1 empty")
    assert "'âge' (number)" in out and "MixedForestClassifier(n_estimators=25" in out
    assert said["Calibrated"].startswith("by venn-abers, oob (since ")
    assert "400 examples" in said["Calibrated"]
    assert said["Measured"].startswith("Out of sample: accuracy ")
    assert "Installed" not in said  # the versions are those of the file
    assert run("show", folder / "m.skops", "--json") == 0
    header = json.loads(capsys.readouterr().out)
    assert header["measures"]["rows"] == 400 and header["class_counts"]["yes "] > 0
    assert header["description"]["written"].endswith("+00:00")
    rng = np.random.default_rng(0)
    model = vennforest.VennAbers().fit(rng.random(20), rng.random(20) < 0.5)
    vennforest.save(model, tmp_path / "c.skops")
    assert run("show", tmp_path / "c.skops") == 0
    out = capsys.readouterr().out
    assert "Calibrated  by VennAbers(), 20 examples" in out and "Target" not in out


def test_a_forged_header_is_shown_or_refused(folder, tmp_path, capsys):
    path, names = tmp_path / "forged.skops", ("description", "classes", "columns", "measures")
    for value in (None, 3, True, "x\x1b[2J\ny", [], [[1]], {}, {"a": {"b": []}}):
        with zipfile.ZipFile(path, "w") as file:
            header = {"format": FORMAT, **dict.fromkeys(names, value), "features": ["a\x1b", 3]}
            file.writestr("schema.json", "{}")
            file.writestr("vennforest.json", json.dumps(header))
        assert run("show", path) in (0, 2)
        out, err = capsys.readouterr()
        assert "should not" not in err and "\x1b" not in out + err
    for name in ("no.skops", "new.csv", ""):
        assert "model file" in refused(capsys, "show", folder / name)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_no_rows_give_no_rows(folder, tmp_path, suffix):
    source, output = tmp_path / f"none.{suffix}", tmp_path / f"out.{suffix}"
    frame = read_csv(folder / "new.csv").head(0)
    (frame.to_csv if suffix == "csv" else frame.to_parquet)(source)
    assert run("predict", folder / "m.skops", source, "-o", output, "--id", "id") == 0
    out = (pd.read_csv if suffix == "csv" else pd.read_parquet)(output)
    assert list(out.columns) == ["id", *COLUMNS] and len(out) == 0


def test_json_and_quiet(folder, tmp_path, capsys):
    output = tmp_path / "o.csv"
    frame = read_csv(folder / "new.csv").assign(more=1, id=2)
    frame.to_csv(tmp_path / "n.csv", index=False)
    capsys.readouterr()
    assert run("predict", folder / "m.skops", tmp_path / "n.csv", "-o", output, "--json") == 0
    out, err = capsys.readouterr()
    summary = json.loads(out)
    assert summary["n_rows"] == 130 and sum(summary["counts"].values()) == 130
    assert summary["columns"] == COLUMNS
    assert err == "Note: The model does not use the columns 'id', 'more'.\n"
    assert run("predict", folder / "m.skops", folder / "new.csv", "-o", output, "--id", "id") == 0
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("Wrote ") and err.count("\n") == 1


def test_fit_says_what_it_learnt(folder, tmp_path, capsys):
    command = ("fit", folder / "train.csv", "-t", TARGET, "-o", tmp_path / "m.skops")
    options = ("--trees", 15, "--jobs", 1, "--drop", "company", "--drop", "id")
    assert run(*command, *options, "--json") == 0
    summary = json.loads(capsys.readouterr().out)
    labels = make_table(400)[TARGET].value_counts().to_dict()
    assert summary["classes"] == labels and summary["n_rows"] == 400
    model = vennforest.load(tmp_path / "m.skops")
    X = read_csv(folder / "train.csv")
    y = make_table(400)[TARGET].to_numpy()
    p = model.oob_probability_
    seen = ~np.isnan(p[:, 0])
    share = (model.classes_[p[seen].argmax(axis=1)] == y[seen]).mean()
    measures = summary["measures"]
    assert measures["rows"] == seen.sum()
    assert measures["accuracy"] == pytest.approx(share)
    losses = ((p[seen] - (y[seen, None] == model.classes_)) ** 2).sum(axis=1)
    assert measures["brier_score"] == pytest.approx(losses.mean())
    shares = np.mean(y[seen, None] == model.classes_, axis=0)
    assert measures["baseline_accuracy"] == pytest.approx(shares.max())
    assert measures["baseline_brier_score"] == pytest.approx(1 - (shares**2).sum())
    assert 0 < measures["mean_width"] < 1
    assert len(X) == 400
    assert run(*command, *options, "--method", "platt", "--calibrate-on", "holdout") == 0
    out, err = capsys.readouterr()
    assert out == "" and "Trained on 400 rows" in err and f"Wrote {tmp_path / 'm.skops'}" in err
    output = tmp_path / "o.csv"
    assert run("predict", tmp_path / "m.skops", folder / "new.csv", "-o", output) == 0
    ends = ("low95", "high95")
    each = [f"{what}({c})" for c in CLASSES for what in ("p", *ends)]
    assert list(read_csv(output).columns) == ["label", "probability", *ends, *each]


def test_fitting_twice_gives_the_same_model(folder, tmp_path):
    for name in ("a", "b"):
        command = ("fit", folder / "train.csv", "-t", TARGET, "-o", tmp_path / f"{name}.skops")
        assert run(*command, "--trees", 5, "--seed", 3, "--jobs", 1) == 0
        model, out = tmp_path / f"{name}.skops", tmp_path / f"{name}.csv"
        assert run("predict", model, folder / "train.csv", "-o", out) == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_columns_missing_or_retyped_are_named(folder, tmp_path, capsys):
    frame = read_csv(folder / "new.csv", dtype=str)

    def message(table, name="bad.csv"):
        source = tmp_path / name
        table.to_parquet(source) if name.endswith("parquet") else table.to_csv(source, index=False)
        output = tmp_path / "o.csv"
        said = refused(capsys, "predict", folder / "m.skops", source, "-o", output)
        assert sorted(path.name for path in tmp_path.iterdir()) == [name]
        source.unlink()
        return said

    assert message(frame.drop(columns="âge")) == "the table lacks the column 'âge' of training"
    assert message(frame.drop(columns=["âge", "vip"])).startswith(
        "the table lacks the columns 'âge', 'vip'"
    )
    for column, cell in [
        ("âge", "old"),
        ("âge", "1_000"),
        ("vip", "maybe"),
        ("joined", "2020-01-31"),
        ("seen", "31/12/2020"),
    ]:
        wrong = frame.copy()
        wrong.loc[117, column] = cell
        said = message(wrong)
        assert repr(column) in said and repr(cell) in said and "row 118" in said
    wrong = frame.copy()
    wrong.loc[3, "lower"] = "1e400"
    assert "'lower' must contain numbers up to 3.4e+38, got inf in row 4" in message(wrong)
    wrong = frame.assign(**{"âge": pd.Timestamp("2020-01-01")})
    assert message(wrong, "bad.parquet").startswith("column 'âge' must contain numbers, got 2020")


def test_bad_files_and_outputs(folder, tmp_path, capsys):
    model, new, out = folder / "m.skops", folder / "new.csv", tmp_path / "o.csv"
    cut, text = tmp_path / "cut.skops", tmp_path / "text.skops"
    cut.write_bytes(model.read_bytes()[:-2000])
    text.write_text("no model\n")
    empty, broken = tmp_path / "empty.csv", tmp_path / "broken.parquet"
    empty.write_text("")
    broken.write_bytes(b"PAR1" + bytes(100))
    (tmp_path / "nothing").mkdir()
    for arguments, said in [
        ((tmp_path / "none.skops", new, "-o", out), "there is no model file"),
        ((cut, new, "-o", out), "is damaged or was cut short"),
        ((text, new, "-o", out), "is not a model file"),
        ((new, new, "-o", out), "is not a model file"),
        ((model, tmp_path / "none.csv", "-o", out), "there is no file"),
        ((model, tmp_path / "nothing", "-o", out), "there is no Parquet file in"),
        ((model, tmp_path, "-o", out), "cannot be read"),
        ((model, empty, "-o", out), "is empty"),
        ((model, broken, "-o", out), "cannot be read"),
        (
            (model, new, "-o", tmp_path / "o.xlsx"),
            "must end in .csv or .parquet",
        ),
        ((model, new, "-o", tmp_path / "no" / "o.csv"), "there is no folder"),
        ((model, new, "-o", new), "must not be written to the table itself"),
        ((model, new, "-o", out, "--id", "idd"), "did you mean 'id'?"),
    ]:
        assert said in refused(capsys, "predict", *arguments), arguments
    train, skops = folder / "train.csv", tmp_path / "x.skops"
    for arguments, said in [
        ((train, "-t", "what hapened", "-o", skops), f"did you mean {TARGET!r}?"),
        ((train, "-t", TARGET, "-o", train), "must not be written to the table itself"),
        ((train, "-t", TARGET, "-o", skops, "--method", "magic"), "--method must be one of"),
        ((train, "-t", TARGET, "-o", skops, "--subforest", "no"), "--subforest must be one of"),
        ((train, "-t", "const", "-o", skops), "two classes or more"),
        ((train, "-t", TARGET, "-o", tmp_path / "no" / "x.skops"), "there is no folder"),
        ((empty, "-t", TARGET, "-o", skops), "is empty"),
    ]:
        assert said in refused(capsys, "fit", *arguments), arguments
    kept = {"broken.parquet", "cut.skops", "empty.csv", "nothing", "text.skops"}
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_a_late_error_leaves_the_old_output(folder, tmp_path, capsys):
    frame = read_csv(folder / "new.csv", dtype=str)
    frame.loc[125, "âge"] = "old"
    frame.to_csv(tmp_path / "n.csv", index=False)
    output = tmp_path / "o.csv"
    output.write_text("old")
    command = ("predict", folder / "m.skops", tmp_path / "n.csv", "-o", output)
    assert "row 126" in refused(capsys, *command, "--rows-at-once", 10)
    assert output.read_text() == "old" and len(list(tmp_path.iterdir())) == 2


def test_models_saved_in_python(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    y = (X["a"] + rng.normal(size=120) > 0).to_numpy()
    X.to_csv(tmp_path / "n.csv", index=False)
    model, output = tmp_path / "m.skops", tmp_path / "o.parquet"
    for table, labels in ((X, y), (X.to_numpy(), np.where(y, 3.0, 2.0))):
        fitted = vennforest.CalibratedClassifier(random_state=0).set_params(n_jobs=1)
        fitted.fit(table, labels)
        vennforest.save(fitted, model)
        assert run("predict", model, tmp_path / "n.csv", "-o", output) == 0
        out = pd.read_parquet(output)
        np.testing.assert_array_equal(out["label"], fitted.predict(table))
        second = f"p({fitted.classes_[1]})"
        np.testing.assert_array_equal(out[second], fitted.predict_proba(table)[:, 1])
    X.assign(d=1).to_csv(tmp_path / "n.csv", index=False)
    command = ("predict", model, tmp_path / "n.csv", "-o", output)
    assert "X has 4 features, but" in refused(capsys, *command)
    vennforest.save(vennforest.VennAbers().fit([0.1, 0.9], [0, 1]), model)
    assert "takes scores and no table" in refused(capsys, *command)


class Foreign(GaussianNB):
    """A type that vennforest does not know."""


def test_a_model_with_a_foreign_type_needs_trust(tmp_path, capsys):
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] > 0
    fitted = vennforest.CalibratedClassifier(Foreign(), cv=2).fit(X, y)
    model, table, output = tmp_path / "m.skops", tmp_path / "t.csv", tmp_path / "o.parquet"
    vennforest.save(fitted, model)
    pd.DataFrame(X, columns=["a", "b"]).to_csv(table, index=False)
    command = ("predict", model, table, "-o", output)
    name = f"{Foreign.__module__}.Foreign"
    said = refused(capsys, *command)
    assert f"contains {name}, which" in said and "vennforest predict with --trust" in said
    assert name in refused(capsys, *command, "--trust", "somebody.Else")
    assert run(*command, "--trust", name) == 0
    second = pd.read_parquet(output)[f"p({fitted.classes_[1]})"]
    np.testing.assert_allclose(second, fitted.predict_proba(X)[:, 1])


def test_memory_does_not_grow_with_the_file(tmp_path):
    """Ten times the rows take no more memory: read, handed on and written in parts."""
    code = """
import sys, resource
from pathlib import Path
from vennforest.cli import main
code = main(["predict", *sys.argv[1:], "--rows-at-once", "2000"])
print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": ["x" * 300 + str(i % 5) for i in range(200)]})
    X.assign(y=rng.random(200) < 0.5).to_csv(tmp_path / "t.csv", index=False)
    model = tmp_path / "m.skops"
    assert run("fit", tmp_path / "t.csv", "-t", "y", "-o", model, "--trees", 2, "--jobs", 1) == 0
    peaks = []
    for copies in (50, 1000):
        pd.concat([X] * copies).to_csv(tmp_path / "big.csv", index=False)
        command = [
            sys.executable,
            "-c",
            code,
            model,
            tmp_path / "big.csv",
            "-o",
            tmp_path / "o.parquet",
        ]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=True)
        code_, peak = done.stdout.split()
        assert code_ == "0"
        peaks.append(int(peak) / 1024)
    size = (tmp_path / "big.csv").stat().st_size / 2**20
    assert size > 60 and peaks[1] - peaks[0] < 25, (size, peaks)
