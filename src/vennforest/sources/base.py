"""What every source shares: a fitted model, its calibration scores, and scores of new objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.utils import _safe_indexing

from vennforest._validation import CodeArray, FloatArray, IntArray


class Draw(NamedTuple):
    """Scores of new objects, once or several times each.

    ``scores`` has shape (draws * m,) or (draws * m, k), all objects of one draw side by side;
    ``left_out`` of shape (draws * m,) says which calibration example each score leaves out, None
    that none does.
    """

    scores: FloatArray
    left_out: IntArray | None
    draws: int


class Scorer(Protocol):
    """Gives scores of the kind the calibrator was fitted to."""

    def draws(self, X: Any) -> Iterator[Draw]:
        """Yield the scores of the rows of X; every draw counts the same."""
        ...


@dataclass(frozen=True)
class Part:
    """A fitted model and the calibration set that goes with it.

    Attributes
    ----------
    estimator : classifier
        Fitted.
    scores : ndarray of shape (n,) or (n, k)
        Calibration scores: of the second of two classes, or a column a class.
    codes : ndarray of shape (n,)
        Index of each calibration example's class.
    weight : ndarray of shape (n,) or None
        Their weights; None where all are 1.
    scorer : Scorer
        Scores new objects.
    """

    estimator: Any
    scores: FloatArray
    codes: CodeArray
    weight: FloatArray | None
    scorer: Scorer


@dataclass(frozen=True)
class TrainingData:
    """What ``fit`` was given, checked.

    Attributes
    ----------
    X : array-like of shape (n, d)
        As it came.
    y : ndarray of shape (n,)
        Labels as they came: the model learns them, not their codes.
    codes : ndarray of shape (n,)
        Index of each label in ``classes``.
    classes : ndarray of shape (k,)
        The labels, sorted.
    weight : ndarray of shape (n,) or None
        Weights; None where all are 1.
    fit_params : mapping
        What else the model's ``fit`` is given; entries of length n go with the rows.
    weight_param : str or None
        The name under which the model's ``fit`` takes weights; None: it does not.
    """

    X: Any
    y: NDArray[Any]
    codes: CodeArray
    classes: NDArray[Any]
    weight: FloatArray | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    weight_param: str | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def rows(self, index: IntArray) -> TrainingData:
        """Return the chosen rows."""
        params = {
            name: _safe_indexing(value, index) if _has_rows(value, len(self)) else value
            for name, value in self.fit_params.items()
        }
        weight = None if self.weight is None else self.weight[index]
        if weight is not None and (weight == 1).all():
            weight = None
        return TrainingData(
            _safe_indexing(self.X, index),
            self.y[index],
            self.codes[index],
            self.classes,
            weight,
            params,
            self.weight_param,
        )

    def present(self) -> TrainingData:
        """Return the rows that count: a weight of zero is the example's absence."""
        if self.weight is None or (self.weight > 0).all():
            return self
        return self.rows(np.flatnonzero(self.weight > 0))

    def fit(self, estimator: Any) -> Any:
        """Fit a clone of the estimator and return it."""
        model = clone(estimator)
        model.fit(self.X, self.y, **self.all_fit_params())
        return model

    def all_fit_params(self) -> dict[str, Any]:
        """Return the keyword arguments of the model's ``fit``, weights included."""
        params = dict(self.fit_params)
        if self.weight is not None and self.weight_param is not None:
            params[self.weight_param] = self.weight
        return params


def _has_rows(value: Any, n: int) -> bool:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) > 0 and shape[0] == n
    return isinstance(value, list | tuple) and len(value) == n


@dataclass(frozen=True)
class ModelScorer:
    """Scores new objects with the whole fitted model."""

    model: Any
    classes: NDArray[Any]

    def draws(self, X: Any) -> Iterator[Draw]:
        """Yield one draw that leaves nobody out."""
        yield Draw(model_scores(self.model, X, self.classes), None, 1)


def model_scores(model: Any, X: Any, classes: NDArray[Any]) -> FloatArray:
    """Return a fitted classifier's scores of the rows of X.

    Parameters
    ----------
    model : classifier
        With ``predict_proba`` or ``decision_function``.
    X : array-like of shape (n, d)
    classes : ndarray of shape (k,)
        All labels, sorted; the model may know fewer.

    Returns
    -------
    ndarray of shape (n,) or (n, k)
        Of the second class, or a column a class. A class the model does not know has probability
        0, or a decision value equal to the smallest of its row.

    Raises
    ------
    TypeError
        If the model has neither method.
    ValueError
        If its decision values are of pairs of classes.
    """
    known = np.asarray(model.classes_) if hasattr(model, "classes_") else classes
    if hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(X), dtype=np.float64)
        missing = np.zeros(len(scores))
    elif hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])[:, -len(known) :]
        elif getattr(model, "decision_function_shape", "ovr") == "ovo" and len(known) > 2:
            raise ValueError(
                "estimator must have one decision value a class, got one for each pair: "
                'use decision_function_shape="ovr"'
            )
        missing = scores.min(axis=1)
    else:
        raise TypeError(
            f"estimator must have predict_proba or decision_function, got {type(model).__name__}"
        )
    if not np.array_equal(known, classes):
        column = {label: j for j, label in enumerate(known.tolist())}
        scores = np.column_stack(
            [scores[:, column[c]] if c in column else missing for c in classes.tolist()]
        )
    return np.ascontiguousarray(scores[:, 1] if len(classes) == 2 else scores)


def with_seed(estimator: Any, random_state: np.random.RandomState) -> Any:
    """Return a clone whose unset ``random_state`` parameters, nested ones too, are drawn.

    The user's own are kept.
    """
    model = clone(estimator)
    if not isinstance(model, BaseEstimator):
        return model
    unset = [
        name
        for name, value in sorted(model.get_params(deep=True).items())
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
    return model.set_params(**{name: int(random_state.randint(2**31 - 1)) for name in unset})
