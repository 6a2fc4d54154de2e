"""The command ``calibrate``: a table of scores and labels in, a calibrator as JSON out."""

from __future__ import annotations

import json
import time
from typing import Literal

from vennforest._files import refused_as, shown_path, write_text
from vennforest._validation import InputError, check_option, warn_of_small_weights
from vennforest.calibrators import METHODS
from vennforest.calibrators.base import ranking
from vennforest.commands.models import examples_to_keep
from vennforest.commands.options import Calibrate
from vennforest.commands.terminal import print_json, progress_bar, say, shares_of
from vennforest.counts import ScoreCounts
from vennforest.export import to_json
from vennforest.tables.files import TableFile
from vennforest.tables.labelled_scores import LabelledScores

INCREASING: dict[str, Literal[True, False, "auto"]] = {"yes": True, "no": False, "auto": "auto"}


def run(options: Calibrate) -> None:
    """Fit a calibrator to scores of any system, write it as JSON, and print a summary."""
    start = time.perf_counter()
    if options.increasing is not None:
        check_option(options.increasing, Literal["yes", "no", "auto"], "--increasing")
    check_option(options.method, METHODS, "--method")
    calibrator = METHODS[options.method]()
    table = TableFile(options.data, options.decimal)
    with progress_bar("Rows") as progress, refused_as(f"{options.data} cannot be calibrated on"):
        rows = LabelledScores(table, options.scores, options.target, options.weight, progress)
        if len(rows.classes) == len(rows.scores) == 2:
            del rows.scores[0]  # the score of the first class says nothing more
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
        calibrator.fit_counts(counts, increasing=INCREASING[options.increasing or "yes"])
    labels = list(map(str, rows.classes))
    classes = dict(zip(labels, counts.class_totals.tolist(), strict=True))
    entries = {
        "scores": rows.scores,
        "target": options.target,
        "rows": rows.n_rows,
        "data": options.data.name,
        **examples_to_keep(counts, calibrator),
    }
    # The calibrator may be long: `about` is added to its text, which is not read again.
    document = to_json(calibrator).removesuffix("}")
    document += f', "about": {json.dumps(entries, ensure_ascii=False)}}}'
    write_text(options.output, document)
    if rows.n_missing:
        say(f"Note: {rows.n_missing:,} rows have no {options.target!r} and are left out.")
    if calibrator.reversed_at_ is not None:
        say(f"Note: High scores mean that {labels[1]!r} is less likely: they are reversed.")
    seconds, output = time.perf_counter() - start, shown_path(options.output)
    if options.as_json:
        summary = {
            "n_rows": rows.n_rows,
            "classes": classes,
            "distinct": len(counts),
            "error": counts.error,
        }
        print_json({**summary, "seconds": seconds, "calibrator": output})
        return
    event = f"; the score is that of {labels[1]!r}" if len(labels) == 2 else ""
    say(f"Calibrated on {rows.n_rows:,} rows, {len(counts):,} distinct scores{event}.")
    say(f"Classes: {shares_of(classes, 2)}.")
    say(f"Wrote {output} ({seconds:.0f} s)")


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
