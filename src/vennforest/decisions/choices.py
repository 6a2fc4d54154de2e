"""What to do at known costs: by the probability, against the worst case, or only safely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._validation import FloatArray, InputError, IntArray, check_option
from vennforest.decisions.costs import CostMatrix, largest_mean
from vennforest.metrics._inputs import check_probabilities
from vennforest.multiprobability import Multiprobability

Rule = Literal["expected", "cautious", "safe"]
"""By which rule a decision is chosen."""


@dataclass(frozen=True, eq=False)
class Choices:
    """The decision chosen for each object, and what it is expected to cost.

    Attributes
    ----------
    index : ndarray of shape (n,)
        Number of the decision; -1 where none is safe.
    decisions : tuple of str
        Their names.
    lower, upper : ndarray of shape (n,)
        Least and largest expected cost of the decision under the probabilities between the bounds;
        NaN where there is no decision.
    """

    index: IntArray
    decisions: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray

    def __len__(self) -> int:
        return len(self.index)

    def names(self, otherwise: str = "") -> NDArray[Any]:
        """Return the name of each decision, shape (n,), and ``otherwise`` where there is none."""
        return np.array([*self.decisions, otherwise])[self.index]


def decide(
    bounds: Multiprobability, costs: Any, rule: Rule = "expected", *, p: ArrayLike | None = None
) -> Choices:
    """Choose among decisions whose costs are known for each class.

    By probabilities alone, without bounds, ``CostMatrix.read(costs, classes).decide(p)`` chooses.

    Parameters
    ----------
    bounds : Multiprobability
        Of n objects and k classes.
    costs : CostMatrix, array-like of shape (k, k), dict, str or path
        ``{"observed class": {"decision": cost}}``, or what else `CostMatrix.read` takes.
    rule : {"expected", "cautious", "safe"}
        ``"expected"``: the least expected cost under the probability. ``"cautious"``: the least of
        the largest expected costs under any probability between the bounds (minimax); of equals
        the one of the least expected cost. ``"safe"``: the decision that costs least under *every*
        probability between the bounds, or none.
    p : array-like of shape (n, k), optional
        The probability that goes with the bounds; by default their merge for log loss.

    Raises
    ------
    ValueError
        If bounds are none, costs are of other classes, or probabilities are none.

    Notes
    -----
    Of decisions that cost the same but for rounding the first is taken. Over more than two classes
    "between the bounds" means every p with l <= p <= u and sum 1: more than the k distributions of
    a Venn predictor, so cautious and safe decisions are on the safe side.

    No theorem says that a safe decision is the best one for objects like this; what bounds do
    promise to who acts where p0 exceeds a threshold stands in ``docs/shift-and-groups.md``.

    Examples
    --------
    >>> import numpy as np
    >>> m = Multiprobability(
    ...     np.array([[0.9, 0.02], [0.7, 0.1], [0.2, 0.7]]),
    ...     np.array([[0.98, 0.1], [0.9, 0.3], [0.3, 0.8]]),
    ...     np.array(["healthy", "ill"]),
    ... )
    >>> costs = {"healthy": {"wait": 0, "treat": 1}, "ill": {"wait": 5, "treat": 0}}
    >>> decide(m, costs, "safe").names("ask a doctor")
    array(['wait', 'ask a doctor', 'treat'], dtype='<U12')
    >>> decide(m, costs, "cautious").names()
    array(['wait', 'treat', 'treat'], dtype='<U5')
    """
    check_option(rule, Rule, "rule")
    _check_bounds(bounds)
    matrix = CostMatrix.read(costs, bounds.classes)
    middle = bounds.merge("log") if p is None else check_probabilities(p)
    if middle.shape != bounds.lower.shape:
        raise InputError(f"p must have shape {bounds.lower.shape}, got {middle.shape}")
    if rule == "expected":
        index = matrix.decide(middle)
    elif rule == "cautious":
        index = _cautious(matrix, bounds, middle)
    else:
        index = _safe(matrix, bounds)
    low, high = np.full(len(index), np.nan), np.full(len(index), np.nan)
    for j in np.unique(index[index >= 0]):
        rows, cost = index == j, matrix.costs[:, j]
        high[rows] = largest_mean(cost, bounds.lower[rows], bounds.upper[rows])
        low[rows] = -largest_mean(-cost, bounds.lower[rows], bounds.upper[rows])
    return Choices(index, matrix.decisions, low, high)


def _cautious(matrix: CostMatrix, bounds: Multiprobability, p: FloatArray) -> IntArray:
    worst = matrix.largest(bounds)
    least = worst <= worst.min(axis=1, keepdims=True) + matrix.slack
    return matrix.first_least(np.where(least, p @ matrix.costs, np.inf))


def _safe(matrix: CostMatrix, bounds: Multiprobability) -> IntArray:
    index = np.full(len(bounds), -1, dtype=np.intp)
    for j in range(matrix.costs.shape[1]):
        open_rows = np.flatnonzero(index < 0)
        decided = np.full(len(open_rows), j, dtype=np.intp)
        index[open_rows[matrix.settled(decided, bounds[open_rows])]] = j
    return index


def _check_bounds(bounds: Multiprobability) -> None:
    if not isinstance(bounds, Multiprobability):
        raise InputError(
            f"bounds must be a Multiprobability, got {type(bounds).__name__}: without bounds use "
            "CostMatrix.read(costs, classes).decide(p)"
        )
    low, high = bounds.lower, bounds.upper
    if np.isnan(low).any() or np.isnan(high).any() or (low > high).any():
        raise InputError("bounds must be numbers with lower <= upper, got others")
    if (low.sum(axis=1) > 1 + 1e-9).any() or (high.sum(axis=1) < 1 - 1e-9).any():
        raise InputError(
            "bounds must leave room for probabilities that sum to 1, got a row that does not"
        )
