"""Decisions at known costs, and which of them are the same at both bounds."""

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
    """What decisions by one method's probabilities cost.

    Attributes
    ----------
    mean_cost : float
        Mean cost of the decisions, given what was observed.
    expected_cost : float
        What the probabilities promised it to be.
    settled : float or None
        Share of decisions that are the same wherever the probability lies between its bounds;
        None where there are none.
    settled_cost, unsettled_cost : float or None
        Mean cost among those, and among the others; None where there are none.
    """

    mean_cost: float
    expected_cost: float
    settled: float | None = None
    settled_cost: float | None = None
    unsettled_cost: float | None = None


@dataclass(frozen=True, eq=False)
class CostMatrix:
    """What each decision costs, given the class that is observed.

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
        """Refuse costs that are not finite, and fewer than two decisions."""
        if not np.isfinite(self.costs).all():
            raise InputError("costs must be finite numbers, got NaN or inf")
        if not 2 <= len(self.decisions) == self.costs.shape[1]:
            raise InputError(f"costs must name at least two decisions, got {len(self.decisions)}")

    @classmethod
    def read(cls, given: Any, classes: NDArray[Any]) -> CostMatrix:
        """Return the costs that a matrix, a mapping, JSON text or a file contains.

        Parameters
        ----------
        given : CostMatrix, array-like, dict, str or path
            ``{"observed class": {"decision": cost}}``, or rows in the order of the classes.
        classes : ndarray of shape (k,)
            Labels, sorted.

        Raises
        ------
        InputError
            If it is none of these, a class is missing or unknown, or a cost is not a finite number.
        """
        if isinstance(given, CostMatrix):
            if len(given.costs) != len(classes):
                raise InputError(
                    f"costs must have a row for each of {len(classes)} classes, "
                    f"got {len(given.costs)}"
                )
            return given
        if isinstance(given, str | Path):
            given = _parse(given)
        names = [str(label) for label in classes]
        if isinstance(given, dict):
            return _from_dict(given, names)
        try:
            costs = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"costs must be {FORM}, got {str(given)[:80]}") from None
        if costs.shape != (len(names), len(names)):
            raise InputError(
                f"costs must have a row and a column for each of {len(names)} classes "
                f"({', '.join(names[:8])}), got shape {costs.shape}"
            )
        return cls(costs, tuple(names))

    @property
    def slack(self) -> float:
        """How far apart expected costs may be that rounding alone sets apart."""
        return 1e-12 * max(1.0, float(np.abs(self.costs).max()))

    def decide(self, p: FloatArray) -> IntArray:
        """Return the decision (n,) of least expected cost, the first of equals; p is (n, k)."""
        expected = p @ self.costs
        is_least = expected <= expected.min(axis=1, keepdims=True) + self.slack
        first: IntArray = is_least.argmax(axis=1)
        return first

    def paid(self, decided: IntArray, codes: IntArray) -> FloatArray:
        """Return what each decision cost, (n,), given the observed classes."""
        return np.asarray(self.costs[codes, decided])

    def settled(self, decided: IntArray, bounds: Multiprobability) -> NDArray[np.bool_]:
        """Tell which decisions (n,) cost least under all probabilities between the bounds.

        A decision j is settled if Σ p_i (c_ij − c_ij') is at most 0 for every other j' and every p
        with lower ≤ p ≤ upper and Σ p_i = 1.
        """
        same = np.ones(len(decided), dtype=bool)
        for j in np.unique(decided):
            mine = np.flatnonzero(decided == j)
            low, high = bounds.lower[mine], bounds.upper[mine]
            for other in range(self.costs.shape[1]):
                if other != j:
                    gap = self.costs[:, j] - self.costs[:, other]
                    same[mine] &= largest_mean(gap, low, high) <= self.slack
        return same

    def judge(self, p: FloatArray, bounds: Multiprobability | None, codes: IntArray) -> Decisions:
        """Return what the decisions by probabilities (n, k) cost, given the observed classes."""
        decided = self.decide(p)
        paid = self.paid(decided, codes)
        promised = np.take_along_axis(p @ self.costs, decided[:, None], axis=1)
        mean, expected = float(paid.mean()), float(promised.mean())
        if bounds is None:
            return Decisions(mean, expected)
        same = self.settled(decided, bounds)
        share = float(same.mean())
        return Decisions(mean, expected, share, _mean(paid[same]), _mean(paid[~same]))


def largest_mean(values: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return the largest Σ p_i v_i (n,) over all p with lower ≤ p ≤ upper (n, k) and Σ p_i = 1.

    Notes
    -----
    Every class is given its lower bound, and what is left goes to the classes of the largest value
    first: the optimum of a fractional knapsack.
    """
    order = np.argsort(-values, kind="stable")
    space = np.cumsum((upper - lower)[:, order], axis=1)
    left = np.maximum(1 - lower.sum(axis=1, keepdims=True), 0)
    filled = np.diff(np.minimum(space, left), axis=1, prepend=0.0)
    largest: FloatArray = lower @ values + filled @ values[order]
    return largest


def _mean(values: FloatArray) -> float | None:
    return float(values.mean()) if len(values) else None


def cost_file(given: str | Path) -> Path | None:
    """Return the file that costs are given by; None: they are JSON themselves."""
    if isinstance(given, str) and given.lstrip().startswith(("{", "[")):
        return None
    return Path(given)


def _parse(given: str | Path) -> Any:
    text, path = str(given), cost_file(given)
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


def _from_dict(given: dict[Any, Any], names: list[str]) -> CostMatrix:
    table = {str(name): row for name, row in given.items()}
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
