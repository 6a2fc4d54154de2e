"""What a monitor found in a table, and the page on it."""

from __future__ import annotations

import os
import warnings
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._files import written_whole
from vennforest._harmless import harmless
from vennforest._validation import FloatArray
from vennforest.monitoring import Change, Monitor
from vennforest.monitoring.columns import FEWEST, ColumnChange, column_changes
from vennforest.plots import EvidenceDisplay
from vennforest.report.figures import draw
from vennforest.report.page import frame, templates

LEAST_SHOWN = 0.05
"""Largest corrected p-value of a column that is reported to have moved."""


@dataclass(frozen=True)
class ClassMove:
    """A class before and after the row at which a change seems to have begun.

    Attributes
    ----------
    label : str
    n_before, n_after : int
        Labelled rows.
    share_before, share_after : float
        Of the class among them.
    predicted_before, predicted_after : float
        Mean probability that the model gave it.
    """

    label: str
    n_before: int
    n_after: int
    share_before: float
    share_after: float
    predicted_before: float
    predicted_after: float


@dataclass(frozen=True, eq=False)
class Watched:
    """What a monitor found in a table.

    Attributes
    ----------
    name, target : str
        The table, and its column of labels ("" without).
    evidence : ndarray of shape (n,)
        After each row of this table.
    times : ndarray of shape (n,) or None
        Of these rows, as they are written.
    dates : bool
        Whether the times are dates.
    n_before : int
        Rows that the monitor had seen before this table.
    monitor : Monitor
    changes : list of Change
        The strongest first.
    began : int or None
        Row of this table at which the change seems to have begun; None: no alarm.
    columns : list of ColumnChange
        Of every column, the most different first; empty without an alarm or enough rows.
    classes : list of ClassMove
    notes : list of str
    """

    name: str
    target: str
    evidence: FloatArray
    times: NDArray[Any] | None
    dates: bool
    n_before: int
    monitor: Monitor
    changes: list[Change]
    began: int | None
    columns: list[ColumnChange]
    classes: list[ClassMove]
    notes: list[str]

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
        top, level = shown(monitor.max_evidence_), shown(monitor.threshold_)
        promise = (
            f"if nothing had changed, the chance of ever seeing that would be at most 1 in {level}"
            if monitor.form == "ville"
            else f"if nothing had changed, that would take {level} rows or more in half of all "
            "streams"
        )
        if monitor.alarm_ is None:
            return [
                f"No alarm in {n}: the evidence of a change reached {top}, and an alarm needs "
                f"{level}.",
                "That does not prove that nothing has changed: small and recent changes take more "
                "rows to be seen.",
            ]
        first = self.changes[0]
        sentences = [
            f"The data has changed: the evidence passed {level} at "
            f"{self.when(monitor.alarm_, monitor.alarm_time_)} of {n}, and reached {top}; "
            f"{promise}."
        ]
        label = f" (of {str(first.label)!r})"
        sentences.append(
            f"It seems to have begun near {self.when(first.since, first.since_time)}, and is best "
            f"explained by: {first.what}{label}."
        )
        if any(
            one.what == "scores tell more of the class" and one.evidence >= monitor.threshold_
            for one in self.changes
        ):
            sentences.append(
                "Labels agree better with the scores than they did in calibration, as they do on "
                "rows that the model was trained on: check that these are new rows."
            )
        if self.moved:
            names = ", ".join(repr(one.name) for one in self.moved[:5])
            more = f" and {len(self.moved) - 5} more" if len(self.moved) > 5 else ""
            sentences.append(f"Columns that moved then: {names}{more}.")
        elif self.columns:
            sentences.append("No single column moved then by more than chance would.")
        else:
            sentences.append(
                f"Fewer than {FEWEST} rows are on one side of that row: columns are not compared."
            )
        return sentences

    def summary(self) -> dict[str, Any]:
        """Return the findings as numbers and text."""
        monitor = self.monitor
        return {
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
            "classes": [asdict(one) for one in self.classes],
            "notes": self.notes,
        }


def watched(
    monitor: Monitor,
    *,
    X: Any,
    columns: dict[str, NDArray[Any]],
    y: NDArray[Any] | None,
    times: NDArray[Any] | None,
    probabilities: FloatArray,
    name: str = "table",
    target: str = "",
    notes: list[str] | None = None,
) -> Watched:
    """Give a table to a monitor, and find what moved.

    Parameters
    ----------
    monitor : Monitor
        Fitted; takes the rows.
    X : array-like or data frame of shape (n, d)
        Rows as the model takes them.
    columns : dict of str to ndarray of shape (n,)
        The same rows as they are to be compared and shown.
    y : ndarray of shape (n,) or None
        Labels, None where missing.
    times : ndarray of shape (n,) or None
        Numbers or dates that do not decrease.
    probabilities : ndarray of shape (n, k)
        What the model says.
    name, target, notes
        See `Watched`.

    Raises
    ------
    ValueError
        If the monitor refuses the rows.
    """
    n_before = monitor.n_seen_
    notes = notes or []
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
    return Watched(
        name=name,
        target=target,
        evidence=evidence,
        times=times,
        dates=times is not None and times.dtype.kind not in "fiub",
        n_before=n_before,
        monitor=monitor,
        changes=changes,
        began=began,
        columns=[] if began is None else column_changes(columns, began),
        classes=[] if began is None or y is None else _classes(monitor, y, probabilities, began),
        notes=notes,
    )


def _classes(monitor: Monitor, y: NDArray[Any], p: FloatArray, began: int) -> list[ClassMove]:
    known = np.array([one is not None for one in y.tolist()])
    after = np.arange(len(y)) >= began
    sides = [known & ~after, known & after]
    found = []
    for j, label in enumerate(monitor.classes_.tolist()):
        here = np.array([one == label for one in y.tolist()])
        share = [float(here[side].mean()) if side.any() else np.nan for side in sides]
        means = [float(p[side, j].mean()) if side.any() else np.nan for side in sides]
        n = [int(side.sum()) for side in sides]
        found.append(ClassMove(str(label), n[0], n[1], *share, *means))
    return found


def shown(value: float) -> str:
    """Return evidence in few digits."""
    return f"{value:,.3g}" if value < 1e6 else f"{value:.2g}"


def _date(seconds: float) -> str:
    found = datetime.fromtimestamp(seconds, UTC)
    midnight = (found.hour, found.minute, found.second) == (0, 0, 0)
    return found.strftime("%Y-%m-%d" if midnight else "%Y-%m-%d %H:%M:%S")


MOST_COLUMNS = 50
"""Of more columns the most different are listed."""


def render(found: Watched, command: str | None = None) -> str:
    """Return the page.

    Parameters
    ----------
    found : Watched
        What it is about.
    command : str, optional
        What was typed.

    Raises
    ------
    ImportError
        If jinja2 or matplotlib is not installed.
    """
    template = templates().get_template("watch.html.j2")
    from markupsafe import Markup

    page: str = template.render(
        found=found,
        monitor=found.monitor,
        shown=shown,
        verdict=found.verdict(),
        picture=Markup(_picture(found)),
        columns=found.columns[:MOST_COLUMNS],
        **frame(command),
    )
    return harmless(page)


def _picture(found: Watched) -> str:
    times = found.times
    if times is not None and found.dates:
        times = times.astype("datetime64[us]")
    began = found.began
    display = EvidenceDisplay(
        {"Evidence": np.maximum(found.evidence, 1e-12)},
        threshold=found.monitor.threshold_,
        times=times,
        began=began,
    )
    return draw(
        "evidence",
        (9.0, 3.6),
        lambda ax: display.plot(ax=ax),
        "Evidence of a change over the rows of the stream, on a logarithmic scale",
    )


def write_page(found: Watched, path: str | os.PathLike[str], command: str | None = None) -> None:
    """Write the page, whole or not at all."""
    page = render(found, command)
    with written_whole(path) as part:
        part.write_text(page, encoding="utf-8")
