"""Labels of every kind, and targets that are refused."""

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from vennforest._validation import InputError  # noqa: E402
from vennforest.tables.target import load_example, split_target  # noqa: E402


def test_rows_without_a_label_are_left_out_and_counted():
    table = pd.DataFrame({"x": range(5), "y": ["a", None, "b", "a", np.nan]}, dtype=object)
    problem = split_target(table, "y")
    assert problem.y.tolist() == ["a", "b", "a"]
    assert problem.X.index.tolist() == [0, 2, 3]
    assert problem.notes == ["2 of 5 rows have no 'y' and are left out."]


@pytest.mark.parametrize(
    ("labels", "kept", "kind"),
    [
        ([1, 2, 1, 2], [1, 2, 1, 2], "i"),
        ([1.0, 2.0, np.nan, 2.0], [1, 2, 2], "i"),
        ([True, False, True, False], [True, False, True, False], "b"),
        ([True, None, False, True], [True, False, True], "b"),
        ([0.5, 1.5, 0.5, 1.5], ["0.5", "1.5", "0.5", "1.5"], "U"),
        (["a", 1, "a", 1], ["a", "1", "a", "1"], "U"),
        (pd.Categorical(["u", "v", "u", "v"]), ["u", "v", "u", "v"], "U"),
        (pd.array([3, None, 4, 3], dtype="Int64"), [3, 4, 3], "iU"),
    ],
)
def test_labels_of_every_type(labels, kept, kind):
    table = pd.DataFrame({"x": range(4), "y": labels})
    y = split_target(table, "y").y
    assert y.dtype.kind in kind
    assert list(map(str, y)) == list(map(str, kept))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * 60, "only one class, 'a'"),
        (np.linspace(0, 1, 60), "60 distinct numbers with a fraction, a quantity"),
        ([f"name {i}" for i in range(60)], "60 distinct values in 60 rows"),
        ([np.inf, 1.0] * 30, "infinite"),
        (2.0**53 + 2 * np.arange(60), "larger ones as integers or text"),
        ([2.0**53, 2.0**53 + 2] * 30, "larger ones as integers or text"),
        ([None] * 60, "missing in every row"),
    ],
)
def test_refused_targets(labels, message):
    with pytest.raises(InputError, match=message):
        split_target(pd.DataFrame({"x": range(60), "y": labels}), "y")


def test_refused_columns():
    table = pd.DataFrame({"x": [1, 2], "y": ["a", "b"]})
    with pytest.raises(InputError, match="no column besides the target"):
        split_target(table, "y", ["x"])
    with pytest.raises(InputError, match="must not be among"):
        split_target(table, "y", ["y"])
    with pytest.raises(InputError, match="no column 'z'"):
        split_target(table, "y", ["z"])


def test_row_names_are_pointed_out():
    n = 30
    table = pd.DataFrame(
        {
            "customer_id": np.random.default_rng(0).permutation(n),
            "counter": range(7, 7 + n),
            "fine": np.random.default_rng(1).normal(size=n),
            "valid": ["u", "v", "w"] * 10,
            "y": ["a", "b"] * 15,
        }
    )
    (note,) = split_target(table, "y").notes
    assert "'customer_id', 'counter'" in note and "fine" not in note and "valid" not in note


def test_examples():
    frame, target = load_example("breast-cancer")
    assert frame.shape == (569, 31) and target == "diagnosis"
    assert (frame[target] == "malignant").sum() == 212
    assert load_example("iris")[1] == "species"
    with pytest.raises(InputError, match=r"example must be one of .*, got 'titanic'"):
        load_example("titanic")
