"""Learning curves, against values by hand."""

import math

import numpy as np
import pytest

from support.cases import close
from vennforest_experiments.comparison import learning_curve


def test_learning_curve_by_hand():
    values = [[3.0, 5.0, 4.0], [1.0, np.nan, 2.0], [7.0, np.nan, np.nan]]
    curve = learning_curve([200, 100, 50], values)
    close(curve.sizes, [50, 100, 200])
    close(curve.mean, [7, 1.5, 4])
    close(curve.high - curve.mean, [0, math.sqrt(0.5) / math.sqrt(2), 1 / math.sqrt(3)])
    close(curve.mean - curve.low, curve.high - curve.mean)
    spread = learning_curve([200, 100, 50], values, "standard-deviation")
    close(spread.high - spread.mean, [0, math.sqrt(0.5), 1])
    ends = learning_curve([200, 100, 50], values, "range")
    close(ends.low, [7, 1, 3])
    close(ends.high, [7, 2, 5])
    close(learning_curve([1, 2], [3, 4]).mean, [3, 4])


def test_learning_curve_refuses_what_does_not_fit():
    with pytest.raises(ValueError, match=r"values must have a row for each of 2 sizes, got \(3, 1"):
        learning_curve([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="values must hold a number for every size, got none at 2"):
        learning_curve([1, 2], [[1.0], [np.nan]])
    with pytest.raises(ValueError, match=r"spread must be one of .*, got 'iqr'"):
        learning_curve([1, 2], [1, 2], "iqr")
