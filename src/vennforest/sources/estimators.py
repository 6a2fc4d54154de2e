"""Users' estimators: their scores, their copies, and the steps of their pipelines."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from contextlib import suppress
from itertools import compress
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples

from vennforest._messages import shown
from vennforest._validation import FloatArray, InputError, is_arrow, is_frame, refuse_equal_names
from vennforest.scores import check_scores, round_scores

SINGLE_PRECISIONS = ("float16", "float32", "float[pyarrow]", "halffloat[pyarrow]")
"""Types of numbers, in arrays and data frames, with which sums are not exact to 40 bits."""


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
    X = unshared_rows(model, in_double(X, model))
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
            f"estimator must have predict_proba or decision_function, got {type(model).__name__}: "
            "a BaggingClassifier of such classifiers scores by the share of their votes"
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


def names_of_columns(X: Any) -> list[str] | None:
    """Return the names of the columns of a table of any library, None of an array."""
    names = X.column_names if is_arrow(X) else X.columns if is_frame(X) else None
    if names is not None:
        names = list(map(str, names))
        refuse_equal_names(names)
    return names


def refuse_other_columns(X: Any, trained: list[str] | None) -> None:
    """Raise an error if a table lacks the columns of training, in their order.

    Many models match columns by position and ignore their names. Some versions of LightGBM write
    an underscore for a space.
    """
    names = names_of_columns(X)
    if names is None or trained is None:
        return
    if [s.replace(" ", "_") for s in names] != [s.replace(" ", "_") for s in trained]:
        raise InputError(
            f"X must have the columns of training in their order, {shown(trained)}, got "
            f"{shown(names)}"
        )


def names_to_compare(estimators: Iterable[Any], X: Any) -> list[str] | None:
    """Return the names that columns of new tables must have; None if estimators read by name.

    ``X`` are the rows given to ``fit``, whose columns must be those of estimators fitted before.
    """
    names = names_of_columns(X)
    by_position = [estimator for estimator in estimators if not reads_by_name(estimator)]
    for estimator in by_position:
        if isinstance(estimator, FrozenEstimator):
            trained = trained_names(without_frozen(estimator))
            refuse_other_columns(X, trained)
            names = names or trained
    return names if by_position else None


def reads_by_name(estimator: Any) -> bool:
    """Return whether an estimator takes the columns of a table by their names."""
    first = without_frozen(estimator)
    first = first[0] if isinstance(first, Pipeline) else first
    return isinstance(first, ColumnTransformer) or hasattr(first, "as_types")


def without_frozen(estimator: Any) -> Any:
    """Return the estimator in a `FrozenEstimator`, or the estimator itself."""
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator


def first_model(model: Any) -> Any:
    """Return the first model of a blend, or the model itself."""
    return getattr(model, "first_model", model)


def as_read(X: Any, model: Any) -> Any:
    """Return rows as the model reads the columns of a table, whatever the format of its file."""
    model = first_model(model)
    is_of_table = type(model) is Pipeline and hasattr(model[0], "as_types")
    return model[0].transform(X) if is_of_table else X


def in_double(X: Any, step: Any) -> Any:
    """Return rows in double precision for a step of scikit-learn, for others as they are.

    In single precision the last digits of a sum depend on how many rows there are, which would
    break ties between new rows and calibration examples; those of double precision are rounded off.
    """
    if getattr(X, "dtype", None) == np.float64:
        return X
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


def transformed(X: Any, step: Any, double: bool = True) -> Any:
    """Return the rows X as a fitted transformer, a step of a pipeline, returns them."""
    if step in (None, "passthrough"):
        return X
    return step.transform(unshared_rows(step, in_double(X, step) if double else X))


def unshared_rows(model: Any, X: Any) -> Any:
    """Return rows for a model that may change them: a copy where it transforms or has parts.

    As with ``StandardScaler(copy=False)`` or a function of the user's; other models read X too.
    """
    is_plain = len(nested_estimators(model)) == 1 and not hasattr(model, "transform")
    return X if is_plain or not hasattr(X, "copy") else X.copy()


def trained_names(model: Any) -> list[str] | None:
    """Return the names of the columns that a model was fitted to, None where they had none."""
    for attribute, prefix in (("feature_names_in_", "Column_"), ("feature_names_", "")):
        names = getattr(model, attribute, None)
        if names is not None:
            names = list(map(str, names))
            # Those that LightGBM and CatBoost give to the columns of an array.
            return None if names == [f"{prefix}{i}" for i in range(len(names))] else names
    return None


def with_seed(estimator: Any, random_state: np.random.RandomState) -> Any:
    """Return a clone whose unset ``random_state`` parameters, nested ones too, are drawn.

    Of a frozen model a copy, so that fitting the original again changes no answer.
    """
    if isinstance(estimator, FrozenEstimator):
        with suppress(Exception):  # a model that cannot be copied is used as it is
            # Its deepcopy is that of the model within, and the copy of a CatBoost is not frozen.
            copied = copy.copy(estimator)
            copied.estimator = copy.deepcopy(estimator.estimator)
            return copied
        return estimator
    try:
        model = clone(estimator)
    except RuntimeError as error:
        raise InputError(
            "estimator must keep its parameters as they are given, because each fold trains a "
            f"copy, got {error}: CatBoost keeps tuples, and no lists or arrays"
        ) from error
    if not isinstance(model, BaseEstimator):
        return model
    unset = [
        name
        for name, value in sorted(model.get_params(deep=True).items())
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
    return model.set_params(**{name: int(random_state.randint(2**31 - 1)) for name in unset})


def with_types(estimator: Any, X: Any, may_drop: bool = True) -> Any:
    """Return a pipeline that reads a table's columns as all of its rows show them.

    Otherwise each fold would infer from its own rows what a column contains. Pipelines whose first
    step has no ``as_types``, as `TableColumns` has, are returned as they are. So are others where a
    column is empty, unless the pipeline ``may_drop`` it from the columns of the model.
    """
    if not isinstance(estimator, Pipeline) or not hasattr(estimator.steps[0][1], "as_types"):
        return estimator
    name, columns = estimator.steps[0]
    types = clone(columns).fit(X).as_types()
    if not may_drop and "drop" in types.values():
        return estimator
    types = (columns.types or {}) | types  # columns declared to be left out are not in the latter
    return clone(estimator).set_params(**{f"{name}__types": types})


def split_pipeline(model: Any) -> tuple[list[Any], Any]:
    """Return the transformers of a model, frozen or not, and its last step.

    Those of nested pipelines are included.
    """
    steps, model = list[Any](), without_frozen(model)
    while isinstance(model, Pipeline) and model.steps:
        steps += [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
        model = without_frozen(model.steps[-1][1])
    return steps, model


def transform_rows(model: Any, X: Any) -> Any:
    """Return the rows of X as the last step of a fitted model sees them."""
    # Pipeline.transform refuses a pipeline that ends in a transformer without fitted attributes.
    for step in split_pipeline(model)[0]:
        X = transformed(X, step, double=False)
    return X


def share_steps(models: Iterable[Any]) -> None:
    """Let pipelines share those of their transformers that are in the same state."""
    equal: dict[str, Any] = {}
    for model in models:
        for i, (name, step) in enumerate(model.steps[:-1] if type(model) is Pipeline else []):
            with suppress(Exception):  # a transformer that cannot be compared
                model.steps[i] = name, equal.setdefault(joblib.hash(step), step)


def nested_estimators(estimator: Any) -> list[Any]:
    """Return an estimator and every estimator among its parameters, at any depth."""
    if not hasattr(estimator, "get_params"):
        return []
    values = [estimator, *estimator.get_params(deep=True).values()]
    return [v for v in values if hasattr(v, "get_params") and not isinstance(v, type)]
