"""What a monitor found in a table, and the page on it."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from vennforest._files import one_line
from vennforest._messages import harmless, listed
from vennforest._validation import FloatArray
from vennforest.monitoring import Change, Monitor
from vennforest.monitoring.columns import MIN_ROWS_A_SIDE, ColumnChange, column_changes
from vennforest.performance import PerformanceEstimate, estimate_performance
from vennforest.performance.measures import EPSILON
from vennforest.report.evaluation import for_json
from vennforest.report.figures import draw, over_periods, paint_evidence
from vennforest.report.page import frame_of_page, templates
from vennforest.report.subgroups import periods

LEAST_SHOWN = 0.05
"""Largest corrected p-value of a column that is reported to have moved."""


@dataclass(frozen=True, eq=False)
class Expected:
    """What is expected of the predictions of some rows; None, and why, where nothing is."""

    name: str
    n_rows: int
    found: PerformanceEstimate | None
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Watched:
    """What a monitor found in a table.

    The evidence (n,) after each row, at ``times``; changes, the strongest first; the row of this
    table at which the strongest seems to have ``began`` (None: no alarm), and since then columns,
    the most different first, classes, and in ``price`` what it costs. What is expected of all rows
    and of those of each ``period``, where labels are not known; and how columns have ``shifted``
    from a table of earlier rows, called ``reference``.
    """

    name: str
    target: str
    evidence: FloatArray
    times: NDArray[Any] | None
    monitor: Monitor
    changes: list[Change]
    began: int | None
    columns: list[ColumnChange]
    classes: list[dict[str, Any]]
    price: list[str]
    notes: list[str]
    total: Expected | None = None
    period: str = ""
    over_time: list[Expected] = field(default_factory=list)
    reference: str = ""
    shifted: list[ColumnChange] = field(default_factory=list)

    @property
    def dates(self) -> bool:
        """Whether times are dates."""
        return self.times is not None and self.times.dtype.kind not in "fiub"

    @property
    def moved(self) -> list[ColumnChange]:
        """Columns that have moved, by the corrected p-value."""
        return [one for one in self.columns if one.p_value <= LEAST_SHOWN]

    def when(self, row: int, time: float | None) -> str:
        """Return a row of those that were watched in words, counted from 1."""
        text = f"{'labelled ' if self.monitor.watch == 'labels' else ''}row {row + 1:,}"
        if time is None:
            return text
        return f"{text} ({_date(time) if self.dates else f'{time:g}'})"

    def verdict(self) -> list[str]:
        """Return what was found, in sentences."""
        monitor = self.monitor
        n = f"{monitor.n_seen_:,}{' labelled' if monitor.watch == 'labels' else ''} rows"
        if not monitor.n_seen_:
            return ["Nothing was watched: no row of this table counts yet."]
        if monitor.alarm_ is None:
            return [
                f"No alarm in {n}: {self._no_alarm()}.",
                "That does not prove that nothing has changed: small and recent changes take more "
                "rows to be seen.",
                *self._expected(),
            ]
        first = self.changes[0]
        when = self.when(monitor.alarm_, monitor.alarm_time_)
        sentences = [
            f"The data has changed: {self.chance()}.",
            f"It seems to have begun near {self.when(first.since, first.since_time)}, and was "
            f"certain enough for an alarm at {when} of {n}.",
            f"{self.kind()} Best explained by: {first.what} (of {str(first.label)!r}).",
        ]
        if any(
            one.what == "scores tell more of the class" and one.evidence >= monitor.threshold_
            for one in self.changes
        ):
            sentences.append(
                "Labels agree better with the scores than they did in calibration, as they do on "
                "rows that the model was trained on: check that these are new rows."
            )
        if self.moved:
            names = listed((one.name for one in self.moved), 5)
            sentences.append(f"Columns that moved then: {names}.")
        elif self.columns:
            sentences.append("No single column moved then by more than chance would.")
        elif self.began is not None and self.began < MIN_ROWS_A_SIDE:
            sentences.append(
                "The change is as old as this table, which has no earlier rows to compare columns "
                "with."
            )
        else:
            sentences.append(
                f"Fewer than {MIN_ROWS_A_SIDE} rows have come since: columns are not compared yet."
            )
        sentences += [*self.price, *self._expected(), f"What to do: {self.advice()}"]
        return sentences

    def chance(self) -> str:
        """Return how likely so much evidence would be if nothing had changed."""
        return (
            "the chance of this if nothing had changed is less than "
            f"1 in {rounded_down(self.monitor.max_evidence_)}"
        )

    def _no_alarm(self) -> str:
        top = self.monitor.max_evidence_
        if top < 2:
            return "what was seen is what chance gives"
        return (
            f"so much of a difference would be seen by chance in up to 1 of {rounded_down(top)} "
            f"streams, and an alarm needs 1 of {rounded_down(self.monitor.threshold_)}"
        )

    def kinds(self) -> set[str]:
        """Return which kinds of evidence reached the alarm's level, at least the strongest."""
        level = self.monitor.threshold_
        return {one.kind for one in self.changes if one.evidence >= level} | {self.changes[0].kind}

    def kind(self) -> str:
        """Return what has moved, in a sentence."""
        found = self.kinds()
        if "labels given scores" in found:
            meaning = "what a score says of the label"
            if "scores" in found:
                return f"Both have moved: the scores, and {meaning}."
            return f"The labels have moved: {meaning}."
        if "scores" not in found:
            return "The labels have moved: how frequent the classes are."
        if self.monitor.watch == "objects":
            return "The scores have moved; labels were not looked at."
        return "The scores have moved; what they say of the labels has not, as far as can be seen."

    def advice(self) -> str:
        """Return what to do about the change."""
        found = self.kinds()
        if "labels given scores" in found:
            return (
                "the probabilities are off; set the new class frequencies (with_prior) if rows of "
                "a class are as before, otherwise calibrate again on labelled rows from after the "
                "change, and train again if the ranking has become worse."
            )
        if "scores" not in found:
            return "set the new class frequencies (with_prior) if rows of a class are as before."
        if self.monitor.watch == "objects":
            return (
                "look at the columns that moved for a broken or redefined source, and label some "
                "rows from after the change: without labels it cannot be seen whether "
                "probabilities are still right."
            )
        return (
            "look at the columns that moved for a broken or redefined source. No change of what a "
            "score says of the label has been seen, but few rows may not show one: watch on."
        )

    def _expected(self) -> list[str]:
        if self.total is None:
            return []
        if self.total.found is None:
            return [*self._shift(), f"The performance is not estimated: {self.total.reason}."]
        corrected = ", corrected for how frequent each kind of row is" if self.reference else ""
        return [
            *self._shift(),
            f"Expected accuracy of these rows{corrected}: "
            f"{_interval(self.total.found, 'accuracy')}. A change of the labels for the same rows "
            "cannot be seen without labels.",
        ]

    def _shift(self) -> list[str]:
        """Return which columns differ from the reference."""
        if not self.reference:
            return []
        some = [one for one in self.shifted if one.p_value <= LEAST_SHOWN]
        if not some:
            return [f"No column differs from {self.reference!r} by more than chance would."]
        named = [f"{one.name!r} ({one.before}, now {one.after})" for one in some[:3]]
        more = f" and {len(some) - 3} more" if len(some) > 3 else ""
        return [
            f"{len(some)} of {len(self.shifted)} columns differ from {self.reference!r}: "
            f"{'; '.join(named)}{more}."
        ]

    def summary(self) -> dict[str, Any]:
        """Return the findings as numbers and text."""
        monitor = self.monitor
        found = {
            "alarm": monitor.alarm_ is not None,
            "alarm_row": monitor.alarm_,
            "evidence": monitor.evidence_,
            "max_evidence": monitor.max_evidence_,
            "threshold": monitor.threshold_,
            "rows": monitor.n_seen_,
            "unlabelled": monitor.n_unlabelled_,
            "repeated": monitor.n_repeated_,
            "changes": [{**asdict(one), "label": str(one.label)} for one in self.changes],
            "columns": [asdict(one) for one in self.columns],
            "shifted": [asdict(one) for one in self.shifted],
            "classes": self.classes,
            "chance": 1 / monitor.max_evidence_,
            "kinds": sorted(self.kinds()) if monitor.alarm_ is not None else [],
            "period": self.period,
            "expected": None if self.total is None else _figures(self.total),
            "over_time": [_figures(one) for one in self.over_time],
            "notes": self.notes,
        }
        shown: dict[str, Any] = for_json(found)
        return shown


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
    notes += [f"{text[:1].upper()}{text[1:]}." for text in (str(one.message) for one in caught)]
    changes = monitor.explain()
    began: int | None = None
    if monitor.alarm_ is not None:
        since = changes[0].since - n_before
        rows = np.flatnonzero(monitor.taken_)
        began = int(rows[since]) if 0 <= since < len(rows) else 0
    classes: list[dict[str, Any]] = []
    price: list[str] = []
    unlabelled: dict[str, Any] = {}
    if y is not None and began is not None:
        classes = _classes(monitor, y, probabilities, began)
        price = _observed(monitor, y, probabilities, began)
    elif y is None:
        model, rows_of_it, options = judged

        def of_rows(at: Any, part: str) -> Expected:
            return expected(model, _safe_indexing(rows_of_it, at), part, **options)

        unlabelled["total"] = total = expected(model, rows_of_it, "all rows", **options)
        if times is not None and total.found is not None:
            unlabelled["period"], parts = periods(times)
            unlabelled["over_time"] = [of_rows(at, part) for part, at in parts]
        if began is not None:
            at = np.arange(total.n_rows)
            sides = of_rows(at[:began], "before"), of_rows(at[began:], "after")
            if all(one.found is not None for one in sides):
                was, now = (_interval(one.found, "accuracy") for one in sides)
                price = [
                    f"Expected accuracy before and after: {was} and {now}, if a score still says "
                    "the same of the label."
                ]
    if reference is not None:
        earlier = reference[1]
        both = {key: _joined(earlier[key], values) for key, values in columns.items()}
        row = len(next(iter(earlier.values())))
        unlabelled |= {"reference": reference[0], "shifted": column_changes(both, row)}
    return Watched(
        name=name,
        target=target,
        evidence=evidence,
        times=times,
        monitor=monitor,
        changes=changes,
        began=began,
        columns=[] if began is None else column_changes(columns, began),
        classes=classes,
        price=price,
        notes=notes,
        **unlabelled,
    )


def _joined(earlier: NDArray[Any], later: NDArray[Any]) -> NDArray[Any]:
    """Return values of both, as numbers if both are."""
    if earlier.dtype.kind in "fiub" and later.dtype.kind in "fiub":
        return np.concatenate([earlier.astype(np.float64), later.astype(np.float64)])
    return np.concatenate([earlier.astype(object), later.astype(object)])


def expected(model: Any, X: Any, name: str, **options: Any) -> Expected:
    """Return what is expected of the rows of X; a reason in its place where nothing is."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    try:
        return Expected(name, n, estimate_performance(model, X, **options))
    except ValueError as error:
        return Expected(name, n, None, one_line(error))


def _observed(monitor: Monitor, y: NDArray[Any], p: FloatArray, began: int) -> list[str]:
    """Return what was observed before and after a row, where there are enough rows."""
    place = {label: j for j, label in enumerate(monitor.classes_.tolist())}
    shown, enough = [], False
    for side, when in zip(_sides(y, began), ("before", "since"), strict=True):
        codes = np.array([place[label] for label in y[side].tolist()], np.intp)
        enough = len(codes) >= MIN_ROWS_A_SIDE
        if enough:
            own = p[side][np.arange(len(codes)), codes]
            accuracy = float((p[side].argmax(axis=1) == codes).mean())
            loss = float(-np.log(np.maximum(own, EPSILON)).mean())
            shown.append(f"accuracy {accuracy:.3f}, log loss {loss:.3f} {when}")
    return [f"Observed: {'; '.join(shown)}."] if enough else []


def _interval(found: PerformanceEstimate | None, metric: str) -> str:
    assert found is not None
    estimate, lower, upper = found[metric]
    return f"{estimate:.3f} ({lower:.3f} to {upper:.3f})"


def _figures(one: Expected) -> dict[str, Any]:
    """Return an estimate as numbers and text."""
    figures: dict[str, Any] = {"name": one.name, "rows": one.n_rows, "reason": one.reason}
    if one.found is not None:
        for metric in one.found.metrics:
            figures[metric] = list(one.found[metric])
    return figures


def rounded_down(value: float) -> str:
    """Return a number of cases as people say it: 1, 2 or 5 and zeros, at most 1,000,000."""
    value = min(value, 1e6)
    ten = 10 ** int(np.floor(np.log10(max(value, 1.0) * (1 + 1e-9))))
    digit = max(one for one in (1, 2, 5) if one * ten <= max(value, 1.0) * (1 + 1e-9))
    return f"{digit * ten:,}"


def _classes(monitor: Monitor, y: NDArray[Any], p: FloatArray, began: int) -> list[dict[str, Any]]:
    """Return the share of each class among labelled rows before and after a row.

    Beside it the mean probability that the model gave it, and how many rows these are.
    """
    found = []
    sides = dict(zip(("before", "after"), _sides(y, began), strict=True))
    numbers = {f"n_{when}": int(side.sum()) for when, side in sides.items()}
    for j, label in enumerate(monitor.classes_.tolist()):
        here = np.array([one == label for one in y.tolist()])
        of_class: dict[str, Any] = {"label": str(label), **numbers}
        for name, values in (("share", here), ("predicted", p[:, j])):
            for when, side in sides.items():
                mean = float(values[side].mean()) if side.any() else np.nan
                of_class[f"{name}_{when}"] = mean
        found.append(of_class)
    return found


def _sides(y: NDArray[Any], began: int) -> list[NDArray[np.bool_]]:
    """Return which rows with a label are before a row, and which are not."""
    known, after = np.array([one is not None for one in y.tolist()]), np.arange(len(y)) >= began
    return [known & ~after, known & after]


def shown(value: float) -> str:
    """Return evidence in few digits."""
    return f"{value:,.3g}" if value < 1e6 else f"{value:.2g}"


def _date(seconds: float) -> str:
    found = datetime.fromtimestamp(seconds, UTC)
    midnight = (found.hour, found.minute, found.second) == (0, 0, 0)
    return found.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M:%S")


METRICS = {
    "accuracy": "Accuracy",
    "precision": "Precision",
    "recall": "Recall",
    "brier": "Brier score",
    "log_loss": "Log loss",
    "auc": "AUC",
}
"""Measures in the table of expected performance, and what they are called there."""

MOST_COLUMNS = 50
"""Of more columns the most different are listed."""


def render(found: Watched, command: str | None = None) -> str:
    """Return the page, with the command that was typed."""
    template = templates().get_template("watch.html.j2")
    from markupsafe import Markup

    parts = [(one.name, one.found["accuracy"]) for one in found.over_time if one.found is not None]
    performance = over_periods(
        "performance",
        [name for name, _ in parts],
        np.array([values for _, values in parts]).reshape(-1, 3),
        "Expected accuracy",
        f"Expected accuracy by {found.period}, with intervals",
    )
    page: str = template.render(
        found=found,
        monitor=found.monitor,
        shown=shown,
        rounded_down=rounded_down,
        verdict=found.verdict(),
        picture=Markup(_picture(found)),
        metrics=METRICS,
        performance=Markup(performance) if len(found.over_time) > 1 else None,
        most_columns=MOST_COLUMNS,
        **frame_of_page(command or ""),
    )
    return harmless(page)


def _picture(found: Watched) -> str:
    times, evidence = found.times, np.maximum(found.evidence, 1e-12)
    if times is not None and found.dates:
        times = times.astype("datetime64[us]")
    level, began = found.monitor.threshold_, found.began
    return draw(
        "evidence",
        (9.0, 3.6),
        lambda ax: paint_evidence(ax, evidence, level, began, times),
        "Evidence of a change over the rows of the stream, on a logarithmic scale",
    )
