"""The command ``sql``: a calibrator in, a query out."""

from __future__ import annotations

from vennforest.commands.models import read_calibrator
from vennforest.commands.options import Sql
from vennforest.commands.terminal import print_json, show
from vennforest.export import to_sql


def run(options: Sql) -> None:
    """Print the query."""
    file = read_calibrator(options.calibrator, options.scores)
    query = to_sql(
        file.calibrator,
        options.dialect,  # type: ignore[arg-type]
        table=options.table,
        score=file.scores,
        confidence=options.confidence,
    )
    if options.as_json:
        print_json({"sql": query})
    else:
        for line in query.splitlines():
            show(line)
