"""Columns of the tables that the papers print, for tests that take them as numbers to compare."""

from vennforest_experiments.papers import published


def printed_columns(paper, number, measure):
    """Return one measure of one table: for each method its value on each data set."""
    columns = {}
    for row in published.load(paper):
        if row.table == str(number) and row.measure == measure:
            columns.setdefault(row.method, {})[row.dataset] = row.value
    assert columns, f"table {number} of {paper} has no {measure}"
    return columns
