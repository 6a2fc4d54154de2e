"""What a fitted classifier says of its training rows, each without its own label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.bounded import (
    BoundedCalibrator,
    has_bounds,
    leaves_out,
    leaves_out_groups,
    merged,
)
from vennforest.multiprobability import Multiprobability
from vennforest.sources import Fold

FOLDS = 5
"""A calibrator that cannot leave out a single example is fitted again without each of so many."""


def predict_training_rows(
    parts: Sequence[Fold],
    calibrators: Sequence[Any],
    points: Sequence[Any],
    classes: NDArray[Any],
    n: int,
    groups: IntArray | None,
) -> tuple[Multiprobability | None, FloatArray]:
    """Return bounds and probabilities of the n rows given to ``fit``, each without its own label.

    A row has its calibration score, which the source has given it by a model that did not see it.
    Venn and Venn–Abers leave the example, and its group, out of the calibration set; other
    calibrators are fitted again without the fifth of the examples that it is in. Several scores of
    one row are averaged after calibration.

    Parameters
    ----------
    parts, calibrators, points, classes
        As for ``predict_parts``; every part says which rows its examples are.
    n : int
    groups : ndarray of shape (n,) or None
        The group of each row.

    Returns
    -------
    (Multiprobability or None, ndarray of shape (n, k))
        NaN for rows that calibrate nothing; None without bounds.
    """
    own = [_Examples.of([part], classes, groups) for part in parts]
    rows = np.concatenate([one.rows for one in own])
    bounds = [one.bounds(calibrator) for one, calibrator in zip(own, calibrators, strict=True)]
    if points[0] is not None:
        p = _Examples.of(parts, classes, groups).proba(points[0], None)
    else:
        each = zip(own, calibrators, bounds, strict=True)
        p = np.concatenate([one.proba(calibrator, found) for one, calibrator, found in each])
    counts = np.bincount(rows, minlength=n)[:, None]

    def mean(values: FloatArray) -> FloatArray:
        total = np.zeros((n, len(classes)))
        np.add.at(total, rows, values)
        with np.errstate(invalid="ignore"):
            means: FloatArray = total / counts
        return means

    p = mean(p)
    known = [found for found in bounds if found is not None]
    if not known:
        return None, p
    lower = mean(np.concatenate([found.lower for found in known]))
    upper = mean(np.concatenate([found.upper for found in known]))
    found = Multiprobability(lower, upper, classes)
    return (found if len(known) == 1 and points[0] is None else found.widen(p)), p


@dataclass(frozen=True)
class _Examples:
    """Calibration examples, and what calibrators say of each without it."""

    scores: FloatArray
    codes: IntArray
    weight: FloatArray | None
    rows: IntArray
    groups: IntArray | None
    classes: NDArray[Any]

    @classmethod
    def of(cls, parts: Sequence[Fold], classes: NDArray[Any], groups: IntArray | None) -> Self:
        """Return the examples of some parts, one after another."""
        weights = [np.ones(len(p.codes)) if p.weight is None else p.weight for p in parts]
        rows = np.concatenate([p.rows for p in parts if p.rows is not None]).astype(np.intp)
        return cls(
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.codes for part in parts]).astype(np.intp),
            np.concatenate(weights) if any(p.weight is not None for p in parts) else None,
            rows,
            # A splitter of a user's own may score a row twice: no copy of it stays behind.
            groups[rows] if groups is not None else rows if _repeats(rows) else None,
            classes,
        )

    def bounds(self, calibrator: Any) -> Multiprobability | None:
        """Return the bounds that leave each example out, None where there are none."""
        if not has_bounds(calibrator):
            return None
        if leaves_out(calibrator) and (self.groups is None or leaves_out_groups(calibrator)):
            given = {} if self.groups is None else {"groups": self.groups}
            found: Multiprobability = calibrator.predict_multiprobability(
                self.scores, np.arange(len(self.scores)), **given
            )
            return found
        lower, upper = np.full((2, len(self.codes), len(self.classes)), np.nan)
        for fitted, held in self._refits(calibrator):
            part = fitted.predict_multiprobability(self.scores[held])
            lower[held], upper[held] = part.lower, part.upper
        return Multiprobability(lower, upper, self.classes)

    def proba(self, calibrator: Any, bounds: Multiprobability | None) -> FloatArray:
        """Return the probabilities (n, k) without each example."""
        ready = isinstance(calibrator, BoundedCalibrator) and calibrator.merge != "smooth"
        if bounds is not None and ready:
            return merged(calibrator, bounds, self.scores)
        p = np.full((len(self.codes), len(self.classes)), np.nan)
        for fitted, held in self._refits(calibrator):
            if bounds is None:
                p[held] = fitted.predict_proba(self.scores[held])
            else:
                p[held] = merged(fitted, bounds[held], self.scores[held])
        return p

    def _refits(self, calibrator: Any) -> Iterator[tuple[Any, IntArray]]:
        """Yield calibrators that lack some examples, and these; rows and groups stay whole."""
        units = self.rows if self.groups is None else self.groups
        numbers = np.unique(units, return_inverse=True)[1]
        size = int(numbers.max()) + 1
        if size == 1:  # without it there is nothing to fit to
            return
        # The fold that a row is in depends on no label.
        fold = np.random.RandomState(0).permutation(size)[numbers] % min(FOLDS, size)
        for number in range(min(FOLDS, size)):
            held, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
            fitted = clone(calibrator).fit(
                self.scores[rest],
                self.classes[self.codes[rest]],
                sample_weight=None if self.weight is None else self.weight[rest],
                classes=self.classes,
            )
            yield fitted, held


def _repeats(rows: IntArray) -> bool:
    return len(np.unique(rows)) < len(rows)
