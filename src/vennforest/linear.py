"""Logistic regression that takes columns as they come, as one affine map of a row."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils import Tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from vennforest._jit import kernel
from vennforest._validation import (
    FloatArray,
    IntArray,
    check_array,
    check_labels,
    check_rows,
    check_weights,
    require,
)

C_VALUES = (0.01, 0.2, 5.0)
"""The values of `LogisticRegression.C`, inverse penalties in units of rows, that are tried."""

N_FOLDS, MAX_ROWS_TO_CHOOSE = 3, 1_000
"""Parts and number of the rows by which the penalty is chosen: with more it matters less."""

TOLERANCE, MAX_ITERATIONS = 1e-4, 200
"""Where the solver ends."""

SMALLEST_LABEL_PROBABILITY = 1e-6
"""Of a label, where the penalty is chosen."""

SMALLEST_DEVIATION = 1e-14
"""Standard deviation, as a part of the largest value, up to which a column is constant."""

MAX_DISTANCE = 1e100
"""Distance from the mean, as a part of the largest value of training, at which cells are cut."""

PARAMETERS = ("scale_", "center_", "coef_", "missing_coef_", "intercept_")

SPARSE_CELLS_PER_BLOCK = 1 << 18
"""Cells of sparse rows that are made dense together."""


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """Logistic regression on standardised columns, with a penalty chosen by cross-validation.

    A missing cell counts as the median of its column, which has an indicator of missing cells too
    if there are any in training. The ridge penalty is the one with the least log loss in three
    folds of at most 1,000 rows. Sparse columns are scaled and not centred.

    Attributes
    ----------
    C_ : float
        Inverse of the penalty, as in `sklearn.linear_model.LogisticRegression`.
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    scale_, center_ : ndarray of shape (d,)
        Column j enters as ``z_j = x_j / scale_j - center_j``.
    coef_, missing_coef_ : ndarray of shape (d, c)
        Factor of z_j, and what a missing cell adds instead: to the log-odds of the second of two
        classes (c = 1), else to the logit of each class (c = k).
    intercept_ : ndarray of shape (c,)
        Constant of the log-odds or logits.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LinearClassifier().fit(X[:400], y[:400])
    >>> model.predict_proba(X[406:408]).round(2)
    array([[0.19, 0.81],
           [0.02, 0.98]])
    """

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model to X (n, d), labels y (n,) and weights (n,)."""
        X, y = validate_data(
            self,
            X,
            y,
            dtype=np.float64,
            accept_sparse="csr",
            ensure_all_finite=True if issparse(X) else "allow-nan",
        )
        check_classification_targets(y)
        weight = check_weights(sample_weight, X.shape[0], warns=False)
        if weight is not None and not weight.all():
            X, y, weight = X[weight > 0], np.asarray(y)[weight > 0], weight[weight > 0]
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must contain at least two classes, got one class: {self.classes_.tolist()}"
            )
        d = X.shape[1]
        columns = _sparse_columns(X, weight) if issparse(X) else _dense_columns(X, weight)
        solver = _fit_penalty(columns.z, codes, weight)
        coef = solver.coef_.T / columns.deviation[:, None]
        self.C_, self.scale_, self.center_ = float(solver.C), columns.scale, columns.center
        self.coef_ = np.ascontiguousarray(coef[:d])
        self.missing_coef_ = columns.median[:, None] * self.coef_
        self.missing_coef_[columns.with_missing] += coef[d:]
        self.intercept_ = solver.intercept_ - columns.missing_share @ coef[d:]
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of each class for the rows of X, (m, k)."""
        scores = self.scores(X)
        return scores if scores.ndim == 2 else np.column_stack([1 - scores, scores])

    def scores(self, X: Any) -> FloatArray:
        """Return the probabilities of the second of two classes, (m,), or of all, (m, k)."""
        logits = self.decision_function(X)
        return np.asarray(expit(logits)) if logits.ndim == 1 else softmax_of_rows(logits)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the log-odds of the second of two classes, (m,), or all logits, (m, k)."""
        if "intercept_" not in vars(self):  # scikit-learn's check takes longer than all the rest
            check_is_fitted(self)
        rows: Any = check_rows(self, X, np.float64, allow_nan=True)
        n, d = rows.shape
        logits = np.empty((n, len(self.intercept_)))
        logits[:] = self.intercept_
        is_sparse: bool = issparse(rows)
        block = max(1, SPARSE_CELLS_PER_BLOCK // d) if is_sparse else n
        for start in range(0, n, block):
            dense = rows[start : start + block].toarray() if is_sparse else rows
            add_affine(
                np.require(dense, requirements=["C", "W"]),
                self.scale_,
                self.center_,
                self.coef_,
                self.missing_coef_,
                logits[start : start + block],
            )
        return logits[:, 0] if logits.shape[1] == 1 else logits

    def attributions(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Return the part of each cell in the logits, (m, d, c), and the logits of a mean row."""
        rows: Any = check_rows(self, X, np.float64, allow_nan=True)
        is_sparse: bool = issparse(rows)
        dense = rows.toarray() if is_sparse else rows
        z = np.clip(dense / self.scale_ - self.center_, -MAX_DISTANCE, MAX_DISTANCE)[:, :, None]
        return np.where(np.isnan(z), self.missing_coef_, z * self.coef_), self.intercept_

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row of X, (m,)."""
        best = self.predict_proba(X).argmax(axis=1)  # refuses before fit
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Tags:
        """Return the tags: sparse rows and missing cells are taken."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    def _check_state(self) -> None:
        check_labels(self.classes_)
        d, k = self.n_features_in_, len(self.classes_)
        c = 1 if k == 2 else k
        check_array(self.scale_, "scale_", (d,), low=0)
        require((self.scale_ > 0).all(), "scale_ must be above zero")
        check_array(self.center_, "center_", (d,))
        for name in ("coef_", "missing_coef_"):
            check_array(getattr(self, name), name, (d, c))
        check_array(self.intercept_, "intercept_", (c,))


def softmax_of_rows(z: FloatArray) -> FloatArray:
    """Return ``exp(z_j) / sum_l exp(z_l)`` along the last axis, which has a finite entry."""
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


@kernel
def add_affine(X, scale, center, coef, missing_coef, logits):  # type: ignore[no-untyped-def]
    """Add the part of each column to the logits (m, c) of rows X (m, d): see `LinearClassifier`.

    Every row is summed in the same order, whatever the other rows are.
    """
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            x = X[i, j]
            if np.isnan(x):
                for k in range(coef.shape[1]):
                    logits[i, k] += missing_coef[j, k]
                continue
            z = x / scale[j] - center[j]
            z = min(max(z, -MAX_DISTANCE), MAX_DISTANCE)
            for k in range(coef.shape[1]):
                logits[i, k] += z * coef[j, k]


def mean_model(models: Sequence[LinearClassifier]) -> LinearClassifier:
    """Return the model whose logits are the means of those of models with the same classes.

    Its columns are in units of the model with the smallest ``scale_``, so that nothing overflows.
    """
    scale, center, coef, missing_coef, intercept = (
        np.stack([getattr(model, name) for model in models]) for name in PARAMETERS
    )
    smallest = scale.argmin(axis=0)[None]
    mean = copy.copy(models[0])
    mean.scale_ = np.take_along_axis(scale, smallest, axis=0)[0]
    mean.center_ = np.take_along_axis(center, smallest, axis=0)[0]
    ratio = mean.scale_ / scale
    moved = (coef.T * (ratio * mean.center_ - center).T).T  # of each model's center, (M, d, c)
    mean.coef_ = (coef.T * ratio.T).T.mean(axis=0)
    mean.missing_coef_ = (missing_coef - moved).mean(axis=0)
    mean.intercept_ = (intercept + moved.sum(axis=1)).mean(axis=0)
    return mean


class _Columns(NamedTuple):
    """Standardised columns z (n, d + m) of rows, m of them indicators of missing cells.

    ``scale``, ``center`` and ``median`` (d,): a column is x / scale - center before it is divided
    by its ``deviation`` (d + m,), and the median is that of these. ``with_missing`` (m,) are the
    indices of columns with missing cells, and ``missing_share`` (m,) the shares of these.
    """

    z: Any
    scale: FloatArray
    center: FloatArray
    median: FloatArray
    deviation: FloatArray
    with_missing: IntArray
    missing_share: FloatArray


def _dense_columns(X: FloatArray, weight: FloatArray | None) -> _Columns:
    """Return the standardised columns of dense rows X (n, d) with weights (n,)."""
    is_missing = np.isnan(X)
    with_missing = np.flatnonzero(is_missing.any(axis=0))
    scale = np.abs(np.where(is_missing, 0.0, X)).max(axis=0)
    scale[scale == 0] = 1.0
    z = X / scale
    median = np.zeros(len(scale))
    for j in with_missing:
        present = z[~is_missing[:, j], j]
        median[j] = np.median(present) if len(present) else 0.0
        z[is_missing[:, j], j] = median[j]
    z = np.column_stack([z, is_missing[:, with_missing]])
    mean = np.average(z, axis=0, weights=weight)
    z -= mean
    deviation = np.sqrt(np.average(z**2, axis=0, weights=weight))
    is_constant = deviation <= SMALLEST_DEVIATION
    z[:, is_constant], deviation[is_constant] = 0.0, 1.0
    d = len(scale)
    z /= deviation
    return _Columns(z, scale, mean[:d], median - mean[:d], deviation, with_missing, mean[d:])


def _sparse_columns(X: Any, weight: FloatArray | None) -> _Columns:
    """Return the scaled columns of sparse rows X (n, d) with weights (n,), which stay sparse."""
    scale = abs(X).max(axis=0).toarray().ravel()
    scale[scale == 0] = 1.0
    z = X.multiply(1 / scale).tocsr()
    share = np.full(X.shape[0], 1 / X.shape[0]) if weight is None else weight / weight.sum()
    deviation = np.sqrt(np.maximum(z.multiply(z).T @ share - (z.T @ share) ** 2, 0))
    deviation[deviation <= SMALLEST_DEVIATION] = 1.0
    zeros = np.zeros(len(scale))
    z = z.multiply(1 / deviation).tocsr()
    return _Columns(z, scale, zeros, zeros, deviation, np.empty(0, np.intp), np.empty(0))


def _fit_penalty(z: Any, codes: IntArray, weight: FloatArray | None) -> LogisticRegression:
    """Return the regression of class indices on z whose penalty cross-validation chooses."""
    n_classes, losses = codes.max() + 1, np.zeros(len(C_VALUES))
    rows = np.random.default_rng(0).permutation(len(codes))[:MAX_ROWS_TO_CHOOSE]
    for part in range(N_FOLDS):
        train, test = rows[np.arange(len(rows)) % N_FOLDS != part], rows[part::N_FOLDS]
        if len(np.unique(codes[train])) < 2 or not len(test):
            continue
        for i, solver in enumerate(_path(z, codes, weight, train)):
            p = np.zeros((len(test), n_classes))
            p[:, solver.classes_] = solver.predict_proba(z[test])
            of_label = np.maximum(p[np.arange(len(test)), codes[test]], SMALLEST_LABEL_PROBABILITY)
            losses[i] -= np.log(of_label) @ (np.ones(len(test)) if weight is None else weight[test])
    best = int(losses.argmin())
    *_, solver = _path(z, codes, weight, np.arange(len(codes)), best + 1)
    return solver


def _path(
    z: Any, codes: IntArray, weight: FloatArray | None, rows: IntArray, n: int | None = None
) -> Iterator[LogisticRegression]:
    """Yield one regression, refitted to the rows with the first n of the penalties in turn."""
    solver = LogisticRegression(warm_start=True, tol=TOLERANCE, max_iter=MAX_ITERATIONS)
    z, codes, weight = z[rows], codes[rows], None if weight is None else weight[rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the members' weights make up for it
        for C in C_VALUES[:n]:
            yield solver.set_params(C=C).fit(z, codes, sample_weight=weight)
