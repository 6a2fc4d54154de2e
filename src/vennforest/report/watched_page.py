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

OBSERVED = {"auc": "AUC", "log_loss": "Log loss", "observed_expected": "Observed / expected"}
"""Titles of the measures of labelled rows over time."""

SET_PRIOR = "set the new class frequencies (with_prior) if rows of a class are as before"
LOOK_AT_COLUMNS = "look at the columns that moved for a broken or redefined source"


def sentences_of(findings: Findings) -> list[str]:
    """Return the findings in sentences."""
    n = f"{findings.rows:,}{' labelled' if findings.monitor.watch == 'labels' else ''} rows"
    if not findings.rows:
        return ["Nothing was watched: no row of this table counts yet.", *_left_out(findings)]
    expected = [*_left_out(findings), *_shifted(findings), *_expected(findings)]
    top = rounded_down(findings.max_evidence)
    if not findings.alarm:
        chance = f"up to 1 of {top} streams" if top != "1" else "any stream"
        return [
            f"No alarm in {n}: so much of a difference would be seen by chance in {chance}, "
            f"and an alarm needs 1 of {rounded_down(findings.monitor.threshold_)} streams. Small "
            "and recent changes take more rows to be seen.",
            *expected,
        ]
    first = findings.changes[0]
    is_later = findings.alarm_row is not None and first["since"] > findings.alarm_row
    when = ", before this table" * findings.began_earlier + ", after that" * is_later
    meaning, advice = _meaning(findings.kinds, findings.monitor.watch)
    return [
        f"The data has changed: the chance of this if nothing had changed is less than 1 in {top}.",
        f"The alarm was raised at {findings.alarm_at} of {n}; the largest change seems to have "
        f"begun near {first['began']}{when} (95% interval: {first['interval']}).",
        f"{meaning} Best explained by: {first['description']} (of {first['label']!r}).",
        _moved_columns(findings),
        *filter(None, [findings.observed]),
        *expected,
        f"What to do: {advice}",
    ]


def _left_out(findings: Findings) -> list[str]:
    """Return a sentence on the rows of the table that are not counted, if there are any."""
    n_read, *numbers = findings.counts.values()
    if numbers[0] == n_read:
        return []
    names = [name for name in findings.counts if name != "read"]
    parts = [f"{n:,} {name}" for n, name in zip(numbers, names, strict=True) if n or not n_read]
    return [f"Of {n_read:,} rows read: {', '.join(parts)}."]


def _moved_columns(findings: Findings) -> str:
    """Return a sentence on the columns that moved at the change."""
    moved = [change.name for change in findings.column_changes if change.p_value <= MAX_P_VALUE]
    if not findings.column_changes:
        return (
            f"Columns are not compared: fewer than {MIN_ROWS_A_SIDE} rows of this table are on one "
            "side of the change."
        )
    if not moved:
        return "No single column moved then by more than chance would."
    return f"Columns that moved then: {listed(moved, 5)}."


def _shifted(findings: Findings) -> list[str]:
    """Return a sentence on the columns that differ from the reference, if there is one."""
    if not findings.reference:
        return []
    moved = [change for change in findings.shifted if change.p_value <= MAX_P_VALUE]
    names = [f"{change.name!r} ({change.before}, now {change.after})" for change in moved]
    return [
        f"{len(moved)} of {len(findings.shifted)} columns differ from {findings.reference!r} by "
        f"more than chance would{': ' if moved else ''}{listed(names, 3, str)}."
    ]


def _expected(findings: Findings) -> list[str]:
    """Return a sentence on the expected accuracy, if it was estimated."""
    if findings.expected is None:
        return []
    if findings.expected["reason"]:
        return [f"The performance is not estimated: {findings.expected['reason']}."]
    corrected = ", corrected for how frequent each kind of row is" if findings.reference else ""
    return [
        f"Expected accuracy of these rows{corrected}: {interval(findings.expected['accuracy'])}."
    ]


def _meaning(kinds: list[str], watch: str) -> tuple[str, str]:
    """Return what has moved, given the kinds of change, and what to do, each as a sentence."""
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
    """Return an estimate with its interval as text; "–" where it is NaN or None."""
    estimate, low, high = (math.nan if end is None else end for end in ends)
    return "–" if math.isnan(estimate) else f"{estimate:.3f} ({low:.3f} to {high:.3f})"


def render_findings(
    findings: Findings, sentences: list[str], command: str, name: str, target: str
) -> str:
    """Return the page; ``name`` is that of the table, and ``target`` of its labels, or ""."""
    parts = [part for part in findings.over_time if not part["reason"]]
    over_time = ""
    if len(parts) > 1:
        accuracies = figures.rates(
            [part["name"] for part in parts],
            np.array([part["accuracy"] for part in parts]),
            "Expected accuracy",
            f"Expected accuracy by {findings.period}, with intervals",
        )
        over_time = figures.draw("performance", accuracies)
    series = ""
    if len(findings.series) > 1:
        areas = np.array([part["auc"] for part in findings.series], np.float64)
        names = [part["name"] for part in findings.series]
        series = figures.draw(
            "series", figures.rates(names, areas, "AUC", "AUC over time, with intervals")
        )
    evidence = figures.evidence_over_time(
        findings.curve, findings.monitor.threshold_, findings.began, findings.times
    )
    return render_page(
        "watch.html.j2",
        command,
        picture=figures.draw("evidence", evidence),
        over_time=over_time,
        series=series,
        observed=OBSERVED,
        result=findings,
        sentences=sentences,
        name=name,
        target=target,
        chance=rounded_down(findings.max_evidence),
        interval=interval,
        metrics=METRICS,
        max_columns=MAX_COLUMNS,
    )
