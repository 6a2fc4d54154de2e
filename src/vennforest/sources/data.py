"""What sources are given and what they return: training data and folds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _check_method_params

from vennforest._validation import (
    CodeArray,
    FloatArray,
    IntArray,
    check_array,
    check_labels,
    check_number,
    check_option,
    encode_groups,
    require,
)
from vennforest.forest import Members, Membership
from vennforest.scores import ScoreKind
from vennforest.sources.estimators import (
    in_double,
    model_scores,
    transform_rows,
    transformed,
    unshared_rows,
)
from vennforest.sources.row_hashes import draw_examples, hash_rows

ScoresAndExamples = tuple[FloatArray, IntArray | None]
"""Scores (m,) or (m, k) of new objects, and which example (m,) each leaves out, None: none."""

Subforest = Literal["exchangeable", "all"]
"""Which trees score a new object for its bounds."""


@dataclass(frozen=True, eq=False)
class Fold:
    """A fitted model and the examples that calibrate it.

    Parameters
    ----------
    model : classifier
        Fitted.
    scores : ndarray of shape (n,) or (n, k)
        Calibration scores: of the second of two classes, or a column per class.
    codes : ndarray of shape (n,)
        Index of each calibration example's class.
    weight : ndarray of shape (n,) or None
        Weights, above zero; None where all are 1.
    rows : ndarray of shape (n,) or None
        Which rows given to ``fit`` the calibration examples are; None: unknown.
    classes : ndarray of shape (k,) or None
        All labels, sorted, where the model may lack some; None: those of the model.
    """

    model: Any
    scores: FloatArray
    codes: CodeArray
    weight: FloatArray | None = None
    rows: IntArray | None = None
    classes: NDArray[Any] | None = None

    @property
    def kind(self) -> ScoreKind:
        """What the scores are: probabilities, or decision values of each class by itself."""
        return "probability" if hasattr(self.model, "predict_proba") else "score"

    @property
    def noise(self) -> FloatArray | None:
        """Variance of calibration scores s around the whole model's, over s (1 - s), or None."""
        return None

    def score(self, X: Any) -> FloatArray:
        """Return the scores of the rows of X by the whole model, (m,) or (m, k)."""
        classes = self.model.classes_ if self.classes is None else self.classes
        return model_scores(self.model, X, np.asarray(classes))

    def score_for_bounds(self, X: Any) -> ScoresAndExamples:
        """Return scores for the bounds, and the calibration example that each leaves out."""
        return self.score(X), None

    def _check_state(self) -> None:
        n = len(self.codes)
        has_scores = any(hasattr(self.model, f) for f in ("predict_proba", "decision_function"))
        require(has_scores, "model must have predict_proba or decision_function")
        require(n > 0, "codes must be of one example or more")
        check_array(self.codes, "codes", (n,), "iu", 0)
        check_array(self.scores, "scores", (n, None)[: np.ndim(self.scores)])
        if self.weight is not None:
            check_array(self.weight, "weight", (n,), low=0)
            require((self.weight > 0).all(), "weight must be above zero")
        if self.rows is not None:
            check_array(self.rows, "rows", (n,), "i", 0)
        if self.classes is not None:
            check_labels(self.classes, "classes")

    def check_classes(self, k: int) -> None:
        """Raise a ValueError unless scores and codes are of k classes and one example or more."""
        self._check_state()
        require(self.codes.max() < k, f"codes must be below {k}")
        n_columns = 1 if self.scores.ndim == 1 else self.scores.shape[1]
        require(n_columns in ((1, 2) if k == 2 else (k,)), f"scores must be of {k} classes")


@dataclass(frozen=True, eq=False, kw_only=True)
class OutOfBagFold(Fold):
    """A fitted ensemble, maybe behind transformers, with out-of-bag calibration scores.

    ``members.ensemble`` is the last step of ``model``: it scores rows by all its members, or by
    those that did not see an example. ``membership`` tells which examples are out of bag for which
    member; ``seed`` draws examples for new objects. ``variance`` is that between the members'
    scores s of a row, over s (1 - s).
    """

    members: Members
    membership: Membership
    subforest: Subforest
    seed: int
    variance: float

    @property
    def noise(self) -> FloatArray:
        """Variance (n,) of the calibration scores s around those by all members, over s (1 - s)."""
        of_score = 1 / self.membership.counts()
        return self.variance * np.maximum(of_score - 1 / len(self.membership), 0)

    def score(self, X: Any) -> FloatArray:
        """Return the scores of the rows of X by all members, (m,) or (m, k)."""
        return self.members.mean(self.members.check(transform_rows(self.model, X)))

    def score_for_bounds(self, X: Any) -> ScoresAndExamples:
        """Return scores for the bounds, and the calibration example that each leaves out."""
        if self.subforest == "all":
            return self.score(X), None
        # The members that did not see an example, drawn by a hash of the row, score the row.
        rows = self.members.check(transform_rows(self.model, X))
        # Equal numbers have equal hashes: those of forests are float32, others float64.
        is_widened = self.members.packed is None and rows.dtype == np.float32
        hashes = hash_rows(rows.astype(np.float64) if is_widened else rows)
        left_out = draw_examples(hashes, self.seed, len(self.codes))
        return self.members.mean(rows, self.membership, left_out), left_out

    def _check_state(self) -> None:
        super()._check_state()
        require(isinstance(self.members, Members), "members must be Members")
        require(isinstance(self.membership, Membership), "membership must be Membership")
        shape = (len(self.membership), self.membership.n)
        is_complete = shape == (len(self.members.ensemble.estimators_), len(self.codes))
        require(is_complete, "membership must be of every tree and example")
        is_scored = self.membership.counts().min() > 0
        require(is_scored, "membership must leave a tree to every example")
        check_option(self.subforest, Subforest, "subforest")
        check_number(self.seed, "seed", 0, 2**32, integer=True)
        check_number(self.variance, "variance", 0)


@dataclass(frozen=True, eq=False)
class CalibrationExamples:
    """The calibration examples of several folds, one after another: see `Fold`."""

    scores: FloatArray
    codes: IntArray
    weight: FloatArray | None
    rows: IntArray | None

    @classmethod
    def of(cls, folds: Sequence[Fold | CalibrationExamples]) -> CalibrationExamples:
        """Return the examples of some folds."""
        weight = None
        if any(fold.weight is not None for fold in folds):
            weights = [np.ones(len(f.codes)) if f.weight is None else f.weight for f in folds]
            weight = np.concatenate(weights)
        rows = [fold.rows for fold in folds if fold.rows is not None]
        return cls(
            folds[0].scores if len(folds) == 1 else np.concatenate([fold.scores for fold in folds]),
            np.concatenate([fold.codes for fold in folds]).astype(np.intp),
            weight,
            np.concatenate(rows) if len(rows) == len(folds) else None,
        )

    def select(self, index: NDArray[Any]) -> CalibrationExamples:
        """Return some of the examples."""
        weight = None if self.weight is None else self.weight[index]
        rows = None if self.rows is None else self.rows[index]
        return CalibrationExamples(self.scores[index], self.codes[index], weight, rows)

    def class_shares(self, k: int) -> FloatArray:
        """Return the share of each of k classes, by weight."""
        totals = np.bincount(self.codes, self.weight, k)
        return np.asarray(totals / totals.sum())


@dataclass(frozen=True, eq=False)
class TrainingData:
    """The checked arguments of ``fit``.

    Attributes
    ----------
    X : array-like of shape (n, d)
        Rows as the estimator takes them.
    codes : ndarray of shape (n,)
        Index of each label in ``classes``.
    classes : ndarray of shape (k,)
        The labels, sorted.
    weight : ndarray of shape (n,) or None
        Weights; None where all are 1.
    fit_params : mapping
        Further arguments of the model's ``fit``; values of length n go with the rows.
    weight_param : str or None
        The name under which the model's ``fit`` takes weights; None: it does not.
    split_params : mapping
        Arguments of a splitter besides X and y, such as ``groups``; of all rows.
    row_numbers : ndarray of shape (n,) or None
        Which of the rows given to ``fit`` these are; None: all of them, in their order.
    """

    X: Any
    codes: CodeArray
    classes: NDArray[Any]
    weight: FloatArray | None = None
    fit_params: Mapping[str, Any] = field(default_factory=dict)
    weight_param: str | None = None
    split_params: Mapping[str, Any] = field(default_factory=dict)
    row_numbers: IntArray | None = None

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def y(self) -> NDArray[Any]:
        """The labels (n,), which models learn."""
        return self.classes[self.codes]

    @property
    def groups(self) -> IntArray | None:
        """Each row's group, numbered from 0; None where no groups were given."""
        return encode_groups(self.split_params.get("groups"), self.codes)

    def rows(self, index: IntArray) -> TrainingData:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[index]
        if weight is not None and (weight == 1).all():
            weight = None
        return replace(
            self,
            X=_safe_indexing(self.X, index),
            codes=self.codes[index],
            weight=weight,
            fit_params=_check_method_params(self.X, self.fit_params, index),
            split_params=_check_method_params(self.X, self.split_params, index),
            row_numbers=self.all_row_numbers()[index],
        )

    def with_positive_weight(self) -> TrainingData:
        """Return the rows without those of weight zero, which count as absent."""
        if self.weight is None or (self.weight > 0).all():
            return self
        return self.rows(np.flatnonzero(self.weight > 0))

    def fit(self, estimator: Any) -> Any:
        """Fit a clone of the estimator and return it."""
        model = clone(estimator)
        model.fit(unshared_rows(model, self.X), self.y, **self.all_fit_params())
        return model

    def all_fit_params(self) -> dict[str, Any]:
        """Return the keyword arguments of the model's ``fit``, weights included."""
        params = dict(self.fit_params)
        if self.weight is not None and self.weight_param is not None:
            params[self.weight_param] = self.weight
        return params

    def fold(self, model: Any, scores: FloatArray | None = None) -> Fold:
        """Return a fold: a fitted model that these rows calibrate, by default at its own scores."""
        if scores is None:
            scores = model_scores(model, self.X, self.classes)
        return Fold(model, scores, self.codes, self.weight, self.all_row_numbers(), self.classes)

    def all_row_numbers(self) -> IntArray:
        """Return which of the rows given to ``fit`` these are, (n,)."""
        return np.arange(len(self)) if self.row_numbers is None else self.row_numbers


def skip_shared_steps(folds: Sequence[Fold], X: Any) -> list[tuple[Fold, Any]]:
    """Return folds without the first transformers that others share, and the rows these return.

    A transformer that is one object in several models, after the same others in each, runs once.
    """
    steps = [
        [step for _, step in fold.model.steps[:-1]] if type(fold.model) is Pipeline else []
        for fold in folds
    ]
    n_uses = Counter(tuple(map(id, of[:n])) for of in steps for n in range(1, len(of) + 1))
    tables: dict[tuple[Any, ...], Any] = {}
    pairs = []
    for fold, of_model in zip(folds, steps, strict=True):
        rows, n, key = X, 0, tuple[Any, ...]()
        for step in of_model:
            if n_uses[tuple(map(id, of_model[: n + 1]))] < 2:
                break
            # Ensembles out of bag are trained on single precision where it is given.
            is_single = isinstance(fold, OutOfBagFold) and in_double(rows, step) is not rows
            key += (id(step), is_single)
            if key not in tables:
                tables[key] = transformed(rows, step, not is_single)
            rows, n = tables[key], n + 1
        pairs.append((replace(fold, model=fold.model[n:]) if n else fold, rows))
    return pairs


def score_by_folds(folds: Sequence[Fold], X: Any) -> list[FloatArray]:
    """Return the scores of the rows of X by the model of each fold, (m,) or (m, k)."""
    return [
        fold.score(rows)
        if type(fold) is not Fold or fold.classes is None
        else model_scores(fold.model, rows, fold.classes)
        for fold, rows in skip_shared_steps(folds, X)
    ]
