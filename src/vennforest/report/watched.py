"""Findings of a monitor in a table, and their page."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from vennforest._files import one_line
from vennforest._messages import as_sentence, listed, plain_number
from vennforest._validation import FloatArray
from vennforest.monitoring import Monitor
from vennforest.monitoring.columns import MIN_ROWS_A_SIDE, column_changes
from vennforest.performance import estimate_performance
from vennforest.performance.measures import EPSILON
from vennforest.report.breakdown import periods
from vennforest.report.evaluation import for_json
from vennforest.report.figures import draw, over_periods, paint_evidence
from vennforest.report.page import render_page

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


def watched(
    monitor: Monitor,
    *,
    X: Any,
    columns: dict[str, NDArray[Any]],
    y: NDArray[Any] | None,
    times: NDArray[Any] | None,
    probabilities: FloatArray,
    judged: tuple[Any, Any, dict[str, Any]],
    reference: tuple[str, dict[str, NDArray[Any]]] | None = None,
    name: str,
    target: str,
    notes: list[str],
    command: str,
) -> tuple[dict[str, Any], str]:
    """Update a monitor with a table; return the findings as a dict for JSON, and an HTML page.

    ``X`` are n rows for the fitted model (scores for a monitor without one), and ``columns`` the
    same rows as they are compared and shown. ``y`` are labels, if known, ``times`` must not
    decrease, and ``probabilities`` (n, k) are the model's. ``judged`` are arguments for
    `estimate_performance`, used without labels. ``reference`` is the name of a table of earlier
    rows and its columns. Appends to ``notes``.
    """
    before = monitor.n_seen_, monitor.n_unlabelled_, monitor.n_repeated_
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        evidence = monitor.update(X, y, time=times)
    notes += [as_sentence(str(warning.message)) for warning in caught]
    changes, is_alarm = monitor.explain(), monitor.alarm_ is not None
    # All that follows is of the rows that the monitor counted, here and in the tests alike.
    rows = np.flatnonzero(monitor.taken_)
    counts = _row_counts(monitor, before)
    since = changes[0].since - before[0]
    n_until = min(max(since, 0), len(rows))
    performance: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    period = observed = ""
    if y is None:
        period, performance = _performance(*judged, times=times)
    elif is_alarm:
        classes, observed = _before_and_since(monitor, y[rows], probabilities[rows], n_until)
    reference_name, earlier = reference or ("", {})
    all_rows = {key: np.concatenate([values, columns[key]]) for key, values in earlier.items()}
    shifted = column_changes(all_rows, len(next(iter(earlier.values()), ())))
    counted = {name: values[rows] for name, values in columns.items()}
    moved = column_changes(counted, n_until) if is_alarm else []
    strong = {change.kind for change in changes if change.evidence >= monitor.threshold_}
    summary: dict[str, Any] = for_json(
        {
            "alarm": is_alarm,
            "alarm_row": monitor.alarm_,
            "alarm_at": _when(monitor, monitor.alarm_ or 0, monitor.alarm_time_, times),
            "evidence": monitor.evidence_,
            "max_evidence": monitor.max_evidence_,
            "chance": 1 / monitor.max_evidence_,
            "rows": monitor.n_seen_,
            "unlabelled": monitor.n_unlabelled_,
            "counts": counts,
            "began_earlier": since < 0,
            "kinds": sorted(strong | {changes[0].kind}) if is_alarm else [],
            "changes": [
                {
                    **asdict(change),
                    "label": str(change.label),
                    "began": _when(monitor, change.since, change.since_time, times),
                }
                for change in changes
            ],
            "columns": [asdict(change) for change in moved],
            "reference": reference_name,
            "shifted": [asdict(change) for change in shifted],
            "classes": classes,
            "observed": observed,
            "period": period,
            "expected": performance[0] if performance else None,
            "over_time": performance[1:],
            "notes": notes,
        }
    )
    summary["verdict"] = verdict(summary, monitor)
    is_here = is_alarm and 0 <= since < len(rows)
    level, line = monitor.threshold_, int(rows[since]) if is_here else None
    picture = draw(
        "evidence",
        (9.0, 3.6),
        lambda ax: paint_evidence(ax, np.maximum(evidence, 1e-12), level, line, times),
        "Evidence of a change over the rows of the stream, on a logarithmic scale",
    )
    parts, over_time = [part for part in performance[1:] if not part["reason"]], ""
    if len(parts) > 1:
        over_time = over_periods(
            "performance",
            [part["name"] for part in parts],
            np.array([part["accuracy"] for part in parts]),
            "Expected accuracy",
            f"Expected accuracy by {period}, with intervals",
        )
    page = render_page(
        "watch.html.j2",
        command,
        picture=picture,
        over_time=over_time,
        result=summary,
        name=name,
        target=target,
        n_rows=len(evidence),
        alpha=monitor.alpha,
        watch=monitor.watch,
        chance=rounded_down(monitor.max_evidence_),
        interval=_interval,
        metrics=METRICS,
        max_columns=MAX_COLUMNS,
    )
    return summary, page


def _row_counts(monitor: Monitor, before: tuple[int, int, int]) -> dict[str, int]:
    """Return the numbers of rows of the last update that were read, and what became of them.

    ``before`` are the monitor's numbers of counted, unlabelled and repeated rows before it. The
    four numbers after the first add up to it.
    """
    after = monitor.n_seen_, monitor.n_unlabelled_, monitor.n_repeated_
    n, (counted, unlabelled, repeated) = len(monitor.taken_), np.subtract(after, before).tolist()
    waiting = n - counted - unlabelled - repeated
    return {
        "read": n,
        "counted": counted,
        "waiting for labels": waiting,
        "without a label": unlabelled,
        "seen before": repeated,
    }


def _when(monitor: Monitor, row: int, time: float | None, times: NDArray[Any] | None) -> str:
    """Return text that names a row, counted from 1, and its time."""
    text = f"{'labelled ' if monitor.watch == 'labels' else ''}row {row + 1:,}"
    if time is None or times is None:
        return text
    if times.dtype.kind != "M":
        return f"{text} ({plain_number(time, 12)})"
    return f"{text} ({datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M})".replace(" 00:00", "")


def _performance(
    model: Any, X: Any, options: dict[str, Any], times: NDArray[Any] | None
) -> tuple[str, list[dict[str, Any]]]:
    """Return the kind of period, and the expected measures of all rows and of each period."""

    def estimate(name: str, rows: Any) -> dict[str, Any]:
        part = {"name": name, "rows": len(rows), "reason": ""}
        try:
            estimates = estimate_performance(model, _safe_indexing(X, rows), **options)
        except ValueError as error:
            return part | {"reason": one_line(error)}
        return part | {metric: list(estimates[metric]) for metric in estimates.metrics}

    n = X.shape[0] if hasattr(X, "shape") else len(X)
    total = estimate("all rows", np.arange(n))
    if times is None or times.dtype.kind != "M" or total["reason"]:
        return "", [total]
    period, named_rows = periods(times)
    return period, [total, *(estimate(name, rows) for name, rows in named_rows)]


def _before_and_since(
    monitor: Monitor, y: NDArray[Any], p: FloatArray, n_until: int
) -> tuple[list[dict[str, Any]], str]:
    """Return share and mean probability of each class before and since a row, and a sentence.

    Labels (n,) and probabilities (n, k) are of the counted rows, ``n_until`` of them before. Where
    there are none, shares before are those of the examples that the stream is compared with.
    """
    classes = monitor.classes_
    code = {label: j for j, label in enumerate(classes.tolist())}
    codes = np.array([code[label] for label in y.tolist()], np.intp)
    figures: list[dict[str, Any]] = [{"label": str(label)} for label in code]
    texts = []
    for when, side in (("before", slice(0, n_until)), ("since", slice(n_until, None))):
        of_side, q = codes[side], p[side]
        n = len(of_side)
        for j, of_class in enumerate(figures):
            of_class[f"share_{when}"] = (of_side == j).mean() if n else np.nan
            of_class[f"predicted_{when}"] = q[:, j].mean() if n else np.nan
            if when == "before" and not n:
                of_class["share_before"] = monitor.reference_shares_[j]
        if n >= MIN_ROWS_A_SIDE:
            accuracy = float((q.argmax(axis=1) == of_side).mean())
            loss = -np.log(np.maximum(q[np.arange(n), of_side], EPSILON)).mean()
            texts.append(f"accuracy {accuracy:.3f}, log loss {loss:.3f} {when} ({n:,} rows)")
    return figures, f"Observed: {'; '.join(texts)}." if texts else ""


def verdict(summary: Mapping[str, Any], monitor: Monitor) -> list[str]:
    """Return the findings in sentences."""
    top, first = rounded_down(summary["max_evidence"]), summary["changes"][0]
    n = f"{summary['rows']:,}{' labelled' if monitor.watch == 'labels' else ''} rows"
    if not summary["rows"]:
        return ["Nothing was watched: no row of this table counts yet.", *_left_out(summary)]
    expected = [*_left_out(summary), *_expected(summary)]
    if not summary["alarm"]:
        chance = f"up to 1 of {top} streams" if top != "1" else "any stream"
        return [
            f"No alarm in {n}: so much of a difference would be seen by chance in {chance}, "
            f"and an alarm needs 1 of {rounded_down(monitor.threshold_)} streams. Small and "
            "recent changes take more rows to be seen.",
            *expected,
        ]
    columns = summary["columns"]
    moved = [column["name"] for column in columns if column["p_value"] <= MAX_P_VALUE]
    sentence = f"Columns that moved then: {listed(moved, 5)}."
    if not columns:
        sentence = (
            f"Columns are not compared: fewer than {MIN_ROWS_A_SIDE} rows of this table are on one "
            "side of the change."
        )
    elif not moved:
        sentence = "No single column moved then by more than chance would."
    meaning, advice = _meaning(summary["kinds"], monitor.watch)
    return [
        f"The data has changed: the chance of this if nothing had changed is less than 1 in {top}.",
        f"The alarm was raised at {summary['alarm_at']} of {n}; the largest change seems to have "
        f"begun near {first['began']}{', before this table' * summary['began_earlier']}.",
        f"{meaning} Best explained by: {first['description']} (of {first['label']!r}).",
        sentence,
        *filter(None, [summary["observed"]]),
        *expected,
        f"What to do: {advice}",
    ]


def _left_out(summary: Mapping[str, Any]) -> list[str]:
    """Return a sentence on the rows of the table that are not counted, if there are any."""
    n_read, *numbers = summary["counts"].values()
    if numbers[0] == n_read:
        return []
    names = [name for name in summary["counts"] if name != "read"]
    parts = [f"{n:,} {name}" for n, name in zip(numbers, names, strict=True) if n or not n_read]
    return [f"Of {n_read:,} rows read: {', '.join(parts)}."]


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


def _expected(summary: Mapping[str, Any]) -> list[str]:
    """Return which columns differ from the reference, and the expected accuracy."""
    sentences, reference, expected = [], summary["reference"], summary["expected"]
    if reference:
        moved = [change for change in summary["shifted"] if change["p_value"] <= MAX_P_VALUE]
        names = [f"{c['name']!r} ({c['before']}, now {c['after']})" for c in moved]
        sentences.append(
            f"{len(moved)} of {len(summary['shifted'])} columns differ from {reference!r} by more "
            f"than chance would{': ' if moved else ''}{listed(names, 3, str)}."
        )
    if expected and expected["reason"]:
        sentences.append(f"The performance is not estimated: {expected['reason']}.")
    elif expected:
        corrected = ", corrected for how frequent each kind of row is" if reference else ""
        interval = _interval(expected["accuracy"])
        sentences.append(f"Expected accuracy of these rows{corrected}: {interval}.")
    return sentences


def rounded_down(value: float) -> str:
    """Round a number of cases down to 1, 2 or 5 times a power of ten, at most 1,000,000."""
    value = min(max(value, 1.0), 1e6) * (1 + 1e-9)
    power = 10 ** int(np.floor(np.log10(value)))
    return f"{max(digit for digit in (1, 2, 5) if digit * power <= value) * power:,}"


def _interval(ends: list[float | None]) -> str:
    """Return an estimate with the ends of its interval; NaN is None in JSON."""
    estimate, low, high = ends
    return "–" if estimate is None else f"{estimate:.3f} ({low:.3f} to {high:.3f})"
