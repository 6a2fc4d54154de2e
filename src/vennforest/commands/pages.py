"""Functions shared by commands: read a table to train on, write a page."""

from __future__ import annotations

import hashlib
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer
from pandas.api.types import infer_dtype

from vennforest._files import Input, is_standard, marked, shown_path, write_text
from vennforest._messages import listed
from vennforest._program import __version__
from vennforest._validation import FloatArray, InputError
from vennforest.commands.options import Check, Fit, Options, Report, TableOptions
from vennforest.commands.terminal import print_json, say, say_notes
from vennforest.report import Evaluation
from vennforest.report.splits import note_on_recent_labels
from vennforest.sources.training_columns import ColumnDifference
from vennforest.tables.notes import notes_on_dates
from vennforest.tables.open import TableFile
from vennforest.tables.schema import DROP, find_name, read_types, texts_of, with_declared
from vennforest.tables.target import LabelledTable, load_example, split_target

NEEDED_BY_FAILURE = {
    "miscalibrated": "", "classes": "", "sites": "validation", "groups": "by", "grades": "grades",
    "segments": "segments", "oe": "", "columns": "",
}  # fmt: skip
"""Names for ``--fail-on``, with the option that each needs."""

FAILURES_OF_CHECK = {"grades", "segments", "columns"}
"""Names for ``check`` alone: ``report`` judges no grades, segments or model of a file."""


def read_training_table(
    options: Fit | Report, groups: Sequence[str | None], time: str | None = None
) -> tuple[TableFile | None, pd.DataFrame, LabelledTable, dict[str, Any]]:
    """Return the file and rows of a table or example, its features and labels, and values by name.

    The values are those of the columns ``groups``, sites among them, ``time``, weights and ``by``;
    all but the last are left out of the features.
    """
    types = {} if options.types is None else read_types(options.types)
    path, file, target = options.data, None, options.target
    if path is None:
        assert isinstance(options, Report)
        frame, usual_target = load_example(str(options.example))
        name, target = f"{options.example} (shipped with scikit-learn)", target or usual_target
    else:
        file, name = TableFile(path, options.form), path.name
        frame = file.read([*texts_of(types), target or ""], options.missing or ())
        options.row_counts[path] = len(frame)
    if target is None:
        raise InputError("name the column to predict with --target")
    names = [*groups, time, options.weight]
    columns = [find_name(frame.columns, name) for name in names if name is not None]
    drop = [*(options.drop or []), *(column for column in columns if column != target)]
    by = [options.by] if isinstance(options.by, str) else options.by or []
    keep = [*(options.keep or []), *(by if isinstance(options, Fit) else [])]
    decimal = "." if file is None else file.decimal
    table = split_target(frame, target, drop, name=name, keep=keep, types=types, decimal=decimal)
    of_values = [time, options.weight, *(by if isinstance(options, Report) else [])]
    values = dividing_columns(file, frame, groups, of_values, types, table.notes)
    if time is not None:
        has_label = frame.index.isin(table.X.index)
        table.notes.extend(note_on_recent_labels(values[time], time, has_label))
    return file, frame, table, values_in(values.loc[table.X.index])


def dividing_columns(
    file: TableFile | None,
    frame: pd.DataFrame,
    groups: Iterable[str | None],
    of_values: Iterable[str | None],
    types: Mapping[str, str],
    notes: list[str],
) -> pd.DataFrame:
    """Return the columns that divide the rows of a table into groups, sites, grades or parts.

    Text of ``groups`` stands as in the file. ``of_values`` may be numbers or dates; a note is added
    if it is in doubt which. Columns of declared ``types`` are read as declared.
    """
    group_names = [find_name(frame.columns, name) for name in groups if name is not None]
    value_names = [find_name(frame.columns, name) for name in of_values if name is not None]
    names = list(dict.fromkeys([*group_names, *value_names]))
    declared = {name: types[name] for name in names if types.get(name, DROP) != DROP}
    doubtful = notes_on_dates(frame[[name for name in value_names if name not in declared]])
    notes += [note for note in doubtful if note not in notes]
    columns = with_declared(frame[names], declared)
    converted = [n for n in group_names if n not in declared and infer_dtype(frame[n]) != "string"]
    if file is None or not converted:
        return columns
    return columns.assign(**file.read(converted, names=converted).where(frame.notna()))


def values_in(columns: pd.DataFrame) -> dict[str, Any]:
    """Return the values (n,) of columns by name."""
    return {str(name): columns[name].to_numpy(object) for name in columns}


def common_arguments(
    options: Report | Check, table: LabelledTable, values: dict[str, Any]
) -> dict[str, Any]:
    """Return the arguments that ``evaluate`` and ``check`` both take."""
    if options.tolerance is not None and not 0 < options.tolerance < 100:
        raise InputError(
            "--tolerance must be above 0 and below 100 percentage points, got "
            f"{options.tolerance:g}"
        )
    return {
        "positive": options.positive,
        "groups": values.get(options.groups or ""),
        "sample_weight": None if options.weight is None else weights_in(values, options.weight),
        "by": {name: values[name] for name in options.by or ()},
        "costs": options.costs,
        "tolerance": None if options.tolerance is None else options.tolerance / 100,
        "thresholds": shares_in(options.thresholds, "thresholds"),
        "name": table.name,
        "target": table.target,
        "notes": table.notes,
    }


def weights_in(values: Mapping[str, Any], name: str) -> FloatArray:
    """Return the weights (n,) in a column."""
    weights = pd.to_numeric(pd.Series(values[name]), errors="coerce").to_numpy(np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError(f"the weights {name!r} must be numbers of 0 or more in every row")
    return weights


def shares_in(texts: list[str] | None, name: str) -> list[float] | None:
    """Return the numbers in the texts of an option, such as ``.02``; None without."""
    try:
        return None if texts is None else list(map(float, texts))
    except ValueError:
        raise InputError(f"--{name} must be like .02,.05, got {','.join(texts or ())}") from None


def axes_in(text: str | None) -> tuple[float, float] | None:
    """Return the ends of axes in text such as ``0,.2``; None without."""
    ends = shares_in(None if text is None else text.split(","), "figure-axes")
    if ends is None or (len(ends) == 2 and 0 <= ends[0] < ends[1] <= 1):
        return None if ends is None else (ends[0], ends[1])
    raise InputError(f"--figure-axes must be two ends from 0 to 1, such as 0,.2, got {text!r}")


def millimetres_in(text: str | None) -> float | None:
    """Return the width in text such as ``85mm``, ``8.5cm`` or ``3.3in``; None without."""
    if text is None:
        return None
    match = re.fullmatch(r"(\d+\.?\d*) ?(mm|cm|in)", text)
    width = float(match[1]) * {"mm": 1.0, "cm": 10.0, "in": 25.4}[match[2]] if match else 0.0
    if not 40 <= width <= 500:
        raise InputError(f"--figure-width must be from 40mm to 500mm, such as 85mm, got {text!r}")
    return width


def check_page_options(options: Report | Check) -> list[str]:
    """Return the names in ``--fail-on``; raise an error for others and for parts not asked for.

    The look of figures is checked too, before anything is trained or written.
    """
    look = {"width": millimetres_in(options.figure_width), "axes": axes_in(options.figure_axes)}
    for name, value in look.items():
        if value is not None and options.figures is None:
            raise InputError(f"--figure-{name} must be used with --figures, got none")
    names = options.fail_on or []
    unused = FAILURES_OF_CHECK if isinstance(options, Report) else set()
    possible = [name for name in NEEDED_BY_FAILURE if name not in unused]
    for name in names:
        if name not in possible:
            raise InputError(f"--fail-on must be any of {', '.join(possible)}, got {name!r}")
        if name == "columns" and options.data is None:
            raise InputError("--fail-on columns must be used with a model: check MODEL DATA")
        needed = NEEDED_BY_FAILURE[name]
        if needed and getattr(options, needed, None) is None:
            raise InputError(f"--fail-on {name} must be used with --{needed}, got none")
    return names


def fail(
    evaluation: Evaluation, names: Sequence[str], differences: Sequence[ColumnDifference] = ()
) -> None:
    """Exit with code 1 if one of the reasons of `check_page_options` applies."""
    differing = [difference.name for difference in differences]
    sentence = f"columns differ from training: {listed(differing, 5)}" if differing else ""
    failures = {**evaluation.verdict.failures, "columns": sentence}
    reasons = [failures[name] for name in names if failures[name]]
    for reason in reasons:
        say(f"Failed: {reason}.")
    if reasons:
        raise typer.Exit(1)


def inputs_of(options: Options) -> list[dict[str, Any]]:
    """Return address, size, SHA-256 and rows of every input file; the rows of tables alone."""
    files = []
    for name, _ in marked(options, Input):
        path = getattr(options, name)
        if isinstance(path, Path) and path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            size, name = path.stat().st_size, options.input_name(path)
            n_rows = {"rows": options.row_counts[path]} if path in options.row_counts else {}
            files.append({"path": name, "bytes": size, "sha256": digest, **n_rows})
    return files


def record_of(options: TableOptions, path: Path) -> dict[str, Any]:
    """Return how a model came to be: name and hash of the data, date, version and command."""
    files = {file["path"]: file for file in inputs_of(options)}
    return {
        "data": path.name,
        "sha256": files.get(options.input_name(path), {}).get("sha256"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "version": __version__,
        "command": typed_command(),
    }


def typed_command() -> str:
    """Return the command line of this process; addresses in it lose their keys."""
    words = []
    for word in sys.argv[1:]:
        option, equals, value = word.partition("=") if word.startswith("--") else ("", "", word)
        words.append(option + equals + (value if is_standard(value) else shown_path(value)))
    return shlex.join(["vennforest", *words])


def write_page(
    evaluation: Evaluation,
    options: Report | Check,
    commands: Sequence[tuple[str, Sequence[str]]],
    columns: Mapping[str, Mapping[str, str]],
    differences: Sequence[ColumnDifference] = (),
) -> None:
    """Write the page; print the notes, the verdict and the commands to type next.

    ``commands`` are what each is for, and its words; ``columns`` are those of the probabilities of
    each class, by method and label; ``differences`` are columns that differ from training.
    """
    say_notes(evaluation.findings.notes)
    advised = {purpose: shlex.join(["vennforest", *words]) for purpose, words in commands}
    command, inputs = typed_command(), inputs_of(options)
    evaluation.to_html(options.output, advised=advised, command=command, inputs=inputs)
    if options.figures is not None:
        look: Any = {"limits": axes_in(options.figure_axes)}
        evaluation.to_figures(options.figures, width=millimetres_in(options.figure_width), **look)
    if options.text is not None:
        # Names in the data may look like tags, which Markdown leaves to browsers.
        write_text(options.text, re.sub(r"<(?=[A-Za-z/!?])", "&lt;", evaluation.to_text(inputs)))
    output = shown_path(options.output)
    if options.as_json:
        names = ("groups", "grades", "by", "validation")
        roles = {name: getattr(options, name, None) for name in names}
        summary = {
            "version": __version__,
            "command": command,
            "inputs": inputs,
            "columns": [difference._asdict() for difference in differences],
            "roles": {"probabilities": columns, **roles},
            **evaluation.summary(),
            "advised": "\n".join(advised.values()),
            "report": output,
        }
        print_json(summary)
    say(evaluation.verdict.sentence)
    for purpose, line in advised.items():
        say(f"{purpose}\n  {line}")
    say(f"Wrote {output}" + (f" and the figures in {options.figures}" if options.figures else ""))
