"""Rows of a stream: those that a model was trained on, and times."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._messages import shown
from vennforest._validation import FloatArray, InputError
from vennforest.classifier import CalibratedClassifier
from vennforest.sources.row_hashes import HashArray, hash_rows, share_in_sketch

MAX_TRAINING_SHARE = 0.5
"""Share of training rows from which on an update raises an error."""


def hash_for_model(model: Any, X: Any) -> HashArray:
    """Return hashes (n,) of rows, as a model of the library reads them."""
    is_own = isinstance(model, CalibratedClassifier) and hasattr(model, "classes_")
    return model._state.hash_as_read(X) if is_own else hash_rows(X)


def training_share(model: Any, hashes: HashArray) -> float:
    """Return the approximate share of rows, given by hashes (n,), that the model was fitted to."""
    if not isinstance(model, CalibratedClassifier) or model._state.row_sketch is None:
        return 0.0
    return share_in_sketch(hashes, model._state.row_sketch)


def are_training_rows(model: Any, X: Any) -> bool:
    """Return whether a model of the library was fitted to half of the rows of X or more."""
    if not isinstance(model, CalibratedClassifier):
        return False
    return training_share(model, hash_for_model(model, X)) >= MAX_TRAINING_SHARE


def check_new_rows(model: Any, hashes: HashArray) -> float:
    """Return the approximate share of training rows; raise an error if it is large."""
    share = training_share(model, hashes)
    if share >= MAX_TRAINING_SHARE:
        raise InputError(
            f"X must be new rows, got about {share:.0%} used for training: leave them out"
        )
    return share


def times_as_numbers(times: NDArray[Any]) -> FloatArray:
    """Return times (n,) as numbers, dates as seconds since 1970, missing ones as NaN."""
    if times.dtype.kind in "fiub":
        return times.astype(np.float64)
    try:
        dates = times.astype("datetime64[us]")
    except (ValueError, TypeError):
        raise InputError(
            f"time must be numbers or dates in the form of ISO 8601, got {shown(times.ravel()[0])}"
        ) from None
    seconds: FloatArray = dates.astype(np.int64) / 1e6
    return np.where(np.isnat(dates), np.nan, seconds)
