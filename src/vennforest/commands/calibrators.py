"""The commands ``apply``, ``sql`` and ``show``: what files of calibrators and models contain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vennforest._class_columns import refuse_own_output
from vennforest._files import is_standard, refused_as, shown_path
from vennforest._messages import listed
from vennforest._validation import check_option
from vennforest.calibrators import Calibrator
from vennforest.calibrators.bounded import has_bounds
from vennforest.commands.models import (
    is_calibrator_file,
    read_calibrator,
    read_document,
    with_shares,
)
from vennforest.commands.options import Apply, Show, Sql
from vennforest.commands.predict import write_predictions
from vennforest.commands.terminal import print_json, say, show
from vennforest.export import to_sql
from vennforest.persistence import read_header
from vennforest.tables.open import TableFile

MAX_NAMES = 20
"""Columns and classes that are listed by name."""

OMITTED = ("format", "libraries", "features", "types", "calibrator_json")
"""Entries that are in files for programs."""


def run_apply(options: Apply) -> None:
    """Write the probabilities for a table of scores, and print the number of rows."""
    check_option(options.missing_scores, ("refuse", "keep"), "--missing-scores")
    table = TableFile(options.data, options.form)
    file = read_calibrator(options.calibrator, options.scores, table=table.names)
    calibrator = with_shares(file.calibrator, options.prior)
    refuse_own_output(file.columns.names, table.names, file.columns.classes)
    carried = options.carried or _without_predictions(table.names, calibrator)
    settings: dict[str, Any] = {"columns": file.columns.by_label, "calibrated_on": file.training()}
    settings["missing_scores"] = options.missing_scores
    write_predictions(options, calibrator, table, carried=carried, **settings)


def _without_predictions(names: list[str], calibrator: Calibrator) -> list[str]:
    """Return the names of columns that are not predictions written by ``predict`` or ``apply``."""
    labels = list(map(str, calibrator.classes_))
    if not {"label", *(f"p({label})" for label in labels)} <= set(names):
        return names
    ends, any_label = r"lower|upper|(low|high)\d[\d.]*", "|".join(map(re.escape, labels))
    pattern = rf"label|probability|{ends}|(p|{ends})\(({any_label})\)"
    replaced = [name for name in names if re.fullmatch(pattern, name)]
    say(f"Note: {listed(replaced, 4)} of predict or apply are replaced.")
    return [name for name in names if name not in replaced]


def run_sql(options: Sql) -> None:
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


def run_show(options: Show) -> None:
    """Print the description of a model file or a calibrator."""
    path = options.model
    entries = _describe_calibrator(path) if is_calibrator_file(path) else read_header(path)
    if options.as_json:
        print_json(entries)
        return
    name = options.input_name(path)
    name = path.name if is_standard(name) else shown_path(name)
    entries = {"file": f"{name}, {path.stat().st_size / 1e6:,.1f} MB", **entries}
    if isinstance(description := entries.pop("description", None), dict):
        entries |= description
    for name, value in entries.items():
        if name not in OMITTED and value not in (None, "", [], {}):
            show(f"{name.replace('_', ' ').capitalize():22}{' '.join(_value_text(value).split())}")


def _describe_calibrator(path: Path) -> dict[str, Any]:
    """Return the parameters and metadata of a calibrator, without its fitted state."""
    calibrator, columns, entries = read_document(path)
    labels, shift = [str(label) for label in calibrator.classes_], calibrator.shift_
    entries.pop("examples", None)
    return {
        "calibrator": repr(calibrator),
        "bounds": has_bounds(calibrator),
        "classes": dict(zip(labels, calibrator.class_shares_.tolist(), strict=True)),
        "increasing": calibrator.reversed_at_ is None,
        "prior": {} if shift is None else dict(zip(labels, shift.shares.tolist(), strict=True)),
        "scores": [] if columns is None else columns.entries,
        **entries,
    }


def _value_text(value: Any) -> str:
    """Return a value of a header as text."""
    if isinstance(value, Mapping):
        value = [f"{name} {_value_text(part)}" for name, part in value.items()]
    if isinstance(value, list):
        return listed(value, MAX_NAMES, _value_text)
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
