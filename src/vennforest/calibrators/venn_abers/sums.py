"""Sums of weights at scores, so precise that the new object's weight of 1 is never lost in them."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.venn_abers import kernels

Int32Array = NDArray[np.int32]

LARGEST_COUNT = 1 << 26
"""Sums of counts up to here are compared without rounding."""


ROUNDING = 1e-13
"""Part of the whole weight by which sums of weights may differ."""

MOST_WEIGHT = 1e18
"""Sum of weights up to which the new object's weight of 1 is exact to 13 digits."""


def check_total(weight: FloatArray | None, name: str = "sample_weight") -> None:
    """Refuse weights beside which the new object's weight of 1 is lost.

    Raises
    ------
    ValueError
        If they sum to more than 1e18.
    """
    if weight is not None and weight.sum() > MOST_WEIGHT:
        raise ValueError(
            f"{name} must sum to at most {MOST_WEIGHT:g}, since a new object counts as 1, "
            f"got {weight.sum():g}: divide them all by one number"
        )


class Sums(NamedTuple):
    """The cumulative points P_0, ..., P_m (``kernels``), each sum perhaps a pair of numbers."""

    W: FloatArray  # (m + 1,) cumulative weight
    Y: FloatArray  # (m + 1,) cumulative weight of the positive class
    W_low: FloatArray | None = None  # (m + 1,) what rounding left of W, and of Y; None where all
    Y_low: FloatArray | None = None  # weights are counts, whose sums are exact

    @classmethod
    def of(
        cls,
        numbers: Int32Array | IntArray,
        weight: FloatArray,
        labels: NDArray[np.int8],
        m: int,
    ) -> Self:
        """Add up examples (n,) of these weights and labels 0 or 1 at m scores."""
        W, W_low, Y, Y_low = kernels.cumulate(numbers, weight, labels, m)
        if W[-1] <= LARGEST_COUNT and (weight == np.rint(weight)).all():
            return cls(W, Y)
        return cls(W, Y, W_low, Y_low)

    def counts(self) -> tuple[FloatArray, FloatArray]:
        """Return weight and positive weight at each score, (m,), not below zero."""
        weight, positive = np.diff(self.W), np.diff(self.Y)
        if self.W_low is not None and self.Y_low is not None:
            # the last digits may make a part larger than the whole
            weight = np.maximum(weight + np.diff(self.W_low), 0)
            positive = np.clip(positive + np.diff(self.Y_low), 0, weight)
        return weight, positive

    def check(self, m: int) -> Self:
        """Return the sums as arrays of the kind kernels are compiled for.

        Raises
        ------
        ValueError
            If they are no sums at m scores.
        """
        W, Y = (np.require(column, np.float64, ["C", "W", "E"]) for column in (self.W, self.Y))
        if W.shape != (m + 1,) or Y.shape != (m + 1,):
            raise ValueError(f"W and Y must have shape (m + 1,), got {W.shape} and {Y.shape}")
        if not (np.isfinite(W).all() and np.isfinite(Y).all()):
            raise ValueError("W and Y must be finite")
        weight, positive = np.diff(W), np.diff(Y)
        if W[0] != 0 or Y[0] != 0 or not 0 < W[-1] <= 2 * MOST_WEIGHT:
            raise ValueError(
                f"W and Y must begin at 0, and W must rise, to {MOST_WEIGHT:g} at most"
            )
        if (weight < 0).any() or (positive < 0).any():
            raise ValueError("W and Y must not decrease")
        if (positive > weight + ROUNDING * W[-1]).any():
            raise ValueError("Y must not rise more than W")
        if self.W_low is None or self.Y_low is None:
            if (weight <= 0).any() or (positive > weight).any():
                raise ValueError("W must rise at every score, and Y not more than W")
            return type(self)(W, Y)
        low = [np.require(column, np.float64, ["C", "W"]) for column in (self.W_low, self.Y_low)]
        for high, rest in zip((W, Y), low, strict=True):
            if rest.shape != (m + 1,) or not (np.abs(rest) <= np.spacing(high)).all():
                raise ValueError("W_low and Y_low must be what rounding left of W and Y")
        return type(self)(W, Y, *low)
