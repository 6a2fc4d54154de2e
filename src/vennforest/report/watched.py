"""Findings of a monitor in a table of new rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from vennforest._files import one_line
from vennforest._messages import as_sentence, plain_number
from vennforest._validation import FloatArray, IntArray
from vennforest.metrics import Estimates
from vennforest.monitoring import Monitor
from vennforest.monitoring.columns import MIN_ROWS_A_SIDE, ColumnChange, column_changes
from vennforest.performance import estimate_performance
from vennforest.performance.measures import EPSILON
from vennforest.report import figures
from vennforest.report.breakdown import periods
from vennforest.report.findings import for_json
from vennforest.report.page import render_page
from vennforest.report.splits import dates_in
from vennforest.sources.training_columns import ColumnDifference
from vennforest.validation import population_stability

MIN_STABILITY_ROWS = 50
"""Rows of a period that are compared by deciles: five in each, as a test of shares needs."""

MAX_COLUMNS = 50
"""Maximum number of columns listed, those that differ most."""

ColumnArrays = dict[str, NDArray[Any]]
"""Columns (n,) of a table by name."""


@dataclass(frozen=True, eq=False)
class NewRows:
    """A table of n rows for a monitor.

    ``X`` are rows for the fitted model, scores for a monitor without one, and ``columns`` the same
    rows as they are compared and shown. ``y`` are labels, if known, ``times`` must not decrease,
    ``ids`` are keys of rows, and ``probabilities`` (n, k) are the model's, beside those of the
    ``calibration`` examples, if they are known. ``judged`` are arguments
    for `estimate_performance`, used without labels. ``reference`` is the name of a table of earlier
    rows and its columns, and ``differences`` are columns that differ from training.
    """

    X: Any
    columns: ColumnArrays
    probabilities: FloatArray
    judged: tuple[Any, Any, dict[str, Any]]
    y: NDArray[Any] | None = None
    times: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None
    calibration: FloatArray | None = None
    reference: tuple[str, ColumnArrays] = ("", {})
    differences: Sequence[ColumnDifference] = ()


@dataclass(frozen=True, eq=False)
class StreamFindings:
    """What a monitor finds in a table, of the rows that it counts: the page, and its JSON.

    ``counts`` are the rows of the table that were read, and what became of them. ``changes`` are
    those of `Monitor.explain`, the strongest first, with the text of label, beginning and its
    interval at .95, and ``kinds`` those that explain an alarm. ``columns`` differ from training,
    ``column_changes`` are compared before and after the change, ``shifted`` beside ``reference``.
    ``classes`` and the sentence ``observed`` are of labels before and since an alarm. ``expected``
    and ``over_time`` are expected measures of all rows and of each ``period``, ``series`` observed
    ones of each period of this table and the tables before it.
    """

    alarm: bool
    alarm_row: int | None
    alarm_at: str
    evidence: float
    max_evidence: float
    chance: float
    rows: int
    unlabelled: int
    counts: dict[str, int]
    began_earlier: bool
    kinds: list[str]
    changes: list[dict[str, Any]]
    columns: list[dict[str, str]]
    column_changes: list[ColumnChange]
    reference: str
    shifted: list[ColumnChange]
    classes: list[dict[str, Any]]
    observed: str
    period: str
    expected: dict[str, Any] | None
    over_time: list[dict[str, Any]]
    series: list[dict[str, Any]]
    notes: list[str]
    monitor: Monitor = field(repr=False)
    curve: FloatArray = field(repr=False)
    """Evidence (n,) after each row of the table."""
    began: int | None
    """Row of the table, counted from 0, at which the change began; None if there is none."""
    times: NDArray[Any] | None = field(repr=False)

    def summary(self, verdict: list[str]) -> dict[str, Any]:
        """Return the findings as a dict for JSON, without what is drawn."""
        for_picture = ("monitor", "curve", "began", "times")
        parts = {name: value for name, value in vars(self).items() if name not in for_picture}
        for name in ("column_changes", "shifted"):
            parts[name] = [asdict(change) for change in parts[name]]
        summary: dict[str, Any] = for_json({**parts, "verdict": verdict})
        return summary


def watch_rows(
    monitor: Monitor, new: NewRows, notes: list[str], series: Sequence[dict[str, Any]] = ()
) -> StreamFindings:
    """Update a monitor with a table, and return what it finds; appends to ``notes``.

    ``series`` are the measures of earlier tables.
    """
    before = monitor.n_seen_, monitor.n_unlabelled_, monitor.n_repeated_
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        curve = monitor.update(new.X, new.y, time=new.times, ids=new.ids)
    notes += [as_sentence(str(warning.message)) for warning in caught]
    after = monitor.n_seen_, monitor.n_unlabelled_, monitor.n_repeated_
    n_read, (counted, unlabelled, repeated) = len(monitor.taken_), np.subtract(after, before)
    counts = {
        "read": n_read,
        "counted": int(counted),
        "waiting for labels": int(n_read - counted - unlabelled - repeated),
        "without a label": int(unlabelled),
        "seen before": int(repeated),
    }
    changes, is_alarm = monitor.explain(), monitor.alarm_ is not None
    # All that follows is of the rows that the monitor counted, here and in the tests alike.
    rows = np.flatnonzero(monitor.taken_)
    since = changes[0].since - before[0]
    n_until = min(max(since, 0), len(rows))
    performance: list[dict[str, Any]] = []
    classes: list[dict[str, Any]] = []
    period = observed = ""
    if new.y is None:
        period, performance = _performance(*new.judged, times=new.times)
    elif is_alarm:
        labels, p = new.y[rows], new.probabilities[rows]
        classes, observed = _before_and_since(monitor, labels, p, n_until)
    strong = {change.kind for change in changes if change.evidence >= monitor.threshold_}
    reference, earlier = new.reference
    of_rows = {name: values[rows] for name, values in new.columns.items()}
    return StreamFindings(
        alarm=is_alarm,
        alarm_row=monitor.alarm_,
        alarm_at=_when(monitor, monitor.alarm_ or 0, monitor.alarm_time_, new.times),
        evidence=monitor.evidence_,
        max_evidence=monitor.max_evidence_,
        chance=1 / monitor.max_evidence_,
        rows=monitor.n_seen_,
        unlabelled=monitor.n_unlabelled_,
        counts=counts,
        began_earlier=changes[0].since_high < before[0],
        kinds=sorted(strong | {changes[0].kind}) if is_alarm else [],
        changes=[
            {
                **asdict(change),
                "label": str(change.label),
                "began": _when(monitor, change.since, change.since_time, new.times),
                "interval": f"rows {change.since_low + 1:,} to {change.since_high + 1:,}",
            }
            for change in changes
        ],
        columns=[difference._asdict() for difference in new.differences],
        column_changes=_compared(of_rows, n_until) if is_alarm else [],
        reference=reference,
        shifted=_compared(
            {key: np.concatenate([values, new.columns[key]]) for key, values in earlier.items()},
            len(next(iter(earlier.values()), ())),
        ),
        classes=classes,
        observed=observed,
        period=period,
        expected=performance[0] if performance else None,
        over_time=performance[1:],
        series=[*series, *_observed_series(monitor, new, rows)],
        notes=notes,
        monitor=monitor,
        curve=curve,
        began=int(rows[since]) if is_alarm and 0 <= since < len(rows) else None,
        times=new.times,
    )


def _compared(columns: ColumnArrays, row: int) -> list[ColumnChange]:
    """Return the changes of columns at a row; text that is dates is compared as such."""
    dates = {name: dates_in(v, name) for name, v in columns.items() if v.dtype.kind == "O"}
    dates_alone = {name: values for name, values in dates.items() if values is not None}
    return column_changes({**columns, **dates_alone}, row)


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


def _observed_series(monitor: Monitor, new: NewRows, rows: IntArray) -> list[dict[str, Any]]:
    """Return measures of the counted rows in each period, or of all of them without dates."""
    if new.y is None or not len(rows):
        return []
    parts = [(f"rows {monitor.n_seen_ - len(rows) + 1:,} to {monitor.n_seen_:,}", rows)]
    if new.times is not None and new.times.dtype.kind == "M":
        parts = [(name, rows[part]) for name, part in periods(new.times[rows])[1]]
    classes, series = monitor.classes_, []
    for name, part in parts:
        labels, p = new.y[part].astype(classes.dtype), new.probabilities[part]
        estimates = Estimates(labels, p, classes=classes)
        measures: dict[str, Any] = {"auc": estimates.auc(), "log_loss": estimates.log_loss()}
        if len(classes) == 2:
            measures["observed_expected"] = estimates.observed_expected()
        entry = {key: [of.value, of.low, of.high] for key, of in measures.items()}
        stability = np.nan
        if new.calibration is not None and len(part) >= MIN_STABILITY_ROWS:
            top = -1 if len(classes) == 2 else slice(None)
            p, before = (
                values[:, top].reshape(len(values), -1).max(axis=1)
                for values in (p, new.calibration)
            )
            edges = np.unique(np.quantile(before, np.arange(0.1, 1, 0.1)))
            bins = [np.searchsorted(edges, values, side="right") for values in (p, before)]
            if len(np.unique(np.concatenate(bins))) > 1 and np.isin(*bins).any():
                stability = population_stability(*bins).psi
        series.append({"name": name, "rows": len(part), **entry, "stability": stability})
    return series


def _before_and_since(
    monitor: Monitor, y: NDArray[Any], p: FloatArray, n_until: int
) -> tuple[list[dict[str, Any]], str]:
    """Return share and mean probability of each class before and since a row, and a sentence.

    Labels (n,) and probabilities (n, k) are of the counted rows, ``n_until`` of them before. Where
    there are none, shares before are those of the examples that the stream is compared with.
    """
    code = {label: j for j, label in enumerate(monitor.classes_.tolist())}
    codes = np.array([code[label] for label in y.tolist()], np.intp)
    of_classes: list[dict[str, Any]] = [{"label": str(label)} for label in code]
    texts = []
    for when, side in (("before", slice(0, n_until)), ("since", slice(n_until, None))):
        side_codes, q = codes[side], p[side]
        n = len(side_codes)
        for j, of_class in enumerate(of_classes):
            share = monitor.reference_shares_[j] if when == "before" else np.nan
            of_class[f"share_{when}"] = (side_codes == j).mean() if n else share
            of_class[f"predicted_{when}"] = q[:, j].mean() if n else np.nan
        if n >= MIN_ROWS_A_SIDE:
            accuracy = float((q.argmax(axis=1) == side_codes).mean())
            loss = -np.log(np.maximum(q[np.arange(n), side_codes], EPSILON)).mean()
            texts.append(f"accuracy {accuracy:.3f}, log loss {loss:.3f} {when} ({n:,} rows)")
    return of_classes, f"Observed: {'; '.join(texts)}." if texts else ""


def render_findings(
    findings: StreamFindings,
    sentences: list[str],
    command: str,
    name: str,
    target: str,
    inputs: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the page; ``name`` is that of the table, and ``target`` of its labels, or ""."""
    evidence = figures.evidence_over_time(
        findings.curve, findings.monitor.threshold_, findings.began, findings.times
    )
    expected = [part for part in findings.over_time if not part["reason"]]
    return render_page(
        "watch.html.j2",
        command,
        inputs,
        picture=figures.draw("evidence", evidence),
        over_time=_over_time(expected, "accuracy", "Expected accuracy"),
        series=_over_time(findings.series, "auc", "AUC"),
        result=findings,
        sentences=sentences,
        name=name,
        target=target,
        max_columns=MAX_COLUMNS,
    )


def _over_time(parts: Sequence[Mapping[str, Any]], key: str, title: str) -> str:
    """Return the picture of a measure in each part, "" for a single one."""
    if len(parts) < 2:
        return ""
    columns = [key, f"{key}_low", f"{key}_high"]
    names = [part["name"] for part in parts]
    frame = pd.DataFrame([part[key] for part in parts], index=names, columns=columns, dtype=float)
    picture = figures.rates(frame, key, title, f"{title} over time, with intervals")
    return figures.draw(key, picture)
