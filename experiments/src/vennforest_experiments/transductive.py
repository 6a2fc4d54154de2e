"""Transductive Venn prediction: one training for every new object and tentative label."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Tags, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import ThreadpoolController

from vennforest.calibrators.bounded import normalised_bounds
from vennforest.multiprobability import Multiprobability
from vennforest.sources import model_scores, with_seed

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]


class TransductiveClassifier(ClassifierMixin, BaseEstimator):
    """Classifier that is trained again with each new object under every label.

    For each new object x and each label v a clone of the estimator is trained on the training set
    plus (x, v), and all n + 1 examples are scored by that model. All data train and all data
    calibrate, and bounds are valid without any part set aside (Vovk & Petej 2014, Theorem 1).

    Parameters
    ----------
    estimator : classifier, default=None
        It must treat its training examples alike, whatever their order. None: logistic regression
        on standardised features.
    method : {"venn-abers", "venn"}, default="venn-abers"
        ``"venn-abers"``: Algorithm 1 of Vovk & Petej (2014). ``"venn"``: shares of the labels among
        the examples with the predicted label of x.
    n_jobs : int, default=None
        Number of objects that are predicted in parallel.
    random_state : int, RandomState instance or None, default=None
        Sets every ``random_state`` of the estimator that is None, once for all trainings.

    Notes
    -----
    *Venn–Abers, two classes.* The isotonic fit to all n + 1 scores and labels, read at x, is p_v;
    bounds of the second class are the smaller and the larger of p_0 and p_1.

    *More classes.* The model trained with (x, v) gives for each class j the isotonic fit of the
    indicator of j to score column j. Bounds of j are the smallest and largest over v, widened by
    `normalised_bounds` to be right after normalisation, too.

    Equal rows have equal scores (that of the first): matrix products can differ in the last bit by
    a row's position, and isotonic regression would keep such rows apart.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.arange(12.0)[:, None], np.array([0, 0, 0, 1, 0, 0, 1, 1, 0, 1, 1, 1])
    >>> model = TransductiveClassifier().fit(X, y)
    >>> m = model.predict_multiprobability([[0.5], [9.5]])
    >>> m.p0.round(3), m.p1.round(3)
    (array([0. , 0.6]), array([0.333, 1.   ]))
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: Literal["venn-abers", "venn"] = "venn-abers",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Store the training set X (n, d) and y (n,)."""
        if self.method not in ("venn-abers", "venn"):
            raise ValueError(f'method must be "venn-abers" or "venn", got {self.method!r}')
        X, y = validate_data(self, X, y, ensure_all_finite=False)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y must contain at least two classes, got one class: {self.classes_[0]!r}"
            )
        self.template_ = with_seed(self._estimator, check_random_state(self.random_state))
        self.estimator_ = clone(self.template_).fit(X, y)
        self.X_, self.codes_ = X, codes
        return self

    @property
    def _estimator(self) -> Any:
        if self.estimator is not None:
            return self.estimator
        return make_pipeline(StandardScaler(), LogisticRegression())

    def __sklearn_tags__(self) -> Tags:
        """Take what the estimator takes."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = get_tags(self._estimator).input_tags.allow_nan
        return tags

    def predict_multiprobability(self, X: ArrayLike) -> Multiprobability:
        """Return bounds (m, k) of new objects (m, d), each predicted by itself."""
        check_is_fitted(self)
        rows = np.asarray(validate_data(self, X, reset=False, ensure_all_finite=False))
        values = Parallel(n_jobs=self.n_jobs)(
            delayed(label_values)(
                self.template_,
                np.vstack([self.X_, row]),
                self.codes_,
                self.classes_,
                self.method == "venn",
            )
            for row in rows
        )
        stacked = np.array(values)
        lower, upper = stacked.min(axis=1), stacked.max(axis=1)
        if self.method == "venn-abers" and len(self.classes_) > 2:
            lower, upper = normalised_bounds(lower, upper)
        return Multiprobability(lower, upper, self.classes_)

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return probabilities (m, k): bounds merged, for log loss or (Venn) at their middle."""
        bounds = self.predict_multiprobability(X)
        return bounds.merge("midpoint" if self.method == "venn" else "log")

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the most probable label of each object, shape (m,)."""
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels


def label_values(
    template: Any, X: FloatArray, codes: IntArray, classes: NDArray[Any], venn: bool
) -> FloatArray:
    """Return (k, k): for each tentative label of the last row of X, a probability of each class."""
    k = len(classes)
    first_equal = _first_of_equal_rows(X)
    weight = np.ones(len(X))
    values = np.empty((k, k))
    for v in range(k):
        labels = np.append(codes, v)
        with _thread_pools().limit(limits=1):
            model = clone(template).fit(X, classes[labels])
            scores = model_scores(model, X, classes)[first_equal]
        if venn:
            boundary = 0.5 if hasattr(model, "predict_proba") else 0.0
            predicted = scores > boundary if k == 2 else scores.argmax(axis=1)
            mates = predicted == predicted[-1]
            values[v] = np.bincount(labels[mates], minlength=k) / mates.sum()
        elif k == 2:
            p = isotonic_value(scores, labels == 1, weight, -1)
            values[v] = 1 - p, p
        else:
            for j in range(k):
                values[v, j] = isotonic_value(scores[:, j], labels == j, weight, -1)
    return values


def _first_of_equal_rows(X: FloatArray) -> IntArray:
    """Return for each row the number of the first row with the same values, shape (n,)."""
    rows = [row.tobytes() for row in X + 0.0]  # -0.0 equals 0.0, and NaN equals NaN
    _, first, number = np.unique(rows, return_index=True, return_inverse=True)
    return first[number]


def isotonic_value(scores: FloatArray, positive: Any, weight: FloatArray, at: int) -> float:
    """Return the isotonic fit to labels (n,) at the score number ``at``, in [0, 1].

    Equal scores are one point: their labels are averaged first.
    """
    distinct, place = np.unique(scores, return_inverse=True)
    weights = np.bincount(place, weights=weight, minlength=len(distinct))
    means = np.bincount(place, weights=weight * positive) / weights
    return float(isotonic_regression(means, weights=weights).x[place[at]])


@cache
def _thread_pools() -> ThreadpoolController:
    """Return what limits the threads of BLAS and OpenMP, on whose number last bits depend."""
    return ThreadpoolController()
