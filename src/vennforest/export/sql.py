"""A fitted calibrator as a query: a SELECT that adds its answers to a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from sklearn.utils.validation import check_is_fitted

from vennforest._validation import FloatArray, InputError, check_option
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import Operation, Steps, Terms, written
from vennforest.export.formulas import answers, taken

Dialect = Literal["duckdb", "spark", "postgres"]
"""The systems whose SQL is written."""

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


def number(value: float) -> str:
    """Return a finite number as SQL reads it, as a double and to the last bit."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def to_sql(
    calibrator: Calibrator,
    dialect: Dialect = "duckdb",
    *,
    table: str = "scores",
    score: str | Sequence[str] = "score",
    steps: str | None = None,
    confidence: bool = False,
) -> str:
    """Return a query that adds a calibrator's answers to the columns of a table.

    Parameters
    ----------
    calibrator : Calibrator
        Fitted.
    dialect : {"duckdb", "spark", "postgres"}, default="duckdb"
        Whose SQL. Spark from 3.4, PostgreSQL from 9.5 on.
    table : str, default="scores"
        What stands after FROM, as the system wants it: a name, or such as
        ``read_parquet('scores.parquet')``.
    score : str or sequence of str, default="score"
        The name of the column of scores of the second class; of more than two classes the
        names of their columns, in sorted order of the labels.
    steps : str, optional
        A table that contains what `table_of` gives, for large ones; None: it is written into
        the query.
    confidence : bool, default=False
        Whether to add the ends of the confidence intervals of level .95.

    Returns
    -------
    str
        A SELECT of all columns and ``p0``, ``p1`` (with bounds), ``p``, and if asked for
        ``low95`` and ``high95``, which are NULL where the score is NULL, NaN, infinite, or
        refused by ``predict_proba``; of more than two classes each with ``_`` and a label.

    Raises
    ------
    ValueError
        If the dialect is none of these, or the calibrator contains a function of the user's.

    Notes
    -----
    What `table_of` has is looked up, and equal to the last bit. Everything else is a formula, for
    which the system's own LN and EXP differ from Python's in the last digits: by 1e-13 at most in
    ``p``.
    """
    check_is_fitted(calibrator, "classes_")
    check_option(dialect, Dialect, "dialect")
    classes = calibrator.classes_.tolist()
    names = [score] if isinstance(score, str) else list(score)
    if not isinstance(table, str) or not table:
        raise InputError(f"table must be a name, got {table!r}")
    if not all(isinstance(one, str) and one for one in names):
        raise InputError(f"score must be a name, got {score!r}")
    if len(names) != (1 if len(classes) == 2 else len(classes)):
        raise InputError(
            f"score must name a column of scores for each of {len(classes)} classes, got {score!r}"
        )
    found = answers(calibrator, confidence)
    query = _Query(dialect, names, steps)
    low, high, sums = taken(calibrator)
    ends = f"CAST({number(low)} AS {query.double}) AND CAST({number(high)} AS {query.double})"
    # NaN is above every number in these systems, so it is never between two.
    accepted = [f"{column} BETWEEN {ends}" for column in query.columns]
    if sums:
        tolerance = number(taken(calibrator).tolerance or 0.0)
        accepted.append(f"ABS({' + '.join(query.columns)} - 1e0) <= {tolerance}")
    test = " AND ".join(accepted)
    # Where the score is refused nothing is computed of it.
    query.read(test)
    codes = written([one for terms in found.values() for one in terms], query)
    titles = [title for name, terms in found.items() for title in _titles(name, terms, classes)]
    added = ", ".join(
        f"CASE WHEN {test} THEN {code} END AS {query.quoted(title)}"
        for code, title in zip(codes, titles, strict=True)
    )
    hints = f"/*+ {', '.join(query.hints)} */ " if query.hints else ""
    source = "\n".join([f"FROM {table} AS t", *query.sources()])
    return f"SELECT {hints}t.*, {added}\n{source}"


def _titles(name: str, terms: Terms, classes: Sequence[Any]) -> list[str]:
    """Return the names of the columns of an answer."""
    return [name] if len(terms) == 1 else [f"{name}_{label}" for label in classes]


class _Query:
    """Parts of a query whose later parts name the values of earlier ones.

    Values that are needed more than once have names. They are found in steps, each of which knows
    the values of those before it: as few steps as there can be, since systems take long to plan
    many. ``steps`` names the table that is looked up first; None: it is in the query.
    """

    def __init__(self, dialect: Dialect, scores: Sequence[str], steps: str | None) -> None:
        self.dialect, self.steps = dialect, steps
        self.double = "DOUBLE PRECISION" if dialect == "postgres" else "DOUBLE"
        self.columns = [f"CAST(t.{self.quoted(one)} AS {self.double})" for one in scores]
        self.values: list[list[str]] = []
        self.joins: list[list[str]] = []
        self.hints: list[str] = []
        self.scores: list[str] = []
        self.known: dict[str, int] = {}
        """After which step a value is known, -1: before all."""

    def sources(self) -> list[str]:
        """Return what stands after the table in the FROM clause."""
        # Else PostgreSQL inlines values: their number doubles with each step.
        once = " OFFSET 0" if self.dialect == "postgres" else ""
        found = []
        for i, (values, joins) in enumerate(zip(self.values, self.joins, strict=True)):
            named = ", ".join(f"{one} AS x{j}" for j, one in enumerate(values))
            found += [f"CROSS JOIN LATERAL (SELECT {named}{once}) AS v{i}", *joins]
        return found

    def quoted(self, name: str) -> str:
        """Return the name of a column as the system reads it."""
        quote = "`" if self.dialect == "spark" else '"'
        plain = name.isidentifier() and name.isascii() and name.islower()
        return (
            name
            if plain and name in ("p", "p0", "p1")
            else (f"{quote}{name.replace(quote, 2 * quote)}{quote}")
        )

    def read(self, test: str) -> None:
        """Give the scores names, where a test finds that they are taken."""
        self.scores = [self.keep(f"CASE WHEN {test} THEN {one} END") for one in self.columns]

    def score(self, column: int) -> str:
        return self.scores[column]

    def number(self, value: float) -> str:
        return number(value)

    def apply(self, operation: Operation, *terms: str) -> str:
        made = OPERATIONS[operation].format(*terms)
        self.known[made] = max(self.known.get(one, -1) for one in terms)
        return made

    def keep(self, term: str) -> str:
        step = self.known.get(term, -1) + 1
        if step == len(self.values):
            self.values.append([])
            self.joins.append([])
        self.values[step].append(term)
        name = f"v{step}.x{len(self.values[step]) - 1}"
        self.known[name] = step
        return name

    def _kept_after(self, x: str, made: str) -> str:
        """Give a name to what is made of a value that has one."""
        self.known[made] = self.known[x]
        return self.keep(made)

    def look_up(self, table: Steps, x: str) -> dict[str, str]:
        """Join the table's intervals."""
        name, self.steps = self.steps, None
        columns, x = list(table.columns), self.keep(x)
        names, step = ", ".join(columns), self.known[x]
        if self.dialect == "postgres" and name is None:
            at = self._kept_after(x, f"width_bucket({x}, {self._array(table.start)})")
            cells = {c: f"({self._array(table.columns[c])})[{at}]" for c in columns}
            return {c: self._kept_after(at, cell) for c, cell in cells.items()}
        if name is None:
            every = zip(table.start, *table.columns.values(), strict=True)
            rows = ", ".join(f"({', '.join(map(self._value, row))})" for row in every)
            source = f"(SELECT * FROM (VALUES {rows}) AS s(start, {names}))"
        else:
            source = f"(SELECT start, {names} FROM {name})"
        found = f"c{sum(map(len, self.joins))}"
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
        self.joins[step].append(join)
        self.known |= {f"{found}.{c}": step for c in columns}
        return {c: f"{found}.{c}" for c in columns}

    def _value(self, value: float) -> str:
        # Spark reads a number with an exponent as a double if it ends in D.
        return number(value) + ("D" if self.dialect == "spark" else "")

    def _array(self, values: FloatArray) -> str:
        return f"ARRAY[{', '.join(map(number, values.tolist()))}]::{self.double}[]"
