"""Splitters that treat all rows alike, and those that know more of the rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from sklearn.model_selection import (
    KFold,
    LeaveOneOut,
    LeavePOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

PLAIN_SPLITTERS = (
    KFold,
    LeaveOneOut,
    LeavePOut,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
"""Splitters that treat all rows alike; any other knows something of them that bags do not."""


def is_plain(cv: Any) -> bool:
    """Tell whether a splitter treats all rows alike."""
    return cv is None or isinstance(cv, (Integral, *PLAIN_SPLITTERS))
