"""Probabilities that follow a drifting stream, at hardly any cost where it does not drift."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.utils import Tags, get_tags

from vennforest._state import stored
from vennforest._validation import FloatArray, InputError, array, check_scores, number, require
from vennforest.monitoring import stream_kernels
from vennforest.monitoring.stream import label_codes

JUMPS = np.array([1e-3, 1e-2])
"""Share of the weights on experts that is spread again before each example."""

WAIT = 1000.0
"""Half of what may follow experts does so after so many examples."""

SHARPNESS = (0.25, 0.5, 0.75, 1.0, 1.5)
SHIFTS = (0.25, 0.5, 1.0, 2.0)

LEAST = 1e-6
"""What a probability counts as at least, for whoever learns; the model's own stay as they are."""

MOST = 2**62


@stored("expert-weights")
@attrs.frozen(eq=False)
class ExpertWeights:
    """How much each expert counts, which ``update`` changes in place; all weights sum to 1.

    First of the model as it is, for ever, and until it follows experts at each rate; then of the
    experts at each rate.
    """

    waiting: FloatArray = attrs.field(validator=array(len(JUMPS) + 1, low=0, high=1))
    following: FloatArray = attrs.field(validator=array(len(JUMPS), None, low=0, high=1))
    n_seen: int = attrs.field(validator=number(0, MOST, integer=True))

    def __attrs_post_init__(self) -> None:
        """Refuse weights that do not sum to 1."""
        total = self.waiting.sum() + self.following.sum()
        require(abs(total - 1) < 1e-6, "weights must sum to 1")

    @classmethod
    def at_first(cls, k: int) -> Self:
        """Return the weights before any example of k classes."""
        n = len(JUMPS)
        waiting = np.concatenate([[0.5], np.full(n, 0.5 / n)])
        return cls(waiting, np.zeros((n, len(experts(k)[0]))), 0)


@stored("protected")
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

    _weights: ExpertWeights | None = None

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def classes_(self) -> NDArray[Any]:
        """The model's labels, sorted, of shape (k,)."""
        return np.asarray(self.model.classes_)

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        n: int = self.model.n_features_in_
        return n

    @property
    def n_seen_(self) -> int:
        """Number of examples learnt from."""
        return 0 if self._weights is None else self._weights.n_seen

    @property
    def model_weight_(self) -> float:
        """How much the model as it is counts now, in [0, 1]; 1 before the first update."""
        if self._weights is None:
            return 1.0
        sharpness, shifts = experts(len(self.classes_))
        same = (sharpness == 1) & (shifts == 0).all(axis=1)
        return float(self._weights.waiting.sum() + self._weights.following[:, same].sum())

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether the model is fitted."""
        return hasattr(self.model, "classes_")

    def fit(self, X: Any = None, y: Any = None) -> ProtectedClassifier:
        """Forget every update; the model is not fitted again. X and y are ignored."""
        self._check_model()
        self._weights = None
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
        if self._weights is None:
            return p
        return _mixed(p, np.full(len(p), -1), self._weights, learn=False)

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
        weights = self._weights or ExpertWeights.at_first(p.shape[1])
        given = _mixed(p, np.where(known, codes, -1), weights, learn=True)
        self._weights = attrs.evolve(weights, n_seen=weights.n_seen + int(known.sum()))
        return given

    def _check_model(self) -> None:
        if not hasattr(self.model, "predict_proba") or not hasattr(self.model, "classes_"):
            raise InputError(
                "model must be a fitted classifier with predict_proba, "
                f"got {type(self.model).__name__}"
            )

    def _own(self, X: Any) -> FloatArray:
        self._check_model()
        return check_scores(self.model.predict_proba(X), "what predict_proba returns")

    def to_state(self) -> Mapping[str, Any]:
        """Return what a file contains: the model, and what was learnt."""
        return {"model": self.model, "weights": self._weights}

    @classmethod
    def from_state(cls, model: Any, weights: ExpertWeights | None) -> Self:
        """Return the protected model, and refuse weights of other classes."""
        made = cls(model)
        made._check_model()
        if weights is not None:
            n = len(experts(len(made.classes_))[0])
            sound = isinstance(weights, ExpertWeights) and weights.following.shape[1] == n
            require(sound, f"weights must be of {n} experts")
        made._weights = weights
        return made

    def __sklearn_tags__(self) -> Tags:
        """Take what the model takes."""
        tags = super().__sklearn_tags__()
        own = get_tags(self.model)
        tags.input_tags = own.input_tags
        return tags


def _mixed(
    p: FloatArray, codes: NDArray[Any], weights: ExpertWeights, *, learn: bool
) -> FloatArray:
    """Return the mean of the experts' probabilities, (n, k); the weights learn from codes."""
    out = np.empty(p.shape)
    with np.errstate(divide="ignore"):
        logs = np.ascontiguousarray(np.log(np.maximum(p, LEAST)))
    sharpness, shifts = experts(p.shape[1])
    stream_kernels.protect(
        logs,
        codes.astype(np.int64),
        weights.n_seen,
        sharpness,
        shifts,
        JUMPS,
        WAIT,
        weights.waiting,
        weights.following,
        learn,
        out,
    )
    return out


def experts(k: int) -> tuple[FloatArray, FloatArray]:
    """Return by how much each expert multiplies log-probabilities, and shifts those of k classes.

    Shapes (n_experts,) and (n_experts, k).
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
