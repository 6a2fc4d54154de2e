"""The table of a report: what is predicted, and the columns its rows are split or looked at by."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._validation import InputError
from vennforest.commands.report_options import Report
from vennforest.commands.terminal import names_in
from vennforest.report import CostMatrix
from vennforest.tables.cells import Column
from vennforest.tables.read import find_column, read_table
from vennforest.tables.target import LabelledTable, load_example, split_target
from vennforest.tables.types import DROP, declared_read, read_types

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class ReportTable:
    """A table that was read: what is predicted, and the values of other columns of its rows.

    ``test`` tells the rows of the table to test on, which is called ``tested``.
    """

    labelled: LabelledTable
    values: dict[str, Any] = field(default_factory=dict)
    test: Any = None
    tested: str = ""

    @property
    def name(self) -> str:
        """What the evaluation is called: after the table whose rows are predicted."""
        trained = self.labelled.name
        return f"{self.tested} (trained on {trained})" if self.tested else trained

    def named(self, X: pd.DataFrame) -> pd.DataFrame:
        """Return rows of the table with an index that says where they stand in its file."""
        file = self.tested or self.labelled.name
        return X.set_axis((X.index + 1).rename(f"Row of {file}, from 1"), axis=0)


def unused_columns(options: Report) -> list[str]:
    """Return the columns that are not to predict from: groups and time."""
    return [name for name in (options.groups, options.time) if name is not None]


def read_report_table(options: Report) -> ReportTable:
    """Return the table of files or an example, split into X and y."""
    data, target, test = options.data, options.target, options.test
    if (data is None) == (options.example is None):
        raise InputError(
            "name a file, or an example with --example"
            if data is None
            else "name a file or an example with --example, not both"
        )
    drop, by, unused = options.drop or [], options.by or [], unused_columns(options)
    if options.example is not None:
        about_files = (test, options.probability, options.model, unused, options.types)
        if any((*about_files, options.decimal, options.missing, options.keep)):
            raise InputError("an example has no other options: name a file")
        labelled = load_example(options.example, target, drop)
        X = labelled.X
        return ReportTable(
            labelled, {name: X[find_column(X, name)].to_numpy(object) for name in by}
        )
    assert data is not None
    if target is None:
        raise InputError("name the column to predict with --target")
    types = {} if options.types is None else read_types(options.types)
    missing = names_in(options.missing or "")
    frame = read_table(data, types, missing, options.decimal)
    held = None
    if test is not None:
        frame, held = _joined(frame, read_table(test, types, missing, options.decimal), test)
    wanted = dict.fromkeys([*unused, *by])
    for name in wanted:
        find_column(frame, name)
    if options.probability:  # nothing is trained: no column has to be left, and none is judged
        labelled = split_target(frame, target, drop, name=data.name, screened=False, types=types)
        labelled = replace(labelled, X=declared_read(labelled.X, labelled.types))
    else:
        labelled = split_target(
            frame,
            target,
            list(dict.fromkeys([*drop, *(name for name in unused if name != target)])),
            name=data.name,
            keep=options.keep or [],
            screened=options.model is None,
            types=types,
        )
    declared = {name: kind for name, kind in types.items() if name in wanted and kind != DROP}
    frame = declared_read(frame, declared)
    known = Column(frame[labelled.target], labelled.target).there
    values = {name: frame[name][known].to_numpy(object) for name in wanted}
    if held is None or test is None:
        return ReportTable(labelled, values)
    return ReportTable(labelled, values, held[known], test.name)


def _joined(frame: pd.DataFrame, more: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, Any]:
    """Return the rows of two tables with the columns of the first, and which are of the second."""
    import pandas as pd

    missing = [name for name in frame.columns if name not in more.columns]
    if missing:
        raise InputError(f"{path} lacks the column {missing[0]!r} of the table to train on")
    both = pd.concat([frame, more[frame.columns]])
    held = np.repeat([False, True], [len(frame), len(more)])
    return both, held


def changed(name: str, options: Report) -> bool:
    """Return whether an option, such as ``--trees``, is another than where it is not given."""
    field = name.removeprefix("--")
    return bool(getattr(options, field) != getattr(Report, field))


def common_options(table: ReportTable, costs: CostMatrix | None, options: Report) -> dict[str, Any]:
    """Return what every evaluation is given."""
    return {
        "positive": options.positive,
        "random_state": options.seed,
        "groups": None if options.groups is None else table.values[options.groups],
        "by": {name: table.values[name] for name in options.by or ()},
        "costs": costs,
        "tolerance": None if options.tolerance is None else options.tolerance / 100,
        "name": table.name,
        "target": table.labelled.target,
        "notes": table.labelled.notes,
    }
