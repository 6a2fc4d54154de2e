"""Steps before a model that learn from labels and do not declare it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from vennforest.auditing.columns import MAX_AUDITED_ROWS
from vennforest.auditing.finding import Finding
from vennforest.forest import leaves_rows_out
from vennforest.sources.estimators import nested_estimators, split_pipeline, transform_rows

DECLARING_PACKAGES = {"sklearn", "imblearn", "skrub", "vennforest"}
"""Packages whose steps declare in their tags whether they learn from labels."""


def find_steps_that_see_labels(estimator: Pipeline, X: Any, y: NDArray[Any]) -> Iterator[Finding]:
    """Yield a finding if steps before a forest learn from labels and do not declare it."""
    steps, last = split_pipeline(estimator)
    packages = {
        type(part).__module__.split(".")[0] for step in steps for part in nested_estimators(step)
    }
    if packages <= DECLARING_PACKAGES or not leaves_rows_out(last):
        return
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MAX_AUDITED_ROWS])
    reason = sees_labels(estimator[:-1], _safe_indexing(X, rows), y[rows])
    if reason:
        names = ", ".join(type(step).__name__ for step in steps)
        message = (
            f"{reason} ({names}), which their tags do not say: scores out of bag have seen their "
            'own labels. Set target_tags.required in __sklearn_tags__, or use calibrate_on="cv"'
        )
        yield Finding("steps that see labels", "error", message)


def sees_labels(transformers: Pipeline, X: Any, y: NDArray[Any]) -> str | None:
    """Return how the features of transformers depend on labels, None if they do not."""
    with_labels, unlabelled = clone(transformers), clone(transformers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            features = _features(with_labels, X, y)
        except Exception:  # they cannot be fitted to so few rows
            return None
        if _num_samples(features[0]) != _num_samples(X):
            return "the steps before the ensemble change which rows there are"
        try:
            blind_features = _features(unlabelled, X, None)
        except Exception:
            return "the steps before the ensemble cannot be fitted without labels"
    if not all(map(_equal, features, blind_features)):
        return "the steps before the ensemble make other features with labels than without them"
    return None


def _features(transformers: Pipeline, X: Any, y: NDArray[Any] | None) -> tuple[Any, Any]:
    """Return the features of rows by ``fit_transform``, and those of the same as new rows."""
    of_training = transformers.fit_transform(X, y)
    return of_training, transform_rows(Pipeline([*transformers.steps, ("model", None)]), X)


def _equal(table: Any, blind_table: Any) -> bool:
    """Return whether two tables are equal, numbers up to a relative difference of 1e-6."""
    if type(table) is not type(blind_table) or np.shape(table) != np.shape(blind_table):
        return False
    is_sparse: bool = issparse(table)
    a, b = (np.asarray(t.toarray() if is_sparse else t) for t in (table, blind_table))
    if a.dtype.kind in "fiub" and b.dtype.kind in "fiub":
        return bool(np.allclose(a, b, rtol=1e-6, atol=0, equal_nan=True))
    return bool(np.all((a == b) | ((a != a) & (b != b))))
