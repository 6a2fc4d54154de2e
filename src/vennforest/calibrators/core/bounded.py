"""Calibrators with bounds of every class's probability, and what a new score leaves out."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import reduce
from inspect import signature
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from vennforest._bounds_kernels import LEAST
from vennforest._validation import FloatArray, InputError, IntArray, check_option
from vennforest.calibrators.core.formula import LOWEST, Computed, Term, Terms, summed
from vennforest.calibrators.core.interface import Calibrator
from vennforest.multiprobability import Merge, Multiprobability, scale_into_bounds
from vennforest.prior import shift_bounds


class LeftOut(NamedTuple):
    """Which calibration examples are absent for each of m new scores."""

    rows: IntArray  # (m,) a row given to ``_fit``, or where there are groups a group; -1: none
    groups: IntArray | None  # (n,) the group, from 0, of each row given to ``_fit``


def left_out_rows(
    left_out: ArrayLike, groups: ArrayLike | None, m: int, n: int, row_of: IntArray | None
) -> LeftOut:
    """Return which rows given to ``_fit`` each of m new scores leaves out.

    Parameters
    ----------
    left_out, groups
        As given to ``predict_multiprobability``, of the examples as given to ``fit``.
    m, n : int
        Number of new scores, and of examples as given to ``fit``.
    row_of : ndarray of shape (n,) or None
        The row of each example that reached ``_fit``, -1 for one of weight zero; None: its own.

    Raises
    ------
    ValueError
        If ``left_out`` is not a vector of m integers from -1 to n - 1, or ``groups`` not one
        of n labels.
    """
    rows = np.asarray(left_out)
    if rows.shape != (m,):
        raise ValueError(f"left_out must have shape ({m},), got {rows.shape}")
    if rows.dtype.kind not in "iu" and m:
        raise ValueError(f"left_out must hold integers, got {rows.dtype}")
    wrong = (rows < -1) | (rows >= n)
    if wrong.any():
        raise ValueError(
            f"left_out must lie between -1 (none) and {n - 1} "
            f"(the last calibration example), got {rows[wrong][0]}"
        )
    rows = rows.astype(np.intp)
    if groups is not None:
        codes = _group_numbers(groups, n)
        kept = codes if row_of is None else codes[row_of >= 0]
        return LeftOut(np.where(rows < 0, -1, codes[rows]), kept)
    if row_of is not None:
        rows = np.where(rows < 0, -1, row_of[rows])
    return LeftOut(rows, None)


def _group_numbers(groups: ArrayLike, n: int) -> IntArray:
    """Return a number, 0 to n - 1, for each of n group labels."""
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(
            f"groups must have shape ({n},), one for each calibration example, got {labels.shape}"
        )
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < n:
        return labels.astype(np.intp, copy=False)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("groups must name a group for every example, got NaN")
    try:
        numbers: IntArray = np.unique(labels, return_inverse=True)[1].reshape(n)
    except TypeError:
        raise ValueError("groups must hold labels that can be sorted, all of one kind") from None
    return numbers


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

    def with_prior(
        self, shares: Mapping[Any, float], *, instead_of: Mapping[Any, float] | None = None
    ) -> Self:
        """Return this calibrator for other shares of the classes: see `Calibrator.with_prior`."""
        if type(self)._multiprobability is BoundedCalibrator._multiprobability:
            raise InputError(
                f"with_prior is for calibrators of vennforest, got {type(self).__name__}, whose "
                "bounds would not be shifted"
            )
        return super().with_prior(shares, instead_of=instead_of)

    def _shifted(self, bounds: Multiprobability) -> Multiprobability:
        """Return bounds for the shares of the classes that ``with_prior`` has set."""
        shift = self._fitted.shift
        return bounds if shift is None else shift_bounds(bounds, shift.factors)

    def _left_out(
        self, left_out: ArrayLike | None, groups: ArrayLike | None, m: int
    ) -> LeftOut | None:
        """Return which rows given to ``_fit`` each of m new scores leaves out.

        ``left_out`` and ``groups`` count the examples as given to ``fit``; those of weight zero
        never reached ``_fit``, so leaving one out is leaving out none, or the rest of its group.
        None stays None.

        Raises
        ------
        ValueError
            If ``left_out`` is not a vector of m integers from -1 to n - 1, or ``groups`` is not a
            vector of n labels, or given without ``left_out``.
        """
        if left_out is None:
            if groups is not None:
                raise ValueError("left_out must be given with groups, got None")
            return None
        if self.from_counts:
            raise ValueError(
                "left_out must be None after fit_counts, which knows no single examples"
            )
        return left_out_rows(left_out, groups, m, self.n_given, self.row_of)

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
        """Return ``p0``, ``p1`` and ``p``, of the second of two classes or of each of more."""
        if len(scores) > 1:
            found = self._formulas_of_many(scores)
            if "p" not in found:
                low, up = found["p0"], found["p1"]
                smooth = self._smooth_formulas(scores) if self.merge == "smooth" else low
                p = tuple(map(self._merged_formula, low, up, smooth))
                found["p"] = scaled_formulas(p, low, up)
            return found
        start = self._starts()
        if start is None:
            raise _no_formula(self)
        rows = np.append(LOWEST, start)
        bounds = self._multiprobability(rows)
        columns = {"p0": bounds.p0, "p1": bounds.p1}
        if self.merge != "smooth":
            columns["p"] = self._predict_proba(rows)[:, 1]
        looked_up = scores[0].look_up(start, columns)
        if self.merge == "smooth":
            smooth = self._smooth_formulas(scores)
            looked_up["p"] = smooth[0].clip(looked_up["p0"], looked_up["p1"])
        return {name: (one,) for name, one in looked_up.items()}

    def _formulas_of_many(self, scores: Terms) -> dict[str, Terms]:
        """Return ``p0`` and ``p1`` of each of several classes, and ``p`` if that is looked up."""
        raise _no_formula(self)

    def _merged_formula(self, low: Term, up: Term, smooth: Term) -> Term:
        """Return the formula of `Multiprobability.merge` for one class."""
        if self.merge == "log":
            return up / (1.0 - low + up)
        if self.merge == "brier":
            return up + (low * low - up * up) / 2.0
        return (low + up) / 2.0 if self.merge == "midpoint" else smooth.clip(low, up)

    def _starts(self) -> FloatArray | None:
        """Return where bounds for two classes may change, increasing; None if not known."""
        return None

    def _smooth_formulas(self, scores: Terms) -> Terms:
        """Return the smooth estimates, of the second of two classes or of each of more."""
        raise _no_formula(self)


def _no_formula(calibrator: Calibrator) -> ValueError:
    return ValueError(f"a formula must be of a calibrator that has one, got {calibrator}")


def scaled_formulas(p: Terms, lower: Terms, upper: Terms) -> Terms:
    """Return the formulas of `scale_into_bounds`.

    The sum of a row clipped into its bounds rises with the factor, in straight lines between the
    bends at which an entry meets a bound. So it is 1 on the line from the last bend at which it is
    at most 1 to the first at which it is at least 1.
    """
    q = [one.max(LEAST) for one in p]

    def clipped(factor: Term) -> list[Term]:
        return [(x * factor).clip(low, up) for x, low, up in zip(q, lower, upper, strict=True)]

    bends = [bound / x for bounds in (lower, upper) for bound, x in zip(bounds, q, strict=True)]
    sums = [summed(clipped(bend)) for bend in bends]
    least, farthest, most = summed(lower), reduce(Term.max, bends), reduce(Term.max, sums)
    # Where no bend is so low, or so high: the factor 0, or the last bend.
    pairs = list(zip(bends, sums, strict=True))
    begin = reduce(Term.max, [whole.unless_above(1.0, at, 0.0) for at, whole in pairs])
    end = reduce(Term.min, [_from_one(whole, at, farthest) for at, whole in pairs])
    low = reduce(Term.max, [whole.unless_above(1.0, whole, least) for whole in sums])
    high = reduce(Term.min, [_from_one(whole, whole, most) for whole in sums])
    between = begin + (1.0 - low) * ((end - begin) / (high - low))
    scaled = clipped(high.unless_above(low, begin, between))
    total = summed(scaled)
    # clipped once more, since the division rounds
    return tuple(
        (one / total).clip(low, up) for one, low, up in zip(scaled, lower, upper, strict=True)
    )


def _from_one(x: Term, here: Term, below: Term) -> Term:
    """Return ``here`` where x is at least 1, else ``below``."""
    return Computed("if <=", (1.0, x, here, below))


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
    if calibrator._fitted.shift is not None:
        return calibrator.predict_proba(scores)
    smooth = calibrator.predict_smooth(scores) if calibrator.merge == "smooth" else None
    return bounds.merge(calibrator.merge, smooth)
