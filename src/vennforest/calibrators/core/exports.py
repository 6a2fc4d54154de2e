"""The door to what stands above calibrators: their JSON, SQL and tables."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal, NamedTuple, Protocol

from vennforest._validation import FloatArray

Dialect = Literal["duckdb", "spark", "postgres"]
"""Whose SQL."""


class CalibrationTable(NamedTuple):
    """Intervals of the score, ascending, and what a calibrator of two classes says in each.

    Row i holds for scores s with ``start[i] <= s < start[i + 1]``, the last one for all from
    ``start[-1]`` on. Arrays of shape (m,), or None where the calibrator has no such column.
    """

    start: FloatArray
    """The first score of each interval; ``start[0]`` is the smallest score that is accepted."""
    p0: FloatArray | None
    """Lower probability of the second class, in [0, 1]; None without bounds."""
    p1: FloatArray | None
    """Upper probability of the second class, in [0, 1]; None without bounds."""
    p: FloatArray | None
    """Probability of the second class, in [0, 1]; None where it moves within intervals."""


class Exports(Protocol):
    """What calibrators ask of the package ``vennforest.export``."""

    def to_json(self, calibrator: Any) -> str:
        """Return `Calibrator.to_json`."""
        ...

    def from_json(self, text: str | bytes) -> Any:
        """Return `Calibrator.from_json`, of whatever class."""
        ...

    def to_sql(
        self,
        calibrator: Any,
        dialect: Dialect,
        table: str,
        score: str | Sequence[str],
        steps: str | None,
    ) -> str:
        """Return `Calibrator.to_sql`."""
        ...

    def table_of(self, calibrator: Any) -> CalibrationTable:
        """Return `Calibrator.to_table`."""
        ...


def exports() -> Exports:
    """Return the package that writes calibrators, ``vennforest.export``.

    It knows them all and none of them knows it, so it is imported when it is first asked for.
    """
    package: Exports = import_module("vennforest.export")
    return package
