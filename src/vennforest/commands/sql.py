"""The command ``sql``: a calibrator in, a query out."""

from __future__ import annotations

from typing import Any

from vennforest._files import refused_as
from vennforest.commands.models import read_calibrator
from vennforest.commands.options import Sql
from vennforest.commands.terminal import print_json, show
from vennforest.export import to_sql


def run(options: Sql) -> None:
    """Print the SQL query of a calibrator."""
    file, dialect = read_calibrator(options.calibrator, options.scores), options.dialect
    score, confidence = file.columns.by_label, options.confidence
    arguments: Any = {"dialect": dialect, "score": score, "confidence": confidence}
    with refused_as():
        query = to_sql(file.calibrator, table=options.table, **arguments)
    if options.as_json:
        print_json({"sql": query})
    for line in [] if options.as_json else query.splitlines():
        show(line)
