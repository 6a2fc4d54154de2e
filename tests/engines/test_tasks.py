"""Counts of partitions, in one process: what they add up to, and what is refused."""

import numpy as np
import pytest

from report.reading import numbers_in
from support.partitions import (
    check_calibrator,
    cut,
    draw_scores,
    engine_of,
    score_names,
)
from vennforest import VennAbers
from vennforest._messages import CalibrationWarning, InputError
from vennforest.engines._tasks import calibrate_partitions


def calibrate(parts, score="s", method="venn-abers", weight=None, classes=None):
    return calibrate_partitions(engine_of(parts), score, "y", method, weight, classes, True)


@pytest.mark.parametrize("method", ["venn-abers", "venn", "isotonic", "vector"])
@pytest.mark.parametrize("k", [2, 3])
def test_counts_add_up_to_the_fit_to_all_rows(method, k):
    frame = draw_scores(k=k).sort_values("y")  # a class is in one partition, and one is empty
    calibrator = calibrate(cut(frame, 1, 500, 0), score_names(k), method)
    check_calibrator(calibrator, frame, method, k, tolerance=1e-6 if method == "vector" else 1e-9)


@pytest.mark.parametrize("weight", ["w", "half"])
@pytest.mark.parametrize("classes", [None, ["no", "yes"]])
def test_weights_and_named_classes(weight, classes):
    frame = draw_scores(seed=3070)
    frame["half"] = frame["w"] / 2
    frame.loc[:9, ["w", "half"]] = 0  # a partition of no weight
    calibrator = calibrate(cut(frame, 10, 300), weight=weight, classes=classes)
    check_calibrator(calibrator, frame, weight=weight)


@pytest.mark.parametrize("weight", ["small", "large", "few"])
def test_weights_that_are_no_counts_are_warned_of_as_in_one_table(weight):
    frame = draw_scores(seed=3071)
    frame["small"], frame["large"] = frame["w"] * 1e-4, frame["w"] * 12.5
    if weight == "few":
        # No partition has both of these weights.
        frame["few"] = np.where(np.arange(len(frame)) < 10, 1e8, 1e-2)
        with pytest.raises(InputError, match="'few' must differ by a factor"):
            calibrate(cut(frame, 10, 300), weight="few")
        return
    with pytest.warns(CalibrationWarning, match="sums to") as of_parts:
        calibrate(cut(frame, 10, 300), weight=weight)
    with pytest.warns(CalibrationWarning, match="sums to") as of_table:
        VennAbers().fit(frame["s"], frame["y"], sample_weight=frame[weight])
    expected = str(of_table[0].message).replace("sample_weight", repr(weight))
    assert [str(warning.message) for warning in of_parts] == [expected]


@pytest.mark.parametrize(("column", "value", "message"), [
    ("s", np.nan, r"partition 2: 's' must be finite, got "),
    ("s", "x", r"partition 2: .*'x'"),
    ("y", "maybe", r"partition 2: 'y' must contain labels of classes .*, got 'maybe'"),
    ("w", np.inf, r"partition 2: 'w' must be finite, got inf"),
    ("w", -1, r"partition 2: 'w' must not be negative, got -1"),
])  # fmt: skip
def test_a_faulty_row_is_named_with_its_partition(column, value, message):
    frame = draw_scores(90).astype({"w": float})
    if value == "x":
        frame["s"] = frame["s"].astype(str)
    frame.loc[44, column] = value
    with pytest.raises(InputError, match=message):
        calibrate(cut(frame, 30, 10), weight="w", classes=["no", "yes"])


def test_rows_without_a_label_or_a_score_have_one_rule():
    frame = draw_scores(90)
    frame.loc[[3, 44, 70], "y"] = None
    with pytest.warns(CalibrationWarning, match="^3 rows have no 'y' and are left out$"):
        check_calibrator(calibrate(cut(frame, 30, 10)), frame.dropna())
    frame.loc[50:60, "s"] = np.nan
    options = {"missing_scores": "drop", "method": "venn-abers"}
    with pytest.warns(CalibrationWarning) as warned:
        calibrator = calibrate_partitions(engine_of(cut(frame, 30, 10)), "s", "y", **options)
    check_calibrator(calibrator, frame.dropna())
    assert {3, 11} == {numbers_in(str(w.message))[0] for w in warned}  # labels, scores


def test_labels_of_partitions_must_be_alike():
    frame = draw_scores(90)
    parts = cut(frame, 50)
    parts[1] = parts[1].astype({"s": "float32"})
    calibrate(parts)
    with pytest.raises(InputError, match="one kind, got text in some partitions and numbers in"):
        calibrate([parts[0], parts[1].assign(y=1)])
    with pytest.raises(InputError, match="a column for each of 3 classes"):
        calibrate([parts[0], parts[1].assign(y="maybe")])
    with pytest.raises(InputError, match="at least one row, got none"):
        calibrate([frame[:0]])
    with pytest.raises(InputError, match="at least one row of weight above zero, got none"):
        calibrate([frame.assign(w=0)], weight="w")
