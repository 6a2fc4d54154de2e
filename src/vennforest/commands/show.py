"""The command ``show``: a model or a calibrator in, its description out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vennforest._files import is_standard, shown_path
from vennforest._messages import listed
from vennforest.calibrators.bounded import has_bounds
from vennforest.commands.models import is_calibrator_file, read_document
from vennforest.commands.options import Show
from vennforest.commands.terminal import print_json, show
from vennforest.persistence import read_header

MAX_NAMES = 20
"""Columns and classes that are listed by name."""

OMITTED = ("format", "libraries", "features", "types", "calibrator_json")
"""Entries that are in files for programs."""


def run(options: Show) -> None:
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
        return listed(value, MAX_NAMES, str)
    return f"{value:,.6g}" if isinstance(value, float) else str(value)
