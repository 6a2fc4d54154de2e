"""Result tables: CSV files to which a run appends, and from which a stopped run goes on."""

from __future__ import annotations

import csv
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "results"


def read_rows(path):
    """Return the rows of a CSV file as dictionaries of text; an empty list without the file."""
    path = Path(path)
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def append_row(path, row):
    """Append one row, a dictionary, and write the header first where the file is new."""
    path = Path(path)
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def write_rows(path, rows):
    """Write rows, dictionaries with the same keys, to a new CSV file."""
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
