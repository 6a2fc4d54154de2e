"""Tables from standard input and to standard output, and CSV and Excel in many forms."""

import io
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from report.reading import has_in_turn, named_in
from support.commands import refused, run
from vennforest import PlattScaling, export

SCORES = np.linspace(0.05, 0.95, 40)


@pytest.fixture
def calibrator(tmp_path):
    y = np.where(np.arange(40) % 3 == 0, "no", "yes")
    model = PlattScaling().fit(SCORES, y)
    (tmp_path / "c.json").write_text(export.to_json(model, score="s"))
    return tmp_path / "c.json", model


@pytest.fixture
def table():
    return pd.DataFrame({"id": [f"{i:03}" for i in range(40)], "s": SCORES})


def feed(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def arrow_stream(table):
    sink = io.BytesIO()
    table = pa.Table.from_pandas(table)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    return sink.getvalue()


FORMS = {
    "csv": lambda table: table.to_csv(index=False).encode(),
    "utf-16": lambda table: table.to_csv(index=False, sep="\t").encode("utf-16"),
    "sep=": lambda table: b"sep=|\r\n" + table.to_csv(index=False, sep="|").encode(),
    "stream": arrow_stream,
}


@pytest.mark.parametrize("file_format", [None, "csv", "arrow", "parquet"])
@pytest.mark.parametrize("form", FORMS)
def test_apply_reads_and_writes_pipes(
    monkeypatch, capsysbinary, calibrator, table, form, file_format
):
    feed(monkeypatch, FORMS[form](table))
    options = [] if file_format is None else ["--format", file_format]
    assert run("apply", calibrator[0], "-", "-o", "-", *options) == 0
    out, err = capsysbinary.readouterr()
    assert err.startswith(b"Wrote standard output: 40 rows (")
    content = io.BytesIO(out)
    if file_format == "arrow":
        found = pa.ipc.open_stream(content).read_all().to_pandas()
    elif file_format == "parquet":
        found = pd.read_parquet(content)
    else:
        found = pd.read_csv(content, dtype={"id": str})
    assert found["id"].tolist() == table["id"].tolist()
    np.testing.assert_allclose(found["p(yes)"], calibrator[1].predict_proba(SCORES)[:, 1], 1e-15)


def test_a_calibrator_goes_through_a_pipe_too(monkeypatch, capsys, tmp_path, table):
    feed(monkeypatch, table.assign(y=np.arange(40) % 3 == 0).to_csv(index=False).encode())
    command = ("calibrate", "-", "-t", "y", "-s", "s", "--increasing", "yes", "-o", "-")
    assert run(*command, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["about"]["data"] == "standard input"
    assert json.loads(err)["n_rows"] == 40


def test_quiet_prints_errors_alone(capsys, tmp_path, calibrator, table):
    table.to_csv(tmp_path / "t.csv", index=False)
    out = ("-o", tmp_path / "o.csv", "--quiet")
    assert run("apply", calibrator[0], tmp_path / "t.csv", *out) == 0
    assert capsys.readouterr() == ("", "")
    absent = refused(capsys, "apply", calibrator[0], tmp_path / "t.csv", "-s", "z", *out)
    assert named_in(absent) == {"z", "id", "s"}


def test_standard_input_is_read_once(capsys):
    assert "must be read once" in refused(capsys, "apply", "-", "-")


def test_errors_of_standard_input_name_it(monkeypatch, capsys, calibrator):
    feed(monkeypatch, b"id,s\n1,x\n")
    assert run("apply", calibrator[0], "-", "-o", "-") == 2
    assert capsys.readouterr().err.endswith("got 'x' in row 1 of standard input\n")


@pytest.mark.parametrize(("content", "options"), [
    ("003~0,5\n004~0,7\n", ["--delimiter", "~", "--decimal", ",", "--no-header"]),
    ("003\t0.5\n004\t0.7\n", ["--delimiter", "tab", "--no-header"]),
    ("\u015b003,0.5\n\u015b004,0.7\n", ["--encoding", "cp1250", "--no-header"]),
])  # fmt: skip
def test_csv_in_other_forms(tmp_path, calibrator, content, options):
    encoding = "cp1250" if "--encoding" in options else "utf-8"
    (tmp_path / "t.csv").write_text(content, encoding=encoding)
    out = tmp_path / "o.parquet"
    command = ("apply", calibrator[0], tmp_path / "t.csv", "-s", "column1", "-o", out)
    assert run(*command, *options) == 0
    found = pd.read_parquet(out)
    assert found["column0"].tolist() == [line[:4].strip("~\t,") for line in content.splitlines()]
    np.testing.assert_allclose(found["p(yes)"], calibrator[1].predict_proba([0.5, 0.7])[:, 1])


@pytest.mark.parametrize(("options", "message"), [
    (["--delimiter", "ab"], "delimiter must be one sign or tab, got 'ab'"),
    (["--encoding", "utf-9"], "encoding must be one that Python has"),
    (["--format", "json"], "--format must be one of"),
])  # fmt: skip
def test_forms_that_do_not_exist_are_refused(capsys, tmp_path, calibrator, options, message):
    (tmp_path / "t.csv").write_text("s\n0.5\n")
    command = ("apply", calibrator[0], tmp_path / "t.csv", "-o", tmp_path / "o.csv")
    assert message in refused(capsys, *command, *options)


def test_the_sheet_that_is_read_of_several_is_named(capsys, tmp_path, calibrator, table):
    book = tmp_path / "b.xlsx"
    with pd.ExcelWriter(book) as writer:
        pd.DataFrame({"note": ["x"]}).to_excel(writer, sheet_name="read me", index=False)
        table.to_excel(writer, sheet_name="data", index=False)
    command = ("apply", calibrator[0], book, "-o", tmp_path / "o.csv")
    assert run(*command) == 2
    warning = capsys.readouterr().err.splitlines()[0]
    assert warning.startswith("Warning: b.xlsx ")
    assert named_in(warning) == {"read me", "data", "--sheet"}
    assert named_in(refused(capsys, *command, "--sheet", "Data")) == {"Data", "data"}
    assert run(*command, "--sheet", "data") == 0
    assert {"--sheet"}.isdisjoint(named_in(capsys.readouterr().err))
    found = pd.read_csv(tmp_path / "o.csv", dtype={"id": str})
    assert found["id"].tolist() == table["id"].tolist()


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_error(tmp_path, calibrator):
    pd.DataFrame({"s": np.tile(SCORES, 5_000)}).to_parquet(tmp_path / "t.parquet")
    words = [sys.executable, "-m", "vennforest", "apply", calibrator[0], tmp_path / "t.parquet"]
    process = subprocess.Popen(
        [*words, "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ
    )
    process.stdout.readline()
    process.stdout.close()
    assert process.wait() == 0
    assert process.stderr.read() == b""


def test_a_nightly_job_on_a_lake_ends_twice_with_equal_bytes(capsys, tmp_path, table):
    """Of three days one is without rows and one has another column; scores and labels lack."""
    labels = np.where(np.arange(40) % 3 == 0, "no", "yes").astype(object)
    labels[7] = None
    days = [
        table.assign(y=labels),
        table.assign(y=labels)[:0],
        table.assign(y=labels, more=1)[["more", "y", "s", "id"]],
    ]
    days[2].loc[[4, 5], "s"] = None
    for day, frame in enumerate(days):
        part = tmp_path / "lake" / f"day=2026-01-0{day}"
        part.mkdir(parents=True)
        frame.to_parquet(part / "p.parquet", index=False)
    fit = ("calibrate", tmp_path / "lake", "-t", "y", "-s", "s", "--increasing", "yes")
    assert run(*fit, "-o", tmp_path / "c.json") == 2
    assert has_in_turn(capsys.readouterr().err, [45])
    contents = []
    for _ in range(2):
        assert run(*fit, "-o", tmp_path / "c.json", "--missing-scores", "drop") == 0
        apply = ("apply", tmp_path / "c.json", tmp_path / "lake", "-o", tmp_path / "o.csv")
        assert run(*apply, "--missing-scores", "keep") == 0
        document = json.loads((tmp_path / "c.json").read_bytes())
        assert document["about"].pop("date")  # all else is the same
        contents.append([document, (tmp_path / "o.csv").read_bytes()])
    assert contents[0] == contents[1]
    err = capsys.readouterr().err
    assert has_in_turn(err, [76, 39])  # rows, and distinct scores
    for note in ("2 rows have no 'y'", "2 rows have no score", "'more'"):
        assert note in err
    found = pd.read_csv(tmp_path / "o.csv")
    assert found["p(yes)"].isna().sum() == 2
    assert found["day"].value_counts().to_dict() == {"2026-01-00": 40, "2026-01-02": 40}
