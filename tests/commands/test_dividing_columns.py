"""Columns that divide the rows of a table stand as they are written."""

import pandas as pd
import pytest

from vennforest.commands.options import Check
from vennforest.commands.pages import dividing_columns
from vennforest.tables.files import read_table
from vennforest.tables.types import texts_of

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
    frame = read_table(path, texts_of(types))
    options = Check(predictions=path, target="y")
    columns = dividing_columns(options, path, frame, ["site", None], ["ward", "age", "size"], types)
    assert columns["site"].fillna("missing").tolist() == ["01", "1", "1.0", "missing"]
    assert columns["ward"].tolist() == ["07", "7", "8", "9"]
    assert columns["age"].tolist() == [20, 30.5, 20, 40]
    assert columns["size"].fillna(-1).tolist() == [1.5, 2.5, -1, 3]
    assert len(dividing_columns(options, path, frame, [None])) == 4
