"""Fixed cells of the score or of its log-odds: on them, counting is a GROUP BY."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from vennforest._state import stored
from vennforest._validation import FloatArray, InputError, check_count, check_option, check_scores

On = Literal["score", "logit"]
"""What is cut into cells."""

REACH = 20.0
"""Log-odds beyond which scores share the outermost cells; up to here every cell has its floats."""

MOST_CELLS = 1 << 24
"""Of so many cells each one's middle still lies in it after rounding, also on log-odds."""


@stored("score-grid")
@attrs.frozen
class ScoreGrid:
    """A fixed grid: every score becomes the middle of its cell.

    The grid is chosen before the data are seen, so the rounded score is a score function like any
    other, and what is proved of scores is proved of it. A calibrator fitted to counts on a grid
    puts new scores on the same grid.

    Parameters
    ----------
    cells : int, default=1,048,576
        How many, from 1 to 2**24.
    on : {"score", "logit"}, default="score"
        ``"score"``: cells of equal width from ``low`` to ``high``; the cell of s is
        ``floor((s - low) / (high - low) * cells)``, that of ``high`` the last one. ``"logit"``:
        of scores in [0, 1], cells of equal width of ``ln s - ln(1 - s)`` from -20 to 20; beyond
        these two count the outermost cells. Rare events need this one.
    low, high : float, default=0.0 and 1.0
        The range of the scores; 0 and 1 with ``on="logit"``.

    Raises
    ------
    InputError
        A ``ValueError``: a parameter has none of these values.

    Notes
    -----
    From 0 to 1 with a power of two of cells every step of the formula is exact, so all
    systems agree on every cell. Logarithms of two systems may differ in the last bit: there a
    score within 1e-15 of the edge of a cell of log-odds may fall in its neighbour.

    Examples
    --------
    >>> ScoreGrid(cells=4)([0.0, 0.3, 1.0])
    array([0.125, 0.375, 0.875])
    """

    cells: int = 1 << 20
    on: On = "score"
    low: float = 0.0
    high: float = 1.0

    def __attrs_post_init__(self) -> None:
        """Refuse anything but a grid."""
        check_count(self.cells, "cells")
        if self.cells > MOST_CELLS:
            raise InputError(f"cells must be at most {MOST_CELLS}, got {self.cells}")
        check_option(self.on, On, "on")
        for name in ("low", "high"):
            value: Any = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
                raise InputError(f"{name} must be a finite number, got {value!r}")
            object.__setattr__(self, name, float(value))
        object.__setattr__(self, "cells", int(self.cells))
        with np.errstate(over="ignore"):
            width = np.float64(self.high) - np.float64(self.low)
        if not 0 < width < np.inf:
            raise InputError(
                f"high must lie above low={self.low}, by less than 1.8e308, got {self.high}"
            )
        # Narrower, and floats between low and high are fewer than cells.
        largest = np.float64(max(abs(self.low), abs(self.high)))
        if width / self.cells < 4 * np.spacing(largest):
            raise InputError(
                f"cells must be fewer than floats between {self.low} and {self.high}, "
                f"got {self.cells}"
            )
        if self.on == "logit" and (self.low, self.high) != (0.0, 1.0):
            raise InputError(
                f'low and high must be 0 and 1 with on="logit", got {self.low} and {self.high}'
            )

    def cell_of(self, scores: ArrayLike) -> NDArray[np.int64]:
        """Return the number of each score's cell, from 0, in the shape of the scores.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, k)
            In [low, high].

        Raises
        ------
        ValueError
            If a score is NaN or outside the range of the grid; the message names the row.
        """
        s = check_scores(scores)
        outside = (s < self.low) | (s > self.high)
        if outside.any():
            at = tuple(int(i) for i in np.argwhere(outside)[0])
            way_out = "" if self.on == "logit" else ": give ScoreGrid another low or high"
            raise ValueError(
                f"scores must be in [{self.low:g}, {self.high:g}], the range of the grid, "
                f"got {s[at]} at position {at[0]}{way_out}"
            )
        if self.on == "score":
            place = (s - self.low) / (self.high - self.low) * self.cells
        else:
            with np.errstate(divide="ignore"):
                z = np.clip(np.log(s) - np.log(1 - s), -REACH, REACH)
            place = (z + REACH) / (2 * REACH) * self.cells
        cells: NDArray[np.int64] = np.minimum(place.astype(np.int64), self.cells - 1)
        return cells

    def score_of(self, cells: ArrayLike) -> FloatArray:
        """Return the score that stands for each cell: its middle.

        Parameters
        ----------
        cells : array-like of int
            Numbers of cells, as ``cell_of`` gives them.

        Raises
        ------
        ValueError
            If there is no such cell.
        """
        number = np.asarray(cells)
        if number.dtype.kind not in "iu" and number.size:
            raise ValueError(f"cells must contain integers, got {number.dtype}")
        wrong = (number < 0) | (number >= self.cells)
        if wrong.any():
            raise ValueError(f"cells must be in [0, {self.cells - 1}], got {number[wrong].flat[0]}")
        share = (number.astype(np.float64) + 0.5) / self.cells
        if self.on == "logit":
            middle: FloatArray = expit(share * (2 * REACH) - REACH)
        else:
            middle = self.low + share * (self.high - self.low)
        return middle

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Return scores (n,) or (n, k), each replaced by the middle of its cell.

        Raises
        ------
        ValueError
            As ``cell_of``.
        """
        return self.score_of(self.cell_of(scores))

    def to_sql(self, score: str) -> str:
        """Return the expression of a cell's number in SQL (DuckDB, Spark, PostgreSQL).

        Parameters
        ----------
        score : str
            The column, or an expression, quoted as the system wants it; every value must be in
            the range of the grid, which the expression does not check.
        """
        cells, reach = sql_number(self.cells), sql_number(REACH)
        if self.on == "score":
            width = sql_number(self.high - self.low)
            place = f"({score} - {sql_number(self.low)}) / {width} * {cells}"
        else:
            z = (
                f"CASE WHEN {score} <= 0 THEN -{reach} WHEN {score} >= 1 THEN {reach} "
                f"ELSE GREATEST(LEAST(LN({score}) - LN(1 - {score}), {reach}), -{reach}) END"
            )
            place = f"(({z}) + {reach}) / {sql_number(2 * REACH)} * {cells}"
        return f"CAST(LEAST(FLOOR({place}), {sql_number(self.cells - 1)}) AS BIGINT)"


def sql_number(value: float) -> str:
    """Return a finite number as SQL reads it, as a double and to the last bit."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"
