"""The one test for missing cells of arrays."""

import numpy as np
import pandas as pd
import pytest

from vennforest._validation import is_missing


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([1.0, np.nan, np.inf]), [False, True, False]),
        (np.array([1, 0]), [False, False]),
        (np.array(["", "NaN"]), [False, False]),
        (np.array(["2020-01-01", "NaT"], "datetime64[D]"), [False, True]),
        (np.array(["a", None, pd.NA, pd.NaT, np.float32("nan"), 0], object), [0, 1, 1, 1, 1, 0]),
        (np.empty(0, object), []),
    ],
)
def test_missing_cells(values, expected):
    assert is_missing(values).tolist() == expected
