"""Tables split into X and y: labels of every kind, and targets that are refused."""

import numpy as np
import pandas as pd
import pytest

from vennforest._validation import InputError
from vennforest.tables.target import load_example, split_target


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


def test_labels_that_are_no_numbers_among_numbers_are_named():
    table = pd.DataFrame({"x": np.arange(40), "y": [*"01" * 19, "?", "Total"]})
    notes = split_target(table, "y", screened=False).notes
    assert (
        len(notes) == 1 and "'y' is '?', 'Total' in 2 rows and a number in the others" in notes[0]
    )
    assert not split_target(table.assign(y=[*"ab" * 19, "0", "1"]), "y", screened=False).notes
