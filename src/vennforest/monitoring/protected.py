"""Probabilities that follow a drifting stream, at hardly any cost where it does not drift."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import Tags, get_tags

from vennforest._loaded import expect, expect_array, expect_number
from vennforest._validation import FloatArray, InputError, check_scores
from vennforest.monitoring import kernels
from vennforest.monitoring.stream import label_codes

JUMPS = np.array([1e-3, 1e-2])
"""Share of the weights on experts that is spread anew before each example."""

WAIT = 1000.0
"""Half of what may follow experts does so after so many examples."""

SHARPNESS = (0.25, 0.5, 0.75, 1.0, 1.5)
SHIFTS = (0.25, 0.5, 1.0, 2.0)

LEAST = 1e-6
"""What a probability counts as at least, for whoever learns; the model's own stay as they are."""

MOST = 2**62


class ProtectedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A fitted classifier whose probabilities are recalibrated as labels come in.

    Experts change the model's log-odds by a factor, and shift those of a class; the probability is
    the mean of all, weighted by how well each has predicted so far (Vovk, Petej & Gammerman 2021,
    with the log loss, for which the mixture is the best there is). Half of the weight is on the
    model as it is, for ever.

    So, whatever comes, the sum of log losses over all examples learnt from is at most that of the
    model plus ln 2 = .69: no assumption is needed. Where the data has changed it is little more
    than that of the expert best since then.

    Parameters
    ----------
    model : classifier
        Fitted, with ``predict_proba``; it is not changed.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The model's.
    n_seen_ : int
        Examples learnt from.
    model_weight_ : float
        In [0, 1]: how much the model as it is counts now; 1 before the first update.

    Raises
    ------
    InputError
        A ``ValueError``, from ``predict_proba`` and ``update``, if the model cannot be used.

    Notes
    -----
    Probabilities are floored at 1e-6 before they are recalibrated: a model that gave an observed
    label probability 0 has lost without bound, and is followed to a floor of 1e-6 instead. The
    statement on losses is of the model with that floor.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from vennforest.monitoring import ProtectedClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 2))
    >>> y = X[:, 0] + rng.logistic(size=4000) > 0
    >>> model = LogisticRegression().fit(X[:1000], y[:1000])
    >>> protected = ProtectedClassifier(model)
    >>> later = X[1000:, 0] + rng.logistic(size=3000) > 2       # the class has become rare
    >>> given = protected.update(X[1000:], later)
    >>> row = [[1.0, 0.0]]
    >>> model.predict_proba(row)[0, 1].round(1), protected.predict_proba(row)[0, 1].round(1)
    (np.float64(0.8), np.float64(0.3))
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        classes: NDArray[Any] = np.asarray(self.model.classes_)
        return classes

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        n: int = self.model.n_features_in_
        return n

    @property
    def n_seen_(self) -> int:
        """Number of examples learnt from."""
        return int(self.__dict__.get("_n_seen", 0))

    @property
    def model_weight_(self) -> float:
        """How much the model as it is counts now, in [0, 1]."""
        if "_state" not in self.__dict__:
            return 1.0
        sharpness, shifts = experts(len(self.classes_))
        same = (sharpness == 1) & (shifts == 0).all(axis=1)
        return float(self._state.sum() + self._weights[:, same].sum())

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether the model is fitted."""
        return hasattr(self.model, "classes_")

    def fit(self, X: Any = None, y: Any = None) -> ProtectedClassifier:
        """Forget every update; the model is not fitted again. X and y are ignored."""
        self._check_model()
        for name in ("_n_seen", "_state", "_weights"):
            self.__dict__.pop(name, None)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities, recalibrated by what was learnt so far.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the model takes them.

        Returns
        -------
        ndarray of shape (n, k)
            In [0, 1], rows sum to 1.

        Raises
        ------
        InputError
            If the model is not fitted or gives no probabilities.
        """
        p = self._own(X)
        if "_state" not in self.__dict__:
            return p
        return self._mix(p, np.full(len(p), -1), learn=False)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,), the first of equals."""
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels

    def update(self, X: Any, y: ArrayLike) -> FloatArray:
        """Learn from labelled rows, one after the other.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the model takes them, in the order in which their labels became known.
        y : array-like of shape (n,)
            Labels; a row whose label is missing (None, NaN) is predicted and not learnt from.

        Returns
        -------
        ndarray of shape (n, k)
            The probabilities of each row before its own label was learnt from.

        Raises
        ------
        ValueError
            If a label was never seen by the model, or the model refuses the rows. Nothing is
            learnt then.
        """
        p = self._own(X)
        codes, known = label_codes(y, self.classes_, len(p))
        if "_state" not in self.__dict__:
            n, k = len(JUMPS), len(experts(p.shape[1])[0])
            self._state = np.concatenate([[0.5], np.full(n, 0.5 / n)])
            self._weights = np.zeros((n, k))
            self._n_seen = 0
        given = self._mix(p, np.where(known, codes, -1), learn=True)
        self._n_seen += int(known.sum())
        return given

    def _mix(self, p: FloatArray, codes: NDArray[Any], *, learn: bool) -> FloatArray:
        out = np.empty(p.shape)
        with np.errstate(divide="ignore"):
            logs = np.ascontiguousarray(np.log(np.maximum(p, LEAST)))
        sharpness, shifts = experts(p.shape[1])
        kernels.protect(
            logs,
            codes.astype(np.int64),
            self.n_seen_,
            sharpness,
            shifts,
            JUMPS,
            WAIT,
            self._state,
            self._weights,
            learn,
            out,
        )
        return out

    def _check_model(self) -> None:
        if not hasattr(self.model, "predict_proba") or not hasattr(self.model, "classes_"):
            raise InputError(
                "model must be a fitted classifier with predict_proba, "
                f"got {type(self.model).__name__}"
            )

    def _own(self, X: Any) -> FloatArray:
        self._check_model()
        return check_scores(self.model.predict_proba(X), "what predict_proba returns")

    def check_loaded(self) -> None:
        """Refuse weights that are not those of the model's classes.

        Raises
        ------
        ValueError
            If they are not, or do not sum to 1.
        """
        self._check_model()
        if "_state" not in self.__dict__:
            return
        n, k = len(JUMPS), len(experts(len(self.classes_))[0])
        expect_array(self._state, "_state", (n + 1,), low=0, high=1)
        expect_array(self._weights, "_weights", (n, k), low=0, high=1)
        total = self._state.sum() + self._weights.sum()
        expect(abs(total - 1) < 1e-6, "weights must sum to 1")
        expect_number(self._n_seen, "_n_seen", 0, MOST, integer=True)

    def __sklearn_tags__(self) -> Tags:
        """Take what the model takes."""
        tags = super().__sklearn_tags__()
        own = get_tags(self.model)
        tags.input_tags = own.input_tags
        return tags


def experts(k: int) -> tuple[FloatArray, FloatArray]:
    """Return by how much each expert multiplies log-probabilities, and shifts those of k classes.

    Returns
    -------
    (ndarray of shape (n_experts,), ndarray of shape (n_experts, k))
    """
    found: list[tuple[float, tuple[float, ...]]] = []
    for sharpness in SHARPNESS:
        found.append((sharpness, (0.0,) * k))
        for c in range(1 if k == 2 else 0, k):
            if k > 2 and sharpness != 1:
                continue
            shifts = [sign * size for size in SHIFTS for sign in (1, -1)]
            found += [
                (sharpness, tuple(shift if j == c else 0.0 for j in range(k))) for shift in shifts
            ]
    return np.array([a for a, _ in found]), np.array([b for _, b in found])
