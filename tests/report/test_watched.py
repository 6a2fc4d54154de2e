"""Findings of a monitor in new rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from vennforest.report.watched import _before_and_since


def test_shares_before_and_since_a_change_are_those_of_its_rows_or_of_the_reference():
    monitor = SimpleNamespace(classes_=np.array(["a", "b"]), reference_shares_=[0.7, 0.3])
    y, p = np.array([*"aabbb"]), np.array([[0.9, 0.1]] * 2 + [[0.4, 0.6]] * 3)
    of_a, _ = _before_and_since(monitor, y, p, 3)[0]
    assert of_a["share_before"] == pytest.approx(2 / 3) and of_a["share_since"] == 0
    assert of_a["predicted_before"] == pytest.approx(2.2 / 3)
    assert of_a["predicted_since"] == pytest.approx(0.4)
    of_a, _ = _before_and_since(monitor, y, p, 0)[0]
    assert of_a["share_before"] == 0.7 and of_a["share_since"] == 0.4
