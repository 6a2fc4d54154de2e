"""Identifiers, leaks and misread cells are reported, and no other column is."""

import os
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from support.tables import read_table
from vennforest._validation import InputError
from vennforest.tables import notes as table_notes
from vennforest.tables.schema import infer_columns
from vennforest.tables.target import split_target


def frame(n=120):
    rng = np.random.default_rng(0)
    return pd.DataFrame({
        "row": np.arange(n) + 5,
        "back": np.arange(n)[::-1],
        "shuffled": rng.permutation(n),
        "customer_id": rng.permutation(10**6)[:n],
        "uuid": [f"{v:x}" for v in rng.integers(2**60, 2**62, n)],
        "name": [f"Smith {i}" for i in range(n)],
        "nearly": [f"k{i}" for i in range(n - 3)] + ["k0"] * 3,
        "salary": rng.permutation(10**6)[:n],
        "size": rng.normal(size=n),
        "word": rng.choice(["a", "b"], n),
        "note": [f"the patient number {i} came in the morning and was seen" for i in range(n)],
        "day": pd.date_range("2021-01-01", periods=n).strftime("%Y-%m-%d"),
        "money": [f"{v:,} €" for v in rng.permutation(10**6)[:n] + 10**6],
        "y": np.tile(["u", "v"], n // 2),
    })  # fmt: skip


def screened(table):
    y = table.pop("y") if "y" in table else np.random.default_rng(1).integers(0, 2, len(table))
    return table_notes.screen(table, np.asarray(y), infer_columns(table, {}), set())


def test_identifiers_are_left_out_named_and_brought_back():
    names = ["row", "back", "shuffled", "customer_id", "uuid", "name", "nearly"]
    labelled = split_target(frame(), "y")
    assert list(labelled.X) == ["salary", "size", "word", "note", "day", "money"]
    note = next(note for note in labelled.notes if "identifiers" in note)
    assert "'row': running numbers" in note and "--keep" in note
    assert "'customer_id': a different number in every row" in note
    assert screened(frame())[0] == names
    kept = split_target(frame(), "y", keep=["name", "row"])
    assert {"name", "row"} <= set(kept.X) and "uuid" not in kept.X
    assert list(split_target(frame(), "y", screened=False).X) == list(frame())[:-1]
    alone = split_target(frame()[["name", "y"]], "y")
    assert list(alone.X) == ["name"]
    assert screened(frame(18))[0] == []


def test_running_numbers_with_gaps_are_identifiers_and_quantities_are_not():
    """Of n rows drawn from m whole numbers n(n-1)/2m pairs are equal by chance."""
    rng = np.random.default_rng(3)
    n = 686
    cells = {
        "customer": np.delete(np.arange(700), rng.permutation(700)[: 700 - n]),
        "account": rng.permutation(10_000)[:n] + 15_565_701.0,
        "salary": rng.permutation(n * (n - 1) // 18)[:n],  # 9 pairs
    }
    assert screened(pd.DataFrame(cells))[0] == ["customer", "account"]
    numbers = rng.integers(0, n * (n - 1) // 20, (n, 100))  # 10 pairs, where there is no reason
    assert screened(pd.DataFrame(numbers).rename(columns=lambda i: f"s{i}"))[0] == []


@pytest.mark.parametrize(("name", "is_id", "is_person"), [
    ("CustomerId", True, True), ("patientID", True, True), ("RowNo", True, False),
    ("Kunden-Nr.", True, False), ("userName", False, True), ("paid", False, False),
    ("casino", False, False), ("AID", False, False),
])  # fmt: skip
def test_names_of_identifiers_and_of_persons(name, is_id, is_person):
    assert bool(table_notes.ID.search(name)) == is_id
    assert bool(table_notes.PERSON.search(name)) == is_person


def test_a_column_that_alone_predicts_the_label_is_named():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 400)
    X = pd.DataFrame({
        "code": np.array(["d1", "d2", "h"])[y],
        "number": y * 10 + rng.normal(size=400),
        "filled": np.where(y == 2, 1.0, np.nan),
        "day": pd.Timestamp("2021-01-01") + pd.to_timedelta(y * 50, unit="D"),
        "good": y + rng.normal(size=400),
        "noise": rng.normal(size=400),
    })  # fmt: skip
    assert table_notes.leaks(X, y) == ["code", "number", "day"]
    assert table_notes.leaks(X, y == 2) == ["code", "number", "filled", "day"]
    labelled = split_target(X.assign(y=y), "y")
    assert labelled.suspects == dict.fromkeys(["code", "number", "day"], "leak")
    assert "'code' alone predicts the label" in labelled.notes[0]


@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
def test_strong_columns_are_no_leaks(load):
    X, y = load(as_frame=True, return_X_y=True)
    assert table_notes.leaks(X, y.to_numpy()) == []


def test_numbers_and_dates_that_are_read_as_text_are_named():
    n = 60
    days = pd.date_range("2021-01-20", periods=n)
    X = pd.DataFrame({
        "income": [f"{1000 + 7 * i:,} €" for i in range(n)],
        "rate": [f"{i / 4}%" for i in range(n)],
        "lab": ["<0.5", *[str(i / 7) for i in range(n - 1)]],
        "comma": [f"{i},5" for i in range(n)],
        "mixed": [f"{d:%d.%m.%y}" if i % 2 else f"{d:%Y.%m.%d}" for i, d in enumerate(days)],
        "either": [f"{1 + i % 12:02d}/{1 + i * 5 % 12:02d}/2021" for i in range(n)],
        "clear": days.strftime("%d/%m/%Y"),
        "iso": days.strftime("%Y-%m-%d"),
        "grade": ["1a", "2b", "3c"] * 20,
        "word": ["left", "right"] * 30,
    })  # fmt: skip
    left_out, notes, suspects = screened(X)
    names = ["income", "rate", "lab", "comma", "mixed", "either"]
    assert [next(n for n in X if repr(n) in note) for note in notes] == names
    assert not suspects and not left_out
    assert "--missing='<0.5'" in notes[2]
    assert "the first number is taken for the month" in notes[-1]
    assert """--types '{"either": "date %d/%m/%Y"}'""" in notes[-1]


def test_dates_with_blank_cells_may_be_ambiguous_too():
    days = [*(f"{1 + i % 12:02d}/{1 + i * 5 % 12:02d}/2021" for i in range(58)), " ", "NA"]
    for cells in (days, [None, *days[:-1]]):
        notes = screened(pd.DataFrame({"seen": cells, "x": np.arange(60) ** 2 + 0.5}))[1]
        assert len(notes) == 1 and "'seen' day and month could be either" in notes[0]


def test_a_person_in_several_rows_is_named():
    rng = np.random.default_rng(2)
    who = np.repeat(np.arange(80), rng.integers(1, 7, 80))
    n = len(who)
    X = pd.DataFrame({
        "who": [f"w{k}" for k in who],  # one label each
        "patient": rng.integers(0, 80, n),  # by its name
        "age": rng.integers(20, 90, n),
        "word": rng.choice([f"v{i}" for i in range(60)], n),
        "size": rng.normal(size=n),
    })  # fmt: skip
    left_out, notes, suspects = screened(X.assign(y=rng.integers(0, 2, 80)[who]))
    assert left_out == ["who", "patient"]
    assert suspects == {"who": "id", "patient": "id"}
    assert "--groups who" in notes[0]
    assert screened(X.assign(y=rng.integers(0, 2, n)))[0] == ["patient"]


@pytest.mark.parametrize(
    "cell", ["1" + " " * 10**6 + "x(", "1," * 10**6 + "(", "1-1" + "." * 10**6]
)
def test_a_long_cell_takes_no_longer_than_its_length(cell):
    start = time.perf_counter()
    for pattern in (table_notes.LIKE_NUMBER, table_notes.LIKE_DATE):
        pattern.match(cell)
    assert time.perf_counter() - start < 2  # a pattern of degree two would take hours


@pytest.mark.parametrize(("others", "sentinel", "is_noted"), [
    *[(range(1, 100), sentinel, True) for sentinel in (-1, -999, -999.0, 9999)],
    (np.linspace(0, 3, 50), -9, True), (np.linspace(-3, 3, 50), 99, True), (range(4), 9, True),
    (range(100), 99, False), (range(-50, 100), -99, False), (range(1, 100), -998, False),
    ((0, 1, 2), -1, False), (np.exp(np.linspace(0, 11, 60)), 99999, False),
])  # fmt: skip
def test_numbers_that_may_stand_for_missing_ones(others, sentinel, is_noted):
    cells = np.array([*others] * 8 + [sentinel] * 4)
    notes = screened(pd.DataFrame({"x": cells, "z": 0.5 + np.arange(len(cells)) ** 2}))[1]
    text = f"'x' is {sentinel:g} in 4 rows, unlike its other numbers ({others[0]:g} to"
    assert len(notes) == is_noted and all(text in note for note in notes)
    assert not screened(pd.DataFrame({"x": cells[:-2], "z": np.arange(len(cells) - 2) ** 2}))[1]
    assert not screened(pd.DataFrame({"x": np.where(cells == sentinel, np.nan, cells)}))[1]


def test_few_notes_on_tables_that_others_have_cleaned():
    if "VENNFOREST_DATA" not in os.environ:
        pytest.skip("VENNFOREST_DATA names no folder of data sets")
    notes, n_columns = [], 0
    for path in Path(os.environ["VENNFOREST_DATA"]).glob("*.csv.gz"):
        for name, cells in read_table(path).items():
            notes += filter(None, [table_notes._sentinel(cells.dropna(), name)])
            n_columns += 1
    # Incomes above 99,999 were cut to it: no missing value, but no income either.
    assert n_columns > 500 and len(notes) == 1 and "'capital-gain' is 99999" in notes[0]


def test_points_in_a_file_of_decimal_commas_are_text_with_a_note():
    X = pd.DataFrame({"x": np.tile([0.5, 1.5], 20), "point": np.tile(["2.5", "3"], 20)})
    X["y"] = np.tile(["u", "v", "v", "u"], 10)
    table = split_target(X, "y", decimal=",")
    assert table.types == {"x": "number", "point": "text"}
    assert any("'point' has numbers with a decimal point" in note for note in table.notes)
    with pytest.raises(InputError, match=r"'point' must contain numbers, got '2\.5 with"):
        split_target(X, "y", types={"point": "number"}, decimal=",")
    assert split_target(X, "y").types["point"] == "number"


def test_numbers_that_are_too_large_are_refused_in_a_sentence():
    X = pd.DataFrame({"x": np.tile([1e40, 1, 2], 20), "y": np.tile(["u", "v"], 30)})
    with pytest.raises(InputError, match=r"'x' must contain numbers up to 3\.4e"):
        split_target(X, "y")
