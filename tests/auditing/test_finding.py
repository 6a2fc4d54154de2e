"""Findings as values."""

import dataclasses

import numpy as np
import pytest

from vennforest.auditing import Finding


def test_findings_with_rows_are_looked_up_and_stay_as_they_are():
    """Comparing arrays of rows would have no truth value, so a finding equals itself alone."""
    first, second = (Finding("copies", "error", "…", np.arange(3)) for _ in range(2))
    assert first in [second, first] and first != second and len({first, second}) == 2
    assert Finding("copies", "error", "…").rows is None
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.kind = "near-copies"
