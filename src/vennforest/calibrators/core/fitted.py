"""What fitting a calibrator leaves: one frozen value that checks itself when it is made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import NDArray

from vennforest._state import check_array, labels, number, require, stored
from vennforest._validation import IntArray
from vennforest.counts import ScoreGrid


def as_tuple(parts: Iterable[Any]) -> tuple[Any, ...]:
    """Return parts as a tuple, whatever holds them in a file."""
    return tuple(parts)


class Learnt:
    """Base of what a calibrator learns: subclasses are ``attrs.frozen`` and registered.

    See ``vennforest._state`` for the validators of their fields, and `Fitted` for what is common
    to all calibrators.
    """

    def check_classes(self, k: int) -> None:
        """Refuse to be of k classes where the fields are those of another number.

        Raises
        ------
        ValueError
            Saying which field is not of so many classes.
        """

    @property
    def n_examples(self) -> int | None:
        """How many calibration examples it knows one by one; None where it never knows any."""
        return None

    def written(self) -> Self:
        """Return what `Calibrator.to_json` writes: without single calibration examples."""
        return self


@stored("nothing-learnt")
@attrs.frozen(eq=False)
class Nothing(Learnt):
    """What a calibrator learns that has nothing to learn."""


@stored("fitted-calibrator")
@attrs.frozen(eq=False)
class Fitted:
    """The fitted state of a calibrator.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        The labels, sorted.
    learnt : Learnt
        What ``_fit`` returned.
    n_given : int
        How many examples ``fit`` was given; 0 where it was counts, or where they are forgotten.
    row_of : ndarray of shape (n_given,) or None
        The row of each example that reached ``_fit``, -1 for one of weight zero; None: its own.
    grid : ScoreGrid or None
        The grid that new scores are put on.
    reversed_at : float or None
        New scores s, on the grid if there is one, are replaced by ``reversed_at - s``, where high
        ones mean that the second class is less likely.
    """

    classes: NDArray[Any] = attrs.field(validator=labels)
    learnt: Learnt = attrs.field(validator=attrs.validators.instance_of(Learnt))
    n_given: int = attrs.field(default=0, validator=number(0, integer=True))
    row_of: IntArray | None = None
    grid: ScoreGrid | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(ScoreGrid))
    )

    reversed_at: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(number())
    )

    def __attrs_post_init__(self) -> None:
        """Refuse parts of other classes or of other examples."""
        require(
            self.reversed_at is None or len(self.classes) == 2,
            "reversed_at must be None with more than two classes",
        )
        self.learnt.check_classes(len(self.classes))
        n, known, row_of = self.n_given, self.learnt.n_examples, self.row_of
        if row_of is not None:
            check_array(row_of, "row_of", (n,), "i", -1, n - 1)
            kept = row_of[row_of >= 0]
            require((kept == np.arange(len(kept))).all(), "row_of must number rows in their order")
        if known is not None and n:
            reached = n if row_of is None else len(kept)
            require(known == reached, f"n_given must be {known}, the number of examples")
