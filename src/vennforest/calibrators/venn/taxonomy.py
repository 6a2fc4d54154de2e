"""What every taxonomy is, and what taxonomies measure of scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from vennforest._state import check_number, require
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.formula import LOWEST, Term, Terms, first_where


class Taxonomy(BaseEstimator, ABC):
    """Base of all taxonomies: from scores to categories.

    Attributes
    ----------
    n_categories_ : int
        Categories are 0 to ``n_categories_ - 1``.
    """

    n_categories_: int
    _learns: ClassVar[tuple[str, ...]] = ("n_categories_",)
    """The attributes that ``fit`` sets."""

    @abstractmethod
    def fit(
        self, scores: FloatArray, n_classes: int, sample_weight: FloatArray | None = None
    ) -> Self:
        """Learn the categories.

        Parameters
        ----------
        scores : ndarray of shape (n,) for two classes, or (n, n_classes)
            Calibration scores.
        n_classes : int
            Number of classes, at least 2.
        sample_weight : ndarray of shape (n,), optional
            Weights above zero; a weight of 2 is the score twice.

        Returns
        -------
        self
        """

    def to_state(self) -> dict[str, Any]:
        """Return what a model file holds of the taxonomy: the arguments of ``from_state``."""
        fitted = {name: vars(self)[name] for name in self._learns if name in vars(self)}
        return {"parameters": self.get_params(deep=False), "fitted": fitted}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], fitted: dict[str, Any]) -> Self:
        """Return the taxonomy that ``to_state`` describes; whoever uses it checks its classes.

        Raises
        ------
        ValueError
            If there is something else in it, or no category.
        """
        made = cls(**parameters)
        require(fitted.keys() <= set(cls._learns), f"a {cls.__name__} has other parts")
        made.__dict__.update(fitted)
        if fitted:
            check_number(made.n_categories_, "n_categories_", 1, integer=True)
        return made

    def _check_count(self, n: int) -> None:
        """Refuse another number of categories."""
        require(self.n_categories_ == n, f"n_categories_ must be {n}")

    def check_classes(self, n_classes: int) -> None:
        """Refuse a taxonomy that was fitted to scores of another number of classes.

        Raises
        ------
        ValueError
            If it was.
        """

    @abstractmethod
    def __call__(self, scores: FloatArray) -> IntArray:
        """Return the category of each score, shape (n,); -1 is a category never met in ``fit``."""

    def starts(self) -> FloatArray | None:
        """Return the scores of two classes at which the category may change, increasing.

        None where that is not known, as of a user's own taxonomy.
        """
        return None

    def formula(self, scores: Terms) -> Term | None:
        """Return the category as a formula of the scores of several classes.

        None where there is none, as of a user's own taxonomy.
        """
        return None

    def _starts_around(self, middle: float) -> FloatArray:
        """Return them for categories that come in order below, and in order above the middle."""
        first = float(np.nextafter(middle, np.inf))
        low, high = self._changes(LOWEST, middle), self._changes(first, -LOWEST)
        return np.unique(np.concatenate([low, [first], high]))

    def _changes(self, low: float, high: float) -> FloatArray:
        """Return where categories, which come in order from low to high, change."""
        first, last = self(np.array([low, high]))
        codes = np.arange(min(first, last), max(first, last))
        rising = first <= last
        return first_where(
            lambda s: self(s) > codes if rising else self(s) <= codes, low, high, len(codes)
        )


def predicted_class(scores: FloatArray, boundary: float = 0.5) -> IntArray:
    """Return the class with the largest score, shape (n,), the first of equals.

    Scores (n,) are those of the second of two classes, predicted where they exceed the boundary.
    """
    if scores.ndim == 1:
        return (scores > boundary).astype(np.intp)
    largest: IntArray = scores.argmax(axis=1)
    return largest


def largest_two(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the largest and the second largest score of each row, each of shape (n,).

    Scores (n,) are those of the second of two classes; the first has ``1 - s``.
    """
    if scores.ndim == 1:
        other = 1 - scores
        return np.maximum(scores, other), np.minimum(scores, other)
    k = scores.shape[1]
    top = np.partition(scores, (k - 2, k - 1), axis=1)
    return top[:, k - 1], top[:, k - 2]


def predicted_formulas(scores: Terms) -> tuple[Term, Term, Term]:
    """Return `predicted_class` and `largest_two` of columns of scores, as formulas."""
    label: Term | float = 0.0
    largest, second = scores[0], scores[0].min(scores[1])
    for j, score in enumerate(scores[1:], 1):
        if j > 1:
            second = second.max(score.min(largest))
        label = score.unless_above(largest, label, float(j))
        largest = largest.max(score)
    assert isinstance(label, Term)
    return label, largest, second


def quantiles(values: FloatArray, weight: FloatArray, parts: IntArray, whole: int) -> FloatArray:
    """Return for each p in parts the smallest value with p/whole of the weight at or below it.

    Parameters
    ----------
    values : ndarray of shape (n,), n > 0
    weight : ndarray of shape (n,), above zero
    parts : ndarray of int, in [1, whole]
    """
    order = np.argsort(values, kind="stable")
    # Scaled by a power of two, which rounds nothing, so that the products below stay finite;
    # multiplied by whole numbers instead of divided, so that counts compare exactly.
    scaled = np.ldexp(weight, -int(np.frexp(weight.max())[1]))
    reached = np.cumsum(scaled[order])
    places = np.searchsorted(reached * whole, parts * reached[-1])
    smallest: FloatArray = values[order][np.minimum(places, len(values) - 1)]
    return smallest


def inner_quantiles(values: FloatArray, weight: FloatArray, bins: int) -> FloatArray:
    """Return the distinct edges between bins of equal weight, increasing, at most bins - 1."""
    if not len(values):
        return np.empty(0)
    return np.unique(quantiles(values, weight, np.arange(1, bins), bins))
