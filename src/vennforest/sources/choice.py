"""Which source ``calibrate_on="auto"`` means, and why; what ``"oob"`` is refused for."""

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

from vennforest.sources.base import TrainingData
from vennforest.sources.ensembles import is_bagged
from vennforest.sources.pipelines import obstacle

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


def choose(estimator: Any, data: TrainingData, cv: Any) -> tuple[str, str]:
    """Return "oob" or "cv", and the reason in a clause.

    Parameters
    ----------
    estimator : classifier
        Not fitted.
    data : TrainingData
    cv : int, splitter or iterable
        As given to `CalibratedClassifier`.
    """
    if not is_bagged(estimator):
        return "cv", "the estimator is no bagged ensemble whose members can be asked one by one"
    if data.groups is not None:
        return "cv", "groups were given, and folds keep each of them together"
    if not is_plain(cv):
        return "cv", f"cv is a {type(cv).__name__}, which knows more of the rows than bags do"
    why = obstacle(estimator)
    if why is not None:
        return "cv", why
    return "oob", "the members of the ensemble leave examples out of bag"


def is_plain(cv: Any) -> bool:
    """Tell whether a splitter treats all rows alike."""
    return cv is None or isinstance(cv, (Integral, *PLAIN_SPLITTERS))
