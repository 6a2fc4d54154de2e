"""What ``report`` and ``check`` share: the labelled rows, and the page and what is printed."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from vennforest._files import shown_path
from vennforest._remote import sent_whole
from vennforest.commands.report_options import Check, Report
from vennforest.commands.terminal import print_json, say, say_notes
from vennforest.report import Evaluation
from vennforest.tables.cells import Column
from vennforest.tables.read import find_column
from vennforest.tables.target import LabelledTable

if TYPE_CHECKING:
    import pandas as pd


def values_of_columns(
    frame: pd.DataFrame, table: LabelledTable, names: Iterable[str | None]
) -> dict[str, Any]:
    """Return the values of columns in the rows with a label, by name."""
    has_label = Column(frame[table.target], table.target).is_present
    columns = [find_column(frame, name) for name in dict.fromkeys(names) if name is not None]
    return {name: frame[name][has_label].to_numpy(object) for name in columns}


def common_options(
    table: LabelledTable, values: dict[str, Any], options: Report | Check
) -> dict[str, Any]:
    """Return the arguments that ``evaluate`` and ``check`` both take."""
    return {
        "positive": options.positive,
        "random_state": options.seed,
        "groups": None if options.groups is None else values[options.groups],
        "by": {name: values[name] for name in options.by or ()},
        "costs": options.costs,
        "tolerance": None if options.tolerance is None else options.tolerance / 100,
        "name": table.name,
        "target": table.target,
        "notes": table.notes,
    }


def finish(evaluation: Evaluation, options: Report | Check, advised: Sequence[str]) -> None:
    """Write the page, and print the notes, the verdict and what to type next."""
    say_notes(evaluation.notes)
    command, lines = shlex.join(["vennforest", *sys.argv[1:]]), "\n".join(advised)
    with sent_whole(options.output) as page:
        evaluation.to_html(page, advised=lines, command=command)
    if options.as_json:
        summary = {**evaluation.summary(), "advised": lines}
        print_json({**summary, "report": shown_path(options.output)})
    say(evaluation.verdict.sentence)
    for line in advised:
        say(f"  {line}")
    if sys.stderr.isatty():
        say(f"Wrote {shown_path(options.output)}")
