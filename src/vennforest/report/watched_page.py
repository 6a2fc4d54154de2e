"""Sentences and the page about the findings of a monitor."""

from __future__ import annotations

import math

import numpy as np

from vennforest._messages import listed
from vennforest.monitoring.columns import MIN_ROWS_A_SIDE
from vennforest.report import figures
from vennforest.report.page import render_page
from vennforest.report.watched import Findings

MAX_P_VALUE = 0.05
"""Largest corrected p-value of a column that is reported to have moved."""

MAX_COLUMNS = 50
"""Maximum number of columns listed, those that differ most."""

METRICS = {
    "accuracy": "Accuracy",
    "precision": "Precision",
    "recall": "Recall",
    "brier": "Brier score",
    "log_loss": "Log loss",
    "auc": "AUC",
}
"""Titles of the measures of expected performance."""

SET_PRIOR = "set the new class frequencies (with_prior) if rows of a class are as before"
LOOK_AT_COLUMNS = "look at the columns that moved for a broken or redefined source"


def verdict(found: Findings) -> list[str]:
    """Return the findings in sentences."""
    n = f"{found.rows:,}{' labelled' if found.monitor.watch == 'labels' else ''} rows"
    if not found.rows:
        return ["Nothing was watched: no row of this table counts yet.", *_left_out(found)]
    expected = [*_left_out(found), *_shifted(found), *_expected(found)]
    top = rounded_down(found.max_evidence)
    if not found.alarm:
        chance = f"up to 1 of {top} streams" if top != "1" else "any stream"
        return [
            f"No alarm in {n}: so much of a difference would be seen by chance in {chance}, "
            f"and an alarm needs 1 of {rounded_down(found.monitor.threshold_)} streams. Small and "
            "recent changes take more rows to be seen.",
            *expected,
        ]
    first = found.changes[0]
    is_later = found.alarm_row is not None and first["since"] > found.alarm_row
    when = ", before this table" * found.began_earlier + ", after that" * is_later
    meaning, advice = _meaning(found.kinds, found.monitor.watch)
    return [
        f"The data has changed: the chance of this if nothing had changed is less than 1 in {top}.",
        f"The alarm was raised at {found.alarm_at} of {n}; the largest change seems to have "
        f"begun near {first['began']}{when}.",
        f"{meaning} Best explained by: {first['description']} (of {first['label']!r}).",
        _moved_columns(found),
        *filter(None, [found.observed]),
        *expected,
        f"What to do: {advice}",
    ]


def _left_out(found: Findings) -> list[str]:
    """Return a sentence on the rows of the table that are not counted, if there are any."""
    n_read, *numbers = found.counts.values()
    if numbers[0] == n_read:
        return []
    names = [name for name in found.counts if name != "read"]
    parts = [f"{n:,} {name}" for n, name in zip(numbers, names, strict=True) if n or not n_read]
    return [f"Of {n_read:,} rows read: {', '.join(parts)}."]


def _moved_columns(found: Findings) -> str:
    """Return a sentence on the columns that moved at the change."""
    moved = [change.name for change in found.columns if change.p_value <= MAX_P_VALUE]
    if not found.columns:
        return (
            f"Columns are not compared: fewer than {MIN_ROWS_A_SIDE} rows of this table are on one "
            "side of the change."
        )
    if not moved:
        return "No single column moved then by more than chance would."
    return f"Columns that moved then: {listed(moved, 5)}."


def _shifted(found: Findings) -> list[str]:
    """Return a sentence on the columns that differ from the reference, if there is one."""
    if not found.reference:
        return []
    moved = [change for change in found.shifted if change.p_value <= MAX_P_VALUE]
    names = [f"{change.name!r} ({change.before}, now {change.after})" for change in moved]
    return [
        f"{len(moved)} of {len(found.shifted)} columns differ from {found.reference!r} by more "
        f"than chance would{': ' if moved else ''}{listed(names, 3, str)}."
    ]


def _expected(found: Findings) -> list[str]:
    """Return a sentence on the expected accuracy, if it was estimated."""
    if found.expected is None:
        return []
    if found.expected["reason"]:
        return [f"The performance is not estimated: {found.expected['reason']}."]
    corrected = ", corrected for how frequent each kind of row is" if found.reference else ""
    return [f"Expected accuracy of these rows{corrected}: {interval(found.expected['accuracy'])}."]


def _meaning(kinds: list[str], watch: str) -> tuple[str, str]:
    """Return a sentence on the change and one on the remedy."""
    if "labels given scores" in kinds:
        prefix = "the scores, and " if "scores" in kinds else ""
        return (
            f"What has moved: {prefix}what a score says of the label.",
            f"the probabilities are off; {SET_PRIOR}, otherwise calibrate again on labelled rows "
            "from after the change, and train again if the ranking has become worse. If the scores "
            "tell more than before, check that these are new rows.",
        )
    if "scores" not in kinds:
        return "What has moved: how frequent the classes are.", f"{SET_PRIOR}."
    if watch == "objects":
        return (
            "The scores have moved; labels were not looked at.",
            f"{LOOK_AT_COLUMNS}, and label some rows from after the change: without labels it "
            "cannot be seen whether probabilities are still right.",
        )
    return (
        "The scores have moved; what they say of the labels has not, as far as can be seen.",
        f"{LOOK_AT_COLUMNS}, and watch on: few rows may not show a change of the labels.",
    )


def rounded_down(value: float) -> str:
    """Round a number of cases down to 1, 2 or 5 times a power of ten, at most 1,000,000."""
    value = min(max(value, 1.0), 1e6) * (1 + 1e-9)
    power = 10 ** int(np.floor(np.log10(value)))
    return f"{max(digit for digit in (1, 2, 5) if digit * power <= value) * power:,}"


def interval(ends: list[float]) -> str:
    """Return an estimate with the ends of its interval."""
    estimate, low, high = ends
    return "–" if math.isnan(estimate) else f"{estimate:.3f} ({low:.3f} to {high:.3f})"


def render_findings(
    found: Findings, sentences: list[str], command: str, name: str, target: str
) -> str:
    """Return the page; ``name`` is that of the table, and ``target`` of its labels, or ""."""
    parts = [part for part in found.over_time if not part["reason"]]
    over_time = ""
    if len(parts) > 1:
        over_time = figures.over_periods(
            "performance",
            [part["name"] for part in parts],
            np.array([part["accuracy"] for part in parts]),
            "Expected accuracy",
            f"Expected accuracy by {found.period}, with intervals",
        )
    curve, level = np.maximum(found.curve, 1e-12), found.monitor.threshold_
    picture = figures.draw(
        "evidence",
        (9.0, 3.6),
        lambda ax: figures.paint_evidence(ax, curve, level, found.began, found.times),
        "Evidence of a change over the rows of the stream, on a logarithmic scale",
    )
    return render_page(
        "watch.html.j2",
        command,
        picture=picture,
        over_time=over_time,
        result=found,
        sentences=sentences,
        name=name,
        target=target,
        chance=rounded_down(found.max_evidence),
        interval=interval,
        metrics=METRICS,
        max_columns=MAX_COLUMNS,
    )
