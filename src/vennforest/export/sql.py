"""Fitted calibrators as SQL queries that add their outputs to a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, Literal

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vennforest._class_columns import ClassColumns, ScoreNames, class_columns
from vennforest._messages import needed
from vennforest._validation import FloatArray, InputError, check_option
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import LOWEST, LookupTable, Operation, Value
from vennforest.export.formulas import accepted_scores, output_formulas, write_outputs
from vennforest.export.proof import N_SQL_ROWS, draw_scores, prove_calibrator
from vennforest.scores import RANGE_TOLERANCE

Dialect = Literal[
    "duckdb", "postgres", "sqlite", "snowflake", "bigquery", "databricks", "spark", "redshift",
    "tsql", "oracle", "mysql", "clickhouse", "trino",
]  # fmt: skip
"""Database systems for which SQL is written, by their names in sqlglot."""

DECIMAL_LITERALS = ("postgres", "snowflake", "redshift")
"""Systems that read a number with an exponent as a decimal, which may have fewer digits."""

ONCE: dict[str, Callable[[Any], Any]] = {
    "postgres": lambda select: select.offset(0, copy=False),
    "redshift": lambda select: select.offset(0, copy=False),
    "sqlite": lambda select: select.limit(-1, copy=False),
    "mysql": lambda select: select.distinct(copy=False),
}
"""What keeps a system from replacing names by what they stand for, again and again."""

LARGEST = float(np.nextafter(-LOWEST, 0))
"""The largest accepted score, below the end of the last interval of steps."""

MAX_DEPTH = 12
"""Number of nested operations after which a value is computed in a level of its own."""

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


OF_CLASSES: dict[Operation, Operation] = {"sum": "add", "largest": "max", "smallest": "min"}
"""Operations on the numbers of all classes, by those of two numbers."""

MAX_CLASSES_OF_QUERY = 25
"""Classes up to which DuckDB plans Venn–Abers bounds in about five seconds; of 40 it takes 15."""

SqlCode = list[Any]
"""The expression of a number by itself, or those of the numbers of all classes."""


def sql_number(value: float) -> str:
    """Return a finite number as an SQL literal that is read as exactly the same double."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def to_sql(
    calibrator: Calibrator,
    dialect: Dialect = "duckdb",
    *,
    table: str = "scores",
    score: ScoreNames = "score",
    confidence: bool = False,
) -> str:
    """Return a query that adds a calibrator's outputs to the columns of a table.

    Parameters
    ----------
    calibrator : Calibrator
        A fitted calibrator.
    dialect : str, default="duckdb"
        The database system: ``"duckdb"``, ``"postgres"``, ``"sqlite"``, ``"snowflake"``,
        ``"bigquery"``, ``"databricks"``, ``"spark"``, ``"redshift"``, ``"tsql"`` (SQL Server from
        2022), ``"oracle"`` (from 23), ``"mysql"`` (from 8), ``"clickhouse"`` or ``"trino"``. All
        but DuckDB require sqlglot: ``pip install 'vennforest[sql]'``.
    table : str, default="scores"
        The text after FROM: the name of a table, or an expression of the system such as
        ``read_parquet('scores.parquet')``. It stands twice in the query.
    score : str, sequence of str, or dict of label to str, default="score"
        The column of scores of the second of two classes, or one column per class, as in
        `ScoreCounts.from_batches`, with upper and lower case as the system stores it.
    confidence : bool, default=False
        Whether to add the ends of the 95% confidence intervals.

    Returns
    -------
    str
        A SELECT of all columns, ``p``, for methods with bounds ``p0`` and ``p1``, and with
        ``confidence`` ``low95`` and ``high95``. The added columns are NULL where the score is NULL,
        NaN or otherwise refused by ``predict_proba``. For more than two classes there is one per
        label, such as ``p_label``. If a score has the name of one of them, as ``p``, all of them
        end in ``_calibrated``.

    Raises
    ------
    ValueError
        If the dialect is unknown, ``score`` does not name one column per class, a name of an added
        column is that of another one without regard to case, or the calibrator contains a user's
        function.

    Notes
    -----
    The outputs are computed once for each distinct score and joined to the rows of the table.
    A table of steps is joined by the number of a block of steps, an equality that every system
    joins by hashing, and by the step's interval within the block.

    The queries for DuckDB, PostgreSQL and SQLite are run in tests; those for other systems are
    parsed by sqlglot. Databases' LN and EXP differ from Python's in the last digits: by up to
    1e-13 in ``p``.
    """
    check_is_fitted(calibrator, "classes_")
    check_option(dialect, Dialect, "dialect")
    classes = calibrator.classes_.tolist()
    of_classes = class_columns(score, classes, "score")
    names = of_classes.names
    if len(classes) > MAX_CLASSES_OF_QUERY:
        raise InputError(
            f"calibrator must have at most {MAX_CLASSES_OF_QUERY} classes for SQL, got "
            f"{len(classes)}: use to_onnx or to_json, or apply it to a file with vennforest apply"
        )
    formulas = output_formulas(calibrator, confidence)
    suffixes = [""] if len(classes) == 2 else [f"_{label}" for label in classes]
    titles = {name: [name + suffix for suffix in suffixes] for name in formulas}
    scored = {name.casefold() for name in names}
    while any(title.casefold() in scored for part in titles.values() for title in part):
        titles = {name: [f"{title}_calibrated" for title in part] for name, part in titles.items()}
    added = [title for part in titles.values() for title in part]
    folded = [title.casefold() for title in added]  # as databases compare names
    if twice := [title for title in added if folded.count(title.casefold()) > 1]:
        raise InputError(
            f"calibrator must have labels that differ without regard to case, got {twice[0]!r} "
            "as a column twice: fit it to other labels"
        )
    columns = [f"t.{quoted(name)}" for name in names]
    # The addition makes one zero of two. SQLite casts text that is no number to 0.
    doubles = [f"(CAST({column} AS DOUBLE) + 0e0)" for column in columns]
    test = _is_accepted(calibrator, of_classes, columns, doubles)
    doubles = _read_columns(of_classes, doubles, calibrator.on_)
    query = _Query(len(doubles))
    codes: dict[str, SqlCode] = write_outputs(formulas, query)
    outputs = [code for part in codes.values() for code in part]
    table_name = "vennforest_table"
    while any(table_name in name for name in (*names, *added)):
        table_name += "_"
    source = f"{table_name} AS t"
    equal = [f"{x} = w.{name}" for x, name in zip(doubles, query.scores, strict=True)]
    # The test is repeated, since ClickHouse fills rows without a match with zeros.
    selected = [
        f"CASE WHEN {test} THEN w.o{i} END AS {quoted(title)}" for i, title in enumerate(added)
    ]
    code = (
        f"SELECT t.*, {', '.join(selected)}\nFROM {source}\n"
        f"LEFT JOIN ({query.select(outputs, doubles, f'{source} WHERE {test}')}) AS w "
        f"ON {' AND '.join(equal)}"
    )
    _check_query(calibrator, code, table_name, of_classes, titles, confidence)
    return (code if dialect == "duckdb" else _translated(code, dialect)).replace(table_name, table)


def _check_query(
    calibrator: Calibrator,
    code: str,
    table: str,
    of_classes: ClassColumns,
    titles: dict[str, list[str]],
    confidence: bool,
) -> None:
    """Raise an `InputError` if a query in DuckDB, where it is installed, answers otherwise.

    ``titles`` are the names of the columns of each output.
    """
    try:
        import duckdb
    except ImportError:
        return
    kind, scores = calibrator.on_, draw_scores(calibrator, N_SQL_ROWS)
    columns = scores.reshape(len(scores), -1)
    if len(of_classes.names) > columns.shape[1]:
        columns = np.column_stack([1 - scores if kind == "probability" else 0 * scores, scores])
    elif of_classes.of_first:
        columns = -columns if kind == "logit" else 1 - columns
    rows = {"vennforest row": np.arange(len(scores))}
    with duckdb.connect() as connection:
        connection.register(table, rows | dict(zip(of_classes.names, columns.T, strict=True)))
        result = connection.execute(f'SELECT * FROM ({code}) ORDER BY "vennforest row"')
        values_of = {title: np.ma.filled(x, np.nan) for title, x in result.fetchnumpy().items()}
    answers = {
        name: np.column_stack([values_of[title] for title in part]) for name, part in titles.items()
    }
    answers = {name: part[:, 0] if part.shape[1] == 1 else part for name, part in answers.items()}

    def take(index: Any) -> FloatArray:
        return of_classes.scores_in(columns[index], kind)

    prove_calibrator(calibrator, "SQL", take, answers, confidence)


def _is_accepted(
    calibrator: Calibrator, of_classes: ClassColumns, columns: list[str], doubles: list[str]
) -> str:
    """Return the condition under which ``predict_proba`` accepts the scores of a row."""
    low, high, sum_tolerance = accepted_scores(calibrator)
    if of_classes.of_first and calibrator.on_ != "logit":
        low, high = -RANGE_TOLERANCE, 1 + RANGE_TOLERANCE
    if len(columns) == len(of_classes.classes) == 2 and calibrator.on_ == "probability":
        sum_tolerance = 0.01 + RANGE_TOLERANCE  # two decimals of each
    ends = f"{sql_number(max(low, LOWEST))} AND {sql_number(min(high, LARGEST))}"
    tests = [f"{column} BETWEEN {ends}" for column in columns]  # NaN is between no numbers
    if low == -np.inf:
        pairs = zip(tests, doubles, strict=True)
        tests = [f"({test} OR {x} < {sql_number(LOWEST)})" for test, x in pairs]
        if len(doubles) > 1:  # of a row of minus infinity alone nothing is known
            finite = [f"{x} >= {sql_number(LOWEST)}" for x in doubles]
            tests.append(f"({' OR '.join(finite)})")
    if sum_tolerance is not None:
        tests.append(f"ABS({' + '.join(doubles)} - 1e0) <= {sql_number(sum_tolerance)}")
    return " AND ".join(tests)


def _read_columns(of_classes: ClassColumns, columns: list[str], kind: str) -> list[str]:
    """Return the score of the second of two classes, or the columns (k,) of more."""
    if len(of_classes.classes) > 2 or (len(columns) == 1 and not of_classes.of_first):
        return columns
    first, second = columns[0], columns[-1]
    if kind == "logit":  # that of probability 0 is minus infinity
        first, second = (f"GREATEST({x}, {sql_number(LOWEST / 4)})" for x in (first, second))
        return [f"({second if len(columns) > 1 else '0e0'} - {first})"]
    if len(columns) == 1:
        return [f"LEAST(GREATEST(1e0 - {first}, 0e0), 1e0)"]
    if kind != "probability":
        return [second]
    total = f"({first} + {second})"
    return [f"({second} / CASE WHEN ABS({total} - 1e0) <= 1e-12 THEN 1e0 ELSE {total} END)"]


def quoted(name: str) -> str:
    """Return a name as an SQL identifier, names of the columns of two classes without quotes."""
    if name in ("p", "p0", "p1", "low95", "high95"):
        return name
    return '"' + name.replace('"', '""') + '"'


def _translated(code: str, dialect: Dialect) -> str:
    """Translate a query for DuckDB; every number stays a double with all its digits."""
    sqlglot = needed("sqlglot", "SQL for other systems than DuckDB")
    from sqlglot import exp

    def changed(node: Any) -> Any:
        if isinstance(node, exp.Greatest | exp.Least):
            node.set("ignore_nulls", False)  # no term is NULL
        elif isinstance(node, exp.Div):
            node.set("typed", True)
            node.set("safe", False)
        elif isinstance(node, exp.Between) and dialect == "sqlite":
            for name in ("low", "high"):  # compared with text, a plain number is text as well
                node.set(name, exp.cast(node.args[name], "DOUBLE"))
        elif isinstance(node, exp.DataType) and dialect == "oracle":
            return exp.DataType.build("BINARY_DOUBLE", udt=True)
        elif isinstance(node, exp.Literal) and "e" in node.this and not node.is_string:
            if dialect in DECIMAL_LITERALS:
                return exp.cast(exp.Literal.string(node.this), "DOUBLE")
            if dialect == "oracle":
                return exp.Literal.number(f"{node.this}d")
        elif isinstance(node, exp.Select):
            source = node.args["from_"].this
            if source.alias == "v" and dialect in ONCE:
                # A named value is computed once, instead of in each place that names it.
                ONCE[dialect](node)
            if isinstance(source, exp.Values) and dialect == "sqlite":  # its names of columns
                names = source.args["alias"].columns
                columns = [exp.column(f"column{i}").as_(n) for i, n in enumerate(names, 1)]
                source.set("alias", None)
                return exp.select(*columns).from_(source)
        return node

    tree = sqlglot.parse_one(code, read="duckdb").transform(changed, copy=False)
    return str(tree.sql(dialect, unsupported_level=sqlglot.ErrorLevel.RAISE))


class _Query:
    """Parts of a query, whose named values are computed in levels, each from earlier levels."""

    def __init__(self, n_scores: int) -> None:
        self.scores = [f"s{j}" for j in range(n_scores)]
        self.values: list[list[str]] = []
        self.joins: list[list[str]] = []
        self.level_of: dict[str, int] = {}  # 0: the scores
        self.depth_of: dict[str, int] = {}
        self.n_names = 0

    def select(self, outputs: Sequence[str], columns: Sequence[str], source: str) -> str:
        """Return a SELECT of the scores and ``outputs`` for each distinct score of a source.

        ``columns`` are the expressions of the scores in the source.
        """
        scores = ", ".join(f"{x} AS {name}" for x, name in zip(columns, self.scores, strict=True))
        # Named levels, since SQLite's parser has a limit of nested queries.
        levels = [f"SELECT DISTINCT {scores} FROM {source}"]
        for i, (values, joins) in enumerate(zip(self.values, self.joins, strict=True)):
            added = f"SELECT v.*, {', '.join(values)} FROM vennforest_{i} AS v {' '.join(joins)}"
            levels.append(added)
        with_levels = ",\n".join(f"vennforest_{i} AS ({level})" for i, level in enumerate(levels))
        results = ", ".join([*self.scores, *(f"{code} AS o{i}" for i, code in enumerate(outputs))])
        return f"WITH {with_levels}\nSELECT {results} FROM vennforest_{len(self.values)} AS v"

    def score(self) -> SqlCode:
        return self.scores

    def number(self, value: Value) -> SqlCode:
        if np.ndim(value) == 2:
            return [self.number(row) for row in np.asarray(value)]
        return [*map(sql_number, np.atleast_1d(value))]

    def apply(self, operation: Operation, *terms: SqlCode) -> SqlCode:
        if operation in OF_CLASSES:
            return [reduce(partial(self._apply, OF_CLASSES[operation]), terms[0])]
        if operation == "product":
            scores, matrix = terms
            columns = map(list, zip(*matrix, strict=True))
            products = [self.apply("multiply", scores, column) for column in columns]
            return [self.apply("sum", product)[0] for product in products]
        k = max(map(len, terms))
        # What all classes share is computed once.
        parts = [term if len(term) == k else self._shared(*term) * k for term in terms]
        return [self._apply(operation, *of_class) for of_class in zip(*parts, strict=True)]

    def _shared(self, term: str) -> SqlCode:
        return [self._keep(term) if term in self.depth_of else term]

    def _apply(self, operation: Operation, *terms: Any) -> str:
        code = OPERATIONS[operation].format(*terms)
        self.level_of[code] = max(self.level_of.get(term, 0) for term in terms)
        self.depth_of[code] = 1 + max(self.depth_of.get(term, 0) for term in terms)
        return self._keep(code) if self.depth_of[code] > MAX_DEPTH else code

    def of_class(self, term: SqlCode, j: int) -> SqlCode:
        return [term[j]]

    def keep(self, term: SqlCode) -> SqlCode:
        return [*map(self._keep, term)]

    def _keep(self, term: str) -> str:
        return self._add(term, self.level_of.get(term, 0))

    def _add(self, term: str, level: int) -> str:
        """Add a named value, computed from earlier ones up to a level; return its name."""
        if level == len(self.values):
            self.values.append([])
            self.joins.append([])
        name = f"x{self.n_names}"
        self.n_names += 1
        self.values[level].append(f"{term} AS {name}")
        self.level_of[name] = level + 1
        return name

    def look_up(self, tables: Sequence[LookupTable], x: SqlCode) -> Mapping[str, SqlCode]:
        names, first = [*tables[0].columns], tables[0]
        if all(column.ndim == 1 for column in first.columns.values()):
            parts = [self._look_up(*part) for part in zip(tables, x, strict=True)]
            return {name: [part[name] for part in parts] for name in names}
        k = len(self.scores)  # entries of all classes in one table
        columns = {f"{name}{j}": first.columns[name][:, j] for name in names for j in range(k)}
        values = self._look_up(LookupTable(first.start, columns), *x)
        return {name: [values[f"{name}{j}"] for j in range(k)] for name in names}

    def _look_up(self, table: LookupTable, x: str) -> dict[str, str]:
        """Add a join with a table; return the names of the columns' entries."""
        if not x.isalnum():
            x = self._keep(x)
        n_rows = len(table.start)
        rows_of_block = int(np.ceil(np.sqrt(n_rows)))
        first = table.start[::rows_of_block]
        block = self._add(_block_of(first, x), self.level_of.get(x, 0))
        level = self.level_of[block]
        columns = [np.arange(n_rows) // rows_of_block, table.start]
        columns += [np.append(table.start[1:], -LOWEST), *table.columns.values()]
        rows = ", ".join(
            f"({number}, {', '.join(map(sql_number, row))})"
            for number, *row in zip(*(column.tolist() for column in columns), strict=True)
        )
        names = [f"y{j}" for j in range(len(table.columns))]
        listed = ", ".join(["block", "low", "high", *names])
        alias = f"c{self.n_names}"
        results = {
            column: self._add(f"{alias}.{name}", level)
            for column, name in zip(table.columns, names, strict=True)
        }
        self.joins[level].append(
            f"LEFT JOIN (SELECT * FROM (VALUES {rows}) AS s({listed})) AS {alias} "
            f"ON {alias}.block = {block} AND {x} >= {alias}.low AND {x} < {alias}.high"
        )
        return results


def _block_of(first: FloatArray, x: str, begin: int = 0) -> str:
    """Return the number of the block that contains x, by binary search among first starts."""
    if len(first) == 1:
        return str(begin)
    middle = len(first) // 2
    below, above = _block_of(first[:middle], x, begin), _block_of(first[middle:], x, begin + middle)
    return f"CASE WHEN {x} < {sql_number(first[middle])} THEN {below} ELSE {above} END"
