"""Columns of data frames are of the classes that their names say, in every function."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator, ClassifierMixin

from vennforest import PlattScaling, ScoreCounts, update
from vennforest._class_columns import (
    class_columns,
    class_probabilities,
    in_class_order,
    labels_of_column,
)
from vennforest._validation import InputError
from vennforest.metrics import brier_decomposition
from vennforest.report import check


def draw(rng, k, n=120):
    p = rng.dirichlet(np.ones(k), n)
    y = np.array(["a", "b", "c"])[[rng.choice(k, p=row) for row in p]]
    y[:k] = ["a", "b", "c"][:k]
    return p, y


def frames_of(p):
    """Return data frames of probabilities with their columns in another order."""
    frame = pd.DataFrame(p, columns=[f"p({c})" for c in "abc"[: p.shape[1]]]).iloc[:, ::-1]
    yield frame
    yield frame.rename(columns=lambda name: name[2])
    yield frame.rename(columns=lambda name: f"p_{name[2]}".upper())
    polars = pytest.importorskip("polars")
    yield polars.DataFrame({name: frame[name].to_numpy() for name in frame})


@pytest.mark.parametrize("k", [2, 3])
def test_functions_read_a_data_frame_by_its_names(rng, k):
    p, y = draw(rng, k)
    model = PlattScaling().fit(p, y)
    expected = model.predict_proba(p)
    counts = ScoreCounts.from_scores(p, y)
    decomposition, losses = brier_decomposition(y, p), check(y, p).methods["log_loss"].tolist()
    for frame in frames_of(p):
        assert_array_equal(PlattScaling().fit(frame, y).predict_proba(p), expected)
        assert_array_equal(model.predict_proba(frame), expected)
        assert_array_equal(ScoreCounts.from_scores(frame, y).scores, counts.scores)
        assert brier_decomposition(y, frame) == decomposition
        assert check(y, frame).methods["log_loss"].tolist() == losses
        if k == 2:
            assert update(frame, y).gains.equals(update(p, y).gains)


def test_one_column_of_a_data_frame_is_of_the_class_of_its_name(rng):
    p, y = draw(rng, 2)
    expected = PlattScaling().fit(1 - p[:, 0], y).predict_proba(1 - p[:, 0])
    first = pd.DataFrame({"p(a)": p[:, 0]})
    for column in (first, first["p(a)"], pl.Series("p(a)", p[:, 0])):
        assert_array_equal(PlattScaling().fit(column, y).predict_proba(column), expected)
        counts = ScoreCounts.from_scores(column, y)
        assert_array_equal(PlattScaling().fit_counts(counts).predict_proba(column), expected)


def test_data_frames_without_names_of_classes_are_read_by_position(rng):
    p, _ = draw(rng, 3)
    classes = np.array([1, 2, 3])
    for names in (range(3), ["x", "y", "z"]):
        frame = pd.DataFrame(p, columns=names)
        assert in_class_order(frame, classes) is frame
    assert in_class_order(p, classes) is p
    with pytest.raises(InputError, match="p must say of which class each column is"):
        in_class_order(pd.DataFrame(p, columns=["1", "x", "y"]), classes, name="p")


@pytest.mark.parametrize(("name", "labels", "expected"), [
    ("p(a)", ["a", "p(a)"], ["a", "p(a)"]), ("p(p(a))", ["a", "p(a)"], ["p(a)"]),
    ("P(No)", ["no", "yes"], ["no"]), ("p(No)", ["No", "no"], ["No"]),
    ("p(NO)", ["No", "no"], ["No", "no"]), ("low97.5(+)", ["+", "-"], ["+"]),
    ("p_0", [0, 1], [0]), ("1", [0.0, 1.0], [1.0]), ("true", [False, True], [True]),
    ("p(1)", [False, True], []), ("p(a, b)", ["a, b", "c"], ["a, b"]), ("pa", ["a", "b"], []),
    ("p(1e0)", [0, 1], [1]), ("p(9007199254740993)", [2**53, 2**53 + 1], [2**53 + 1]),
])  # fmt: skip
def test_names_say_classes(name, labels, expected):
    assert labels_of_column(name, labels) == expected


@pytest.mark.parametrize(("entry", "labels", "table", "columns"), [
    ("a=b=c", ["a", "a=b"], ["c"], {"a=b": "c"}), ("a=b=c", ["a", "a=b"], ["b=c"], {"a": "b=c"}),
    ("NO=x", ["no", "yes"], ["x"], {"no": "x"}), ("x=y", ["no", "yes"], ["x=y"], {"yes": "x=y"}),
    ("1.0=x", [1, 2], ["x"], {1: "x"}), ("-=x", ["+", "-"], ["x"], {"-": "x"}),
])  # fmt: skip
def test_an_entry_names_a_label_and_a_column(entry, labels, table, columns):
    assert class_columns([entry], labels, "--score", table).by_label == columns
    with pytest.raises(InputError, match="of which class each column is"):
        class_columns(["a=b=c"], ["a", "a=b"], "--score", ["c", "b=c"])


def test_a_column_called_0_is_of_the_class_0(rng):
    p, y = draw(rng, 2)
    codes = (y == "b").astype(int)
    model = PlattScaling().fit(p[:, 1], codes)
    expected = model.predict_proba(p[:, 1])
    frame = pd.DataFrame({"0": p[:, 0]})
    assert_array_equal(model.predict_proba(frame), model.predict_proba(1 - p[:, 0]))
    assert_array_equal(model.predict_proba(pd.DataFrame(p[:, 1])), expected)


class OtherOrder(ClassifierMixin, BaseEstimator):
    """A classifier whose ``classes_`` are in another order than the sorted one."""

    def __init__(self, classes, p):
        self.classes, self.p = classes, p

    def fit(self, X, y):
        self.classes_ = np.array(self.classes)
        return self

    def predict_proba(self, X):
        return self.p[np.asarray(X)[:, 0].astype(int)]


LABELS_OF_ORDER = {
    "text": ["yes", "no", "maybe"],
    "numbers": [3, 1, 2],
    "two": ["yes", "no"],
    "booleans": [True, False],
}


@pytest.mark.parametrize("labels", LABELS_OF_ORDER.values(), ids=LABELS_OF_ORDER)
def test_columns_of_arrays_are_of_the_classes_that_are_named_in_their_order(rng, labels):
    p, codes = rng.dirichlet(np.ones(len(labels)), 60), np.arange(60) % (len(labels) - 1)
    y = np.array(labels)[codes]  # the last label does not occur
    order = np.argsort(labels)
    assert_array_equal(in_class_order(p, np.sort(labels), named=labels), p[:, order])
    expected = brier_decomposition(y, p[:, order], classes=np.sort(labels), pos_label=y[0])
    assert brier_decomposition(y, p, classes=labels, pos_label=y[0]) == expected
    model = OtherOrder(labels, p).fit(None, None)
    of_model, classes = class_probabilities(model, np.arange(60)[:, None])
    assert_array_equal(of_model, p[:, order])
    assert_array_equal(classes, np.sort(labels))


def test_one_column_of_two_classes_named_in_another_order_is_in_doubt(rng):
    p = rng.random(50)
    y = np.array(["no", "yes"])[(rng.random(50) < p).astype(int)]
    with pytest.raises(InputError, match="could be of either"):
        brier_decomposition(y, p, classes=["yes", "no"])
    expected = brier_decomposition(y, p)
    assert brier_decomposition(y, p, classes=["no", "yes"]) == expected
    assert brier_decomposition(y, p, classes=["yes", "no"], pos_label="yes") == expected


@pytest.mark.parametrize("classes", [["no", "yes", "no"], {"no", "yes"}, "no", []])
def test_classes_are_a_list_that_names_each_once(classes):
    with pytest.raises(InputError, match="classes must be a list that names each class once"):
        brier_decomposition(["no", "yes"], [0.2, 0.8], classes=classes)
