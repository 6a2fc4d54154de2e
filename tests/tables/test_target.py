"""Labels of every kind, targets that are refused, and labels with their scores."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from vennforest._validation import InputError
from vennforest.tables import TableColumns
from vennforest.tables.open import TableFile
from vennforest.tables.target import LabelledScores, load_example, split_target


def test_rows_without_a_label_are_left_out_and_counted():
    table = pd.DataFrame({"x": range(5), "y": ["a", None, "b", "a", np.nan]}, dtype=object)
    labelled = split_target(table, "y")
    assert labelled.y.tolist() == ["a", "b", "a"]
    assert labelled.X.index.tolist() == [0, 2, 3]
    assert labelled.notes[0].startswith("2 of 5 rows have no 'y' and are left out. If")


@pytest.mark.parametrize(("labels", "expected", "kinds"), [
    ([1, 2, 1, 2], [1, 2, 1, 2], "i"),
    ([1.0, 2.0, np.nan, 2.0], [1, 2, 2], "i"),
    ([True, None, False, True], [True, False, True], "b"),
    ([0.5, 1.5, 0.5, 1.5], ["0.5", "1.5", "0.5", "1.5"], "U"),
    (["a", 1, "a", 1], ["a", "1", "a", "1"], "U"),
    (pd.Categorical(["u", "v", "u", "v"]), ["u", "v", "u", "v"], "U"),
    (pd.array([3, None, 4, 3], dtype="Int64"), [3, 4, 3], "iU"),
])  # fmt: skip
def test_labels_of_every_type(labels, expected, kinds):
    y = split_target(pd.DataFrame({"x": range(4), "y": labels}), "y").y
    assert y.dtype.kind in kinds
    assert list(map(str, y)) == list(map(str, expected))


@pytest.mark.parametrize(("labels", "message"), [
    (["a"] * 60, "must have two classes or more, got 'a' alone"),
    (np.linspace(0, 1, 60), "many distinct numbers with a fraction, a quantity"),
    (np.arange(60), "60 distinct values, a quantity or names"),
    ([f"name {i}" for i in range(60)], "60 distinct values in 60 rows"),
    (pd.date_range("2020-01-01", periods=60), "contains dates"),
    ([None] * 60, "missing in every row"),
])  # fmt: skip
def test_refused_targets(labels, message):
    with pytest.raises(InputError, match=message):
        split_target(pd.DataFrame({"x": range(60), "y": labels}), "y")
    table = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    for dropped, message in (("x", "no column besides"), ("y", "must not be among"), ("z", "'z'")):
        with pytest.raises(InputError, match=message):
            split_target(table, "y", [dropped])


def test_examples():
    frame, target = load_example("breast-cancer")
    assert frame.shape == (569, 31) and target == "diagnosis"
    assert (frame[target] == "malignant").sum() == 212
    assert load_example("iris")[1] == "species"
    with pytest.raises(InputError, match=r"example must be one of .*, got 'titanic'"):
        load_example("titanic")


def test_the_types_of_a_split_table_are_those_that_its_columns_would_be_inferred_as():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({
        "number": rng.normal(size=60),
        "digits": rng.choice(["1", "2.5", None], 60),
        "code": rng.choice(["01", "1"], 60),
        "day": rng.choice(["25/06/2020", "05/06/2020"], 60),
        "zoned": rng.choice(["2026-01-01T00:00Z", "2026-01-02T00:00+02:00"], 60),
        "typed": pd.date_range("2020-01-01", periods=60)[rng.permutation(60)],
        "flag": rng.choice(["true", "False"], 60),
        "category": pd.Categorical(rng.choice(["1", "2"], 60)),
        "empty": None,
        "y": rng.choice(["u", "v", None], 60),
    })  # fmt: skip
    labelled = split_target(table, "y")
    assert labelled.types["day"] == "date %d/%m/%Y" and "empty" not in labelled.types
    inferred, declared = (TableColumns(t).fit(labelled.X) for t in (None, labelled.types))
    assert declared.as_types() == inferred.as_types()
    read = inferred.transform(labelled.X)
    pd.testing.assert_frame_equal(declared.transform(labelled.X), read)


def test_labels_that_are_no_numbers_among_numbers_are_named():
    table = pd.DataFrame({"x": np.arange(40), "y": [*"01" * 19, "?", "Total"]})
    notes = split_target(table, "y", screened=False).notes
    assert (
        len(notes) == 1 and "'y' is '?', 'Total' in 2 rows and a number in the others" in notes[0]
    )
    assert not split_target(table.assign(y=[*"ab" * 19, "0", "1"]), "y", screened=False).notes


LABELS = {
    "text": (["no", "yes"], ["no", "yes"]),
    "text of numbers": (["9", "10"], [9, 10]),
    "text of booleans": (["True", " false"], ["True", "false"]),
    "whole numbers": ([-1, 2**40], [-1, 2**40]),
    "large numbers": ([2**53, 2**53 + 1], [2**53, 2**53 + 1]),
    "floats": ([0.0, 1.0], [0, 1]),
    "booleans": ([False, True], [False, True]),
    "one class written twice": (["1", "01", "2", "+2"], [1, 2]),
}


def table(kind="text", n=300):
    rng = np.random.default_rng(0)
    labels = LABELS[kind][0]
    cells = pd.Series([labels[i] for i in rng.integers(0, len(labels), n)], dtype=object)
    frame = pd.DataFrame({"s": rng.random(n).round(2), "w": rng.integers(0, 4, n)})
    cells[rng.random(n) < 0.1] = None
    if isinstance(labels[0], str):
        cells[rng.random(n) < 0.05] = " NA"
    return frame.assign(y=cells)


def read(path, **more):
    scores = LabelledScores(TableFile(path), ["s"], "y", **more)
    return scores, pa.Table.from_batches(list(scores.batches()))


@pytest.mark.parametrize("kind", LABELS)
def test_every_format_gives_the_same_labels_and_numbers(tmp_path, kind):
    """But for True and False, which stay as they are written in text."""
    frame = table(kind)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    frame.to_parquet(tmp_path / "t.parquet")
    frame.assign(s=frame["s"].map(str)).to_parquet(tmp_path / "text.parquet")
    tables = []
    for name in ("t.csv", "comma.csv", "t.parquet", "text.parquet"):
        scores, rows = read(tmp_path / name, weight="w")
        is_text = kind == "booleans" and name.endswith("csv")
        convert = str if is_text else lambda label: label
        assert scores.classes == [convert(label) for label in LABELS[kind][1]]
        assert (scores.n_rows, scores.left_out.n_unlabelled) == (len(rows), len(frame) - len(rows))
        cells = rows.to_pydict()
        tables.append(
            cells | {"y": list(map(str, cells["y"])) if kind == "booleans" else cells["y"]}
        )
    assert tables[0] == tables[1] == tables[2] == tables[3]
    has_label = ~frame["y"].isin([None, " NA"])
    assert tables[0]["s"] == frame["s"][has_label].tolist()


@pytest.mark.parametrize(("name", "value", "message"), [
    ("s", np.nan, "column 's' must contain finite scores, got NaN or nothing in row 151 of"),
    ("s", np.inf, "column 's' must contain finite scores, got inf in row 151 of"),
    ("s", "5%", "column 's' must contain numbers, got '5%' in row 151 of"),
    ("w", -2.0, "column 'w' must contain finite weights .* got -2 in row 151 of"),
])  # fmt: skip
def test_a_wrong_number_is_refused_where_the_row_has_a_label(tmp_path, name, value, message):
    frame = table().astype({name: object})
    frame.loc[150, [name, "y"]] = [value, "yes"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "t.csv", weight="w")
    frame.loc[150, "y"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    read(tmp_path / "t.csv", weight="w")
