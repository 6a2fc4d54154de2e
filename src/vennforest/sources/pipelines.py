"""What stands before the last step of a pipeline: whether it resamples, or has seen the labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags

from vennforest._validation import CodeArray, FloatArray
from vennforest.forest import kind_of

ROWS_CHECKED = 5_000
"""Rows on which transformers are fitted once with and once without labels."""

CLOSE = 1e-6
"""Relative difference of features that is rounding."""


def last_step(estimator: Any) -> Any:
    """Return the classifier at the end of a pipeline, however deep, or the estimator itself."""
    while isinstance(estimator, Pipeline) and estimator.steps:
        estimator = estimator.steps[-1][1]
    return estimator


def is_bagged(estimator: Any) -> bool:
    """Tell whether examples will be out of bag for some members of the estimator's ensemble."""
    ensemble = last_step(estimator)
    kind = kind_of(ensemble)
    return kind is not None and kind.bagged(ensemble)


def feature_importances(estimator: Any) -> FloatArray:
    """Return a fitted estimator's importance of each of its columns, shape (d,).

    Where a step before the last tells which column each of its outputs comes from (``sources_``,
    as `vennforest.tables.TableEncoder` does) those of the outputs are summed.

    Raises
    ------
    AttributeError
        If it has none, or none of the columns that it is given.
    """
    last = last_step(estimator)
    found = getattr(last, "feature_importances_", None)
    if found is None:
        raise AttributeError(
            f"{type(last).__name__} has no feature_importances_: "
            "sklearn.inspection.permutation_importance works with every classifier"
        )
    importances: FloatArray = np.asarray(found, dtype=np.float64)
    before = transformers_of(estimator)
    if not before:
        return importances
    sources, names = (getattr(before[-1], name, None) for name in ("sources_", "feature_names_in_"))
    own = getattr(estimator, "feature_names_in_", None)
    if sources is None or own is None or names is None or list(names) != list(own):
        raise AttributeError(
            "the importances of a pipeline's last step are of the features that its steps make: "
            "see estimator_[-1].feature_importances_, or use "
            "sklearn.inspection.permutation_importance"
        )
    column = {name: j for j, name in enumerate(own.tolist())}
    summed: FloatArray = np.zeros(len(own))
    np.add.at(summed, [column[name] for name in sources], importances)
    return summed


def taken_apart(model: Any) -> tuple[Pipeline | None, Any]:
    """Return a fitted model's transformers as one pipeline, None without any, and its last step."""
    steps: list[Any] = []
    while isinstance(model, Pipeline):
        steps += model.steps[:-1]
        model = model.steps[-1][1]
    named = [(f"{i}-{name}", step) for i, (name, step) in enumerate(steps)]
    return Pipeline(named) if named else None, model


def transformers_of(estimator: Any) -> list[Any]:
    """Return the steps before the last, those of nested pipelines at the end included."""
    steps: list[Any] = []
    while isinstance(estimator, Pipeline) and estimator.steps:
        steps += [step for _, step in estimator.steps[:-1]]
        estimator = estimator.steps[-1][1]
    return [step for step in steps if step not in (None, "passthrough")]


def obstacle(estimator: Any) -> str | None:
    """Return why what stands before an ensemble rules out-of-bag scores out, None where nothing.

    This sees what steps declare; `sees_labels` finds out what they do.
    """
    if isinstance(estimator, Pipeline):
        steps = transformers_of(estimator)
        for step in _nested(steps):
            name = type(step).__name__
            if hasattr(step, "fit_resample"):
                return f"{name} changes which rows there are"
            if isinstance(step, BaseEstimator) and _requires_labels(step):
                return f"{name} learns from the labels of all examples"
        if not _plain(estimator):
            return f"{type(estimator).__name__} fits its steps in a way of its own"
    return None


def _plain(pipeline: Any) -> bool:
    """Tell whether a pipeline is fitted step by step as scikit-learn's is."""
    own = type(pipeline)
    return own.__module__.split(".")[0] in ("sklearn", "imblearn") or (
        own.fit is Pipeline.fit and own._fit is Pipeline._fit
    )


def _requires_labels(step: Any) -> bool:
    try:
        return bool(get_tags(step).target_tags.required)
    except Exception:  # tags of other packages may fail; what the step does is looked at as well
        return False


def _nested(steps: Any) -> Iterator[Any]:
    """Yield estimators and those among their parameters."""
    for step in steps:
        yield step
        if hasattr(step, "get_params"):
            for value in step.get_params(deep=True).values():
                if hasattr(value, "fit") and not isinstance(value, type):
                    yield value


def sees_labels(
    transformers: Any, X: Any, codes: CodeArray, y: Any, params: Mapping[str, Any]
) -> str | None:
    """Return how labels reach the features that transformers make, None where they do not.

    The transformers are fitted to at most 5,000 rows twice, once with the labels and once without
    them: features that are the same cannot tell of any label. The price is two fits of the
    transformers to that many rows. What a transformer was told of the labels before ``fit``, it
    cannot find.

    Parameters
    ----------
    transformers : Pipeline
        Not fitted; its seeds are set.
    X, y
        As given to ``fit``.
    codes : ndarray of shape (n,)
        Class numbers.
    params : mapping
        What else the transformers' ``fit`` is given.
    """
    n = len(codes)
    with_rows = {
        name: value for name, value in params.items() if getattr(value, "shape", ())[:1] == (n,)
    }
    if n > ROWS_CHECKED:
        rows = np.sort(np.random.default_rng(0).permutation(n)[:ROWS_CHECKED])
        X, y = _safe_indexing(X, rows), _safe_indexing(y, rows)
        params = {
            name: value[rows] if name in with_rows else value for name, value in params.items()
        }
    first = clone(transformers)
    made = first.fit_transform(X, y, **params)
    if _rows(made) != _rows(X):
        return "the steps before the ensemble change which rows there are"
    second = clone(transformers)
    try:
        without = second.fit_transform(X, None, **params)
    except Exception:  # whatever a transformer does that wants labels
        return "the steps before the ensemble cannot be fitted without labels"
    if not _alike(made, without) or not _alike(first.transform(X), second.transform(X)):
        return "the steps before the ensemble make other features with labels than without them"
    return None


def _rows(table: Any) -> int:
    shape = getattr(table, "shape", None)
    return int(shape[0]) if shape else len(table)


def _alike(a: Any, b: Any) -> bool:
    """Tell whether two tables of any kind hold the same."""
    if type(a) is not type(b) or getattr(a, "shape", None) != getattr(b, "shape", None):
        return False
    if issparse(a):
        left: Any = csr_array(a)  # type: ignore[call-overload]
        right: Any = csr_array(b)
        difference = abs(left - right)
        largest = float(abs(left).max()) if left.nnz else 0.0
        return not difference.nnz or float(difference.max()) <= CLOSE * largest
    if hasattr(a, "columns") and list(a.columns) != list(b.columns):
        return False
    one, two = np.asarray(a), np.asarray(b)
    if one.dtype.kind in "fiub" and two.dtype.kind in "fiub":
        return bool(np.allclose(one, two, rtol=CLOSE, atol=0, equal_nan=True))
    same = (one == two) | ((one != one) & (two != two))
    return bool(np.all(same))
