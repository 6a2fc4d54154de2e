"""Fitted classifiers for a population with other shares of the classes."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from vennforest._loaded import expect, expect_array
from vennforest._validation import FloatArray
from vennforest.classifier.fitted import FittedAttributes
from vennforest.multiprobability import Multiprobability
from vennforest.prior import (
    PriorEstimate,
    class_shares,
    estimate_shares,
    read_shares,
    shift_bounds,
    shift_probabilities,
)


class ShiftedPrior(FittedAttributes):
    """What a fitted classifier does about the shares of the classes."""

    _prior: FloatArray | None = None
    """Shares that were set; None: those of the calibration examples."""
    _factors: FloatArray | None = None
    """Set shares divided by those that the calibrators have; None: the same."""

    @property
    def prior_(self) -> FloatArray:
        """The shares of the classes that probabilities are right for, shape (k,), sum 1.

        Those among the calibration examples, by weight, unless ``with_prior`` set others. What
        was done to training examples alone, such as ``class_weight`` or a resampler within a
        pipeline, does not change them.
        """
        if self._prior is not None:
            return self._prior
        parts = self._fitted()
        known = [part.weight is not None for part in parts]
        weight = None
        if any(known):
            every = [np.ones(len(p.codes)) if p.weight is None else p.weight for p in parts]
            weight = np.concatenate(every)
        codes = np.concatenate([part.codes for part in parts])
        return class_shares(codes, weight, len(self.classes_))

    def with_prior(
        self, shares: Mapping[Any, float], *, instead_of: Mapping[Any, float] | None = None
    ) -> Self:
        """Return this classifier for a population with other shares of the classes.

        For a model whose calibration examples were resampled or weighted, or that moves to where
        classes are more or less frequent, while objects of each class stay as they are: the odds
        of every probability and bound are multiplied by what that makes of the odds of the classes
        (see `vennforest.prior.shift_bounds`). Nothing is trained again, and this model stays as it
        is.

        Parameters
        ----------
        shares : mapping of label to float
            The share of each class there, in (0, 1), with sum 1; classes that are not named share
            the rest in their present proportions.
        instead_of : mapping of label to float, optional
            The shares of the population that calibration examples were drawn from, where they are
            known; by default ``prior_``, the shares counted among the calibration examples.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If a label is unknown, a share is not between 0 and 1, they do not sum to 1, or a class
            has no calibration examples.

        Notes
        -----
        ``docs/guarantee.md`` says what the bounds then promise: for two classes, and for
        ``method="venn"``, all that they promised before, where the old shares are known.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from vennforest import CalibratedClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
        >>> model.prior_.round(3)
        array([0.432, 0.568])
        >>> screening = model.with_prior({0: 0.01})
        >>> model.predict_proba(X[406:407]).round(2), screening.predict_proba(X[406:407]).round(2)
        (array([[0.57, 0.43]]), array([[0.02, 0.98]]))
        """
        check_is_fitted(self, "classes_")
        known = self.prior_
        if instead_of is not None:
            known = read_shares(instead_of, self.classes_, known)
        elif (known == 0).any():
            raise ValueError(
                f"shares must be of classes with calibration examples, got none of "
                f"{self.classes_[known == 0].tolist()}: name the shares they were drawn with "
                "(instead_of), or hold more examples out"
            )
        wanted = read_shares(shares, self.classes_, known)
        factors = wanted / known
        if self._factors is not None:
            factors = self._factors * factors
        other = copy.copy(self)
        other._prior, other._factors = wanted, factors / factors.max()
        return other

    def estimate_prior(self, X: Any, level: float = 0.95) -> PriorEstimate:
        """Estimate the shares of the classes among objects without labels, with intervals.

        For objects from a population where classes have other shares, while objects of each class
        are as those calibrated on: ``model.with_prior(model.estimate_prior(X).shares)``. Where
        objects of a class themselves have changed, the estimate is of no use, and nothing in the
        scores tells.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, d)
            Rows as the estimator takes them: a random sample of that population.
        level : float, default=0.95
            Of the interval of each share, in (0, 1).

        Returns
        -------
        PriorEstimate
            ``estimate``, ``lower`` and ``upper`` of shape (k,), and ``shares`` by label.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If there are no rows, or the calibration examples lack a class.

        Warns
        -----
        UserWarning
            If the scores do not tell all classes apart.
        """
        check_is_fitted(self, "classes_")
        plain = copy.copy(self)
        plain._prior = plain._factors = None
        prior = plain.prior_
        if (prior == 0).any():
            raise ValueError(
                "calibration examples must be of every class to estimate shares, got none of "
                f"{self.classes_[prior == 0].tolist()}"
            )
        own = np.concatenate(self._own_probabilities())
        codes = np.concatenate([part.codes for part in self._parts])
        p = plain.predict_proba(X)  # type: ignore[attr-defined]
        return estimate_shares(p, own, codes, prior, self.classes_, level)

    def _own_probabilities(self) -> list[FloatArray]:
        """Return what each part's map says of its own calibration examples."""
        return [
            (calibrator if point is None else point).predict_proba(part.scores)
            for part, calibrator, point in zip(
                self._parts, self._calibrators, self._points, strict=True
            )
        ]

    def _of_training_rows(self) -> tuple[Multiprobability | None, FloatArray]:
        bounds, p = super()._of_training_rows()
        if self._factors is None:
            return bounds, p
        p = shift_probabilities(p, self._factors)
        if bounds is None:
            return None, p
        return shift_bounds(bounds, self._factors).widen(p), p

    def _check_prior(self) -> None:
        """Refuse shares that ``with_prior`` could not have set.

        Raises
        ------
        ValueError
            If they are none.
        """
        expect((self._prior is None) == (self._factors is None), "_prior and _factors go together")
        if self._prior is not None and self._factors is not None:
            k = len(self.classes_)
            expect_array(self._prior, "_prior", (k,), low=0, high=1)
            expect(abs(self._prior.sum() - 1) < 1e-9, "_prior must sum to 1")
            expect_array(self._factors, "_factors", (k,), low=0, high=1)
            expect((self._prior > 0).all() and (self._factors > 0).all(), "shares must be above 0")
