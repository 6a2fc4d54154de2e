"""The classifiers that the report trains, by name, and the code that makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vennforest._validation import InputError

FOREST = "random-forest"


@dataclass(frozen=True)
class Learner:
    """A classifier that goes by a name.

    Attributes
    ----------
    title : str
        What a reader calls one of them.
    many : str
        What a reader calls those of all folds, with ``{trees}`` for their number of trees.
    imports : tuple of str
        Lines of Python.
    code : str
        An expression, with ``{trees}`` and ``{seed}``.
    make : callable
        Given trees, seed and n_jobs, returns it.
    numbered : bool
        Whether it takes classes as numbers from 0 only.
    """

    title: str
    many: str
    imports: tuple[str, ...]
    code: str
    make: Callable[[int, int, int | None], Any]
    numbered: bool = False


def _logistic(trees: int, seed: int, n_jobs: int | None) -> Any:
    return make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True),
        StandardScaler(),
        LogisticRegression(max_iter=1000),
    )


def _lightgbm(trees: int, seed: int, n_jobs: int | None) -> Any:
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=trees, random_state=seed, n_jobs=n_jobs, verbose=-1)


def _xgboost(trees: int, seed: int, n_jobs: int | None) -> Any:
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=trees, random_state=seed, n_jobs=n_jobs)


def _catboost(trees: int, seed: int, n_jobs: int | None) -> Any:
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        n_estimators=trees,
        random_state=seed,
        thread_count=-1 if n_jobs is None else n_jobs,
        verbose=False,
        allow_writing_files=False,
    )


LEARNERS: dict[str, Learner] = {
    FOREST: Learner(
        "forest",
        "forests of {trees} trees",
        ("from sklearn.ensemble import RandomForestClassifier",),
        "RandomForestClassifier({trees}, random_state={seed})",
        lambda trees, seed, jobs: RandomForestClassifier(trees, n_jobs=jobs, random_state=seed),
    ),
    "extra-trees": Learner(
        "extra-trees ensemble",
        "extra-trees ensembles of {trees} trees",
        ("from sklearn.ensemble import ExtraTreesClassifier",),
        "ExtraTreesClassifier({trees}, random_state={seed})",
        lambda trees, seed, jobs: ExtraTreesClassifier(trees, n_jobs=jobs, random_state=seed),
    ),
    "hist-gradient-boosting": Learner(
        "gradient boosting",
        "histogram gradient boosting",
        ("from sklearn.ensemble import HistGradientBoostingClassifier",),
        "HistGradientBoostingClassifier(random_state={seed})",
        lambda trees, seed, jobs: HistGradientBoostingClassifier(random_state=seed),
    ),
    "logistic": Learner(
        "logistic regression",
        "logistic regressions",
        (
            "from sklearn.impute import SimpleImputer",
            "from sklearn.linear_model import LogisticRegression",
            "from sklearn.pipeline import make_pipeline",
            "from sklearn.preprocessing import StandardScaler",
        ),
        'make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler(), '
        "LogisticRegression(max_iter=1000))",
        _logistic,
    ),
    "lightgbm": Learner(
        "LightGBM model",
        "LightGBM of {trees} trees",
        ("from lightgbm import LGBMClassifier",),
        "LGBMClassifier(n_estimators={trees}, random_state={seed}, verbose=-1)",
        _lightgbm,
    ),
    "xgboost": Learner(
        "XGBoost model",
        "XGBoost of {trees} trees",
        ("import numpy as np", "from xgboost import XGBClassifier"),
        "XGBClassifier(n_estimators={trees}, random_state={seed})",
        _xgboost,
        numbered=True,
    ),
    "catboost": Learner(
        "CatBoost model",
        "CatBoost of {trees} trees",
        ("from catboost import CatBoostClassifier",),
        "CatBoostClassifier(n_estimators={trees}, random_state={seed}, verbose=False, "
        "allow_writing_files=False)",
        _catboost,
    ),
}
"""What ``--estimator`` takes."""


def learner_of(estimator: Any) -> Learner:
    """Return the learner of a name, or one that makes a given classifier.

    Raises
    ------
    InputError
        If there is none of this name, or it is not a classifier.
    """
    if estimator is None:
        return LEARNERS[FOREST]
    if isinstance(estimator, str):
        if estimator not in LEARNERS:
            raise InputError(f"estimator must be one of {list(LEARNERS)}, got {estimator!r}")
        return LEARNERS[estimator]
    if isinstance(estimator, type) or not hasattr(estimator, "predict_proba"):
        raise InputError(
            "estimator must be a name or a classifier with predict_proba (an instance, not "
            f"fitted), got {estimator!r}"
        )
    name = type(estimator).__name__
    return Learner(name, name, (), "estimator", lambda trees, seed, jobs: estimator)


def made(learner: Learner, trees: int, seed: int, n_jobs: int | None) -> Any:
    """Return the classifier.

    Raises
    ------
    ImportError
        If its library is not installed.
    """
    try:
        return learner.make(trees, seed, n_jobs)
    except ImportError as missing:
        library = str(missing.name)
        raise ImportError(
            f"estimator needs {library}: install it with pip install {library}"
        ) from missing


def raw_title(learner: Learner) -> str:
    """Return what a reader calls the model without calibration."""
    return f"Raw {learner.title}"
