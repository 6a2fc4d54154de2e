"""The command ``sql``: a calibrator in, a query out."""

from __future__ import annotations

from typing import Any

from vennforest._files import refused_as
from vennforest._validation import InputError
from vennforest.commands.models import read_calibrator
from vennforest.commands.options import Sql
from vennforest.commands.terminal import print_json, show
from vennforest.export import to_sql


def run(options: Sql) -> None:
    """Print the SQL query of a calibrator."""
    file, dialect = read_calibrator(options.calibrator, options.scores), options.dialect
    columns = file.columns
    if columns.of_first:
        first, second = columns.classes
        raise InputError(
            f"--score must name a column of {second!r} for a query, got that of {first!r}: give "
            f"--score '{second}=COLUMN' with a column of 1 minus {columns.names[0]!r}"
        )
    arguments: Any = {"dialect": dialect, "score": columns.names, "confidence": options.confidence}
    with refused_as():
        query = to_sql(file.calibrator, table=options.table, **arguments)
    if options.as_json:
        print_json({"sql": query})
    for line in [] if options.as_json else query.splitlines():
        show(line)
