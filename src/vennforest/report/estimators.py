"""The classifiers that ``--estimator`` names."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import HistGradientBoostingClassifier

from vennforest._messages import needed, not_one_of
from vennforest._validation import check_labels, is_frame, require
from vennforest.linear import LinearClassifier
from vennforest.tables import table_pipeline

DEFAULT_ESTIMATOR = "mixed-forest"

MIN_ROWS_FOR_THREADS = 50_000
"""Rows from which on small boosting predicts by several threads: one takes a tenth of a second."""

BLENDED = (DEFAULT_ESTIMATOR, "small-boosting", "logistic")
"""The estimators that ``blend`` stands for."""


class NumberedLabels(ClassifierMixin, BaseEstimator):
    """Fit a classifier that takes classes numbered from 0 only, such as XGBoost's, to any labels.

    ``classes_`` are the sorted labels, and ``estimator_`` is the clone of ``estimator`` that was
    fitted to their indices.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NumberedLabels:
        """Fit the classifier to the index of each label."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, codes, **weights)
        self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def _check_state(self) -> None:
        check_labels(self.classes_, "classes")
        require(hasattr(self.estimator_, "fit"), "estimator must be a classifier")

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each class, of shape (n, k)."""
        return np.asarray(self.estimator_.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


class SmallBoostingClassifier(HistGradientBoostingClassifier):
    """Histogram boosting with few small trees, which takes columns that are all missing.

    As one of several models of a blend it is better than the default of scikit-learn, in a third of
    the time. In a fold's rows a column may be all missing, on which scikit-learn fails: it counts
    as constant.
    """

    def __init__(self, *, random_state: int | None = None) -> None:
        size = {"max_iter": 90, "max_leaf_nodes": 7, "min_samples_leaf": 8}
        shrinkage = {"learning_rate": 0.06, "l2_regularization": 1.0, "early_stopping": False}
        super().__init__(**size, **shrinkage, random_state=random_state)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SmallBoostingClassifier:
        """Fit the trees to X (n, d), labels y (n,) and weights (n,)."""
        if is_frame(X):
            empty = [name for name in X.columns if pd.isna(X[name]).all()]
            X = X.assign(**dict.fromkeys(empty, 0.0)) if empty else X
        else:
            X = np.where(np.isnan(X).all(axis=0), 0.0, X)
        super().fit(X, y, sample_weight)
        return self

    def _raw_predict(self, X: Any, n_threads: int | None = None) -> NDArray[Any]:
        """Return raw scores, of few rows by one thread: all wait for each other after each tree."""
        is_small = X.shape[0] < MIN_ROWS_FOR_THREADS
        return np.asarray(super()._raw_predict(X, 1 if is_small else n_threads))

    def _check_state(self) -> None:
        check_labels(self.classes_)


class NamedEstimator(NamedTuple):
    """Title, module and class of a classifier, and whether it is made of ``n_estimators`` trees."""

    title: str
    module: str
    name: str
    has_trees: bool = True


ESTIMATORS = {
    DEFAULT_ESTIMATOR: NamedEstimator("forest", "vennforest", "MixedForestClassifier"),
    "random-forest": NamedEstimator("random forest", "sklearn.ensemble", "RandomForestClassifier"),
    "extra-trees": NamedEstimator(
        "extra-trees ensemble", "sklearn.ensemble", "ExtraTreesClassifier"
    ),
    "hist-gradient-boosting": NamedEstimator(
        "histogram gradient boosting", "sklearn.ensemble", "HistGradientBoostingClassifier", False
    ),
    "small-boosting": NamedEstimator(
        "small histogram boosting", "vennforest.report.estimators", "SmallBoostingClassifier", False
    ),
    "logistic": NamedEstimator(
        "logistic regression", "vennforest.linear", "LinearClassifier", False
    ),
    "lightgbm": NamedEstimator("LightGBM model", "lightgbm", "LGBMClassifier"),
    "xgboost": NamedEstimator("XGBoost model", "xgboost", "XGBClassifier"),
    "catboost": NamedEstimator("CatBoost model", "catboost", "CatBoostClassifier"),
}
"""Names accepted by ``--estimator``."""


def named_estimator(name: str | None) -> NamedEstimator:
    """Return the estimator with a name, by default the default forest."""
    if name is not None and name not in ESTIMATORS:
        raise not_one_of("estimator", ESTIMATORS, name)
    return ESTIMATORS[name or DEFAULT_ESTIMATOR]


def table_estimator(
    name: str | None, n_trees: int, seed: int, n_jobs: int | None, **columns: Any
) -> Any:
    """Return an unfitted pipeline for tables by name, or those of the blend as a list.

    ``columns`` are the types and marks of missing cells of `TableColumns`.
    """
    if name != "blend" and name not in (None, *ESTIMATORS):
        raise not_one_of("estimator", [*ESTIMATORS, "blend"], name)
    pipelines = [
        (
            member or DEFAULT_ESTIMATOR,
            table_pipeline(make_estimator(member, n_trees, seed, n_jobs), seed, **columns),
        )
        for member in (BLENDED if name == "blend" else [name])
    ]
    return pipelines if name == "blend" else pipelines[0][1]


def make_estimator(name: str | None, n_trees: int, seed: int, n_jobs: int | None) -> Any:
    """Return an unfitted classifier by name."""
    _, module, class_name, has_trees = named_estimator(name)
    if name == "logistic":
        return LinearClassifier()
    kind = getattr(needed(module, f"classifiers named {name!r}"), class_name)
    options: dict[str, Any] = {"random_state": seed}
    if has_trees:
        options |= {"n_estimators": n_trees, "n_jobs": n_jobs}
    if name == "lightgbm":
        options["verbose"] = -1
    if name == "catboost":
        options["thread_count"] = -1 if options.pop("n_jobs") is None else n_jobs
        options |= {"verbose": False, "allow_writing_files": False}
    estimator = kind(**options)
    return NumberedLabels(estimator) if name == "xgboost" else estimator
