"""The program of ``make exact``: some thousands of its cases, and that it sees what is wrong."""

import numpy as np
import pytest

from support import exactness
from vennforest.calibrators.venn.calibrator import Venn
from vennforest.calibrators.venn_abers.calibrator import StepTable


def test_drawn_cases_are_those_of_the_formulas():
    done = exactness.run(4800, 3)
    assert not done["bad"]
    assert len(done["cases"]) == 4
    assert sum(done["cases"].values()) == 4800


def test_it_goes_on_where_it_stopped(tmp_path):
    whole, parts = tmp_path / "whole.json", tmp_path / "parts.json"
    one = exactness.run(480, 7, state=whole)
    exactness.run(160, 7, state=parts)
    assert exactness.run(480, 7, state=parts) == one


@pytest.mark.parametrize("number", [0, 3, 7])  # a plain set, with fractions, of wild weights
@pytest.mark.parametrize("kind", [StepTable, Venn])
def test_one_wrong_number_is_seen(kind, number, monkeypatch):
    """Of all that a set is asked one bound is off by a millionth."""
    numbers = [n for n in range(number, 2000, 100) if (exactness.Set(5, n).taxonomy is None) is
               (kind is StepTable)]  # fmt: skip
    name = "read" if kind is StepTable else "predict_multiprobability"
    right = getattr(kind, name)

    def wrong(self, scores, *more, **named):
        found = right(self, scores, *more, **named)
        part = found[0] if kind is StepTable else found.lower.copy()
        part[-1] = np.where(part[-1] > 0.5, part[-1] - 1e-6, part[-1] + 1e-6)
        return (part, *found[1:]) if kind is StepTable else Bounds(part, found.upper)

    assert exactness.compare(5, numbers[0])[1] <= exactness.TOLERANCE
    monkeypatch.setattr(kind, name, wrong)
    assert exactness.compare(5, numbers[0])[1] > exactness.TOLERANCE


class Bounds:
    """What an object that is asked for bounds returns."""

    def __init__(self, lower, upper):
        self.lower, self.upper = lower, upper
