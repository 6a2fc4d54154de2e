"""Decisions of least expected cost, and their agreement over the bounds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._files import refuse_special
from vennforest._validation import FloatArray, InputError, IntArray
from vennforest.multiprobability import Multiprobability

FORM = 'JSON {"observed class": {"decision": cost}}, or a list of rows in the order of the classes'


@dataclass(frozen=True)
class Decisions:
    """Cost of decisions by one method's probabilities.

    Attributes
    ----------
    mean_cost : float
        Mean cost of the decisions, given the observed classes.
    expected_cost : float
        Its expectation under the probabilities.
    settled : float or None
        Share of decisions that are the same for all probabilities between the bounds; None
        without bounds.
    settled_cost, unsettled_cost : float or None
        Mean cost of these and of the other decisions; None where there are none.
    """

    mean_cost: float
    expected_cost: float
    settled: float | None = None
    settled_cost: float | None = None
    unsettled_cost: float | None = None


@dataclass(frozen=True, eq=False)
class CostMatrix:
    """Cost of each decision for each observed class.

    Attributes
    ----------
    costs : ndarray of shape (k, d)
        A row for each class, a column for each decision; negative: a gain.
    decisions : tuple of str
        Their names.
    """

    costs: FloatArray
    decisions: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise an error for costs that are not finite, or fewer than two decisions."""
        if not np.isfinite(self.costs).all():
            raise InputError("costs must be finite numbers, got NaN or inf")
        if not 2 <= len(self.decisions) == self.costs.shape[1]:
            raise InputError(f"costs must name at least two decisions, got {len(self.decisions)}")

    @classmethod
    def read(cls, source: Any, classes: NDArray[Any]) -> CostMatrix:
        """Read costs from a matrix, a mapping, JSON text or a file.

        Parameters
        ----------
        source : CostMatrix, array-like, dict, str or path
            ``{"observed class": {"decision": cost}}``, or rows in the order of the classes.
        classes : ndarray of shape (k,)
            Labels, sorted.

        Raises
        ------
        InputError
            If it is none of these, a class is missing or unknown, or a cost is not a finite number.
        """
        if isinstance(source, CostMatrix):
            if len(source.costs) != len(classes):
                raise InputError(
                    f"costs must have a row for each of {len(classes)} classes, "
                    f"got {len(source.costs)}"
                )
            return source
        if isinstance(source, str | Path):
            source = _parse(source)
        names = [str(label) for label in classes]
        if isinstance(source, dict):
            return _from_dict(source, names)
        try:
            costs = np.asarray(source, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"costs must be {FORM}, got {str(source)[:80]}") from None
        if costs.shape != (len(names), len(names)):
            raise InputError(
                f"costs must have a row and a column for each of {len(names)} classes "
                f"({', '.join(names[:8])}), got shape {costs.shape}"
            )
        return cls(costs, tuple(names))

    @property
    def tolerance(self) -> float:
        """Difference of equal expected costs by rounding."""
        return 1e-12 * max(1.0, float(np.abs(self.costs).max()))

    def decide(self, p: FloatArray) -> IntArray:
        """Return the decision (n,) of least expected cost, the first of equals; p is (n, k)."""
        expected = p @ self.costs
        is_least = expected <= expected.min(axis=1, keepdims=True) + self.tolerance
        return np.asarray(is_least.argmax(axis=1))

    def paid(self, decisions: IntArray, codes: IntArray) -> FloatArray:
        """Return the cost of each decision (n,), given the observed classes (n,)."""
        return np.asarray(self.costs[codes, decisions])

    def settled(self, decisions: IntArray, bounds: Multiprobability) -> NDArray[np.bool_]:
        """Return which decisions (n,) cost least for all probabilities between the bounds, (n,).

        A decision j is settled if Σ p_i (c_ij − c_ij') is at most 0 for every other j' and every p
        with lower ≤ p ≤ upper and Σ p_i = 1.
        """
        settled = np.ones(len(decisions), dtype=bool)
        for j in np.unique(decisions):
            rows = np.flatnonzero(decisions == j)
            for excess in self.costs[:, [j]].T - self.costs.T:
                largest = largest_mean(excess, bounds.lower[rows], bounds.upper[rows])
                settled[rows] &= largest <= self.tolerance
        return settled

    def judge(self, p: FloatArray, bounds: Multiprobability | None, codes: IntArray) -> Decisions:
        """Return the cost of the decisions by probabilities (n, k), given the observed classes."""
        decisions = self.decide(p)
        costs = self.paid(decisions, codes)
        expected = np.take_along_axis(p @ self.costs, decisions[:, None], axis=1)
        means = float(costs.mean()), float(expected.mean())
        if bounds is None:
            return Decisions(*means)
        settled = self.settled(decisions, bounds)
        share = float(settled.mean())
        return Decisions(*means, share, _mean(costs[settled]), _mean(costs[~settled]))


def largest_mean(values: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the largest Σ p_i v_i (n,) over all p with lower ≤ p ≤ upper (n, k) and Σ p_i = 1.

    Notes
    -----
    Classes start at their lower bounds, and the rest goes to the classes of the largest value
    first: the optimum of a fractional knapsack.
    """
    order = np.argsort(-values, kind="stable")
    capacity = np.cumsum((upper - lower)[:, order], axis=1)
    rest = np.maximum(1 - lower.sum(axis=1, keepdims=True), 0)
    added = np.diff(np.minimum(capacity, rest), axis=1, prepend=0.0)
    return np.asarray(lower @ values + added @ values[order])


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if len(values) else None


def cost_file(source: str | Path) -> Path | None:
    """Return the path of a file of costs, None for JSON text."""
    is_json = isinstance(source, str) and source.lstrip().startswith(("{", "["))
    return None if is_json else Path(source)


def _parse(source: str | Path) -> Any:
    text, path = str(source), cost_file(source)
    if path is not None:
        try:
            refuse_special(path)
            text = path.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            raise InputError(f"costs must be {FORM}, and there is no file {path}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"the costs in {path} cannot be read as text: {error}") from None
    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"costs must be {FORM}, got JSON with a fault: {error}") from None


def _from_dict(mapping: dict[Any, Any], names: list[str]) -> CostMatrix:
    table = {str(name): row for name, row in mapping.items()}
    unknown = [name for name in table if name not in names]
    missing = [name for name in names if name not in table]
    if unknown or missing:
        fault = f"no row for class {missing[0]!r}" if missing else f"unknown class {unknown[0]!r}"
        raise InputError(f"costs must have a row for each class ({', '.join(names)}), got {fault}")
    if any(not isinstance(row, dict) or not row for row in table.values()):
        raise InputError(f"costs must be {FORM}, got a row without named decisions")
    rows = {name: {str(key): cost for key, cost in table[name].items()} for name in names}
    decisions = list(rows[names[0]])
    for name, row in rows.items():
        if set(row) != set(decisions):
            raise InputError(
                f"costs must name the same decisions for each class, got {list(row)} for {name!r} "
                f"and {decisions} for {names[0]!r}"
            )
    try:
        costs = np.array([[float(rows[name][key]) for key in decisions] for name in names])
    except (TypeError, ValueError):
        raise InputError("costs must be numbers, got something else among them") from None
    return CostMatrix(costs, tuple(decisions))
