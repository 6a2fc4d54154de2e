"""The command ``calibrate``: a table of scores and labels in, a calibrator as JSON out."""

from __future__ import annotations

import json
import time
from typing import Any, Literal

from vennforest._files import refused_as, shown_path, write_text
from vennforest._remote import sent_whole
from vennforest._validation import InputError, check_option, warn_of_small_weights
from vennforest.calibrators import check_method
from vennforest.calibrators.base import ranking
from vennforest.commands.calibrator_file import kept_examples
from vennforest.commands.files import check_suffix
from vennforest.commands.options import Calibrate
from vennforest.commands.terminal import print_json, progress_bar, say, say_notes, shares_of
from vennforest.counts import ScoreCounts
from vennforest.export import to_json
from vennforest.tables.files import TableFile
from vennforest.tables.labelled_scores import LabelledScores

INCREASING: dict[str | None, Literal[True, False, "auto"]] = {
    None: True,
    "yes": True,
    "no": False,
    "auto": "auto",
}


def run(options: Calibrate) -> None:
    """Fit a calibrator to scores of any system, write it as JSON, and print a summary."""
    start, notes = time.perf_counter(), list[str]()
    if options.increasing is not None:
        check_option(options.increasing, Literal["yes", "no", "auto"], "--increasing")
    calibrator = check_method(options.method, "--method")()
    check_suffix(options.output, ".json", "calibrator")
    table = TableFile(options.data, options.decimal)
    with progress_bar("Rows") as progress, refused_as(f"{options.data} cannot be calibrated on"):
        rows = LabelledScores(table, options.scores, options.target, options.weight, progress)
        rows.scores = _scores_of_classes(rows)
        counts = ScoreCounts.from_batches(
            rows.batches(),
            score=rows.scores,
            target=options.target,
            weight=options.weight,
            classes=rows.classes,
        )
        if options.increasing is None and len(rows.classes) == 2:
            _check_direction(counts, rows)
        warn_of_small_weights(float(counts.total), len(counts))
        calibrator.fit_counts(counts, increasing=INCREASING[options.increasing])
    if rows.n_missing:
        notes.append(f"{rows.n_missing:,} rows have no {options.target!r} and are left out.")
    if counts.error:
        notes.append(
            "There are too many distinct scores to keep them all: neighbouring ones are put "
            f"together, which moves at most {counts.error:.2g} of the rows past any score."
        )
    if calibrator.reversed_at_ is not None:
        second = str(rows.classes[1])
        notes.append(f"High scores mean that {second!r} is less likely: they are reversed.")
    about = {
        "scores": rows.scores,
        "target": options.target,
        "rows": rows.n_rows,
        "data": options.data.name,
        **kept_examples(rows, counts, calibrator),
    }
    # The calibrator may be long: `about` is added to its text, which is not read again.
    document = to_json(calibrator).removesuffix("}")
    document += f', "about": {json.dumps(about, ensure_ascii=False)}}}'
    with sent_whole(options.output) as file:
        write_text(file, document)
    _print_summary(options, rows, counts, time.perf_counter() - start, notes)


def _scores_of_classes(rows: LabelledScores) -> list[str]:
    """Return the column of the second of two classes, or that of each class."""
    k, scores = len(rows.classes), rows.scores
    if k == 2 and len(scores) in (1, 2):
        return scores[-1:]
    if len(scores) == k:
        return scores
    columns = "one column" if k == 2 else f"{k} columns"
    raise InputError(
        f"--score must name {columns} for the {k} classes of {rows.target!r}, in the order "
        f"{', '.join(map(repr, map(str, rows.classes)))}, got {len(scores)}"
    )


def _check_direction(counts: ScoreCounts, rows: LabelledScores) -> None:
    """Refuse scores that fall where the second of two classes becomes frequent."""
    area, is_certain = ranking(counts)
    if is_certain and area < 0.5:
        first, second = map(str, rows.classes)
        raise InputError(
            f"the scores {rows.scores[0]!r} are lower for {second!r} than for {first!r} (area "
            f"under the ROC curve {area:.3f}): give --increasing no if high scores mean that "
            f"{second!r} is less likely, or --increasing yes to keep them"
        )


def _print_summary(
    options: Calibrate, rows: LabelledScores, counts: ScoreCounts, seconds: float, notes: list[str]
) -> None:
    totals = [float(total) for total in counts.class_totals]
    classes = dict(zip(map(str, rows.classes), totals, strict=True))
    positive = str(rows.classes[1]) if len(classes) == 2 else None
    output = shown_path(options.output)
    say_notes(notes)
    if options.as_json:
        summary: dict[str, Any] = {
            "n_rows": rows.n_rows,
            "classes": classes,
            "positive": positive,
            "distinct": len(counts),
            "error": counts.error,
            "seconds": seconds,
            "calibrator": output,
            "notes": notes,
        }
        print_json(summary)
        return
    of = "" if positive is None else f"; the score is that of {positive!r}"
    say(f"Calibrated on {rows.n_rows:,} rows, {len(counts):,} distinct scores{of}.")
    say(f"Classes: {shares_of(classes, 2)}.")
    say(f"Wrote {output} ({seconds:.0f} s)")
