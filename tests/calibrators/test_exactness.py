"""The program of ``make exact``: some of its cases, and that it detects one wrong number."""

from dataclasses import replace

import numpy as np
import pytest

from support import exactness
from vennforest import Venn, VennAbers

pytestmark = pytest.mark.filterwarnings("ignore:the scores of")  # of drawn labels


def test_drawn_cases_are_those_of_the_formulas():
    cases, _, bad = exactness.run(4800, 3)
    assert not bad
    assert (len(cases), cases.total()) == (4, 4800)


@pytest.mark.parametrize("first", [0, 3, 7])  # a plain set, with fractions, of wild weights
@pytest.mark.parametrize("kind", [VennAbers, Venn])
def test_one_wrong_number_is_detected(kind, first, monkeypatch):
    """One of the bounds of a set is off by a millionth."""
    number = next(n for n in range(first, 5000, 100) if isinstance(exactness.Set(5, n).model, kind))
    assert exactness.compare(5, number)[1] <= 1e-10
    right = kind.predict_multiprobability

    def wrong(self, *arguments):
        m = right(self, *arguments)
        lower = m.lower.copy()
        lower[-1, -1] = np.where(lower[-1, -1] > 0.5, lower[-1, -1] - 1e-6, lower[-1, -1] + 1e-6)
        return replace(m, lower=lower)

    monkeypatch.setattr(kind, "predict_multiprobability", wrong)
    assert exactness.compare(5, number)[1] > 1e-7
