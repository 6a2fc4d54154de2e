"""The command ``calibrate``: a table of scores and labels in, a calibrator as JSON out."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, cast

from vennforest._class_columns import are_predictions
from vennforest._files import refused_as, shown_path, write_text
from vennforest._messages import counted
from vennforest._validation import InputError, check_option
from vennforest.calibrators import METHODS, Calibrator
from vennforest.calibrators.direction import MIN_STANDARD_ERRORS, ranking_area
from vennforest.commands.models import (
    check_probabilities_in,
    examples_to_keep,
    numbers_in,
    numbers_of_labels,
)
from vennforest.commands.options import Calibrate
from vennforest.commands.pages import dividing_columns, record_of, values_in
from vennforest.commands.terminal import print_json, progress_bar, say, say_notes, shares_text
from vennforest.counts import ScoreCounts
from vennforest.export import to_json
from vennforest.report.findings import for_json
from vennforest.report.splits import group_codes
from vennforest.scores import On, ScoreError, read_scores
from vennforest.tables.open import TableFile
from vennforest.tables.target import LabelledScores, split_target
from vennforest.validation.update import TITLES, Choice, Update, gain_sentence, update

INCREASING: dict[str, Literal[True, False, "auto"]] = {"yes": True, "no": False, "auto": "auto"}


def run_calibrate(options: Calibrate) -> None:
    """Fit a calibrator to scores of any system, write it as JSON, and print a summary."""
    start = time.perf_counter()
    _check_choices(options)
    calibrator: Calibrator = METHODS[options.method or "venn-abers"]().set_params(on=options.on)
    result: Update | None = None
    table, on = TableFile(options.data, options.form), cast(On, options.on)
    drops = options.missing_scores == "drop"
    prefix = f"{options.data} cannot be calibrated on"
    with progress_bar("Rows") as progress, refused_as(prefix), _places_left_out():
        rows = LabelledScores(
            table, options.scores, options.target, options.weight, progress, on, drops
        )
        if rows.columns.of_first and options.increasing == "no":
            raise InputError(
                f"--increasing no must be left out for {rows.columns.names[0]!r}, the probability "
                f"of {rows.classes[0]!r}: 1 minus it is the score"
            )
        second = counts = rows.counts()
        if len(rows.classes) == 2:  # of two columns, as calibrators read them
            second = counts.moved_to(read_scores(counts.scores, 2, on).values)
        if options.update is not None and len(rows.classes) > 2:
            raise InputError(
                f"--update is for two classes, got {len(rows.classes)}: leave it out, and give "
                "--method vector"
            )
        if options.update is not None:
            check_probabilities_in(second.scores, rows.columns.names[-1])
        if options.increasing is None and len(rows.classes) == 2:
            _check_direction(second, rows, is_update=options.update is not None)
        if options.update is None:
            calibrator.fit_counts(counts, increasing=INCREASING[options.increasing or "yes"])
        else:
            result = _update(options, rows)
            calibrator = result.calibrator
    update_record = {}
    if result is not None:
        tests = result.tests.reset_index(names="choice").to_dict("records")
        choice = {"choice": result.choice, "reason": result.reason, **result.gain.to_dict()}
        update_record = {"update": for_json({**choice, "tests": tests})}
    calibrator.record_ = {
        "target": options.target,
        "rows": rows.n_used,
        **record_of(options, options.data),
        **update_record,
        **examples_to_keep(second, calibrator),
    }
    if means := numbers_of_labels(calibrator, options.mean, "--mean", "MEAN"):
        p = calibrator.predict_proba(counts.scores)
        calibrator = calibrator._with_mean_of(means, p, counts.weights.sum(axis=1))
    write_text(options.output, to_json(calibrator, score=rows.columns.by_label))
    say_notes(_notes(rows, calibrator))
    _print_summary(
        options, rows, counts, result, update_record, seconds=time.perf_counter() - start
    )


@contextmanager
def _places_left_out() -> Iterator[None]:
    """Leave out of errors which score is wrong: it is counted among distinct ones, not rows."""
    try:
        yield
    except ScoreError as error:
        raise InputError(error.without_place) from error


def _print_summary(
    options: Calibrate,
    rows: LabelledScores,
    counts: ScoreCounts,
    result: Update | None,
    update_record: dict[str, Any],
    seconds: float,
) -> None:
    """Print the numbers of rows, classes and scores, the update, and the file."""
    output = shown_path(options.output)
    classes = dict(zip(map(str, rows.classes), counts.class_totals.tolist(), strict=True))
    if options.as_json:
        summary: dict[str, Any] = {
            "n_rows": rows.n_used,
            "classes": classes,
            "distinct": len(counts),
            "error": counts.error,
        }
        print_json({**summary, **update_record, "seconds": seconds, "calibrator": output})
        return
    event = ""
    if len(rows.classes) == 2:
        event = f"; the score is that of {str(rows.classes[0 if rows.columns.of_first else 1])!r}"
    say(f"Calibrated on {counted(rows.n_used)}, {counted(len(counts), 'distinct score')}{event}.")
    if counts.error:
        say(
            "Neighbouring scores are put together, which moves at most "
            f"{100 * counts.error:.2g}% of the rows past any score."
        )
    say(f"Classes: {shares_text(classes, 2)}.")
    if result is not None:
        say(f"{TITLES[result.choice]}. {result.reason} {gain_sentence(result.gain)}".rstrip())
    say(f"Wrote {output} ({seconds:.0f} s)")


def _check_choices(options: Calibrate) -> None:
    """Raise an error for options that are not as they must be, or do not go together."""
    choices = {
        "increasing": INCREASING, "method": METHODS, "on": On, "update": Choice,
        "missing_scores": ("refuse", "drop"),
    }  # fmt: skip
    for name, allowed in choices.items():
        if getattr(options, name) is not None:
            check_option(getattr(options, name), allowed, f"--{name.replace('_', '-')}")
    if options.update is None:
        if options.groups is not None:
            raise InputError("--groups is for --update: a calibrator is fitted to single rows")
        return
    if options.weight is not None or options.increasing is not None or options.on != "auto":
        raise InputError("--update takes neither --weight nor --increasing nor --on")
    if options.missing_scores == "drop":
        raise InputError("--missing-scores drop must be used without --update")


def _notes(rows: LabelledScores, calibrator: Calibrator) -> list[str]:
    """Return notes on scores that are calibrated already, rows left out, and reversed scores."""
    notes = rows.left_out.notes(rows.target)
    if are_predictions(rows.columns.names, rows.table.names, rows.classes):
        notes.insert(
            0,
            f"{rows.columns.names[0]!r} is calibrated already, by predict or apply: the new "
            "calibrator is for such probabilities, not for the scores before them.",
        )
    if calibrator.reversed_at_ is not None:
        label = str(rows.classes[1])
        notes.append(f"High scores mean that {label!r} is less likely: they are reversed.")
    return notes


def _update(options: Calibrate, rows: LabelledScores) -> Update:
    """Return the update of the probabilities in the column of scores."""
    choose: Any = options.update
    frame = rows.table.read([options.target])
    table = split_target(frame, options.target, screened=False)
    p = rows.columns.of_second(numbers_in(table.X, rows.columns.names[-1]))
    notes: list[str] = []
    columns = dividing_columns(rows.table, frame, [options.groups], [], {}, notes)
    groups = group_codes(
        values_in(columns.loc[table.X.index]).get(options.groups or ""), len(p), notes
    )
    say_notes(notes)
    new_map = options.method or "spline"
    return update(p, table.y, groups=groups, choose=choose, new_map=new_map)


def _check_direction(counts: ScoreCounts, rows: LabelledScores, is_update: bool) -> None:
    """Raise an error if scores are clearly lower for the second of two classes."""
    area, error = ranking_area(counts)
    if 0.5 - area > MIN_STANDARD_ERRORS * error:
        first, second = map(str, rows.classes)
        way_out = (
            f"give --increasing no if high scores mean that {second!r} is less likely, or "
            "--increasing yes to keep them"
        )
        if rows.columns.of_first:
            way_out = f"name it --score '{second}=COLUMN' if it is a score of {second!r}"
        elif is_update:
            way_out = f"name the column of the probability of {second!r}, or leave --update out"
        score = f"{'1 minus ' * rows.columns.of_first}{rows.columns.names[-1]!r}"
        raise InputError(
            f"the scores {score} are lower for {second!r} than for {first!r} "
            f"(area under the ROC curve {area:.3f}): {way_out}"
        )
