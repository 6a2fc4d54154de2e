"""Calibrators of two classes as formulas, in whatever language has sums, logarithms and tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass
from functools import reduce, singledispatch
from typing import Any, Literal

import attrs
import numpy as np

from vennforest.calibrators.core.exports import CalibrationTable
from vennforest.calibrators.core.interface import Calibrator
from vennforest.calibrators.core.one_vs_rest import OneVsRestCalibrator
from vennforest.calibrators.core.probabilities import Interior
from vennforest.calibrators.maps.beta import BetaMap
from vennforest.calibrators.maps.bostrom import BostromScaling
from vennforest.calibrators.maps.isotonic import IsotonicCalibration, LinearMap
from vennforest.calibrators.maps.log_scores import Shrinkage, ToProbabilities
from vennforest.calibrators.maps.matrix import MatrixScaling
from vennforest.calibrators.maps.platt import PlattMap
from vennforest.calibrators.maps.quadratic import LogOddsCalibrator
from vennforest.calibrators.maps.slopes import SlopeMap
from vennforest.calibrators.maps.temperature import Temperature, TemperatureScaling
from vennforest.calibrators.maps.uncalibrated import Uncalibrated
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.calibrators.venn import Venn
from vennforest.calibrators.venn_abers import VennAbers
from vennforest.counts import ScoreGrid
from vennforest.counts.grid import REACH
from vennforest.export.step_tables import table_of

Operation = Literal[
    "add", "subtract", "multiply", "divide", "min", "max", "log", "exp", "floor", "if <="
]
"""What a language computes; the last of four terms: the third where the first is <= the second."""

STEEPEST = 700.0
"""Log-odds beyond which a probability is as good as 0 or 1, and some systems' exp overflows."""


@dataclass(frozen=True)
class Term:
    """A number for every row, in a language."""

    language: Language
    code: str

    def __add__(self, other: Term | float) -> Term:
        return self.language.apply("add", self, other)

    def __radd__(self, other: float) -> Term:
        return self.language.apply("add", other, self)

    def __sub__(self, other: Term | float) -> Term:
        return self.language.apply("subtract", self, other)

    def __rsub__(self, other: float) -> Term:
        return self.language.apply("subtract", other, self)

    def __mul__(self, other: Term | float) -> Term:
        return self.language.apply("multiply", self, other)

    def __rmul__(self, other: float) -> Term:
        return self.language.apply("multiply", other, self)

    def __truediv__(self, other: Term | float) -> Term:
        return self.language.apply("divide", self, other)

    def __rtruediv__(self, other: float) -> Term:
        return self.language.apply("divide", other, self)

    def clip(self, low: Term | float, high: Term | float) -> Term:
        """Return the term, cut off at the ends."""
        return self.language.apply("min", self.language.apply("max", self, low), high)

    def log(self) -> Term:
        """Return the natural logarithm."""
        return self.language.apply("log", self)

    def logistic(self) -> Term:
        """Return ``1 / (1 + exp(-x))``."""
        return 1.0 / (1.0 + self.language.apply("exp", 0.0 - self.clip(-STEEPEST, STEEPEST)))

    def unless_above(self, bound: Term | float, value: Term | float, other: Term | float) -> Term:
        """Return the value where the term is at most the bound, else the other."""
        return self.language.apply("if <=", self, bound, value, other)

    def keep(self) -> Term:
        """Return the same, computed once for several uses."""
        return self.language.keep(self)


class Language(ABC):
    """What formulas are written in."""

    @abstractmethod
    def apply(self, operation: Operation, *terms: Term | float) -> Term:
        """Return what an operation makes of terms."""

    @abstractmethod
    def look_up(self, table: CalibrationTable, x: Term) -> dict[str, Term]:
        """Return what stands in the interval of x, by the names of the columns there are."""

    def keep(self, term: Term) -> Term:
        """Return the same term, computed once for several uses."""
        return term

    def without_underflow(self, x: Term, unit: float = 1.0) -> Term:
        """Return x, or 0 where the language refuses what is computed of it as too small."""
        return x


def answer(calibrator: Calibrator, x: Term) -> dict[str, Term]:
    """Return p, and with bounds p0 and p1, of a calibrator of two classes for a score x.

    Raises
    ------
    ValueError
        If it is neither a table nor a formula, such as one with a user's function.
    """
    grid: ScoreGrid | None = calibrator._fitted.grid
    middle = x if grid is None else _middle(grid, x)
    if (at := calibrator._fitted.reversed_at) is not None:
        return answer(_of_reversed(calibrator), (middle * -1.0 + at).keep())
    try:
        table = table_of(calibrator)
    except ValueError:
        return {"p": formula(calibrator, middle)}
    # The table knows the edges of the grid's cells.
    return _with_smooth(calibrator, x.language.look_up(table, x), middle)


def _of_reversed(calibrator: Calibrator) -> Calibrator:
    """Return a calibrator of the scores that another one has put on a grid and reversed."""
    made = copy(calibrator)
    made._fitted = attrs.evolve(calibrator._fitted, grid=None, reversed_at=None)
    return made


def _middle(grid: ScoreGrid, x: Term) -> Term:
    """Return the middle of a score's cell."""
    low, high = grid.low, grid.high
    if grid.on == "logit":
        # The logarithms of 0 are far beyond where log-odds are cut off.
        s, low, high = x.clip(1e-300, 1.0).keep(), -REACH, REACH
        x = (s.log() - (1.0 - s).clip(1e-300, 1.0).log()).clip(low, high)
    place = (x - low) / (high - low) * float(grid.cells)
    cell = x.language.apply("min", x.language.apply("floor", place), grid.cells - 1.0)
    middle = low + (cell + 0.5) / float(grid.cells) * (high - low)
    return (middle.logistic() if grid.on == "logit" else middle).keep()


def _with_smooth(calibrator: Calibrator, found: dict[str, Term], x: Term) -> dict[str, Term]:
    """Add the smooth estimate, clipped into the bounds, where p is not in the table."""
    if "p" in found:
        return found
    own: Any = calibrator._learnt.smoother if isinstance(calibrator, Venn) else calibrator
    smooth = own.smooth_.maps[0]
    if smooth.interior is not None:
        x = x.clip(0.0, 1.0)
    return {**found, "p": formula(smooth, x).clip(found["p0"], found["p1"])}


@singledispatch
def formula(one: Any, x: Term) -> Term:
    """Return the probability of the second class for a score x."""
    raise _refusal(one)


def _refusal(one: Any) -> ValueError:
    return ValueError(f"a formula must be of a calibrator that is one, got {one}")


@formula.register
def _(one: VennAbers | Venn | IsotonicCalibration, x: Term) -> Term:
    try:
        table = table_of(one)
    except ValueError:
        if isinstance(one, IsotonicCalibration):
            return formula(one.maps_[0], x)
        raise _refusal(one) from None
    return _with_smooth(one, x.language.look_up(table, x), x)["p"]


@formula.register
def _(one: Uncalibrated, x: Term) -> Term:
    return x


@formula.register
def _(one: OneVsRestCalibrator, x: Term) -> Term:
    return formula(one.maps_[0], x)


@formula.register
def _(one: LogOddsCalibrator, x: Term) -> Term:
    return formula(one.maps_[0], formula(one._learnt.to_probabilities, x))


@formula.register
def _(one: ToProbabilities, x: Term) -> Term:
    return x if one.temperature is None else formula(one.temperature, x).keep()


@formula.register
def _(one: PlattMap, x: Term) -> Term:
    if one.interior is not None:
        x = _log_odds(one.interior, x)
    scale = one.standard
    z = (x.language.without_underflow(x, scale.unit) / scale.unit - scale.centre) / scale.spread
    return (one.slope * z + one.intercept).logistic()


@formula.register
def _(one: BetaMap, x: Term) -> Term:
    s = x.clip(one.interior.low, one.interior.high).keep()
    return (one.a * s.log() - one.b * (1.0 - s).log() + one.c).logistic()


@formula.register
def _(one: LinearMap, x: Term) -> Term:
    knots, values = one.knots.tolist(), one.values.tolist()
    p: Term | float = values[-1]
    for left in range(len(knots) - 2, -1, -1):
        low, high = values[left], values[left + 1]
        share = (x - knots[left]) / (knots[left + 1] - knots[left])
        inside = (low * (1.0 - share) + high * share).clip(low, high)
        p = x.unless_above(knots[left + 1], inside, p)
    return x.unless_above(knots[0], values[0], p)


@formula.register
def _(one: SlopeMap, x: Term) -> Term:
    first, second = _drawn_logs(one.shrinkage, x)
    z = (second - first).keep()
    knots, slopes = one.knots.tolist(), one.slopes.tolist()
    at: list[float] = one.logits(one.knots).tolist()

    def line(k: int) -> Term:
        rise: Term = slopes[k] * (z - knots[k])
        return at[k] + rise

    f = line(len(knots) - 1)
    for k in range(len(knots) - 2, -1, -1):
        bend = (slopes[k + 1] - slopes[k]) / (knots[k + 1] - knots[k]) / 2
        t = z - knots[k]
        f = z.unless_above(knots[k + 1], line(k) + bend * t * t, f)
    return z.unless_above(knots[0], line(0), f).logistic()


@formula.register
def _(one: TemperatureScaling, x: Term) -> Term:
    found: Temperature = one._learnt
    z = x if found.interior is None else _log_odds(found.interior, x)
    # Half of the logit is what is scaled, see the class.
    return (z / (2 * found.unit) * found.beta).logistic()


@formula.register
def _(one: MatrixScaling, x: Term) -> Term:
    p = formula(one._learnt.to_probabilities, x)
    first, second = (log + float(np.log(2.0)) for log in _drawn_logs(one._learnt.shrinkage, p))
    W, b = one._learnt.softmax.slopes, one._learnt.softmax.intercepts
    f = float(W[0, 1] - W[0, 0]) * first + float(W[1, 1] - W[1, 0]) * second
    return (f + float(b[1] - b[0])).logistic()


@formula.register
def _(one: PooledCalibration, x: Term) -> Term:
    p = formula(one._learnt.to_probabilities, x)
    parts = [weight * formula(one.members_[name], p) for name, weight in one.weights_.items()]
    return reduce(Term.__add__, parts) / sum(one.weights_.values())


@formula.register
def _(one: BostromScaling, x: Term) -> Term:
    x = x.language.without_underflow(x)
    other = (1.0 - x).keep()
    largest = x.language.apply("max", x, other).keep()
    q = (1.0 - (float(one.A_) * largest - float(one.B_)).logistic()).keep()
    return x.unless_above(other, x * q, 1.0 - (1.0 - largest) * q)


def _log_odds(interior: Interior, x: Term) -> Term:
    clipped = x.clip(interior.low, interior.high).keep()
    return clipped.log() - (1.0 - clipped).log()


def _drawn_logs(shrinkage: Shrinkage, x: Term) -> tuple[Term, Term]:
    """Return the logarithms of both classes' drawn probabilities."""
    if shrinkage.c == 0:
        x = x.clip(shrinkage.interior.low, shrinkage.interior.high).keep()
    first, second = (float(shrinkage.c * share) for share in shrinkage.shares)
    whole = 1 + shrinkage.c
    return ((1.0 - x + first) / whole).log().keep(), ((x + second) / whole).log().keep()
