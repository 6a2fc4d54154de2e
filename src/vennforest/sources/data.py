"""What sources are given and what they return: training data and folds."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Literal

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import (
    _check_method_params,
    _num_samples,
)

from vennforest._messages import shown
from vennforest._validation import (
    CodeArray,
    FloatArray,
    InputError,
    IntArray,
    check_array,
    check_labels,
    check_number,
    check_option,
    encode_groups,
    is_frame,
    require,
)
from vennforest.forest import Members, Membership
from vennforest.scores import ScoreKind, check_scores, round_scores
from vennforest.sources.row_hashes import draw_examples, hash_rows

ScoresAndExamples = tuple[FloatArray, IntArray | None]
"""Scores (m,) or (m, k) of new objects, and which example (m,) each leaves out, None: none."""

SINGLE_PRECISIONS = ("float16", "float32", "float[pyarrow]", "halffloat[pyarrow]")
"""Types of numbers, in arrays and data frames, with which sums are not exact to 40 bits."""

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
        """Variance of the calibration scores s around those by the whole model, over s (1 - s)."""
        return None

    def score(self, X: Any) -> FloatArray:
        """Return the scores of the rows of X by the whole model, (m,) or (m, k)."""
        classes = self.model.classes_ if self.classes is None else self.classes
        return model_scores(self.model, X, np.asarray(classes))

    def draw(self, X: Any) -> ScoresAndExamples:
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

    ``membership`` tells which examples are out of bag for which member; ``seed`` draws examples for
    new objects. ``variance`` is that between the members' scores s of a row, over s (1 - s).
    """

    members: Members
    membership: Membership
    subforest: Subforest
    seed: int
    variance: float

    @property
    def noise(self) -> FloatArray:
        """Variance of the calibration scores s around those by all members, over s (1 - s)."""
        of_score = 1 / self.membership.counts()
        return self.variance * np.maximum(of_score - 1 / len(self.membership), 0)

    def score(self, X: Any) -> FloatArray:
        """Return the scores of the rows of X by all members, (m,) or (m, k)."""
        return self.members.mean(self._member_rows(X))

    def draw(self, X: Any) -> ScoresAndExamples:
        """Return scores for the bounds, and the calibration example that each leaves out."""
        if self.subforest == "all":
            return self.score(X), None
        # The members that did not see an example, drawn by a hash of the row, score the row.
        rows = self._member_rows(X)
        left_out = draw_examples(hash_rows(self.members.table(rows)), self.seed, len(self.codes))
        return self.members.mean(rows, self.membership, left_out), left_out

    def _member_rows(self, X: Any) -> Any:
        """Return the rows of X as the members take them."""
        model = self.model
        model = model.estimator if isinstance(model, FrozenEstimator) else model
        return self.members.check(transform_rows(model, X))

    def _check_state(self) -> None:
        super()._check_state()
        require(isinstance(self.members, Members), "members must be Members")
        require(isinstance(self.membership, Membership), "membership must be Membership")
        shape = (len(self.membership), self.membership.n)
        is_complete = shape == (self.members.n_trees, len(self.codes))
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
        labels: NDArray[Any] = self.classes[self.codes]
        return labels

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
        model.fit(self.X, self.y, **self.all_fit_params())
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


def model_scores(model: Any, X: Any, classes: NDArray[Any]) -> FloatArray:
    """Return the probabilities or decision values of the rows of X by a fitted classifier.

    They are (n,) of the second of two classes, else (n, k), a column for each of ``classes``. A
    class that the model does not know has probability 0, or the smallest decision value of the row.
    """
    model_classes = np.asarray(model.classes_) if hasattr(model, "classes_") else classes
    while type(model) is Pipeline:  # each step is given double precision
        for _, step in model.steps[:-1]:
            X = transformed(X, step)
        model = model[-1]
    X = in_double(X, model)
    if hasattr(model, "predict_proba"):
        scores = check_scores(model.predict_proba(X), "what predict_proba returns")
        missing = np.zeros(len(scores))
    elif hasattr(model, "decision_function"):
        scores = check_scores(model.decision_function(X), "what decision_function returns")
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])[:, -len(model_classes) :]
        elif getattr(model, "decision_function_shape", "ovr") == "ovo" and len(model_classes) > 2:
            raise ValueError(
                "estimator must have one decision value per class, got one for each pair: "
                'use decision_function_shape="ovr"'
            )
        missing = scores.min(axis=1)
    else:
        raise TypeError(
            f"estimator must have predict_proba or decision_function, got {type(model).__name__}"
        )
    shape = (_num_samples(X), len(model_classes))
    if scores.shape != shape:
        raise InputError(
            f"estimator must give scores of shape {shape}, a column for each of classes_, "
            f"got {scores.shape}"
        )
    if not np.array_equal(model_classes, classes):
        column = {label: j for j, label in enumerate(model_classes.tolist())}
        if not set(column) <= set(classes.tolist()):
            raise InputError(
                "estimator must keep the labels of y in classes_, got others: "
                f"{shown(model_classes.tolist())} for {shown(classes.tolist())}"
            )
        scores = np.column_stack(
            [scores[:, column[c]] if c in column else missing for c in classes.tolist()]
        )
    return round_scores(np.ascontiguousarray(scores[:, 1] if len(classes) == 2 else scores))


def as_read(X: Any, model: Any) -> Any:
    """Return rows as the model reads the columns of a table, whatever the format of its file."""
    model = getattr(model, "first_model", model)  # of a blend
    is_of_table = type(model) is Pipeline and hasattr(model[0], "as_types")
    return model[0].transform(X) if is_of_table else X


def in_double(X: Any, step: Any) -> Any:
    """Return rows in double precision for a step of scikit-learn, for others as they are.

    In single precision the last digits of a sum depend on how many rows there are, which would
    break ties between new rows and calibration examples; those of double precision are rounded off.
    """
    kinds = X.dtypes if is_frame(X) else [getattr(X, "dtype", "")]
    singles = [str(kind).lower() in SINGLE_PRECISIONS for kind in kinds]
    if not any(singles) or not all(map(_is_of_sklearn, nested_estimators(step))):
        return X
    if not is_frame(X):
        return X.astype(np.float64)
    names = list(compress(X.columns, singles))
    if hasattr(X, "with_columns"):  # of polars
        return X.with_columns(X[name].cast(float) for name in names)
    return X.astype(dict.fromkeys(names, np.float64))


def _is_of_sklearn(estimator: Any) -> bool:
    """Tell whether an estimator, or a class that it extends, is one of scikit-learn's."""
    modules = [cls.__module__.split(".") for cls in type(estimator).__mro__]
    return any(m[0] == "sklearn" and m[1] not in ("base", "utils") for m in modules)


def transformed(X: Any, step: Any) -> Any:
    """Return what a step of a pipeline makes of rows."""
    return X if step in (None, "passthrough") else step.transform(in_double(X, step))


def trained_names(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted to, None where they had none."""
    if (names := getattr(model, "feature_names_in_", None)) is not None:
        return list(map(str, names))
    names = getattr(model, "feature_names_", None)  # of CatBoost: of an array "0", "1", ...
    return None if names is None or names == list(map(str, range(len(names)))) else list(names)


def own_model(estimator: Any) -> Any:
    """Return a frozen model as a copy, so that fitting the original again changes no answer."""
    if isinstance(estimator, FrozenEstimator):
        with suppress(Exception):  # a model that cannot be copied is used as it is
            # Its deepcopy is that of the model within, and the copy of a CatBoost is not frozen.
            copied = copy.copy(estimator)
            copied.estimator = copy.deepcopy(estimator.estimator)
            return copied
    return estimator


def with_seed(estimator: Any, random_state: np.random.RandomState) -> Any:
    """Return a clone whose unset ``random_state`` parameters, nested ones too, are drawn."""
    try:
        model = clone(estimator)
    except RuntimeError as error:
        raise InputError(
            "estimator must keep its parameters as they are given, because each fold trains a "
            f"copy, got {error}: CatBoost keeps tuples, and no lists or arrays"
        ) from error
    if isinstance(model, FrozenEstimator) or not isinstance(model, BaseEstimator):
        return model
    unset = [
        name
        for name, value in sorted(model.get_params(deep=True).items())
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
    return model.set_params(**{name: int(random_state.randint(2**31 - 1)) for name in unset})


def with_types(estimator: Any, X: Any) -> Any:
    """Return a pipeline that reads a table's columns as all of its rows show them.

    Otherwise each fold would infer from its own rows what a column contains. Pipelines whose first
    step has no ``as_types``, as `TableColumns` has, are returned as they are.
    """
    if not isinstance(estimator, Pipeline) or not hasattr(estimator.steps[0][1], "as_types"):
        return estimator
    name, columns = estimator.steps[0]
    return clone(estimator).set_params(**{f"{name}__types": clone(columns).fit(X).as_types()})


# --- the steps of pipelines ----------------------------------------------------------------------


def split_pipeline(model: Any) -> tuple[list[Any], Any]:
    """Return the transformers of a model, those of nested pipelines included, and its last step."""
    steps: list[Any] = []
    while isinstance(model, Pipeline) and model.steps:
        steps += [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
        model = model.steps[-1][1]
    return steps, model


def transform_rows(model: Any, X: Any) -> Any:
    """Return the rows of X as the last step of a fitted model sees them."""
    # Pipeline.transform refuses a pipeline that ends in a transformer without fitted attributes.
    for step in split_pipeline(model)[0]:
        X = step.transform(X)
    return X


def share_steps(models: Sequence[Any]) -> None:
    """Let pipelines share their first transformers, as far as those are in the same state."""
    is_plain = all(type(model) is Pipeline for model in models)
    for i, steps in enumerate(
        zip(*(m.steps[:-1] for m in models), strict=False) if is_plain else ()
    ):
        if len({joblib.hash(step) for step in steps}) > 1:
            return
        for model in models:
            model.steps[i] = steps[0]


def skip_shared_steps(folds: list[Fold], X: Any) -> tuple[list[Fold], Any]:
    """Return folds without the first transformers that all models share, and what these return."""
    models, n = [fold.model for fold in folds], 0
    if len(models) > 1 and all(type(model) is Pipeline for model in models):
        for (_, step), *pairs in zip(*(m.steps[:-1] for m in models), strict=False):
            if any(model_step is not step for _, model_step in pairs):
                break
            X, n = transformed(X, step), n + 1
    return [replace(fold, model=fold.model[n:]) for fold in folds] if n else folds, X


def nested_estimators(estimator: Any) -> list[Any]:
    """Return an estimator and every estimator among its parameters, at any depth."""
    if not hasattr(estimator, "get_params"):
        return []
    values = [estimator, *estimator.get_params(deep=True).values()]
    return [v for v in values if hasattr(v, "get_params") and not isinstance(v, type)]
