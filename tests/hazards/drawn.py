"""A second round of hazards: settings, labels, weights, groups, splits, models and steps."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
)
from sklearn.multiclass import OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from hazards.table import Hazard, Rng, Verdict, coin, fit, forest
from vennforest import CalibratedClassifier, VennAbers, audit
from vennforest.calibrators import BetaCalibration

FRAME = list("abcde")


def frame(rng: Rng, columns: list[str] = FRAME) -> pd.DataFrame:
    """Return a table with named columns."""
    return pd.DataFrame(coin(rng)[0], columns=columns)


def with_params(rng: Rng, estimator: Any, **params: Any) -> Any:
    """Fit to coin labels with arguments of ``fit``."""
    return fit(estimator, *coin(rng), **params)


def with_cv(rng: Rng, cv: Any, **settings: Any) -> Any:
    """Fit a model over folds of 200 coin labels."""
    return fit(GaussianNB(), *coin(rng), {"cv": cv, **settings})


def mixed_up(rng: Rng, what: str) -> Any:
    """Fit with one argument a series in another order than X."""
    X, y = frame(rng), pd.Series(coin(rng)[1])
    given = {
        "y": y,
        "sample_weight": pd.Series(rng.random(200) + 0.5),
        "groups": pd.Series(np.arange(200) // 4),
    }
    if what:
        given[what] = given[what].sample(frac=1, random_state=1)
    return fit(forest(), X, **given)


class OwnEncoder(TransformerMixin, BaseEstimator):
    """A target encoder that does not say that it needs labels."""

    def fit(self, X: Any, y: Any = None) -> OwnEncoder:
        """Learn the mean label of each category."""
        cells = np.asarray(X)[:, 0]
        self.all_ = 0.0 if y is None else float(np.mean(y))
        self.mean_ = {} if y is None else {v: y[cells == v].mean() for v in np.unique(cells)}
        return self

    def transform(self, X: Any) -> Any:
        """Return the means."""
        return np.array([[self.mean_.get(v, self.all_)] for v in np.asarray(X)[:, 0]])


class Recoded(ClassifierMixin, BaseEstimator):
    """A model whose classes are numbers of its own."""

    def fit(self, X: Any, y: Any) -> Recoded:
        """Fit to numbered labels."""
        self.model_ = GaussianNB().fit(X, np.unique(y, return_inverse=True)[1])
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities."""
        return self.model_.predict_proba(X)


class Shaped(ClassifierMixin, BaseEstimator):
    """A model whose probabilities have another shape, or are missing."""

    def __init__(self, kind: str = "column") -> None:
        self.kind = kind

    def fit(self, X: Any, y: Any) -> Shaped:
        """Fit a plain model."""
        self.model_ = GaussianNB().fit(X, y)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return what the kind says."""
        p = self.model_.predict_proba(X)
        if self.kind == "missing":
            return np.where(X[:, :1] > 1.5, np.nan, p)
        return {"column": p[:, 1], "three": np.column_stack([p, p[:, 0]]), "fewer": p[:-1]}[
            self.kind
        ]


def at_predict(rng: Rng, change: Callable[[Any], Any], ask: str = "predict_proba") -> Any:
    """Fit to a table, and ask about one that was changed."""
    model = fit(forest(), frame(rng), coin(rng)[1])
    return getattr(model, ask)(change(frame(rng)))


def remembered(kind: str, model: Any, same: bool) -> Callable[[Rng], Any]:
    """Return what calibrates a frozen model on its own rows, or on others."""

    def rows(rng: Rng) -> Any:
        if kind == "whole numbers":
            return rng.integers(0, 10**6, (200, 5)), rng.integers(0, 2, 200)
        if kind == "counts":
            return rng.poisson(4, (200, 8)), rng.integers(0, 2, 200)
        if kind == "categories":
            return rng.integers(0, 6, (200, 8)).astype(str), rng.integers(0, 2, 200)
        X, y = coin(rng)
        return (np.where(rng.random(X.shape) < 0.1, np.nan, X) if kind == "gaps" else X), y

    def run(rng: Rng) -> Any:
        X, y = rows(rng)
        model.fit(X, y)
        return audit(FrozenEstimator(model), *((X, y) if same else rows(rng)))

    return run


MEMORIES = {
    "whole numbers": GradientBoostingClassifier(n_estimators=60, random_state=0),
    "counts": GradientBoostingClassifier(n_estimators=60, random_state=0),
    "categories": make_pipeline(
        OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier(random_state=0)
    ),
    "gaps": DecisionTreeClassifier(min_samples_leaf=2, random_state=0),
    "decisions": SVC(C=100),
}


def edited(rng: Rng, how: str) -> tuple[Any, Any, Any]:
    """Return a frozen forest whose members were changed after its fit, and its rows."""
    X, y = coin(rng)
    model = forest().fit(X, y)
    if how == "others":
        model.estimators_ += forest(bootstrap=False).fit(X, y).estimators_
    elif how == "warm start":
        model = forest(warm_start=True).fit(*coin(rng)).set_params(n_estimators=80).fit(X, y)
    elif how == "fewer":
        model.estimators_ = model.estimators_[:30]
    elif how == "reversed":
        model.estimators_ = model.estimators_[::-1]
    return FrozenEstimator(model), X, y


def rare_mean(estimator: Any) -> Callable[[Rng], bool]:
    """Return whether probabilities of a rare class without signal are about its share."""

    def run(rng: Rng) -> bool:
        X, y = coin(rng, 600, 5, 0.1)
        p = fit(estimator, X, y).predict_proba(coin(rng)[0])[:, 1]
        return bool(abs(p.mean() - y.mean()) < 0.02)

    return run


def resampling(calibrate_on: str) -> Callable[[Rng], Any]:
    """Return what calibrates a pipeline that repeats rare rows."""

    def run(rng: Rng) -> Any:
        from imblearn.over_sampling import RandomOverSampler
        from imblearn.pipeline import make_pipeline as resampled

        model = resampled(RandomOverSampler(random_state=0), forest())
        if calibrate_on == "auto":
            return rare_mean(model)(rng)
        return fit(model, *coin(rng, 600, 5, 0.1), {"calibrate_on": calibrate_on})

    return run


def balanced_forest(rng: Rng) -> bool:
    """Return whether a forest of balanced bags gives the share of the rare class."""
    from imblearn.ensemble import BalancedRandomForestClassifier

    return rare_mean(BalancedRandomForestClassifier(60, random_state=0))(rng)


def encoded(rng: Rng, step: Any) -> Any:
    """Audit a forest behind a target encoder that does not say that it needs labels."""
    X = rng.integers(0, 30, (200, 1)).astype(str)
    return audit(make_pipeline(step, forest()), X, coin(rng)[1])


def cached(rng: Rng) -> bool:
    """Return whether a pipeline's cache changes nothing."""
    X, y = coin(rng)
    with tempfile.TemporaryDirectory() as place:
        one = fit(make_pipeline(StandardScaler(), forest(), memory=place), X, y)
        two = fit(make_pipeline(StandardScaler(), forest()), X, y)
        return bool(np.array_equal(one.predict_proba(X[:9] + 1), two.predict_proba(X[:9] + 1)))


def twice(estimator: Any) -> Callable[[Rng], bool]:
    """Return whether a classifier that was fitted before gives what a new one gives."""

    def run(rng: Rng) -> bool:
        X, y = coin(rng)
        used = CalibratedClassifier(estimator(), random_state=0).fit(*coin(rng)).fit(X, y)
        new = CalibratedClassifier(estimator(), random_state=0).fit(X, y)
        return bool(np.array_equal(used.predict_proba(X + 1), new.predict_proba(X + 1)))

    return run


def modest(estimator: Any) -> Callable[[Rng], bool]:
    """Return whether probabilities of coin labels stay near a half."""
    return lambda rng: bool(
        np.ptp(fit(estimator, *coin(rng)).predict_proba(coin(rng)[0])[:, 1]) < 0.4
    )


def search(rng: Rng, make: Callable[[Rng], Any]) -> None:
    """Search over a parameter."""
    model = CalibratedClassifier(forest(), random_state=0)
    GridSearchCV(model, {"method": ["platt"]}, cv=3).fit(*make(rng))


def pipeline(rng: Rng, make: Callable[[Rng], Any]) -> None:
    """Fit a pipeline that ends in a calibrated classifier."""
    make_pipeline(StandardScaler(), CalibratedClassifier(forest(), random_state=0)).fit(*make(rng))


def venn_abers(scores: Any, weight: Any = None) -> None:
    """Fit a calibrator to scores."""
    VennAbers().fit(scores, np.arange(50) % 2, sample_weight=weight)


def one_class(rng: Rng) -> Any:
    """Return labels of one class."""
    return coin(rng)[0], np.zeros(200, int)


ENTRIES = {"search": search, "pipeline": pipeline}


def entries(make: Callable[[Rng], Any], *names: str) -> dict[str, Callable[[Rng], Any]]:
    """Return the ways of a table through searches and pipelines."""
    return {name: functools.partial(ENTRIES[name], make=make) for name in names}


GROUPS = np.arange(200) // 4

DRAWN = [
    Hazard(
        "one class",
        "labels of one class",
        entries(one_class, "pipeline"),
        Verdict("refused", "class"),
    ),
    Hazard(
        "scores in an engine",
        "NaN or infinite scores, or negative weights, in a calibrator or an engine",
        {
            "NaN": lambda rng: venn_abers(np.where(np.arange(50) < 9, np.nan, 0.5)),
            "infinite": lambda rng: venn_abers(np.full(50, np.inf)),
            "weights": lambda rng: venn_abers(rng.random(50), np.full(50, -1.0)),
        },
        Verdict("refused", "score|weight|NaN|finite|negative"),
        lambda rng: venn_abers(rng.random(50)),
    ),
    Hazard(
        "another order",
        "y, weights or groups with the index of X in another order",
        {
            what: lambda rng, what=what: mixed_up(rng, what)
            for what in ("y", "sample_weight", "groups")
        },
        Verdict("warned", "another order"),
        lambda rng: mixed_up(rng, ""),
    ),
    Hazard(
        "labels that stand for none",
        'labels "" or "nan" where there is none',
        {
            f'"{empty}"': lambda rng, empty=empty: fit(
                forest(), (m := coin(rng))[0], np.where(m[0][:, 0] > 1, empty, m[1].astype(str))
            )
            for empty in ("", "nan")
        },
        Verdict("warned", "missing value"),
        lambda rng: fit(forest(), (m := coin(rng))[0], np.array(["none", "some"])[m[1]]),
    ),
    Hazard(
        "missing labels",
        "None, pd.NA or labels of several types in y",
        {
            "None": lambda rng: fit(
                forest(), (m := coin(rng))[0], np.where(m[0][:, 0] > 1, None, m[1].astype(str))
            ),
            "NA": lambda rng: fit(
                forest(),
                (m := coin(rng))[0],
                pd.Series(m[1], dtype="Int64").where(m[0][:, 0] < 1, pd.NA),
            ),
            "types": lambda rng: fit(
                forest(), (m := coin(rng))[0], np.array([1, "1"], object)[m[1]]
            ),
            "probabilities": lambda rng: fit(forest(), coin(rng)[0], rng.random(200).round(1)),
        },
        Verdict("refused", "sorted|NaN|continuous|missing"),
        lambda rng: fit(forest(), (m := coin(rng))[0], pd.Series(m[1], dtype="Int64")),
    ),
    Hazard(
        "weights that sum to one",
        "sample_weight divided by its sum",
        {
            name: lambda rng, model=model: with_params(
                rng, model, sample_weight=(w := rng.random(200) + 0.5) / w.sum()
            )
            for name, model in {"out of bag": forest(), "folds": GaussianNB()}.items()
        },
        Verdict("warned", "Divide the weights by their mean"),
        lambda rng: with_params(
            rng, GaussianNB(), sample_weight=(w := rng.random(200) + 0.5) / w.mean()
        ),
    ),
    Hazard(
        "impossible weights",
        "negative, NaN or too large weights, or none for a class",
        {
            "negative": lambda rng: with_params(rng, forest(), sample_weight=rng.normal(size=200)),
            "NaN": lambda rng: with_params(rng, forest(), sample_weight=np.full(200, np.nan)),
            "too large": lambda rng: with_params(rng, forest(), sample_weight=np.full(200, 2**62)),
            "no class": lambda rng: fit(
                forest(), *(m := coin(rng)), sample_weight=m[1].astype(float)
            ),
        },
        Verdict("refused", "negative|at most|weight above zero"),
        lambda rng: with_params(rng, GaussianNB(), sample_weight=rng.integers(0, 3, 200)),
    ),
    Hazard(
        "weights not taken",
        "sample_weight for a model that takes none",
        {
            "fit": lambda rng: with_params(
                rng, KNeighborsClassifier(), sample_weight=rng.random(200) + 0.5
            )
        },
        Verdict("warned", "takes no sample_weight"),
    ),
    Hazard(
        "missing groups",
        "NaN or None among groups",
        {
            "NaN": lambda rng: with_params(
                rng, forest(), groups=np.where(GROUPS < 9, np.nan, GROUPS)
            ),
            "None": lambda rng: with_params(
                rng, forest(), groups=np.where(GROUPS < 9, None, GROUPS.astype(str))
            ),
        },
        Verdict("refused", "for every row"),
        lambda rng: with_params(rng, GaussianNB(), groups=GROUPS.astype(float)),
    ),
    Hazard(
        "splits of other rows",
        "splits with negative row numbers, or numbers beyond the last row",
        {
            "negative": lambda rng: with_cv(
                rng, [(np.arange(-200, 0), np.arange(100)), (np.arange(-200, 0), GROUPS[:1] + 150)]
            ),
            "beyond": lambda rng: with_cv(rng, list(KFold(5).split(np.zeros((300, 1))))),
        },
        Verdict("refused", "row numbers from 0"),
        lambda rng: with_cv(rng, list(KFold(5).split(np.zeros((200, 1))))),
    ),
    Hazard(
        "repeated rows in a fold",
        "splits that score a row twice",
        {
            "fit": lambda rng: with_cv(
                rng, [(a, np.repeat(b, 2)) for a, b in KFold(5).split(np.zeros((200, 1)))]
            ),
            "ShuffleSplit": lambda rng: with_cv(
                rng, ShuffleSplit(5, random_state=0), ensemble=False
            ),
        },
        Verdict("refused", "at most once"),
        lambda rng: with_cv(rng, ShuffleSplit(5, random_state=0)),
    ),
    Hazard(
        "no splits",
        "a generator of splits that is used up, or more folds than rows",
        {
            "generator": lambda rng: (
                (model := CalibratedClassifier(GaussianNB(), cv=KFold(5).split(np.zeros((200, 1)))))
                .fit(*coin(rng))
                .fit(*coin(rng))
                and model
            ),
            "one fold": lambda rng: with_cv(rng, 1),
            "many folds": lambda rng: with_cv(rng, 300),
        },
        Verdict("refused", "splits once|n_splits"),
        lambda rng: CalibratedClassifier(GaussianNB(), cv=KFold(5)).fit(*coin(rng)).fit(*coin(rng)),
    ),
    Hazard(
        "shuffled splits of groups",
        "groups with a splitter that shuffles rows",
        {
            name: lambda rng, cv=cv: fit(GaussianNB(), *coin(rng), {"cv": cv}, groups=GROUPS)
            for name, cv in {
                "ShuffleSplit": ShuffleSplit(3, random_state=0),
                "StratifiedKFold": StratifiedKFold(3, shuffle=True, random_state=0),
            }.items()
        },
        Verdict("refused", "every group on one side"),
    ),
    Hazard(
        "classes of another name",
        "a model whose classes_ are not the labels of y",
        {
            "fit": lambda rng: fit(Recoded(), (m := coin(rng))[0], np.array(["a", "b"])[m[1]]),
            "frozen": lambda rng: fit(
                FrozenEstimator(Recoded().fit(coin(rng)[0], coin(rng)[1])),
                (m := coin(rng))[0],
                np.array(["a", "b"])[m[1]],
            ),
        },
        Verdict("refused", "classes_|labels"),
        lambda rng: fit(Recoded(), *coin(rng)),
    ),
    Hazard(
        "scores of another shape",
        "predict_proba that returns one column, three, fewer rows, or NaN",
        {
            kind: lambda rng, kind=kind: fit(Shaped(kind), *coin(rng))
            for kind in ("column", "three", "fewer", "missing")
        },
        Verdict("refused", "shape|finite"),
    ),
    Hazard(
        "columns in another order",
        "other columns at predict than at fit",
        {
            "order": lambda rng: at_predict(rng, lambda X: X[FRAME[::-1]]),
            "order, bounds": lambda rng: at_predict(
                rng, lambda X: X[FRAME[::-1]], "predict_multiprobability"
            ),
            "order, interval": lambda rng: at_predict(
                rng, lambda X: X[FRAME[::-1]], "predict_confidence"
            ),
            "more": lambda rng: at_predict(rng, lambda X: X.assign(f=1.0)),
            "fewer": lambda rng: at_predict(rng, lambda X: X[FRAME[:4]]),
            "infinite": lambda rng: at_predict(rng, lambda X: X.assign(a=np.inf)),
        },
        Verdict("refused", "feature names|infinity|features"),
        lambda rng: at_predict(rng, lambda X: X),
    ),
    Hazard(
        "columns without names",
        "an array at predict where fit had names",
        {"fit": lambda rng: at_predict(rng, lambda X: X.to_numpy())},
        Verdict("warned", "feature names"),
    ),
    Hazard(
        "frozen models of other tables",
        "a frozen model and its own training rows, of categories, counts or with gaps",
        {kind: remembered(kind, model, True) for kind, model in MEMORIES.items()},
        Verdict("found", "trained on these rows"),
        remembered("counts", MEMORIES["counts"], False),
    ),
    Hazard(
        "members of other forests",
        "a frozen forest with members that saw other or all rows",
        {
            "others": lambda rng: audit(*edited(rng, "others")),
            "warm start": lambda rng: audit(*edited(rng, "warm start")),
            "others, oob": lambda rng: fit(*edited(rng, "others"), {"calibrate_on": "oob"}),
            "warm start, oob": lambda rng: fit(*edited(rng, "warm start"), {"calibrate_on": "oob"}),
        },
        Verdict("found", "trained on these rows"),
        lambda rng: audit(*edited(rng, "")),
        {
            way: Verdict("refused", "what the frozen model was trained on")
            for way in ("others, oob", "warm start, oob")
        },
    ),
    Hazard(
        "fewer members",
        "a frozen forest whose members were cut or reordered",
        {
            how: lambda rng, how=how: fit(*edited(rng, how)).calibrate_on_ == "oob"
            for how in ("fewer", "reversed")
        },
        Verdict("right"),
    ),
    Hazard(
        "resampling in a pipeline",
        "imbalanced-learn's samplers in a pipeline",
        {name: resampling(name) for name in ("auto", "oob")},
        Verdict("right"),
        None,
        {"oob": Verdict("refused", "changes which rows")},
    ),
    Hazard(
        "balanced bags",
        "forests whose bags are balanced, for a rare class",
        {
            "imbalanced-learn": balanced_forest,
            "subsample": rare_mean(forest(class_weight="balanced_subsample")),
        },
        Verdict("right"),
    ),
    Hazard(
        "target encoders without tags",
        "a target encoder that does not say that it needs labels",
        {
            "step": lambda rng: encoded(rng, OwnEncoder()),
            "columns": lambda rng: encoded(rng, make_column_transformer((OwnEncoder(), [0]))),
        },
        Verdict("found", "with labels than without"),
    ),
    Hazard(
        "no scores",
        "estimators without scores of classes",
        {
            name: lambda rng, model=model: fit(model, *coin(rng))
            for name, model in {
                "hard votes": VotingClassifier([("a", GaussianNB()), ("b", GaussianNB())]),
                "output codes": OutputCodeClassifier(GaussianNB()),
                "regression": RandomForestRegressor(5),
                "clusters": KMeans(3),
                "no refit": GridSearchCV(GaussianNB(), {"var_smoothing": [0.1]}, refit=False),
                "several outputs": MultiOutputClassifier(GaussianNB()),
            }.items()
        },
        Verdict("refused", "predict_proba|two dimensions|multi-output"),
    ),
    Hazard(
        "caches",
        "a pipeline's cache, warm starts and shared random states",
        {
            "memory": cached,
            "warm start": twice(lambda: forest(warm_start=True)),
            "random state": twice(
                lambda: RandomForestClassifier(20, random_state=np.random.RandomState(0))
            ),
        },
        Verdict("right"),
    ),
    Hazard(
        "calibrators inside",
        "a calibrated classifier inside another",
        {
            "own": modest(CalibratedClassifier(forest(), random_state=0)),
            "scikit-learn": modest(CalibratedClassifierCV(forest())),
            "early stopping": modest(GradientBoostingClassifier(n_iter_no_change=3)),
        },
        Verdict("right"),
    ),
    Hazard(
        "scores of a calibrator",
        "scores that are text, of another length, NaN at predict, or percentages",
        {
            "text": lambda rng: VennAbers().fit(np.array(["a"] * 50), np.arange(50) % 2),
            "length": lambda rng: VennAbers().fit(rng.random(50), np.arange(40) % 2),
            "NaN": lambda rng: (
                VennAbers().fit(rng.random(50), np.arange(50) % 2).predict_proba([np.nan])
            ),
            "percentages": lambda rng: (
                BetaCalibration().fit(rng.random(50), np.arange(50) % 2).predict_proba([90.0])
            ),
        },
        Verdict("refused", "numbers|inconsistent|finite|in \\[0, 1\\]"),
        lambda rng: VennAbers().fit(rng.random(50), np.arange(50) % 2).predict_proba([0.3]),
    ),
]
