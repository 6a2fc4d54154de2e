"""Columns of new tables, read as those of training."""

import numpy as np
import pandas as pd
import pytest

from vennforest._validation import InputError
from vennforest.tables import TableColumns
from vennforest.tables.cells import CellColumn

NOON = pd.Timestamp("2020-01-01 12:00")


def test_true_and_false_among_numbers_are_1_and_0_in_every_format():
    columns = TableColumns().fit(pd.DataFrame({"c": [0.5, 1, 0]}))
    for cells in ([True, False, None], ["True", "false ", None]):
        read = columns.transform(pd.DataFrame({"c": cells}))
        np.testing.assert_array_equal(read["c"], [1, 0, np.nan])
    with pytest.raises(InputError, match="must contain numbers, got 'yes' in row 2"):
        columns.transform(pd.DataFrame({"c": ["true", "yes"]}))


@pytest.mark.parametrize(("frame", "message"), [
    (np.ones((1, 2)), "X must be a pandas or polars DataFrame, got ndarray"),
    (pd.DataFrame({"a": ["no"], "t": ["x"]}, index=["q"]), "in row 'q'"),
    (pd.DataFrame({"a": [1.0], "t": [b"\xff"]}), "'t' must contain numbers, .* got binary"),
    (pd.DataFrame([[1, "x", 2]], columns=["a", "t", "a"]), "two of the name 'a'"),
    (pd.DataFrame({"a": [1.0]}), "the table lacks the column 't' of training"),
    (pd.DataFrame({"a": [1.0], " t": ["x"]}), "'t' of training: did you mean ' t'?"),
    (pd.DataFrame({"a": [1.0, 2.0], "t": pd.Series([NOON, NOON.tz_localize("UTC")], dtype=object)}),
     "'t' must contain times that all have a time zone, or none, got both"),
    (pd.DataFrame({"a": [np.inf], "t": "x"}), r"numbers up to 3.4e\+38, got inf in row 1"),
])  # fmt: skip
def test_tables_that_do_not_fit_are_refused(frame, message):
    columns = TableColumns().fit(pd.DataFrame({"a": [1.0], "t": ["x"]}))
    with pytest.raises(InputError, match=message):
        columns.transform(frame)
    for empty in (pd.DataFrame({"a": [None]}), pd.DataFrame(index=[0])):
        with pytest.raises(InputError, match="got empty ones only"):
            TableColumns().fit(empty)


@pytest.mark.parametrize(("options", "message"), [
    ({"missing": "n.d."}, "missing must be a list of cells, got 'n.d.'"),
    ({"decimal": ";"}, "decimal must be one of"), ({"types": ["a"]}, "types must be columns"),
])  # fmt: skip
def test_options_that_mean_something_else_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        TableColumns(**options).fit(pd.DataFrame({"a": ["1"]}))


def test_numbers_read_together_are_read_as_one_by_one():
    """A block of numbers is read as its columns would be one by one."""
    rng = np.random.default_rng(0)
    kinds = [np.float64, np.float32, np.int8, np.uint64, np.int64, "Int64", "boolean", object, str]
    for _ in range(20):
        table = pd.DataFrame({"full": np.arange(5.0)})
        for i in range(int(rng.integers(1, 9))):
            cells = pd.Series(rng.integers(0, 2, 5)).astype(kinds[rng.integers(len(kinds))])
            if cells.dtype.kind == "f":
                cells[rng.random(5) < rng.choice([0, 0.5, 1])] = np.nan
            table[f"c{i}"] = cells
        columns = TableColumns().fit(table)
        read = columns.transform(table[list(rng.permutation(table.columns))].assign(other=1.0))
        for name, kind, date_format in columns._learnt():
            column = CellColumn(table[name], name)
            assert column.infer() == (kind, date_format)
            np.testing.assert_array_equal(read[name], column.read(kind, date_format))
