"""Log loss and Brier score of rows, and their differences."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vennforest._validation import FloatArray, IntArray


def log_losses(p: FloatArray, codes: IntArray) -> FloatArray:
    """Return −ln p of each row's observed class, (n,); infinite where p is 0."""
    with np.errstate(divide="ignore"):
        return np.maximum(-np.log(p[np.arange(len(p)), codes]), 0.0)


def squared_losses(p: FloatArray, codes: IntArray) -> FloatArray:
    """Return the squared error of each row's probabilities, (n,); halved for two classes."""
    losses: FloatArray = np.einsum("ij,ij->i", p, p) - 2 * p[np.arange(len(p)), codes] + 1
    return losses / 2 if p.shape[1] == 2 else losses


@dataclass(frozen=True)
class Difference:
    """The mean difference of two methods' losses, and half its 95% confidence interval."""

    mean: float
    margin: float
    loss: str = "log loss"

    @property
    def clear(self) -> bool:
        """Whether the interval excludes 0."""
        return abs(self.mean) > self.margin
