"""A fitted calibrator of two classes as a query: a SELECT that adds its answers to a table."""

from __future__ import annotations

from functools import singledispatch
from typing import Any, Literal

import numpy as np

from vennforest._validation import FloatArray, InputError, check_option
from vennforest.calibrators._log_scores import Shrinkage, ToProbabilities
from vennforest.calibrators._probabilities import Interior
from vennforest.calibrators._slopes import SlopeMap
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.beta import BetaMap
from vennforest.calibrators.bostrom import BostromScaling
from vennforest.calibrators.isotonic import IsotonicCalibration, LinearMap
from vennforest.calibrators.matrix import MatrixScaling
from vennforest.calibrators.one_vs_rest import OneVsRestCalibrator
from vennforest.calibrators.platt import PlattMap
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.calibrators.quadratic import LogOddsCalibrator
from vennforest.calibrators.step_functions import CalibrationTable, accepted, table_of
from vennforest.calibrators.temperature import TemperatureScaling
from vennforest.calibrators.uncalibrated import Uncalibrated
from vennforest.calibrators.venn import Venn
from vennforest.calibrators.venn_abers import VennAbers
from vennforest.counts import ScoreGrid
from vennforest.counts.grid import sql_number as number

Dialect = Literal["duckdb", "spark", "postgres"]
"""Whose SQL."""

STEEPEST = 700.0
"""Log-odds beyond which a probability is as good as 0 or 1, and some systems' EXP overflows."""


def to_sql(
    calibrator: Calibrator, dialect: Dialect, table: str, score: str, steps: str | None
) -> str:
    """Return the query: see `Calibrator.to_sql`.

    Raises
    ------
    InputError
        If the dialect is unknown.
    ValueError
        If the calibrator is not of two classes, or holds a user's own function.
    """
    check_option(dialect, Dialect, "dialect")
    for name, value in (("table", table), ("score", score)):
        if not isinstance(value, str) or not value:
            raise InputError(f"{name} must be a name, got {value!r}")
    if len(calibrator.classes_) != 2:
        raise ValueError(f"classes must be two for SQL, got {len(calibrator.classes_)}")
    query = _Query(dialect, table, score)
    return query.select(query.answer(calibrator, steps), query.accepts(calibrator))


class _Query:
    """Parts of a query whose later parts name the values of earlier ones."""

    def __init__(self, dialect: Dialect, table: str, score: str) -> None:
        self.dialect, self.table = dialect, table
        quote = "`" if dialect == "spark" else '"'
        self.column = f"t.{quote}{score.replace(quote, 2 * quote)}{quote}"
        self.double = "DOUBLE PRECISION" if dialect == "postgres" else "DOUBLE"
        self.joins: list[str] = []
        self.hints: list[str] = []
        self.score = f"CAST({self.column} AS {self.double})"

    def let(self, expression: str) -> str:
        """Give a value a name, and return it."""
        name = f"v{len(self.joins)}"
        self.joins.append(f"CROSS JOIN LATERAL (SELECT {expression} AS x) AS {name}")
        return f"{name}.x"

    def without_underflow(self, x: str, unit: float = 1.0) -> str:
        """Return x, and 0 where PostgreSQL would refuse what is computed of it as too small."""
        if self.dialect != "postgres":
            return x
        return self.let(f"CASE WHEN ABS({x}) < {number(unit * 1e-290)} THEN 0e0 ELSE {x} END")

    def on_grid(self, calibrator: Calibrator) -> str:
        """Return the score, or the middle of its cell."""
        grid: ScoreGrid | None = calibrator.__dict__.get("_grid")
        # Where the score is refused any number will do: the answer is NULL.
        safe = self.let(f"CASE WHEN {self.accepts(calibrator)} THEN {self.score} END")
        return safe if grid is None else self.let(grid.middle_sql(safe))

    def answer(self, calibrator: Calibrator, steps: str | None) -> dict[str, str]:
        """Return the columns of a calibrator's answer, as expressions."""
        try:
            table = table_of(calibrator)
        except ValueError:
            return {"p": self.let(formula(calibrator, self, self.on_grid(calibrator)))}
        columns = self.steps(table, self.score, steps)
        if table.p is None:
            columns["p"] = self.clipped(calibrator, columns, self.on_grid(calibrator))
        return columns

    def clipped(self, calibrator: Calibrator, columns: dict[str, str], x: str) -> str:
        """Return the smooth estimate for a score x, clipped into the bounds."""
        own: Any = calibrator._smoother if isinstance(calibrator, Venn) else calibrator
        smooth = own.smooth_.maps[0]
        if smooth.interior is not None:
            x = self.let(f"LEAST(GREATEST({x}, 0e0), 1e0)")
        p = self.let(formula(smooth, self, x))
        return f"LEAST(GREATEST({p}, {columns['p0']}), {columns['p1']})"

    def accepts(self, calibrator: Calibrator) -> str:
        """Return the condition under which Python takes a score and does not refuse it."""
        low, high = accepted(calibrator)
        # NaN is above every number in these systems, so it is never between two.
        return f"{self.score} BETWEEN {self.literal(low)} AND {self.literal(high)}"

    def literal(self, value: float) -> str:
        """Return a number as a double, to the last bit."""
        return f"CAST({number(value)} AS {self.double})"

    def steps(self, table: CalibrationTable, x: str, name: str | None) -> dict[str, str]:
        """Look up a score x in the intervals of a table, and return the columns' names."""
        columns = [c for c in ("p0", "p1", "p") if getattr(table, c) is not None]
        names = ", ".join(columns)
        if self.dialect == "postgres" and name is None:
            at = self.let(f"width_bucket({x}, {self._array(table.start)})")
            return {c: self.let(f"({self._array(getattr(table, c))})[{at}]") for c in columns}
        if name is None:
            every = zip(table.start, *(getattr(table, c) for c in columns), strict=True)
            rows = ", ".join(f"({', '.join(map(self._value, row))})" for row in every)
            source = f"(SELECT * FROM (VALUES {rows}) AS s(start, {names}))"
        else:
            source = f"(SELECT start, {names} FROM {name})"
        found = f"c{len(self.joins)}"
        if self.dialect == "duckdb":
            join = f"ASOF LEFT JOIN {source} AS {found} ON {x} >= {found}.start"
        elif self.dialect == "spark":
            infinity = "CAST('Infinity' AS DOUBLE)"
            stop = f"LEAD(start, 1, {infinity}) OVER (ORDER BY start) AS stop"
            join = (
                f"LEFT JOIN (SELECT *, {stop} FROM {source}) AS {found} "
                f"ON {x} >= {found}.start AND {x} < {found}.stop"
            )
            self.hints.append(f"BROADCAST({found})")
        else:
            join = (
                f"LEFT JOIN LATERAL (SELECT {names} FROM {name} AS s WHERE s.start <= {x} "
                f"ORDER BY s.start DESC LIMIT 1) AS {found} ON TRUE"
            )
        self.joins.append(join)
        return {c: f"{found}.{c}" for c in columns}

    def _value(self, value: float) -> str:
        # Spark reads a number with an exponent as a double; a cast is exact everywhere.
        return number(value) + ("D" if self.dialect == "spark" else "")

    def _array(self, values: FloatArray) -> str:
        return f"ARRAY[{', '.join(map(number, values.tolist()))}]::{self.double}[]"

    def select(self, columns: dict[str, str], accepted: str) -> str:
        """Return the whole query; where the score is refused the columns are NULL."""
        added = ", ".join(f"CASE WHEN {accepted} THEN {x} END AS {c}" for c, x in columns.items())
        hint = f"/*+ {', '.join(self.hints)} */ " if self.hints else ""
        source = "\n".join([f"FROM {self.table} AS t", *self.joins])
        return f"SELECT {hint}t.*, {added}\n{source}"


def _logistic(f: str) -> str:
    low, high = number(-STEEPEST), number(STEEPEST)
    return f"1e0 / (1e0 + EXP(-(LEAST(GREATEST({f}, {low}), {high}))))"


def _log_odds(interior: Interior, x: str, query: _Query) -> str:
    clipped = query.let(f"LEAST(GREATEST({x}, {number(interior.low)}), {number(interior.high)})")
    return f"(LN({clipped}) - LN(1 - {clipped}))"


def _shrunk(shrinkage: Shrinkage, x: str, query: _Query) -> tuple[str, str]:
    """Return the logarithms of both classes' drawn probabilities, but for the same constant."""
    if shrinkage.c == 0:
        low, high = number(shrinkage.interior.low), number(shrinkage.interior.high)
        x = query.let(f"LEAST(GREATEST({x}, {low}), {high})")
    first, second = (number(shrinkage.c * share) for share in shrinkage.shares)
    whole = number(1 + shrinkage.c)
    return (
        query.let(f"LN((1 - {x} + {first}) / {whole})"),
        query.let(f"LN(({x} + {second}) / {whole})"),
    )


@singledispatch
def formula(one: Any, query: _Query, x: str) -> str:
    """Return the probability of the second class for a score x, as an expression."""
    raise ValueError(f"SQL must be of a calibrator that is a table or a formula, got {one}")


@formula.register
def _(one: VennAbers | Venn, query: _Query, x: str) -> str:
    try:
        table = table_of(one)
    except ValueError:
        return str(formula.dispatch(object)(one, query, x))
    columns = query.steps(table, x, None)
    return columns.get("p") or query.clipped(one, columns, x)


@formula.register
def _(one: IsotonicCalibration, query: _Query, x: str) -> str:
    if isinstance(one.maps_[0], LinearMap):
        return formula(one.maps_[0], query, x)
    return query.steps(table_of(one), x, None)["p"]


@formula.register
def _(one: Uncalibrated, query: _Query, x: str) -> str:
    return x


@formula.register
def _(one: OneVsRestCalibrator, query: _Query, x: str) -> str:
    return formula(one.maps_[0], query, x)


@formula.register
def _(one: LogOddsCalibrator, query: _Query, x: str) -> str:
    return formula(one.maps_[0], query, query.let(formula(one._to_probabilities, query, x)))


@formula.register
def _(one: ToProbabilities, query: _Query, x: str) -> str:
    return x if one.temperature is None else formula(one.temperature, query, x)


@formula.register
def _(one: PlattMap, query: _Query, x: str) -> str:
    if one.interior is not None:
        x = _log_odds(one.interior, x, query)
    scale = one.standard
    x = query.without_underflow(x, scale.unit)
    z = f"({x} / {number(scale.unit)} - {number(scale.centre)}) / {number(scale.spread)}"
    return _logistic(f"{number(one.slope)} * ({z}) + {number(one.intercept)}")


@formula.register
def _(one: BetaMap, query: _Query, x: str) -> str:
    low, high = number(one.interior.low), number(one.interior.high)
    s = query.let(f"LEAST(GREATEST({x}, {low}), {high})")
    return _logistic(f"{number(one.a)} * LN({s}) - {number(one.b)} * LN(1 - {s}) + {number(one.c)}")


@formula.register
def _(one: LinearMap, query: _Query, x: str) -> str:
    knots, values = one.knots.tolist(), one.values.tolist()
    whens = [f"WHEN {x} <= {number(knots[0])} THEN {number(values[0])}"]
    for left in range(len(knots) - 1):
        low, high = number(knots[left]), number(knots[left + 1])
        share = f"({x} - {low}) / ({high} - {low})"
        p = f"{number(values[left])} * (1 - {share}) + {number(values[left + 1])} * ({share})"
        inside = f"LEAST(GREATEST({p}, {number(values[left])}), {number(values[left + 1])})"
        whens.append(f"WHEN {x} <= {high} THEN {inside}")
    return f"CASE {' '.join(whens)} ELSE {number(values[-1])} END"


@formula.register
def _(one: SlopeMap, query: _Query, x: str) -> str:
    first, second = _shrunk(one.shrinkage, x, query)
    z = query.let(f"{second} - {first}")
    knots, slopes = one.knots, one.slopes
    at = one.logits(knots)

    def line(k: int) -> str:
        return f"{number(at[k])} + {number(slopes[k])} * ({z} - {number(knots[k])})"

    whens = [f"WHEN {z} <= {number(knots[0])} THEN {line(0)}"]
    for k in range(len(knots) - 1):
        bend = (slopes[k + 1] - slopes[k]) / (knots[k + 1] - knots[k]) / 2
        t = f"({z} - {number(knots[k])})"
        whens.append(
            f"WHEN {z} <= {number(knots[k + 1])} THEN {line(k)} + {number(bend)} * {t} * {t}"
        )
    last = len(knots) - 1
    return _logistic(query.let(f"CASE {' '.join(whens)} ELSE {line(last)} END"))


@formula.register
def _(one: TemperatureScaling, query: _Query, x: str) -> str:
    z = _log_odds(one._interior, x, query) if one.on_ == "probabilities" else x
    # Half of the logit is what is scaled, see the class.
    return _logistic(f"({z}) / {number(2 * one._unit)} * {number(one._beta)}")


@formula.register
def _(one: MatrixScaling, query: _Query, x: str) -> str:
    p = query.let(formula(one._to_probabilities, query, x))
    first, second = (
        f"({log} + {number(np.log(2.0))})" for log in _shrunk(one._shrinkage, p, query)
    )
    W, b = one._map.slopes, one._map.intercepts
    difference = W[:, 1] - W[:, 0]
    f = f"{number(difference[0])} * {first} + {number(difference[1])} * {second}"
    return _logistic(f"{f} + {number(b[1] - b[0])}")


@formula.register
def _(one: PooledCalibration, query: _Query, x: str) -> str:
    p = query.let(formula(one._to_probabilities, query, x))
    parts = [
        f"{number(weight)} * {query.let(formula(one.members_[name], query, p))}"
        for name, weight in one.weights_.items()
    ]
    return f"({' + '.join(parts)}) / {number(sum(one.weights_.values()))}"


@formula.register
def _(one: BostromScaling, query: _Query, x: str) -> str:
    x = query.without_underflow(x)
    largest = query.let(f"GREATEST({x}, 1 - {x})")
    A, B = number(one.A_), number(one.B_)
    q = query.let(f"1e0 - {_logistic(f'{A} * {largest} - {B}')}")
    raised = f"1 - (1 - {largest}) * {q}"
    return f"CASE WHEN {x} > 1 - {x} THEN {raised} ELSE {x} * {q} END"
