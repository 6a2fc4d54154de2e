"""What a monitor finds in a table, and the page on it."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from vennforest._files import one_line
from vennforest._messages import listed
from vennforest._validation import FloatArray
from vennforest.monitoring import Change, Monitor
from vennforest.monitoring.columns import MIN_ROWS_A_SIDE, ColumnChange, column_changes
from vennforest.performance import estimate_performance
from vennforest.performance.measures import EPSILON
from vennforest.report.evaluation import for_json
from vennforest.report.figures import draw, over_periods, paint_evidence
from vennforest.report.page import render_page
from vennforest.report.subgroups import periods

MAX_P_VALUE = 0.05
"""Largest corrected p-value of a column that is reported to have moved."""

MAX_COLUMNS = 50
"""Of more columns the most different are listed."""

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


@dataclass(frozen=True, eq=False)
class Watched:
    """What a monitor found in a table.

    ``changes`` are the strongest first, and ``began`` is the row of this table at which the
    strongest seems to have begun (None without an alarm). Since then ``columns`` and ``classes``
    differ, and ``observed`` says what was observed. Where no labels are known, ``performance`` is
    what is expected of all rows and of those of each ``period``. ``shifted`` tells how columns
    differ from a table of earlier rows, called ``reference``.
    """

    name: str
    target: str
    monitor: Monitor
    evidence: FloatArray
    times: NDArray[Any] | None
    changes: list[Change]
    began: int | None
    columns: list[ColumnChange]
    classes: list[dict[str, Any]]
    observed: list[str]
    performance: list[dict[str, Any]]
    period: str
    reference: str
    shifted: list[ColumnChange]
    notes: list[str]

    def when(self, row: int, time: float | None) -> str:
        """Return a row of those that were watched in words, counted from 1."""
        text = f"{'labelled ' if self.monitor.watch == 'labels' else ''}row {row + 1:,}"
        if time is None or self.times is None:
            return text
        if self.times.dtype.kind != "M":
            return f"{text} ({time:g})"
        return f"{text} ({datetime.fromtimestamp(time, UTC):%Y-%m-%d %H:%M})".replace(" 00:00", "")

    def kinds(self) -> set[str]:
        """Return which kinds of evidence reached the alarm's level, at least the strongest."""
        level = self.monitor.threshold_
        kinds = {change.kind for change in self.changes if change.evidence >= level}
        return kinds | {self.changes[0].kind}

    def verdict(self) -> list[str]:
        """Return what was found, in sentences."""
        monitor, top = self.monitor, rounded_down(self.monitor.max_evidence_)
        n = f"{monitor.n_seen_:,}{' labelled' if monitor.watch == 'labels' else ''} rows"
        if not monitor.n_seen_:
            return ["Nothing was watched: no row of this table counts yet."]
        if monitor.alarm_ is None:
            return [
                f"No alarm in {n}: so much of a difference would be seen by chance in up to 1 of "
                f"{top} streams, and an alarm needs 1 of {rounded_down(monitor.threshold_)}. Small "
                "and recent changes take more rows to be seen.",
                *self._expected(),
            ]
        first, (meaning, advice) = self.changes[0], self._meaning()
        moved = [change.name for change in self.columns if change.p_value <= MAX_P_VALUE]
        moved_columns = f"Columns that moved then: {listed(moved, 5)}."
        if not moved:
            moved_columns = "No single column moved then by more than chance would."
        if not self.columns:
            moved_columns = (
                f"Columns are not compared: fewer than {MIN_ROWS_A_SIDE} rows of this table are on "
                "one side of the change."
            )
        return [
            "The data has changed: the chance of this if nothing had changed is less than 1 in "
            f"{top}.",
            f"It seems to have begun near {self.when(first.since, first.since_time)}, and was "
            "certain enough for an alarm at "
            f"{self.when(monitor.alarm_, monitor.alarm_time_)} of {n}.",
            f"{meaning} Best explained by: {first.what} (of {str(first.label)!r}).",
            moved_columns,
            *self.observed,
            *self._expected(),
            f"What to do: {advice}",
        ]

    def _meaning(self) -> tuple[str, str]:
        """Return what has moved and what to do about it, a sentence each."""
        kinds = self.kinds()
        if "labels given scores" in kinds:
            both = "the scores, and " if "scores" in kinds else ""
            return (
                f"What has moved: {both}what a score says of the label.",
                f"the probabilities are off; {SET_PRIOR}, otherwise calibrate again on labelled "
                "rows from after the change, and train again if the ranking has become worse. If "
                "the scores tell more than before, check that these are new rows.",
            )
        if "scores" not in kinds:
            return "What has moved: how frequent the classes are.", f"{SET_PRIOR}."
        if self.monitor.watch == "objects":
            return (
                "The scores have moved; labels were not looked at.",
                f"{LOOK_AT_COLUMNS}, and label some rows from after the change: without labels it "
                "cannot be seen whether probabilities are still right.",
            )
        return (
            "The scores have moved; what they say of the labels has not, as far as can be seen.",
            f"{LOOK_AT_COLUMNS}, and watch on: few rows may not show a change of the labels.",
        )

    def _expected(self) -> list[str]:
        """Return which columns differ from the reference, and the expected accuracy."""
        sentences = []
        moved = [change for change in self.shifted if change.p_value <= MAX_P_VALUE]
        if self.reference:
            names = listed(moved, 3, lambda c: f"{c.name!r} ({c.before}, now {c.after})")
            sentences.append(
                f"{len(moved)} of {len(self.shifted)} columns differ from {self.reference!r} by "
                f"more than chance would{': ' if moved else ''}{names}."
            )
        if self.performance:
            of_all = self.performance[0]
            corrected = ", corrected for how frequent each kind of row is" if self.reference else ""
            sentences.append(
                f"The performance is not estimated: {of_all['reason']}."
                if of_all["reason"]
                else f"Expected accuracy of these rows{corrected}: {_interval(of_all['accuracy'])}."
            )
        return sentences

    def summary(self) -> dict[str, Any]:
        """Return the findings as numbers and text."""
        monitor = self.monitor
        summary: dict[str, Any] = for_json(
            {
                "alarm": monitor.alarm_ is not None,
                "alarm_row": monitor.alarm_,
                "evidence": monitor.evidence_,
                "max_evidence": monitor.max_evidence_,
                "threshold": monitor.threshold_,
                "chance": 1 / monitor.max_evidence_,
                "rows": monitor.n_seen_,
                "unlabelled": monitor.n_unlabelled_,
                "repeated": monitor.n_repeated_,
                "kinds": sorted(self.kinds()) if monitor.alarm_ is not None else [],
                "changes": [{**asdict(c), "label": str(c.label)} for c in self.changes],
                "columns": [asdict(change) for change in self.columns],
                "shifted": [asdict(change) for change in self.shifted],
                "classes": self.classes,
                "period": self.period,
                "expected": self.performance[0] if self.performance else None,
                "over_time": self.performance[1:],
                "notes": self.notes,
            }
        )
        return summary


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
) -> Watched:
    """Give a table to a monitor, and find what moved.

    ``X`` are n rows as the fitted model takes them (scores for a monitor without one), ``columns``
    the same as they are compared and shown, ``y`` their labels (None where missing), ``times`` do
    not decrease, and ``probabilities`` (n, k) are the model's. Of ``judged``, which
    `estimate_performance` takes, performance is estimated where there are no labels; ``reference``
    is the name of a table of earlier rows, and its columns.
    """
    n_before = monitor.n_seen_
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        evidence = monitor.update(X, y, time=times)
    notes += [f"{text[:1].upper()}{text[1:]}." for text in (str(w.message) for w in caught)]
    changes = monitor.explain()
    began: int | None = None
    if monitor.alarm_ is not None:
        since = changes[0].since - n_before
        rows = np.flatnonzero(monitor.taken_)
        began = int(rows[since]) if 0 <= since < len(rows) else 0
    classes, observed, performance, period = [], [], [], ""
    if y is None:
        period, performance = _performance(*judged, times=times)
    elif began is not None:
        classes, observed = _before_and_since(monitor.classes_, y, probabilities, began)
    reference_name, earlier = reference or ("", {})
    both = {key: np.concatenate([values, columns[key]]) for key, values in earlier.items()}
    return Watched(
        name=name,
        target=target,
        monitor=monitor,
        evidence=evidence,
        times=times,
        changes=changes,
        began=began,
        columns=[] if began is None else column_changes(columns, began),
        classes=classes,
        observed=observed,
        performance=performance,
        period=period,
        reference=reference_name,
        shifted=column_changes(both, len(next(iter(earlier.values()), ()))),
        notes=notes,
    )


def _performance(
    model: Any, X: Any, options: dict[str, Any], times: NDArray[Any] | None
) -> tuple[str, list[dict[str, Any]]]:
    """Return the kind of period, and what is expected of all rows and of each period."""

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
    classes: NDArray[Any], y: NDArray[Any], p: FloatArray, began: int
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return share and mean probability of each class on both sides of a row, and a sentence."""
    code = {label: j for j, label in enumerate(classes.tolist())}
    has_label = np.array([label is not None for label in y.tolist()])
    is_after = np.arange(len(y)) >= began
    figures: list[dict[str, Any]] = [{"label": str(label)} for label in code]
    texts = []
    for when, side in (("before", has_label & ~is_after), ("since", has_label & is_after)):
        codes, q = np.array([code[label] for label in y[side].tolist()], np.intp), p[side]
        for j, of_class in enumerate(figures):
            of_class[f"share_{when}"] = (codes == j).mean() if len(codes) else np.nan
            of_class[f"predicted_{when}"] = q[:, j].mean() if len(codes) else np.nan
        if len(codes) >= MIN_ROWS_A_SIDE:
            accuracy = float((q.argmax(axis=1) == codes).mean())
            loss = -np.log(np.maximum(q[np.arange(len(codes)), codes], EPSILON)).mean()
            texts.append(f"accuracy {accuracy:.3f}, log loss {loss:.3f} {when}")
    return figures, [f"Observed: {'; '.join(texts)}."] if texts else []


def rounded_down(value: float) -> str:
    """Return a number of cases as people say it: 1, 2 or 5 and zeros, at most 1,000,000."""
    value = min(max(value, 1.0), 1e6) * (1 + 1e-9)
    power = 10 ** int(np.floor(np.log10(value)))
    return f"{max(digit for digit in (1, 2, 5) if digit * power <= value) * power:,}"


def _interval(ends: list[float]) -> str:
    return "–" if np.isnan(ends[0]) else f"{ends[0]:.3f} ({ends[1]:.3f} to {ends[2]:.3f})"


def render(result: Watched, command: str = "") -> str:
    """Return the page, with the command that made it."""
    from markupsafe import Markup

    times, began, evidence = result.times, result.began, np.maximum(result.evidence, 1e-12)
    level = result.monitor.threshold_
    picture = draw(
        "evidence",
        (9.0, 3.6),
        lambda ax: paint_evidence(ax, evidence, level, began, times),
        "Evidence of a change over the rows of the stream, on a logarithmic scale",
    )
    parts = [part for part in result.performance[1:] if not part["reason"]]
    over_time = None
    if len(parts) > 1:
        over_time = over_periods(
            "performance",
            [part["name"] for part in parts],
            np.array([part["accuracy"] for part in parts]),
            "Expected accuracy",
            f"Expected accuracy by {result.period}, with intervals",
        )
    return render_page(
        "watch.html.j2",
        command,
        result=result,
        monitor=result.monitor,
        chance=rounded_down(result.monitor.max_evidence_),
        interval=_interval,
        metrics=METRICS,
        max_columns=MAX_COLUMNS,
        picture=Markup(picture),
        over_time=over_time and Markup(over_time),
    )
