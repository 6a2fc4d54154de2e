"""The classifiers that ``--estimator`` names, and the code that makes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vennforest._files import one_line
from vennforest._messages import InputError, not_one_of

FOREST = "mixed-forest"


class NumberedLabels(ClassifierMixin, BaseEstimator):
    """Fit a classifier that takes classes numbered from 0 only, such as XGBoost's, to any labels.

    Parameters
    ----------
    estimator : classifier
        Fitted to the index of each label in ``classes_``.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The sorted labels.
    estimator_ : classifier
        The fitted clone of ``estimator``.
    """

    numbers_labels = True
    """Tells the checks of ``fit`` that labels need not be numbers."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> NumberedLabels:
        """Fit the classifier to the index of each label."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = clone(self.estimator).fit(X, codes, **weights)
        self.n_features_in_ = self.estimator_.n_features_in_
        return self

    def predict_proba(self, X: Any) -> NDArray[Any]:
        """Return the probability of each class, of shape (n, k)."""
        probabilities: NDArray[Any] = self.estimator_.predict_proba(X)
        return probabilities

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row."""
        labels: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return labels


@dataclass(frozen=True)
class Learner:
    """A classifier that has a name, or the user's own ``estimator``.

    ``trees`` and ``threads`` name its arguments for these ("": it has none), ``options`` are its
    other arguments; ``numbered``: it takes classes as numbers from 0 only.
    """

    title: str
    module: str = ""
    kind: str = ""
    trees: str = ""
    threads: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    numbered: bool = False
    estimator: Any = None

    def imports(self) -> list[str]:
        """Return the lines of Python that its code needs."""
        first = ["import numpy as np"] if self.numbered else []
        lines = [f"from {self.module} import {self.kind}"] if self.kind else []
        if self.kind == "LogisticRegression":
            first = ["from sklearn.impute import SimpleImputer"]
            lines += ["from sklearn.pipeline import make_pipeline"]
            lines += ["from sklearn.preprocessing import StandardScaler"]
        return first + lines

    def code(self, trees: int, seed: int) -> str:
        """Return a Python expression that makes it."""
        if self.kind == "LogisticRegression":
            return (
                'make_pipeline(SimpleImputer(strategy="median", add_indicator=True), '
                "StandardScaler(), LogisticRegression(max_iter=1000))"
            )
        arguments = self._arguments(trees, seed)
        return f"{self.kind}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"

    def _arguments(self, trees: int, seed: int) -> dict[str, Any]:
        number = {self.trees: trees} if self.trees else {}
        return {**number, "random_state": seed, **self.options}

    def make(self, trees: int, seed: int, n_jobs: int | None) -> Any:
        """Return the classifier."""
        if self.estimator is not None:
            return self.estimator
        if self.kind == "LogisticRegression":
            imputer = SimpleImputer(strategy="median", add_indicator=True)
            return make_pipeline(imputer, StandardScaler(), LogisticRegression(max_iter=1000))
        try:
            module = import_module(self.module)
        except ImportError as error:
            if find_spec(self.module) is not None:
                raise self._version_error(error) from error
            raise ImportError(
                f"estimator needs {self.module}: install it with pip install {self.module}"
            ) from error
        threads = {"n_jobs": n_jobs, "thread_count": -1 if n_jobs is None else n_jobs}
        own = {self.threads: threads[self.threads]} if self.threads else {}
        estimator = getattr(module, self.kind)(**self._arguments(trees, seed), **own)
        return NumberedLabels(estimator) if self.numbered else estimator

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Name the version of the package whose classifier fails, such as one too old."""
        try:
            yield
        except (BrokenProcessPool, ImportError, MemoryError, OSError, ValueError):
            raise
        except Exception as error:
            if self.module.split(".")[0] in ("", "sklearn", "vennforest"):
                raise
            raise self._version_error(error) from error

    def _version_error(self, error: Exception) -> InputError:
        installed, expected = version(self.module), version("scikit-learn")
        return InputError(
            f"{self.module} {installed} does not work with scikit-learn {expected} "
            f"({type(error).__name__}: {one_line(error)}): install another version of "
            f"{self.module}, or take another estimator"
        )


_TREES: dict[str, Any] = {"trees": "n_estimators", "threads": "n_jobs"}
_SKLEARN = "sklearn.ensemble"

LEARNERS: dict[str, Learner] = {
    FOREST: Learner("forest", "vennforest", "MixedForestClassifier", **_TREES),
    "random-forest": Learner("random forest", _SKLEARN, "RandomForestClassifier", **_TREES),
    "extra-trees": Learner("extra-trees ensemble", _SKLEARN, "ExtraTreesClassifier", **_TREES),
    "hist-gradient-boosting": Learner(
        "histogram gradient boosting", _SKLEARN, "HistGradientBoostingClassifier"
    ),
    "logistic": Learner("logistic regression", "sklearn.linear_model", "LogisticRegression"),
    "lightgbm": Learner(
        "LightGBM model", "lightgbm", "LGBMClassifier", **_TREES, options={"verbose": -1}
    ),
    "xgboost": Learner("XGBoost model", "xgboost", "XGBClassifier", **_TREES, numbered=True),
    "catboost": Learner(
        "CatBoost model",
        "catboost",
        "CatBoostClassifier",
        trees="n_estimators",
        threads="thread_count",
        options={"verbose": False, "allow_writing_files": False},
    ),
}
"""What ``--estimator`` takes."""


def learner_of(estimator: Any) -> Learner:
    """Return the learner of a name or of a given classifier; None: the default forest."""
    if estimator is None:
        return LEARNERS[FOREST]
    if isinstance(estimator, str):
        if estimator not in LEARNERS:
            raise not_one_of("estimator", LEARNERS, estimator)
        return LEARNERS[estimator]
    if isinstance(estimator, type) or not hasattr(estimator, "predict_proba"):
        raise InputError(
            "estimator must be a name or a classifier with predict_proba (an instance, not "
            f"fitted), got {estimator!r}"
        )
    name = type(estimator).__name__
    return Learner(name, estimator=estimator)
