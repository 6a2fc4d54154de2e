"""A fitted calibrator of two classes as a query: a SELECT that adds its answers to a table."""

from __future__ import annotations

from vennforest._validation import FloatArray, InputError, check_option
from vennforest.calibrators.core.exports import CalibrationTable, Dialect
from vennforest.calibrators.core.interface import Calibrator
from vennforest.counts.grid import sql_number as number
from vennforest.export.formulas import Language, Operation, Term, answer
from vennforest.export.step_tables import accepted

OPERATIONS: dict[Operation, str] = {
    "add": "({} + {})",
    "subtract": "({} - {})",
    "multiply": "({} * {})",
    "divide": "({} / {})",
    "min": "LEAST({}, {})",
    "max": "GREATEST({}, {})",
    "log": "LN({})",
    "exp": "EXP({})",
    "floor": "FLOOR({})",
    "if <=": "CASE WHEN {} <= {} THEN {} ELSE {} END",
}


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
    query = _Query(dialect, score, steps)
    low, high = (number(end) for end in accepted(calibrator))
    # NaN is above every number in these systems, so it is never between two.
    taken = (
        f"{query.score} BETWEEN CAST({low} AS {query.double}) AND CAST({high} AS {query.double})"
    )
    # Where the score is refused nothing is computed of it.
    x = query.keep(Term(query, f"CASE WHEN {taken} THEN {query.score} END"))
    found = answer(calibrator, x)
    added = ", ".join(f"CASE WHEN {taken} THEN {x.code} END AS {c}" for c, x in found.items())
    hints = f"/*+ {', '.join(query.hints)} */ " if query.hints else ""
    source = "\n".join([f"FROM {table} AS t", *query.joins])
    return f"SELECT {hints}t.*, {added}\n{source}"


class _Query(Language):
    """Parts of a query whose later parts name the values of earlier ones.

    Parameters
    ----------
    dialect : str
    score : str
        The column of scores.
    steps : str or None
        Where the table that is looked up first is to be found; None: in the query.
    """

    def __init__(self, dialect: Dialect, score: str, steps: str | None) -> None:
        self.dialect, self.steps = dialect, steps
        quote = "`" if dialect == "spark" else '"'
        self.double = "DOUBLE PRECISION" if dialect == "postgres" else "DOUBLE"
        column = score.replace(quote, 2 * quote)
        self.score = f"CAST(t.{quote}{column}{quote} AS {self.double})"
        self.joins: list[str] = []
        self.hints: list[str] = []

    def apply(self, operation: Operation, *terms: Term | float) -> Term:
        """Return an expression."""
        codes = [one.code if isinstance(one, Term) else number(one) for one in terms]
        return Term(self, OPERATIONS[operation].format(*codes))

    def keep(self, term: Term) -> Term:
        """Give a value a name."""
        name = f"v{len(self.joins)}"
        self.joins.append(f"CROSS JOIN LATERAL (SELECT {term.code} AS x) AS {name}")
        return Term(self, f"{name}.x")

    def without_underflow(self, x: Term, unit: float = 1.0) -> Term:
        """Return x, and 0 where PostgreSQL would refuse what is computed of it as too small."""
        if self.dialect != "postgres":
            return x
        small = f"ABS({x.code}) < {number(unit * 1e-290)}"
        return self.keep(Term(self, f"CASE WHEN {small} THEN 0e0 ELSE {x.code} END"))

    def look_up(self, table: CalibrationTable, x: Term) -> dict[str, Term]:
        """Join the table's intervals."""
        name, self.steps = self.steps, None
        columns = [c for c in ("p0", "p1", "p") if getattr(table, c) is not None]
        names = ", ".join(columns)
        if self.dialect == "postgres" and name is None:
            at = self.keep(Term(self, f"width_bucket({x.code}, {self._array(table.start)})")).code
            return {
                c: self.keep(Term(self, f"({self._array(getattr(table, c))})[{at}]"))
                for c in columns
            }
        if name is None:
            every = zip(table.start, *(getattr(table, c) for c in columns), strict=True)
            rows = ", ".join(f"({', '.join(map(self._value, row))})" for row in every)
            source = f"(SELECT * FROM (VALUES {rows}) AS s(start, {names}))"
        else:
            source = f"(SELECT start, {names} FROM {name})"
        found = f"c{len(self.joins)}"
        if self.dialect == "duckdb":
            join = f"ASOF LEFT JOIN {source} AS {found} ON {x.code} >= {found}.start"
        elif self.dialect == "spark":
            infinity = "CAST('Infinity' AS DOUBLE)"
            stop = f"LEAD(start, 1, {infinity}) OVER (ORDER BY start) AS stop"
            join = (
                f"LEFT JOIN (SELECT *, {stop} FROM {source}) AS {found} "
                f"ON {x.code} >= {found}.start AND {x.code} < {found}.stop"
            )
            self.hints.append(f"BROADCAST({found})")
        else:
            join = (
                f"LEFT JOIN LATERAL (SELECT {names} FROM {name} AS s WHERE s.start <= {x.code} "
                f"ORDER BY s.start DESC LIMIT 1) AS {found} ON TRUE"
            )
        self.joins.append(join)
        return {c: Term(self, f"{found}.{c}") for c in columns}

    def _value(self, value: float) -> str:
        # Spark reads a number with an exponent as a double if it ends in D.
        return number(value) + ("D" if self.dialect == "spark" else "")

    def _array(self, values: FloatArray) -> str:
        return f"ARRAY[{', '.join(map(number, values.tolist()))}]::{self.double}[]"
