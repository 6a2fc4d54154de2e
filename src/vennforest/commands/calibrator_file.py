"""A calibrator from a file that ``calibrate`` has written, and the examples it was fitted to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vennforest._files import one_line, refuse_special
from vennforest._validation import FloatArray, InputError
from vennforest.calibrators import Calibrator, VennAbers
from vennforest.counts import ScoreCounts
from vennforest.export import from_json
from vennforest.monitoring.stream import score_columns
from vennforest.tables.scores import ScoreColumns

MOST_EXAMPLES = 4_096
"""Distinct scores that a file keeps counts of, for calibrators that keep none themselves."""


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

    def class_counts(self) -> FloatArray | None:
        """Return how many examples, or what weight, each class has, None where it is not kept."""
        made = self.calibrator
        if isinstance(made, VennAbers) and len(made.tables_) > 1:
            return np.array([table.sums.counts()[1].sum() for table in made.tables_])
        counted = self._counted()
        return None if counted is None else counted[1].sum(axis=0)

    def examples(self) -> tuple[FloatArray, NDArray[Any]] | None:
        """Return scores and labels of the calibration examples, None where none are kept."""
        k = len(self.calibrator.classes_)
        if k > 2:
            kept = _kept(self.about, "codes", k)
            return None if kept is None else (kept[0], self.calibrator.classes_[kept[1]])
        counted = self._counted()
        if counted is None:
            return None
        scores, counts = counted
        number = np.rint(counts).astype(np.int64).ravel()
        labels = np.tile(self.calibrator.classes_, len(scores))
        return np.repeat(np.repeat(scores, 2), number), np.repeat(labels, number)

    def _counted(self) -> tuple[FloatArray, FloatArray] | None:
        """Return distinct scores (m,) and how often each of two classes has them, (m, 2)."""
        made = self.calibrator
        if isinstance(made, VennAbers) and len(made.tables_) == 1:
            table = made.tables_[0]
            total, positive = table.sums.counts()
            at = made.reversed_at_
            scores = table.x if at is None else at - table.x
            return scores, np.column_stack([total - positive, positive])
        return _kept(self.about, "counts", 2)

    def with_prior(self, given: Sequence[str]) -> CalibratorFile:
        """Return this for other shares of the classes, each typed as LABEL=SHARE."""
        known = {written_label(label): label for label in self.calibrator.classes_.tolist()}
        shares = {}
        for one in given:
            label, _, share = one.rpartition("=")
            try:
                shares[known[label]] = float(share)
            except (KeyError, ValueError):
                raise InputError(
                    f"--prior must be LABEL=SHARE with a label of {', '.join(known)}, got {one!r}"
                ) from None
        made, counts, instead_of = self.calibrator, self.class_counts(), None
        if counts is not None and made.shift_ is None:
            instead_of = dict(zip(known.values(), (counts / counts.sum()).tolist(), strict=True))
        return replace(self, calibrator=made.with_prior(shares, instead_of=instead_of))

    def oriented(self, scores: FloatArray) -> FloatArray:
        """Return scores (n,) or (n, k) of which high ones speak for the class."""
        return score_columns(self.calibrator._check_new(scores), len(self.calibrator.classes_))


def _kept(about: dict[str, Any], name: str, k: int) -> tuple[FloatArray, NDArray[Any]] | None:
    """Return the scores of a file's examples, and their counts or codes; None: there are none."""
    try:
        kept = about["examples"]
        scores = np.asarray(kept["scores"], np.float64)
        what = np.asarray(kept[name], np.float64 if name == "counts" else np.intp)
    except (TypeError, KeyError, ValueError):
        return None
    n = len(np.atleast_1d(scores))
    wanted, most = (((n,), (n, 2)), np.inf) if name == "counts" else (((n, k), (n,)), k)
    if (scores.shape, what.shape) != wanted or not np.isfinite(scores).all():
        return None
    return (scores, what) if ((what >= 0) & (what < most)).all() else None


def kept_examples(counts: ScoreCounts, calibrator: Calibrator) -> dict[str, Any]:
    """Return what a file keeps of counted examples where the calibrator itself keeps none."""
    if len(counts.classes) > 2 or isinstance(calibrator, VennAbers):
        return {}
    counts = counts.coarsen(MOST_EXAMPLES)
    return {"examples": {"scores": counts.scores.tolist(), "counts": counts.weights.tolist()}}


def kept_rows(rows: ScoreColumns, n_rows: int) -> dict[str, Any]:
    """Return what a file keeps of examples of more than two classes: rows at equal distances."""
    step, at, codes = -(-n_rows // MOST_EXAMPLES), 0, list[int]()
    scores: list[list[float]] = []
    rows.labels()
    for some, own, _ in rows.parts():
        scores += some[-at % step :: step].tolist()
        codes += own[-at % step :: step].tolist()
        at += len(own)
    return {"examples": {"scores": scores, "codes": codes}}


def is_calibrator_file(path: Path) -> bool:
    """Tell whether a file is JSON, as ``calibrate`` writes."""
    refuse_special(path)
    try:
        with path.open("rb") as file:
            return file.read(64).lstrip()[:1] == b"{"
    except OSError:
        return False


def score_options(names: Sequence[str], *, increasing: bool = True) -> list[str]:
    """Return the options of ``calibrate`` that name columns of scores and their direction."""
    named = [part for name in names for part in ("-s", name)]
    return named if increasing else [*named, "--increasing", "no"]


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
    named = list(scores) or about.get("scores", [])
    if not named:
        raise InputError(f"--score must be given, since {path} names no column")
    if len(named) != (1 if k == 2 else k):
        each = ", ".join(map(repr, map(str, calibrator.classes_)))
        wanted = f"{k} columns, one for each class of {each}" if k > 2 else "one column"
        raise InputError(f"--score must name {wanted}, got {len(named)}")
    return CalibratorFile(calibrator, list(named), about)
