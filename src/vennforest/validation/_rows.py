"""Validated outcomes and probabilities of one event."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import FloatArray, InputError, label_vector
from vennforest.metrics._inputs import ClassEstimates

MIN_ROWS = 20


def outcomes_and_probabilities(y: ArrayLike, p: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return outcomes, 1 for the second label and 0 for the first, and probabilities, (n,)."""
    labels = label_vector(y)
    if len(labels) < MIN_ROWS:
        raise InputError(f"y must have at least {MIN_ROWS} rows, got {len(labels)}")
    # Labels 0 and 1 are of two classes even where the event never happened.
    is_binary = labels.dtype.kind in "biuf" and np.isin(labels, (0, 1)).all()
    classes = np.array([0, 1], dtype=labels.dtype) if is_binary else None
    event = ClassEstimates(y, p, classes=classes).of_event()
    return event.outcome, event.p
