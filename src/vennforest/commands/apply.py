"""The command ``apply``: a calibrator and a table of scores in, probabilities out."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vennforest._files import check_output, one_line, written_whole
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.bounded import has_bounds
from vennforest.commands.terminal import print_json, progress_bar, say
from vennforest.tables.scores import check_names, read_numbers
from vennforest.tables.stream import TableFile
from vennforest.tables.write import output_format, table_writer

ROWS_AT_ONCE = 100_000
"""Rows that are calibrated together; the probabilities do not depend on it."""

Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Applied:
    """Summary of what ``apply_file`` did.

    Attributes
    ----------
    n_rows : int
    columns : list of str
        Of the output.
    mean : dict of str to float
        Mean of each column that was added.
    seconds : float
    """

    n_rows: int
    columns: list[str]
    mean: dict[str, float]
    seconds: float


def run(calibrator: Path, data: Path, output: Path, *, as_json: bool, **options: Any) -> None:
    """Calibrate scores, write the probabilities, and say how many.

    Parameters
    ----------
    calibrator, data, output, **options
        Of `apply_file`.
    as_json : bool
        Print a summary.

    Raises
    ------
    InputError
        If a file or option is not what it should be.
    """
    with progress_bar("Rows") as progress:
        done = apply_file(calibrator, data, output, progress=progress, **options)
    if as_json:
        print_json({**asdict(done), "output": str(output)})
    elif sys.stderr.isatty():
        say(f"Wrote {output}: {done.n_rows:,} rows ({done.seconds:.0f} s)")


def apply_file(
    path: Path,
    data: Path,
    output: Path,
    *,
    scores: Sequence[str] = (),
    rows_at_once: int = ROWS_AT_ONCE,
    progress: Progress | None = None,
) -> Applied:
    """Calibrate every row of a table, and write its columns with the probabilities beside them.

    Parameters
    ----------
    path : Path
        A calibrator as JSON.
    data, output : Path
        The output is written whole or not at all; its suffix decides the format.
    scores : sequence of str
        The columns of scores; none: those named at ``calibrate``.
    rows_at_once : int
        Above zero.
    progress : callable, optional
        Called with the rows done and, where known, all of them.

    Raises
    ------
    InputError
        If a file is not what it should be, or a column is missing, holds something else, or has
        the name of one that is added.
    """
    start = time.perf_counter()
    how = output_format(output)
    check_output(output, {"calibrator": path, "table of scores": data})
    if not path.is_file():
        raise InputError(f"there is no calibrator {path}")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {one_line(error)}") from error
    try:
        calibrator = Calibrator.from_json(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    k = len(calibrator.classes_)
    named = list(scores) or json.loads(text).get("about", {}).get("scores", [])
    if not named:
        raise InputError(f"--score must be given, since {path} names no column")
    if len(named) != (1 if k == 2 else k):
        raise InputError(
            f"--score must name {1 if k == 2 else k} columns, one a class of "
            f"{', '.join(map(repr, map(str, calibrator.classes_)))}, got {len(named)}"
            if k > 2
            else f"--score must name one column, got {len(named)}"
        )
    table = TableFile(data)
    check_names(table, named)
    added = _columns(calibrator)
    taken = [name for name in added if name in table.names]
    if taken:
        raise InputError(
            f"{data} has a column {taken[0]!r} already, which the output adds: rename it"
        )
    kinds = zip(table.names, table.types(table.names), strict=True)
    schema = pa.schema([*kinds, *((name, pa.float64()) for name in added)])
    sums, done = np.zeros(len(added)), 0
    with written_whole(output) as part, table_writer(part, how, schema) as writer:
        for batch in table.batches(named, table.names, rows_at_once, named):
            n = len(batch.rows)
            if n:
                columns = [read_numbers(batch.rows[name], name, "scores") for name in named]
                answers = _answers(calibrator, columns, done, named)
                sums += answers.sum(axis=0)
                arrays = [*batch.carried, *(pa.array(column) for column in answers.T)]
                writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            done += n
            if progress is not None:
                progress(done, table.n_rows)
    mean = dict(zip(added, (sums / max(done, 1)).tolist(), strict=True))
    return Applied(done, schema.names, mean, time.perf_counter() - start)


def _columns(calibrator: Calibrator) -> list[str]:
    """Return the names of what is added: two classes p0, p1, p, more p(c), lower(c), upper(c)."""
    bounds = has_bounds(calibrator)
    if len(calibrator.classes_) == 2:
        return ["p0", "p1", "p"] if bounds else ["p"]
    kinds = ("p", "lower", "upper") if bounds else ("p",)
    return [f"{kind}({label})" for kind in kinds for label in calibrator.classes_.tolist()]


def _answers(
    calibrator: Any, columns: list[FloatArray], done: int, names: Sequence[str]
) -> FloatArray:
    scores = columns[0] if len(columns) == 1 else np.column_stack(columns)
    try:
        p = calibrator.predict_proba(scores)
    except ValueError as error:  # scores of another kind than it was fitted to
        at = _first_refused(calibrator, scores)
        raise InputError(
            f"{' and '.join(map(repr, names))} in row {done + at + 1:,}: {one_line(error)}"
        ) from error
    if not has_bounds(calibrator):
        return np.asarray(p[:, 1:] if p.shape[1] == 2 else p)
    bounds = calibrator.predict_multiprobability(scores)
    if p.shape[1] == 2:
        return np.column_stack([bounds.p0, bounds.p1, p[:, 1]])
    return np.column_stack([p, bounds.lower, bounds.upper])


def _first_refused(calibrator: Any, scores: FloatArray) -> int:
    """Return the first row that the calibrator does not take by itself."""
    low, high = 0, len(scores) - 1
    while low < high:  # all rows before the first are taken together
        middle = (low + high) // 2
        try:
            calibrator.predict_proba(scores[: middle + 1])
        except ValueError:
            high = middle
        else:
            low = middle + 1
    return low
