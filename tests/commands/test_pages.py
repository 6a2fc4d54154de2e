"""Options of pages, and columns that divide the rows of a table as they are written."""

import pandas as pd
import pytest

from report.reading import named_in
from vennforest.commands.pages import axes_in, dividing_columns, millimetres_in, shares_in
from vennforest.tables.open import TableFile
from vennforest.tables.schema import texts_of

TEXTS = {
    "site": ["01", "1", "1.0", "NA"],
    "ward": ["07", "7", "8", "9"],
    "age": ["20", "30,5", "20", "40"],
    "size": ["1,5", "2,5", "", "3"],
}


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_groups_are_text_and_parts_are_numbers_without_leading_zeros(tmp_path, ending):
    path = tmp_path / f"rows.{ending}"
    table = pd.DataFrame(TEXTS)
    if ending == "csv":
        table.to_csv(path, sep=";", index=False)
    else:
        table.assign(age=[20, 30.5, 20, 40], size=[1.5, 2.5, None, 3]).to_parquet(path)
    types = {"size": "number"}
    file, notes = TableFile(path), []
    frame = file.read(texts_of(types))
    columns = dividing_columns(file, frame, ["site", None], ["ward", "age", "size"], types, notes)
    assert columns["site"].fillna("missing").tolist() == ["01", "1", "1.0", "missing"]
    assert columns["ward"].tolist() == ["07", "7", "8", "9"]
    assert columns["age"].tolist() == [20, 30.5, 20, 40]
    assert columns["size"].fillna(-1).tolist() == [1.5, 2.5, -1, 3]
    assert len(dividing_columns(file, frame, [None], [], {}, notes)) == 4 and not notes


def test_a_note_says_that_day_and_month_could_be_either():
    frame = pd.DataFrame({"day": ["05-07-2025", "05-08-2025"], "iso": ["2025-07-05", "2025-08-05"]})
    notes = []
    columns = dividing_columns(None, frame, ["day"], ["day", "iso"], {}, notes)
    assert columns["day"].tolist() == frame["day"].tolist()
    (note,) = notes
    assert named_in(note) == {"day", "--types", '{"day": "date %d-%m-%Y"}'}
    notes.clear()
    declared = dividing_columns(None, frame, [], ["day"], {"day": "date %d-%m-%Y"}, notes)["day"]
    assert declared.dt.month.tolist() == [7, 8] and not notes


@pytest.mark.parametrize(("text", "width"), [("85mm", 85), ("8.5cm", 85), ("4 in", 101.6)])
def test_the_width_of_figures_has_a_unit(text, width):
    assert millimetres_in(text) == pytest.approx(width)


@pytest.mark.parametrize("text", ["85", "mm", "2mm", "-85mm", "9m"])
def test_a_width_without_a_unit_or_sense_is_refused(text):
    with pytest.raises(ValueError, match="--figure-width must be from 40mm to 500mm"):
        millimetres_in(text)


@pytest.mark.parametrize("text", ["0", ".2,.1", "0,2", "0,.1,.2", "a,b"])
def test_axes_have_two_ends_in_order(text):
    assert axes_in("0, .2") == (0, 0.2)
    with pytest.raises(ValueError, match="--figure-axes must be"):
        axes_in(text)


def test_thresholds_are_numbers():
    assert shares_in([".02", " 0.1"], "thresholds") == [0.02, 0.1]
    with pytest.raises(ValueError, match="--thresholds must be like"):
        shares_in(["low", "high"], "thresholds")
