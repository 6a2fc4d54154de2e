"""The base class of calibrators with bounds, and the bounds of several classes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest._messages import shown
from vennforest._validation import FloatArray, IntArray, check_array, check_option
from vennforest.calibrators.base import Calibrator
from vennforest.multiprobability import Merge, Multiprobability, scale_into_bounds
from vennforest.prior import shift_bounds


class BoundedCalibrator(Calibrator):
    """Base of calibrators with bounds: Venn predictors, and a user's own.

    A subclass implements ``_fit`` and ``_multiprobability``.

    Parameters
    ----------
    merge : {"log", "brier", "midpoint"}
        How ``predict_proba`` makes one probability of the bounds: see `Multiprobability.merge`.

    Attributes
    ----------
    example_scores_, example_codes_, example_weights_ : ndarray, or None
        Scores, classes and weights of the examples given to ``fit``; None after ``fit_counts``, and
        where every weight is 1.
    """

    merge: Any
    _merges: ClassVar[Any] = Merge
    """The options of ``merge``."""
    example_scores_: FloatArray | None = None
    example_codes_: IntArray | None = None
    example_weights_: FloatArray | None = None

    @abstractmethod
    def _multiprobability(
        self, scores: FloatArray, left_out: IntArray | None = None
    ) -> Multiprobability:
        """Return the bounds for checked scores (m,) or (m, k).

        ``left_out`` (m,) is the index of the calibration example that is left out for each score,
        -1 for none.
        """

    def _remember(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> None:
        # A copy, since the caller may change the array.
        self.example_scores_, self.example_codes_ = scores.copy(), codes
        self.example_weights_ = weight

    def _without_examples(self) -> Self:
        calibrator = super()._without_examples()
        calibrator.example_scores_ = calibrator.example_codes_ = None
        calibrator.example_weights_ = None
        return calibrator

    def predict_multiprobability(
        self, scores: ArrayLike, left_out: ArrayLike | None = None
    ) -> Multiprobability:
        """Return lower and upper probabilities of every class.

        Parameters
        ----------
        scores : array-like of shape (m,) or (m, k)
            New scores, of the kind given to ``fit``.
        left_out : array-like of int of shape (m,), optional
            For each new score the calibration example, numbered as given to ``fit``, that leaves
            the calibration set for it; -1: none. `VennAbers` answers exactly as if fitted without
            it; `Venn` takes its weight from the counts, with the categories as they are.

        Returns
        -------
        Multiprobability
            Bounds of shape (m, k), in [0, 1]. For two classes ``p0`` and ``p1``.
        """
        new = self._check_new(scores)
        rows: IntArray | None = None
        if left_out is not None:
            if self.example_codes_ is None:
                raise ValueError("left_out must be None after fit_counts, which knows no examples")
            m, n, index = len(new), len(self.example_codes_), np.asarray(left_out)
            if index.shape != (m,) or (index.dtype.kind not in "iu" and m):
                raise ValueError(f"left_out must be {m} integers, got {shown(index)}")
            wrong = index[(index < -1) | (index >= n)]
            if len(wrong):
                raise ValueError(f"left_out must lie between -1 and {n - 1}, got {wrong[0]}")
            rows = index.astype(np.intp)
        bounds = self._multiprobability(new, rows)
        return bounds if self.shift_ is None else shift_bounds(bounds, self.shift_.factors)

    def _check_state(self) -> None:
        super()._check_state()
        check_option(self.merge, self._merges, "merge")
        if self.example_scores_ is not None:
            n, k = len(self.example_scores_), len(self.classes_)
            check_array(self.example_scores_, "example_scores_", (n,) if k == 2 else (n, k))
            check_array(self.example_codes_, "example_codes_", (n,), "i", 0, k - 1)
            if self.example_weights_ is not None:
                check_array(self.example_weights_, "example_weights_", (n,), low=0)

    def _check_map(self) -> None:
        """Do nothing: what the look-ups of bounds rely on, subclasses check."""

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        return self._multiprobability(scores).merge(self.merge)


def normalised_bounds(p0: FloatArray, p1: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds that hold before and after normalisation, from those of class against rest.

    The guarantee of Venn prediction is that of the one-vs-rest interval [p0_j, p1_j] of each class.
    Points of the box of all k intervals, divided by their sums, lie between ``p0_j / (p0_j + sum of
    the other p1)`` and ``p1_j / (p1_j + sum of the other p0)``. The hull of both is returned, so
    rows of ``lower`` (n, k) sum to at most 1 and those of ``upper`` to at least 1.
    """
    # p1 is positive: its own new observation counts for it.
    lower = p0 / (p0 + (p1.sum(axis=1, keepdims=True) - p1))
    upper = p1 / (p1 + (p0.sum(axis=1, keepdims=True) - p0))
    return np.minimum(p0, lower), np.minimum(np.maximum(p1, upper), 1.0)


def has_bounds(calibrator: Any) -> bool:
    """Tell whether a calibrator, a class of calibrators, or a model gives bounds."""
    return callable(getattr(calibrator, "predict_multiprobability", None))


def no_bounds(calibrator: Any) -> str:
    """Return the error message for a calibrator, or the name of a method, without bounds."""
    name = calibrator if isinstance(calibrator, str) else type(calibrator).__name__
    bounded = "venn-abers" if isinstance(calibrator, str) else "VennAbers"
    return f"{name} gives no bounds: use {bounded}"


def merged(calibrator: Any, bounds: Multiprobability, scores: FloatArray) -> FloatArray:
    """Return the probabilities (m, k) that a calibrator makes of its bounds at these scores."""
    if not isinstance(calibrator, BoundedCalibrator):
        p = np.clip(calibrator.predict_proba(scores), bounds.lower, bounds.upper)
        return scale_into_bounds(p, bounds.lower, bounds.upper)
    if calibrator.shift_ or calibrator.merge == "pooled":
        return calibrator.predict_proba(scores)
    return bounds.merge(calibrator.merge)
