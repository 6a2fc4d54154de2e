"""Serve a calibrator as an SQL query in DuckDB: python query.py calibrator.sql 8000

Rows are of one number, the score. The query is that of
``to_sql(calibrator, table="(SELECT unnest(range(len($scores))) AS i, unnest($scores) AS score)")``.
"""

import sys
from pathlib import Path
from threading import local

import duckdb
from service import serve

code = f"SELECT * EXCLUDE (i, score) FROM ({Path(sys.argv[1]).read_text('utf-8')}) ORDER BY i"
database = duckdb.connect()
database.execute("SET threads = 1")
of_thread = local()


def answer(rows):
    if not hasattr(of_thread, "cursor"):
        of_thread.cursor = database.cursor()
    result = of_thread.cursor.execute(code, {"scores": [score for (score,) in rows]})
    names = [column[0] for column in result.description]
    columns = zip(*result.fetchall(), strict=True)
    return {name: list(column) for name, column in zip(names, columns, strict=True)}


if __name__ == "__main__":
    serve(answer, 1)
