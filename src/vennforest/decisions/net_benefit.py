"""Net benefit: what acting above a threshold is worth, in true positives a person."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import FloatArray, InputError
from vennforest.metrics._inputs import positive_problem


@dataclass(frozen=True, eq=False)
class NetBenefit:
    """Net benefit of acting where the probability reaches a threshold.

    Attributes
    ----------
    thresholds : ndarray of shape (t,)
        In (0, 1).
    observed : ndarray of shape (n, t)
        Of every observation: 1 for a true positive, minus the odds of the threshold for a false
        one, 0 for one not acted on.
    weight : ndarray of shape (n,)
        Weights of the observations, above zero.
    act_on_all : ndarray of shape (t,)
        Net benefit of acting on everyone; acting on no one has net benefit 0.
    """

    thresholds: FloatArray
    observed: FloatArray
    weight: FloatArray
    act_on_all: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Net benefit at each threshold, shape (t,), at most the share of the positive class."""
        mean: FloatArray = self.weight @ self.observed / self.weight.sum()
        return mean

    @property
    def standard_error(self) -> FloatArray:
        """Standard error of the mean over observations, shape (t,)."""
        share = self.weight / self.weight.sum()
        squares: FloatArray = share**2 @ (self.observed - self.mean) ** 2
        return np.sqrt(squares)


def net_benefit(
    y: ArrayLike,
    p: ArrayLike,
    thresholds: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> NetBenefit:
    """Return the net benefit of acting where the probability of the positive class reaches t.

    ``NB(t) = TP / n - FP / n * t / (1 - t)`` (Vickers & Elkin 2006): who acts from t on holds a
    false positive to cost t / (1 - t) times what a true one is worth.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels of any dtype.
    p : array-like of shape (n,) or (n, k)
        Probability of the positive class, or of every class in sorted order, in [0, 1].
    thresholds : array-like of shape (t,), optional
        In (0, 1); by default .01 to .99.
    sample_weight : array-like of shape (n,), optional
        Non-negative; a weight of 2 is the observation twice.
    classes : array-like of shape (k,), optional
        Every class, when some may be missing from ``y``.
    pos_label : label, optional
        The positive class; by default the second of two.

    Raises
    ------
    ValueError
        If a threshold does not lie between 0 and 1, there is no positive class, or estimates are
        not probabilities.

    Examples
    --------
    >>> net_benefit([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], [0.2, 0.5]).mean
    array([0.4375, 0.25  ])
    """
    problem = positive_problem(y, p, sample_weight, classes, pos_label)
    grid = np.arange(1, 100) / 100 if thresholds is None else np.asarray(thresholds, np.float64)
    grid = np.atleast_1d(grid)
    if grid.ndim != 1 or not ((grid > 0) & (grid < 1)).all():
        raise InputError(f"thresholds must lie between 0 and 1, both excluded, got {thresholds!r}")
    gain = np.where(problem.outcome[:, None] == 1, 1.0, -grid / (1 - grid))
    acted = problem.p[:, None] >= grid
    everybody: FloatArray = problem.weight @ gain / problem.weight.sum()
    return NetBenefit(grid, np.where(acted, gain, 0.0), problem.weight, everybody)
