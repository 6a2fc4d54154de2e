"""What the learners of two papers share: mixed columns for naïve Bayes and others, one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from vennforest._validation import FloatArray, check_option

Density = Literal["normal", "kernel"]
"""How naïve Bayes estimates the density of a column of numbers."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread: sums in another order would give other numbers."""
    with threadpool_limits(limits=1):
        yield


class MixedNaiveBayes(ClassifierMixin, BaseEstimator):
    """Naïve Bayes: normal or kernel densities, and Laplace-smoothed frequencies of categories.

    A missing cell, NaN, is ignored: it enters neither the estimates nor the products.

    Parameters
    ----------
    n_values : tuple of int, length d, or None
        For each column 0 if it is numeric, else the number of values of a nominal column, whose
        cells are codes 0 to that number - 1. None: all columns are numeric.
    smoothing : float, default=1.0
        Added to the count of every value, and of every class.
    density : {"normal", "kernel"}, default="normal"
        Of numeric columns: one normal density per class, or the mean of normal kernels around its
        examples (John & Langley 1995).

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    n_features_in_ : int
        Number of columns.

    Raises
    ------
    ValueError
        From ``fit``, if there is no such density, ``n_values`` does not have one entry per column,
        or a code is out of range.

    Notes
    -----
    The standard deviation of a numeric column in a class is at least a sixth of the mean gap
    between the column's distinct values, as in Weka: a column that is constant in a class would
    otherwise outweigh all others. A constant column has no gap, and 0.01 is used.

    Kernels are those of Weka: their standard deviation is the range of the column in the class
    over the square root of the number of its examples, with the same minimum; examples are rounded
    to multiples of the gap, and the likelihood of a number is the probability of an interval of
    that width around it, at least 1e-75.
    """

    classes_: NDArray[Any]

    def __init__(
        self,
        n_values: tuple[int, ...] | None = None,
        smoothing: float = 1.0,
        density: Density = "normal",
    ) -> None:
        self.n_values = n_values
        self.smoothing = smoothing
        self.density = density

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Estimate every class's densities and frequencies.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Numbers and codes; NaN for a missing cell.
        y : array-like of shape (n,)
            Labels.
        """
        check_option(self.density, Density, "density")
        checked: Any = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan")
        table, y = checked
        check_classification_targets(y)
        self.classes_ = unique_labels(y)
        member = (np.asarray(y)[:, None] == self.classes_).astype(np.float64)  # (n, k)
        sizes = (
            np.zeros(table.shape[1], np.intp) if self.n_values is None else np.array(self.n_values)
        )
        if sizes.shape != (table.shape[1],):
            raise ValueError(
                f"n_values must have an entry for each of {table.shape[1]} columns, "
                f"got {len(sizes)}"
            )
        self._numeric, self._nominal = np.flatnonzero(sizes == 0), np.flatnonzero(sizes)
        self._sizes = sizes[self._nominal]
        counts = member.sum(axis=0)
        smoothed = counts + self.smoothing
        self._log_prior = np.log(smoothed / smoothed.sum())
        self._fit_numbers(table[:, self._numeric], member)
        codes = self._offset_codes(table[:, self._nominal])
        self._log_shares = np.zeros((int(self._sizes.sum()) + 1, len(self.classes_)))
        for j in range(len(self.classes_)):
            values = codes[member[:, j] > 0].ravel()
            found = np.bincount(values, minlength=len(self._log_shares))[:-1] + self.smoothing
            starts = np.cumsum(self._sizes) - self._sizes
            if len(starts):
                totals = np.repeat(np.add.reduceat(found, starts), self._sizes)
                self._log_shares[:-1, j] = np.log(found / totals)
        return self

    def _fit_numbers(self, numbers: FloatArray, member: FloatArray) -> None:
        present = ~np.isnan(numbers)
        filled = np.where(present, numbers, 0)
        n = member.T @ present  # (k, numeric columns)
        known = np.maximum(n, 1)
        mean = member.T @ filled / known
        square = member.T @ np.where(present, numbers - (member @ mean), 0) ** 2 / known
        gaps = np.array([_mean_gap(column[~np.isnan(column)]) for column in numbers.T])
        deviation = np.maximum(np.sqrt(square), gaps / 6)
        # A column without a number in some class cannot compare the classes and is ignored.
        self._mean, self._deviation, self._known = mean, deviation, (n > 0).all(axis=0)
        if self.density == "kernel":
            self._kernels = [
                [
                    _Kernels.around(column[present & (own > 0)], gap)
                    for column, present, gap in zip(numbers.T, present.T, gaps, strict=True)
                ]
                for own in member.T
            ]

    def _log_densities(self, numbers: FloatArray, j: int) -> FloatArray:
        """Return the log densities in class j of numbers (n, numeric columns), the same shape."""
        if self.density == "kernel":
            columns = [k.log_density(x) for k, x in zip(self._kernels[j], numbers.T, strict=True)]
            return np.column_stack(columns) if columns else numbers
        with np.errstate(over="ignore"):
            z = (numbers - self._mean[j]) / self._deviation[j]
            terms: FloatArray = -0.5 * z**2 - np.log(self._deviation[j])
        return np.maximum(terms, -1e100)

    def _offset_codes(self, codes: FloatArray) -> NDArray[np.intp]:
        """Return each cell's index into the log frequencies; a missing cell's is the last, 0."""
        missing = np.isnan(codes)
        whole = np.where(missing, 0, codes)
        if ((whole < 0) | (whole >= self._sizes) | (whole != np.floor(whole))).any():
            raise ValueError("X must hold codes from 0 to n_values - 1 in nominal columns")
        starts = np.cumsum(self._sizes) - self._sizes
        indices: NDArray[np.intp] = np.where(missing, self._sizes.sum(), whole + starts).astype(
            np.intp
        )
        return indices

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return probabilities of every class, shape (n, k), for X of shape (n, d)."""
        check_is_fitted(self, "classes_")
        table: Any = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False
        )
        log_joint = np.tile(self._log_prior, (len(table), 1))
        numbers = table[:, self._numeric]
        for j in range(len(self.classes_)):
            counted = self._known & ~np.isnan(numbers)
            log_joint[:, j] += np.where(counted, self._log_densities(numbers, j), 0).sum(axis=1)
        log_joint += self._log_shares[self._offset_codes(table[:, self._nominal])].sum(axis=1)
        p: FloatArray = softmax(log_joint, axis=1)
        return p

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,), the first if several tie."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing cells are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _mean_gap(values: FloatArray) -> float:
    distinct = np.unique(values)
    return float(distinct[-1] - distinct[0]) / (len(distinct) - 1) if len(distinct) > 1 else 0.01


@dataclass(frozen=True)
class _Kernels:
    """Normal kernels of one width around the numbers of a column in a class.

    Attributes
    ----------
    centres, share : ndarray of shape (m,)
        The distinct numbers, rounded to multiples of the gap, and the proportion of each.
    deviation : float
        Standard deviation of the kernels.
    gap : float
        Width of the interval whose probability is taken.
    """

    centres: FloatArray
    share: FloatArray
    deviation: float
    gap: float

    @classmethod
    def around(cls, values: FloatArray, gap: float) -> Self:
        """Put a kernel around each of the values, shape (n,), of which there may be none."""
        centres, counts = np.unique(np.rint(values / gap) * gap, return_counts=True)
        if not len(values):
            return cls(centres, centres, 1.0, gap)
        width = float(centres[-1] - centres[0]) / np.sqrt(len(values))
        return cls(centres, counts / len(values), max(width, gap / 6), gap)

    def log_density(self, x: FloatArray) -> FloatArray:
        """Return the log probability of the interval around each number, shape (n,)."""
        # By symmetry in the lower tail, where the difference of two tails keeps its digits.
        far = -np.abs(x[:, None] - self.centres) / self.deviation
        half = 0.5 * self.gap / self.deviation
        p = (ndtr(far + half) - ndtr(far - half)) @ self.share
        found: FloatArray = np.log(np.maximum(p, 1e-75))
        return found


class FilledOneHot(TransformerMixin, BaseEstimator):
    """One-hot encoding of nominal columns, and imputation by the mean or most frequent value.

    Parameters
    ----------
    n_values : tuple of int, length d
        For each column 0 if it is numeric, else the number of values of a nominal column, whose
        cells are codes 0 to that number - 1.

    Notes
    -----
    Means and most frequent values (of several the first) are those of the table given to ``fit``;
    a column that is empty there is filled with 0. Two values make one column.
    """

    def __init__(self, n_values: tuple[int, ...]) -> None:
        self.n_values = n_values

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Find each column's fill value in X, shape (n, d); ``y`` is ignored."""
        table: Any = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan")
        self.fill_ = np.zeros(table.shape[1])
        for j, (column, size) in enumerate(zip(table.T, self.n_values, strict=True)):
            present = column[~np.isnan(column)]
            if len(present):
                counts = np.bincount(present.astype(np.intp)) if size else None
                self.fill_[j] = present.mean() if counts is None else counts.argmax()
        return self

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return X, shape (n, d), imputed and encoded."""
        check_is_fitted(self, "fill_")
        table: Any = validate_data(
            self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False
        )
        filled = np.where(np.isnan(table), self.fill_, table)
        parts: list[FloatArray] = []
        for column, size in zip(filled.T, self.n_values, strict=True):
            # Only the second of two values, or a number unchanged.
            wide = column[:, None]
            parts.append(wide if size in (0, 2) else (wide == np.arange(size)).astype(np.float64))
        return np.column_stack(parts)

    def __sklearn_tags__(self) -> Any:
        """Tell scikit-learn that missing cells are allowed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
