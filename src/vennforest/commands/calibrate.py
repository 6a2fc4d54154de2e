"""The command ``calibrate``: a table of scores and labels in, a calibrator as JSON out."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from vennforest._files import refused_as, shown_path, write_text
from vennforest._remote import sent_whole
from vennforest._validation import InputError, check_option, warn_of_small_weights
from vennforest.calibrators import check_method
from vennforest.calibrators.base import ranking
from vennforest.commands.calibrator_file import kept_examples, kept_rows
from vennforest.commands.files import check_suffix
from vennforest.commands.options import Calibrate
from vennforest.commands.terminal import print_json, progress_bar, say, say_notes, shares_of
from vennforest.counts import ScoreCounts
from vennforest.export import to_json
from vennforest.tables.scores import MOST_SCORES, ScoreColumns, check_names
from vennforest.tables.stream import TableFile

MANY = 2_000_000
"""Rows up to which some of more than two classes are read once more, to be kept."""


def run(options: Calibrate) -> None:
    """Calibrate as `calibrate_file`, and print a summary."""
    notes: list[str] = []
    output = shown_path(options.output)
    with progress_bar("Rows") as progress:
        done = calibrate_file(options, notes.append, progress)
    say_notes(notes)
    if options.as_json:
        print_json({**done, "calibrator": output, "notes": notes})
        return
    of = "" if done["positive"] is None else f"; the score is that of {done['positive']!r}"
    say(f"Calibrated on {done['n_rows']:,} rows, {done['distinct']:,} distinct scores{of}.")
    say(f"Classes: {shares_of(done['classes'], 2)}.")
    say(f"Wrote {output} ({done['seconds']:.0f} s)")


def calibrate_file(
    options: Calibrate,
    note: Callable[[str], None] = lambda _: None,
    progress: Callable[[int, int | None], None] | None = None,
    most_scores: int = MOST_SCORES,
) -> dict[str, Any]:
    """Fit a calibrator to scores of any system, and write it as JSON, whole or not at all.

    More than ``most_scores`` distinct scores are coarsened. ``note`` takes sentences for the
    user, and ``progress`` the rows done and, where known, all of them. Returned are numbers of
    rows with a label, the rows or the weight of each class, of two classes the one whose score
    it is, how many scores were told apart, and the largest share of the rows that coarsening
    moved past any score.
    """
    start = time.perf_counter()
    data, target = options.data, options.target
    weight = options.weight
    if options.increasing is not None:
        check_option(options.increasing, Literal["yes", "no", "auto"], "--increasing")
    calibrator = check_method(options.method, "--method")()
    check_suffix(options.output, ".json", "calibrator")
    table = TableFile(data, options.decimal)
    check_names(table, [*options.scores, target, *([weight] if weight else [])])
    with refused_as(f"{data} cannot be calibrated on"):  # what the scores are not
        columns = ScoreColumns(
            table, options.scores, target, weight, options.rows_at_once, progress
        )
        classes, missing = columns.labels()
        counts, n_rows = _count(columns, classes, most_scores)
        if options.increasing is None and len(classes) == 2:
            _check_direction(counts, classes, columns.scores[0])
        warn_of_small_weights(float(counts.total), len(counts))
        direction = {"no": False, "auto": "auto"}.get(options.increasing or "yes", True)
        calibrator.fit_counts(counts, increasing=cast("Any", direction))
    if missing:
        note(f"{missing:,} rows have no {target!r} and are left out.")
    if counts.error:
        note(
            "There are too many distinct scores to keep them all: neighbouring ones are put "
            f"together, which moves at most {counts.error:.2g} of the rows past any score."
        )
    if calibrator.reversed_at_ is not None:
        note(f"High scores mean that {str(classes[1])!r} is less likely: they are reversed.")
    some: dict[str, Any] = {}
    if len(classes) > 2 and weight is None and n_rows <= MANY:
        rows = ScoreColumns(table, columns.scores, target, None, options.rows_at_once)
        some = kept_rows(rows, n_rows)
    about = {
        "scores": columns.scores,
        "target": target,
        "rows": n_rows,
        "data": data.name,
        **(kept_examples(counts, calibrator) if len(classes) == 2 else some),
    }
    # A million scores are written once, and not read and written again.
    document = to_json(calibrator).removesuffix("}")
    document += f', "about": {json.dumps(about, ensure_ascii=False)}}}'
    with sent_whole(options.output) as file:
        write_text(file, document)
    return {
        "n_rows": n_rows,
        "classes": dict(zip(map(str, classes), map(_count_of, counts.class_totals), strict=True)),
        "positive": str(classes[1]) if len(classes) == 2 else None,
        "distinct": len(counts),
        "error": counts.error,
        "seconds": time.perf_counter() - start,
    }


def _count(columns: ScoreColumns, classes: Sequence[Any], most: int) -> tuple[ScoreCounts, int]:
    """Return the counts of a table, and of how many rows; of two scores the second is taken."""
    k, scores = len(classes), columns.scores
    if len(scores) not in ({1, 2} if k == 2 else {k}):
        raise InputError(
            f"--score must name {'one column' if k == 2 else f'{k} columns'} for the {k} classes "
            f"of {columns.target!r}, in the order {', '.join(map(repr, map(str, classes)))}, "
            f"got {len(scores)}"
        )
    if len(scores) == 2:
        columns.scores = [scores[1]]
    return columns.count(classes, most)


def _count_of(total: float) -> int | float:
    """Return a sum of weights, as an integer where it is one."""
    return int(total) if float(total).is_integer() else float(total)


def _check_direction(counts: ScoreCounts, classes: Sequence[Any], score: str) -> None:
    """Refuse scores that fall where the second of two classes becomes frequent."""
    area, sure = ranking(counts)
    if sure and area < 0.5:
        first, second = classes
        raise InputError(
            f"the scores {score!r} are lower for {str(second)!r} than for "
            f"{str(first)!r} (area under the ROC curve {area:.3f}): give --increasing no if high "
            f"scores mean that {str(second)!r} is less likely, or --increasing yes to keep them"
        )
