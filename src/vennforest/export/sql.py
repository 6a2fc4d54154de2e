"""Fitted calibrators as SQL queries that add their outputs to a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sklearn.utils.validation import check_is_fitted

from vennforest._validation import FloatArray, InputError, check_option
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import Operation, Steps
from vennforest.export.formulas import accepted_scores, output_formulas, write_outputs

Dialect = Literal["duckdb", "spark", "postgres"]
"""Database systems for which SQL is written."""

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


def sql_number(value: float) -> str:
    """Return a finite number as an SQL literal that is read as exactly the same double."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def to_sql(
    calibrator: Calibrator,
    dialect: Dialect = "duckdb",
    *,
    table: str = "scores",
    score: str | Sequence[str] = "score",
    confidence: bool = False,
) -> str:
    """Return a query that adds a calibrator's outputs to the columns of a table.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted calibrator.
    dialect : {"duckdb", "spark", "postgres"}, default="duckdb"
        The database system; Spark from version 3.4, PostgreSQL from version 9.5.
    table : str, default="scores"
        The text after FROM: the name of a table, or an expression of the system such as
        ``read_parquet('scores.parquet')``.
    score : str or sequence of str, default="score"
        The column of scores of the second of two classes, or one column per class in sorted order
        of the labels.
    confidence : bool, default=False
        Whether to add the ends of the 95% confidence intervals.

    Returns
    -------
    str
        A SELECT of all columns, ``p``, for methods with bounds ``p0`` and ``p1``, and with
        ``confidence`` ``low95`` and ``high95``. The added columns are NULL where the score is NULL,
        NaN, infinite, or refused by ``predict_proba``. For more than two classes there is one per
        label, such as ``p_label``.

    Raises
    ------
    ValueError
        If the dialect is unknown, ``score`` does not name one column per class, a name of an added
        column is that of a score or of another added column without regard to case, or the
        calibrator contains a user's function.

    Notes
    -----
    Databases' LN and EXP differ from Python's in the last digits: by up to 1e-13 in ``p``.
    """
    check_is_fitted(calibrator, "classes_")
    check_option(dialect, Dialect, "dialect")
    classes = calibrator.classes_.tolist()
    names = [score] if isinstance(score, str) else list(score)
    if not all(names) or len(names) != (1 if len(classes) == 2 else len(classes)):
        raise InputError(
            f"score must name a column of scores for each of {len(classes)} classes, got {score!r}"
        )
    formulas = output_formulas(calibrator, confidence)
    titles = {
        name: [name] if len(terms) == 1 else [f"{name}_{label}" for label in classes]
        for name, terms in formulas.items()
    }
    _check_names(names, [title for part in titles.values() for title in part])
    query = _Query(dialect, names)
    low, high, sum_tolerance = accepted_scores(calibrator)
    ends = " AND ".join(f"CAST({sql_number(end)} AS {query.double})" for end in (low, high))
    # NaN is above every number in these systems, so it is never between two.
    tests = [f"{column} BETWEEN {ends}" for column in query.columns]
    if sum_tolerance is not None:
        total = " + ".join(query.columns)
        tests.append(f"ABS({total} - 1e0) <= {sql_number(sum_tolerance)}")
    test = " AND ".join(tests)
    # Nothing is computed from a refused score.
    query.scores = [query.keep(f"CASE WHEN {test} THEN {column} END") for column in query.columns]
    outputs = []
    for name, codes in write_outputs(formulas, query).items():
        outputs += [
            f"CASE WHEN {test} THEN {code} END AS {query.quoted(title)}"
            for code, title in zip(codes, titles[name], strict=True)
        ]
    hints = f"/*+ {', '.join(query.hints)} */ " if query.hints else ""
    lines = [f"SELECT {hints}t.*, {', '.join(outputs)}", f"FROM {table} AS t"]
    # Without OFFSET PostgreSQL inlines values: their number doubles with each level.
    once = " OFFSET 0" if dialect == "postgres" else ""
    for i, (values, joins) in enumerate(zip(query.values, query.joins, strict=True)):
        named = ", ".join(f"{value} AS x{j}" for j, value in enumerate(values))
        lines += [f"CROSS JOIN LATERAL (SELECT {named}{once}) AS v{i}", *joins]
    return "\n".join(lines)


def _check_names(scores: Sequence[str], outputs: Sequence[str]) -> None:
    """Raise an error if names are equal without regard to case, as databases compare them."""
    for i, name in enumerate(scores):
        if name in scores[:i]:
            raise InputError(f"score must name different columns, got {name!r} twice")
        if name.casefold() in map(str.casefold, outputs):
            raise InputError(
                f"score must name columns apart from the added ones, {list(outputs)}, got "
                f"{name!r}: rename it"
            )
    folded = [name.casefold() for name in outputs]
    for name in outputs:
        if folded.count(name.casefold()) > 1:
            raise InputError(
                f"calibrator must have labels that differ without regard to case, got {name!r} "
                "as a column twice: fit it to other labels"
            )


class _Query:
    """Parts of a query, whose named values are computed in levels, each from earlier levels.

    There are as few levels as possible, since planning time grows with their number.
    """

    def __init__(self, dialect: Dialect, scores: Sequence[str]) -> None:
        self.dialect = dialect
        self.double = "DOUBLE PRECISION" if dialect == "postgres" else "DOUBLE"
        self.columns = [f"CAST(t.{self.quoted(name)} AS {self.double})" for name in scores]
        self.values: list[list[str]] = []
        self.joins: list[list[str]] = []
        self.hints: list[str] = []
        self.scores: list[str] = []
        self.level_of: dict[str, int] = {}  # -1: before the first

    def quoted(self, name: str) -> str:
        if name in ("p", "p0", "p1"):
            return name
        quote = "`" if self.dialect == "spark" else '"'
        return f"{quote}{name.replace(quote, 2 * quote)}{quote}"

    def score(self, column: int) -> str:
        return self.scores[column]

    def number(self, value: float) -> str:
        return sql_number(value)

    def apply(self, operation: Operation, *terms: str) -> str:
        code = OPERATIONS[operation].format(*terms)
        self.level_of[code] = max(self.level_of.get(term, -1) for term in terms)
        return code

    def keep(self, term: str) -> str:
        level = self.level_of.get(term, -1) + 1
        if level == len(self.values):
            self.values.append([])
            self.joins.append([])
        self.values[level].append(term)
        name = f"v{level}.x{len(self.values[level]) - 1}"
        self.level_of[name] = level
        return name

    def look_up(self, table: Steps, x: str) -> dict[str, str]:
        x = self.keep(x)
        if self.dialect == "postgres":

            def computed_from(name: str, code: str) -> str:
                self.level_of[code] = self.level_of[name]
                return self.keep(code)

            row = computed_from(x, f"width_bucket({x}, {self._array(table.start)})")
            return {
                name: computed_from(row, f"({self._array(column)})[{row}]")
                for name, column in table.columns.items()
            }
        names = ", ".join(table.columns)
        suffix = "D" if self.dialect == "spark" else ""  # a number with an exponent as a double
        rows = ", ".join(
            f"({', '.join(sql_number(value) + suffix for value in row)})"
            for row in zip(table.start, *table.columns.values(), strict=True)
        )
        source = f"(SELECT * FROM (VALUES {rows}) AS s(start, {names}))"
        alias = f"c{sum(map(len, self.joins))}"
        if self.dialect == "duckdb":
            join = f"ASOF LEFT JOIN {source} AS {alias} ON {x} >= {alias}.start"
        else:
            infinity = "CAST('Infinity' AS DOUBLE)"
            stop = f"LEAD(start, 1, {infinity}) OVER (ORDER BY start) AS stop"
            join = (
                f"LEFT JOIN (SELECT *, {stop} FROM {source}) AS {alias} "
                f"ON {x} >= {alias}.start AND {x} < {alias}.stop"
            )
            self.hints.append(f"BROADCAST({alias})")
        level = self.level_of[x]
        self.joins[level].append(join)
        self.level_of |= {f"{alias}.{name}": level for name in table.columns}
        return {name: f"{alias}.{name}" for name in table.columns}

    def _array(self, values: FloatArray) -> str:
        return f"ARRAY[{', '.join(map(sql_number, values.tolist()))}]::{self.double}[]"
