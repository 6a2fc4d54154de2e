"""A calibrator from a file that ``calibrate`` has written, and the examples it was fitted to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._files import one_line, refuse_special
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Calibrator, VennAbers
from vennforest.counts import ScoreCounts
from vennforest.monitoring.stream import score_columns

MOST_EXAMPLES = 4_096
"""Distinct scores that a file keeps counts of, for calibrators that keep none themselves."""


@dataclass(frozen=True, eq=False)
class CalibratorFile:
    """A calibrator, and what its file says of it.

    Attributes
    ----------
    calibrator : Calibrator
    scores : list of str
        The columns of scores.
    about : dict
    """

    calibrator: Calibrator
    scores: list[str]
    about: dict[str, Any]

    def examples(self) -> tuple[FloatArray, NDArray[Any]] | None:
        """Return scores and labels of the calibration examples, None where none are kept."""
        made = self.calibrator
        if isinstance(made, VennAbers) and len(made.tables_) == 1:
            table = made.tables_[0]
            total, positive = table.sums.counts()
            scores, counts = table.x, np.column_stack([total - positive, positive])
            at = made._fitted.reversed_at
            scores = scores if at is None else at - scores
        else:
            kept = self.about.get("examples")
            try:
                scores = np.asarray(kept["scores"], np.float64)  # type: ignore[index]
                counts = np.asarray(kept["counts"], np.float64)  # type: ignore[index]
            except (TypeError, KeyError, ValueError):
                return None
            sound = counts.shape == (len(scores), 2) and np.isfinite(scores).all()
            if not sound or not np.isfinite(counts).all() or (counts < 0).any():
                return None
        number = np.rint(counts).astype(np.int64).ravel()
        labels = np.tile(made.classes_, len(scores))
        return np.repeat(np.repeat(scores, 2), number), np.repeat(labels, number)

    def oriented(self, scores: FloatArray) -> FloatArray:
        """Return scores (n,) or (n, k) of which high ones speak for the class."""
        return score_columns(self.calibrator._check_new(scores), len(self.calibrator.classes_))


def kept_examples(counts: ScoreCounts, calibrator: Calibrator) -> dict[str, Any]:
    """Return what a file keeps of counted examples where the calibrator itself keeps none."""
    if len(counts.tables) != 1 or isinstance(calibrator, VennAbers):
        return {}
    table = (counts if len(counts) <= MOST_EXAMPLES else counts.compress(MOST_EXAMPLES)).tables[0]
    return {"examples": {"scores": table.scores.tolist(), "counts": table.counts.tolist()}}


def is_calibrator_file(path: Path) -> bool:
    """Tell whether a file is JSON, as ``calibrate`` writes."""
    refuse_special(path)
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def read_calibrator(path: Path, scores: Sequence[str] = ()) -> CalibratorFile:
    """Return the calibrator of a file, and the columns of scores it takes.

    Parameters
    ----------
    path : Path
    scores : sequence of str
        The columns; none: those named at ``calibrate``.

    Raises
    ------
    InputError
        If it holds none, or other columns are named than it takes.
    """
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
            f"{path} holds no calibrator, which vennforest calibrate writes as JSON"
        ) from None
    try:
        calibrator = Calibrator.from_json(text)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    k = len(calibrator.classes_)
    about = document.get("about", {})
    named = list(scores) or about.get("scores", [])
    if not named:
        raise InputError(f"--score must be given, since {path} names no column")
    if len(named) != (1 if k == 2 else k):
        raise InputError(
            f"--score must name {1 if k == 2 else k} columns, one a class of "
            f"{', '.join(map(repr, map(str, calibrator.classes_)))}, got {len(named)}"
            if k > 2
            else f"--score must name one column, got {len(named)}"
        )
    return CalibratorFile(calibrator, list(named), about)
