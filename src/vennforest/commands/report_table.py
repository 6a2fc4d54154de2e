"""The table of a report: what is predicted, and the columns its rows are split or looked at by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from vennforest._validation import InputError
from vennforest.report import CostMatrix
from vennforest.tables.cells import Column
from vennforest.tables.read import find_column, read_table
from vennforest.tables.target import LabelledTable, load_example, split_target
from vennforest.tables.types import DROP, declared_read, read_types

if TYPE_CHECKING:
    import pandas as pd

DEFAULTS = {"--trees": 300, "--folds": 10, "--methods": None}
"""Defaults of options that are refused where they have no effect."""


@dataclass(frozen=True)
class Columns:
    """Options about columns: how rows are split or looked at, and how cells are read."""

    groups: str | None = None
    time: str | None = None
    by: Sequence[str] = ()
    drop: Sequence[str] = ()
    keep: Sequence[str] = ()
    types: Path | str | None = None
    missing: Sequence[str] = ()
    sheet: str | None = None

    def unused(self) -> list[str]:
        """Return those that are not to predict from: groups and time."""
        return [name for name in (self.groups, self.time) if name is not None]


@dataclass(frozen=True)
class Judged:
    """Options about what is judged instead of models that the report trains."""

    probability: Sequence[str] = ()
    model: Path | None = None
    trusted: Sequence[str] = ()
    scores: Sequence[str] = ()


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


def read_report_table(
    data: Path | None,
    target: str | None,
    example: str | None,
    test: Path | None,
    columns: Columns,
    judged: Judged,
) -> ReportTable:
    """Return the table of files or an example, split into X and y."""
    if (data is None) == (example is None):
        raise InputError(
            "name a file, or an example with --example"
            if data is None
            else "name a file or an example with --example, not both"
        )
    if example is not None:
        if (
            test is not None
            or judged.probability
            or judged.model
            or columns.unused()
            or columns.types
        ):
            raise InputError("an example has no other options: name a file")
        return _with_values(load_example(example, target, list(columns.drop)), columns, None)
    assert data is not None
    if target is None:
        raise InputError("name the column to predict with --target")
    types = {} if columns.types is None else read_types(columns.types)
    frame = read_table(data, types, columns.missing, columns.sheet)
    held = None
    if test is not None:
        frame, held = _joined(frame, read_table(test, types, columns.missing, columns.sheet), test)
    for name in (*columns.unused(), *columns.by):
        find_column(frame, name)
    left = {*columns.unused(), *judged.probability} - {target}
    drop = list(dict.fromkeys([*columns.drop, *left]))
    if judged.probability:  # nothing is trained: no column has to be left, and none is judged
        drop = list(columns.drop)
        labelled = split_target(frame, target, drop, name=data.name, screened=False, types=types)
        X, remarks = declared_read(labelled.X, labelled.types)
        labelled = replace(labelled, X=X, notes=[*labelled.notes, *remarks])
    else:
        screened = judged.model is None
        labelled = split_target(
            frame,
            target,
            drop,
            name=data.name,
            keep=list(columns.keep),
            screened=screened,
            types=types,
        )
    wanted = {*columns.unused(), *columns.by}
    looked_at = {
        name: declared for name, declared in types.items() if name in wanted and declared != DROP
    }
    found = _with_values(labelled, columns, declared_read(frame, looked_at)[0], held)
    return found if test is None else replace(found, tested=test.name)


def _joined(frame: pd.DataFrame, more: pd.DataFrame, path: Path) -> tuple[pd.DataFrame, Any]:
    """Return the rows of two tables with the columns of the first, and which are of the second."""
    import pandas as pd

    missing = [name for name in frame.columns if name not in more.columns]
    if missing:
        raise InputError(f"{path} lacks the column {missing[0]!r} of the table to train on")
    both = pd.concat([frame, more[frame.columns]])
    held = np.repeat([False, True], [len(frame), len(more)])
    return both, held


def _with_values(
    labelled: LabelledTable, columns: Columns, frame: pd.DataFrame | None, held: Any = None
) -> ReportTable:
    """Keep the values of the columns asked for, of the rows that have a label."""
    if frame is None:
        X = labelled.X
        values = {name: X[find_column(X, name)].to_numpy(object) for name in columns.by}
        return ReportTable(labelled, values)
    known = Column(frame[labelled.target], labelled.target).there
    wanted = dict.fromkeys([*columns.unused(), *columns.by])
    values = {name: frame[name][known].to_numpy(object) for name in wanted}
    return ReportTable(labelled, values, None if held is None else held[known])


def changed(name: str, options: dict[str, Any]) -> bool:
    """Return whether an option is another than where it is not given."""
    return bool(options[name[2:].replace("-", "_")] != DEFAULTS[name])


def common_options(
    table: ReportTable, columns: Columns, costs: CostMatrix | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Return what every evaluation is given."""
    return {
        "groups": None if columns.groups is None else table.values[columns.groups],
        "by": {name: table.values[name] for name in columns.by},
        "costs": costs,
        "tolerance": options["tolerance"],
        "name": table.name,
        "target": table.labelled.target,
        "notes": table.labelled.notes,
    }
