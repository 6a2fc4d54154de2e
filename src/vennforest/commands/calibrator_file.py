"""A calibrator from a file that ``calibrate`` has written, and the examples it was fitted to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from vennforest._files import one_line, refuse_special
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Calibrator, VennAbers
from vennforest.counts import ScoreCounts
from vennforest.export import from_json
from vennforest.monitoring.scoring import score_columns
from vennforest.tables.cells import Column, as_floats, row_name, shown_cell
from vennforest.tables.labelled_scores import LabelledScores
from vennforest.tables.read import find_column

MAX_EXAMPLES = 4_096
"""Distinct scores or rows that a file keeps for calibrators that keep none themselves."""

MAX_ROWS_TO_READ_AGAIN = 2_000_000


@dataclass(frozen=True, eq=False)
class CalibratorFile:
    """A calibrator, its columns of scores, and what else its file says of it."""

    calibrator: Calibrator
    scores: list[str]
    about: dict[str, Any]

    @property
    def reversed(self) -> bool:
        """Whether high scores mean that the second class is less likely."""
        return self.calibrator.reversed_at_ is not None

    def scores_in(self, frame: pd.DataFrame, table: str) -> FloatArray:
        """Return the scores in the rows of a table, of shape (n,) or (n, k)."""
        columns = []
        for name in self.scores:
            values = as_floats(Column(frame[find_column(frame, name)], name).array, name, table)
            wrong = ~np.isfinite(values)
            if wrong.any():
                row = int(wrong.argmax())
                raise InputError(
                    f"column {name!r} must contain finite scores, got {shown_cell(values[row])} "
                    f"in {row_name(row, table)}"
                )
            columns.append(values.astype(np.float64))
        return columns[0] if len(columns) == 1 else np.column_stack(columns)

    def class_counts(self) -> FloatArray | None:
        """Return the number or weight of the examples of each class, None if unknown."""
        calibrator = self.calibrator
        if isinstance(calibrator, VennAbers) and len(calibrator.scores_) > 1:
            return np.array([weights[:, 1].sum() for weights in calibrator.weights_])
        examples = self._counts()
        return None if examples is None else examples[1].sum(axis=0)

    def examples(self) -> tuple[FloatArray, NDArray[Any]] | None:
        """Return scores and labels of the calibration examples, None if the file has none."""
        classes = self.calibrator.classes_
        if len(classes) > 2:
            rows = _examples_in(self.about, "codes", len(classes))
            return None if rows is None else (rows[0], classes[rows[1]])
        examples = self._counts()
        if examples is None:
            return None
        scores, counts = examples
        repeats = np.rint(counts).astype(np.int64).ravel()
        labels = np.tile(classes, len(scores))
        return np.repeat(np.repeat(scores, 2), repeats), np.repeat(labels, repeats)

    def _counts(self) -> tuple[FloatArray, FloatArray] | None:
        """Return distinct scores (m,) and the counts of two classes, (m, 2)."""
        calibrator = self.calibrator
        if isinstance(calibrator, VennAbers) and len(calibrator.scores_) == 1:
            reversed_at, scores = calibrator.reversed_at_, calibrator.scores_[0]
            scores = scores if reversed_at is None else reversed_at - scores
            return scores, calibrator.weights_[0]
        return _examples_in(self.about, "counts", 2)

    def with_prior(self, prior: Sequence[str]) -> CalibratorFile:
        """Return this for other shares of the classes, each typed as LABEL=SHARE."""
        label_of = {written_label(label): label for label in self.calibrator.classes_.tolist()}
        shares = {}
        for entry in prior:
            label, _, share = entry.rpartition("=")
            try:
                shares[label_of[label]] = float(share)
            except (KeyError, ValueError):
                raise InputError(
                    f"--prior must be LABEL=SHARE with a label of {', '.join(label_of)}, "
                    f"got {entry!r}"
                ) from None
        return replace(self, calibrator=self.calibrator.with_prior(shares))

    def oriented(self, scores: FloatArray) -> FloatArray:
        """Return scores (n,) or (n, k), reversed if low ones are evidence for the class."""
        return score_columns(self.calibrator._check_new(scores), len(self.calibrator.classes_))


def _examples_in(
    about: dict[str, Any], name: Literal["counts", "codes"], k: int
) -> tuple[FloatArray, NDArray[Any]] | None:
    """Return the scores of a file's examples with their counts or codes, None if unsound."""
    try:
        examples = about["examples"]
        scores = np.asarray(examples["scores"], np.float64)
        values = np.asarray(examples[name], np.float64 if name == "counts" else np.intp)
    except (TypeError, KeyError, ValueError):
        return None
    n = len(np.atleast_1d(scores))
    shapes, end = (((n,), (n, 2)), np.inf) if name == "counts" else (((n, k), (n,)), k)
    if (scores.shape, values.shape) != shapes or not np.isfinite(scores).all():
        return None
    return (scores, values) if ((values >= 0) & (values < end)).all() else None


def kept_examples(
    rows: LabelledScores, counts: ScoreCounts, calibrator: Calibrator
) -> dict[str, Any]:
    """Return the examples that a file keeps for `watch`, if the calibrator itself keeps none.

    These are distinct scores with their counts, of more than two classes rows at equal distances.
    """
    if len(rows.classes) == 2:
        if isinstance(calibrator, VennAbers):
            return {}
        counts = counts.coarsen(MAX_EXAMPLES)
        return {"examples": {"scores": counts.scores.tolist(), "counts": counts.weights.tolist()}}
    if rows.weight is not None or rows.n_rows > MAX_ROWS_TO_READ_AGAIN:
        return {}
    step, n_before = -(-rows.n_rows // MAX_EXAMPLES), 0
    scores, codes = list[list[float]](), list[int]()
    for batch in rows.batches():
        part = batch.take(list(range(-n_before % step, batch.num_rows, step)))
        columns = [part[name].to_pylist() for name in rows.scores]
        scores += [list(row) for row in zip(*columns, strict=True)]
        codes += [rows.classes.index(label) for label in part[rows.target].to_pylist()]
        n_before += batch.num_rows
    return {"examples": {"scores": scores, "codes": codes}}


def is_calibrator_file(path: Path) -> bool:
    """Return whether a file is JSON, as ``calibrate`` writes."""
    refuse_special(path)
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def score_options(names: Sequence[str], *, increasing: bool = True) -> list[str]:
    """Return the options of ``calibrate`` that name columns of scores and their direction."""
    options = [part for name in names for part in ("-s", name)]
    return options if increasing else [*options, "--increasing", "no"]


def written_label(label: Any) -> str:
    """Return a label as text in which 1, 1.0 and "1" are one."""
    if isinstance(label, float | np.floating) and float(label).is_integer():
        return str(int(label))
    return str(label)


def read_document(path: Path) -> tuple[Calibrator, dict[str, Any]]:
    """Return the calibrator of a file, and the whole document."""
    if not path.is_file():
        raise InputError(f"there is no calibrator {path}")
    try:
        text = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {one_line(error)}") from error
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(
            f"{path} contains no calibrator, which vennforest calibrate writes as JSON"
        ) from None
    try:
        return from_json(text), document
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def read_calibrator(path: Path, scores: Sequence[str] = ()) -> CalibratorFile:
    """Return the calibrator of a file, and the columns of scores: as named, or at ``calibrate``."""
    calibrator, document = read_document(path)
    k = len(calibrator.classes_)
    about = document.get("about", {})
    columns = list(scores) or list(about.get("scores", []))
    if not columns:
        raise InputError(f"--score must be given, since {path} names no column")
    if len(columns) != (1 if k == 2 else k):
        labels = ", ".join(map(repr, map(str, calibrator.classes_)))
        expected = f"{k} columns, one for each class of {labels}" if k > 2 else "one column"
        raise InputError(f"--score must name {expected}, got {len(columns)}")
    return CalibratorFile(calibrator, columns, about)
