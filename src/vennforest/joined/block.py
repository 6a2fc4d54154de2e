"""New objects in the bags, and what they change, block by block."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray

Result = TypeVar("Result")


class JoinedBlock(NamedTuple):
    """Some new objects in the bags, with each tentative label.

    ``scores`` has shape (m, k) for two classes, (m, k, k) for more: the score (a column per class)
    of each object with each label. The calibration examples that this changes, of object i and
    label y, are ``rows[offsets[i * k + y] : offsets[i * k + y + 1]]``; ``changed``, (n_changed,)
    or (n_changed, k), holds their new scores.
    """

    scores: FloatArray
    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    changed: FloatArray


class Joined(Protocol):
    """New objects in the bags, block by block: all that they change would not fit into memory."""

    def map(self, function: Callable[[JoinedBlock], Result]) -> list[Result]:
        """Return what a function says of each block of new objects, in their order."""
        ...
