"""Decisions of least expected cost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._files import read_json
from vennforest._messages import shown
from vennforest._validation import FloatArray, InputError, IntArray, is_frame, text_of_label

COSTS_FORM = (
    'JSON {"observed class": {"decision": cost}}, or a list of rows in the order of the classes'
)


@dataclass(frozen=True, eq=False)
class CostMatrix:
    """Cost of each decision for each observed class.

    Attributes
    ----------
    costs : ndarray of shape (k, d)
        Costs, with a row for each class and a column for each decision; a gain is negative.
    decisions : tuple of str
        Names of the decisions.
    """

    costs: FloatArray
    decisions: tuple[str, ...]

    def __post_init__(self) -> None:
        """Raise an error if a cost is not finite or there are fewer than two decisions."""
        if not np.isfinite(self.costs).all():
            raise InputError("costs must be finite numbers, got NaN or inf")
        if not 2 <= len(self.decisions) == self.costs.shape[1]:
            raise InputError(f"costs must name at least two decisions, got {len(self.decisions)}")

    @classmethod
    def read(cls, source: Any, classes: NDArray[Any]) -> CostMatrix:
        """Read costs from a matrix, a mapping, JSON text or a file.

        Parameters
        ----------
        source : CostMatrix, array-like, data frame, dict, str or path
            ``{"observed class": {"decision": cost}}``, a data frame of pandas whose index and
            columns are these, or rows in the order of the classes.
        classes : ndarray of shape (k,)
            Sorted labels.

        Raises
        ------
        InputError
            If ``source`` has another form, a class is missing or unknown, or a cost is not finite.
        """
        names = tuple(text_of_label(label) for label in classes.tolist())
        if isinstance(source, CostMatrix):
            if len(source.costs) != len(names):
                raise InputError(
                    f"costs must have a row for each of {len(names)} classes, "
                    f"got {len(source.costs)}"
                )
            return source
        if isinstance(source, str | Path):
            source = read_json(source, "costs", COSTS_FORM)
        decisions = names
        if is_frame(source) and hasattr(source, "index"):  # of pandas
            source = source.to_dict("index")
        if isinstance(source, dict):
            decisions, source = _from_dict(source, names)
        try:
            costs = np.asarray(source, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"costs must be {COSTS_FORM}, got {shown(source)}") from None
        if costs.shape != (len(names), len(decisions)):
            raise InputError(
                f"costs must have a row and a column for each of {len(names)} classes "
                f"({', '.join(names[:8])}), got shape {costs.shape}"
            )
        return cls(costs, decisions)

    def decide(self, p: FloatArray) -> IntArray:
        """Return the index of the decision with the least expected cost, (n,), for p (n, k)."""
        expected = p @ self.costs
        rounding = 1e-12 * max(1.0, float(np.abs(self.costs).max()))
        is_least = expected <= expected.min(axis=1, keepdims=True) + rounding
        return np.asarray(is_least.argmax(axis=1))

    def paid(self, decisions: IntArray, codes: IntArray) -> FloatArray:
        """Return the cost of each decision (n,), given the observed classes (n,)."""
        return np.asarray(self.costs[codes, decisions])


def _from_dict(
    mapping: dict[Any, Any], names: tuple[str, ...]
) -> tuple[tuple[str, ...], list[list[Any]]]:
    """Return the names of the decisions, and the rows of costs in the order of the classes."""
    table = {text_of_label(name): row for name, row in mapping.items()}
    if sorted(table) != sorted(names):
        raise InputError(
            f"costs must have a row for each class ({', '.join(names)}), got "
            f"{', '.join(table) or 'none'}"
        )
    if not all(isinstance(row, dict) for row in table.values()):
        raise InputError(f"costs must be {COSTS_FORM}, got a row without named decisions")
    decisions = list(table[names[0]])
    for name, row in table.items():
        if set(row) != set(decisions):
            raise InputError(
                f"costs must name the same decisions for each class, got {list(row)} for {name!r} "
                f"and {decisions} for {names[0]!r}"
            )
    rows = [[table[name][key] for key in decisions] for name in names]
    return tuple(map(str, decisions)), rows
