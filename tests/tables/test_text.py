"""Tables written as text."""

import pytest

from support.tables import read_table
from vennforest._validation import InputError
from vennforest.batch import BatchPredictor
from vennforest.calibrators import PlattScaling
from vennforest.tables.labelled_scores import LabelledScores
from vennforest.tables.open import TableFile
from vennforest.tables.text import TableFormat


@pytest.mark.parametrize(("rows", "kinds"), [
    (["0.126;1,234", "-2.5;950"], "fO"),  # a comma that separates thousands
    (["0,126;1.234", "-2,5;950"], "fO"),  # a point that does
    (["1,234;0.5", "0,950;2"], "fO"),  # one column each: a comma, and the point is text
    (["1,234;7", "950;8"], "Oi"),
    (["1,234;7", "0,950;8"], "fi"),
    (["1,5;0,5", "0.5;2,5"], "Of"),  # both signs in one column
    (["1.5;2.0", "NA;3.25"], "ff"),
])  # fmt: skip
def test_a_file_with_semicolons_has_one_decimal_sign(tmp_path, rows, kinds):
    (tmp_path / "t.csv").write_text("\n".join(["a;b", *rows]))
    frame = read_table(tmp_path / "t.csv")
    assert "".join(kind.kind for kind in frame.dtypes) == kinds


def test_commas_that_may_separate_thousands_are_refused_batch_by_batch(tmp_path):
    rows = "\n".join(f"{1000 * i % 5000 + 900:,};{'yno'[i % 2 :][:1]};0,5" for i in range(30))
    (tmp_path / "t.csv").write_text(f"x;y;p\n{rows}\n")
    table = TableFile(tmp_path / "t.csv")
    calibrator = PlattScaling().fit([900.0, 1900, 2900, 3900], [0, 1, 0, 1])
    for read in (
        lambda: LabelledScores(table, ["x"], "y"),
        lambda: list(BatchPredictor(calibrator, table.schema, columns="x").over(table)),
    ):
        with pytest.raises(InputError, match="'x' must contain numbers with one decimal sign"):
            read()
    declared = TableFile(tmp_path / "t.csv", TableFormat(decimal=","))
    assert LabelledScores(declared, ["x"], "y").counts().total == 30
    assert LabelledScores(table, ["p"], "y").counts().total == 30


@pytest.mark.parametrize(("text", "decimal", "numbers"), [
    ("a;b\n1,5;x\n2;y\n-3,25;x\n", None, [1.5, 2.0, -3.25]),
    ("b,a\n1,5\n2,6\n", None, [5, 6]),
    ("a\tb\n1,5\tx\n2\ty\n", ",", [1.5, 2.0]),
    ('"a";"1,5,6"\n1,5;"x"\n', None, [1.5]),
])  # fmt: skip
def test_decimal_commas(tmp_path, text, decimal, numbers):
    (tmp_path / "t.csv").write_text(text)
    form = TableFormat(decimal=decimal)
    assert read_table(tmp_path / "t.csv", form=form)["a"].tolist() == numbers


@pytest.mark.parametrize("n", [1, 10_000, 1_000_000])
def test_accents_of_windows_text_are_read_wherever_the_first_stands(tmp_path, n):
    path = tmp_path / "t.csv"
    path.write_bytes(b"name,x\n" + b"plain,1\n" * n + "Zürich,2\n".encode("cp1252"))
    assert read_table(path)["name"].iloc[-1] == "Zürich"


@pytest.mark.parametrize(("text", "n_rows"), [
    ("a,b,c\n1,2,\n,,\nNA,NA,NA\n", 3), ('a,b,c\n1,2,""\n1,"2\n\n3",\n', 2),
    ("a\n1\n\nNA\n", 3), ("a\r\n\r\n1\r\n\r\n\r\n", 2), ("\n\na\n1\n\n\n", 1),
    ("\na,b\n1,2\n\n3,4\n\n", 3),
    ("a,b\r\n1,\r\n2,\r\n", 2), ("a, b\n1, \n", 1),
    ("a,b\n" + "word " * 60_000 + ",1\nshort,\n", 2), ('a,b\n5" pipe,1\n', 1),
])  # fmt: skip
def test_missing_cells_are_no_missing_rows(tmp_path, text, n_rows):
    (tmp_path / "t.csv").write_bytes(text.encode())
    table = read_table(tmp_path / "t.csv")
    assert len(table) == n_rows and table.columns[0] == "a"


def test_decimal_commas_with_exponents_are_numbers(tmp_path):
    cells = ["1,5e3", "-2,5E-1", "+0,125e+2", ",5", "3e2", "7"]
    expected = [1500.0, -0.25, 12.5, 0.5, 300.0, 7.0]
    (tmp_path / "t.csv").write_text("\n".join(["x;y", *(f"{cell};a" for cell in cells)]))
    assert read_table(tmp_path / "t.csv")["x"].tolist() == expected
    (tmp_path / "t.tsv").write_text("\n".join(["x\ty", *(f"{cell}\ta" for cell in cells)]))
    form = TableFormat(decimal=",")
    assert read_table(tmp_path / "t.tsv", form=form)["x"].tolist() == expected
    assert read_table(tmp_path / "t.tsv", ["x"], form=form)["x"].tolist() == cells
