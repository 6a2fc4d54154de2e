"""What Venn and Venn–Abers share: bounds of every class's probability, merged into one number."""

from __future__ import annotations

from abc import abstractmethod
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import FloatArray, check_option
from vennforest.calibrators.core.formula import LOWEST, Term, Terms
from vennforest.calibrators.core.interface import Calibrator
from vennforest.multiprobability import Merge, Multiprobability, scale_into_bounds


class BoundedCalibrator(Calibrator):
    """Base of calibrators with bounds: Venn predictors, and a user's own.

    A subclass has ``fit`` and ``predict_proba`` from here, and gives ``_fit``,
    ``predict_multiprobability`` and, for ``merge="smooth"``, ``predict_smooth``.

    Parameters
    ----------
    merge : {"log", "brier", "midpoint", "smooth"}
        How ``predict_proba`` makes one probability of the bounds: see `Multiprobability.merge`.
    """

    merge: Merge

    @abstractmethod
    def predict_multiprobability(
        self,
        scores: ArrayLike,
        left_out: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Multiprobability:
        """Return lower and upper probabilities of every class.

        Parameters
        ----------
        scores : array-like of shape (m,) or (m, k)
            New scores, of the kind given to ``fit``.
        left_out : array-like of int of shape (m,), optional
            For each new score the calibration example, numbered as given to ``fit``, that leaves
            the calibration set for it; -1: none.
        groups : array-like of shape (n,), optional
            The group of every calibration example, as given to ``fit``: with the left-out example
            its whole group is left out.

        Returns
        -------
        Multiprobability
            Bounds of shape (m, k), in [0, 1].
        """

    def predict_smooth(self, scores: ArrayLike) -> FloatArray:
        """Return the smooth estimates (m, k) that ``merge="smooth"`` clips into the bounds.

        Raises
        ------
        ValueError
            If the calibrator has none.
        """
        raise ValueError(f'merge must not be "smooth": {type(self).__name__} has no such estimates')

    def _check_merge(self) -> None:
        check_option(self.merge, Merge, "merge")

    def _check_parameters(self) -> None:
        self._check_merge()

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        smooth = self._smooth(scores) if self.merge == "smooth" else None
        return self._multiprobability(scores).merge(self.merge, smooth)

    def _multiprobability(self, scores: FloatArray) -> Multiprobability:
        """Return the bounds for scores that are checked already."""
        return self.predict_multiprobability(scores)

    def _smooth(self, scores: FloatArray) -> FloatArray:
        """Return the smooth estimates for scores that are checked already."""
        return self.predict_smooth(scores)

    def _formula(self, scores: Terms) -> Terms:
        return self._formulas(scores)["p"]

    def _formulas(self, scores: Terms) -> dict[str, Terms]:
        """Return ``p0``, ``p1`` and ``p`` of two classes: a table, and what is smooth within it."""
        start = self._starts() if len(scores) == 1 else None
        if start is None:
            raise ValueError(f"a formula must be of a calibrator that has one, got {self}")
        rows = np.append(LOWEST, start)
        bounds = self._multiprobability(rows)
        columns = {"p0": bounds.p0, "p1": bounds.p1}
        if self.merge != "smooth":
            columns["p"] = self._predict_proba(rows)[:, 1]
        found = scores[0].look_up(start, columns)
        if self.merge == "smooth":
            found["p"] = self._smooth_formula(scores[0]).clip(found["p0"], found["p1"])
        return {name: (one,) for name, one in found.items()}

    def _starts(self) -> FloatArray | None:
        """Return where bounds for two classes may change, increasing; None if not known."""
        return None

    def _smooth_formula(self, x: Term) -> Term:
        """Return the smooth estimate of the second of two classes."""
        raise ValueError(f"a formula must be of a calibrator that has one, got {self}")


def has_bounds(calibrator: Any) -> bool:
    """Tell whether a calibrator, or a class of calibrators, gives lower and upper probabilities."""
    return callable(getattr(calibrator, "predict_multiprobability", None))


def no_bounds(calibrator: Any) -> str:
    """Return the sentence for who asks a calibrator, or the name of a method, for bounds."""
    name = calibrator if isinstance(calibrator, str) else type(calibrator).__name__
    instead = "venn-abers" if isinstance(calibrator, str) else "VennAbers"
    return f"{name} gives no bounds: use {instead}"


def leaves_out(calibrator: Any) -> bool:
    """Tell whether a calibrator with bounds can leave an example out for a new score."""
    return "left_out" in signature(calibrator.predict_multiprobability).parameters


def leaves_out_groups(calibrator: Any) -> bool:
    """Tell whether a calibrator with bounds can leave out the whole group of an example."""
    return "groups" in signature(calibrator.predict_multiprobability).parameters


def merged(calibrator: Any, bounds: Multiprobability, scores: FloatArray) -> FloatArray:
    """Return the probabilities (m, k) that a calibrator makes of its bounds for scores.

    Scores are as given to its own methods, which check them and may reverse or round them. A
    calibrator with bounds that is no `BoundedCalibrator` answers by its own ``predict_proba``,
    moved into the bounds.
    """
    if not isinstance(calibrator, BoundedCalibrator):
        p = np.clip(calibrator.predict_proba(scores), bounds.lower, bounds.upper)
        return scale_into_bounds(p, bounds.lower, bounds.upper)
    smooth = calibrator.predict_smooth(scores) if calibrator.merge == "smooth" else None
    return bounds.merge(calibrator.merge, smooth)
