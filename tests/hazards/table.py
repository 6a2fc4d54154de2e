"""Faults of data, settings and models that `fit` and `predict` refuse, warn of, or deal with.

A hazard is one entry: a sentence, the ways in which it was tried, and what has to happen.
``test_hazards.py`` runs them all, and the same calls without the fault, which must pass without a
warning; ``docs/hazards.md`` lists them.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import sklearn
from packaging.version import Version
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneOut,
    ShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.multiclass import OutputCodeClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler, TargetEncoder
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.class_weight import compute_sample_weight

from vennforest import CalibratedClassifier, TemperatureScaling, VennAbers
from vennforest.calibrators import BetaCalibration
from vennforest.report import check

DRAWN_BY_WEIGHT = Version(sklearn.__version__) >= Version("1.9")
"""Whether forests draw bootstrap rows by their weight."""


@dataclass(frozen=True)
class Hazard:
    """A fault, the ways in which it can reach the library, and what has to happen.

    ``ways`` are named functions of a random generator. ``match`` is in the error, the warning or
    the finding; where the answer has to be right, the function returns whether it is. ``honest``
    is the same call without the fault.
    """

    fault: str
    match: str
    ways: dict
    honest: object = None


def coin(rng, n=200, d=5, share=0.5):
    """Draw rows that tell nothing of their labels."""
    return rng.normal(size=(n, d)), (rng.random(n) < share).astype(int)


def scored(rng, change=lambda p: p):
    """Draw scores made of probabilities, and labels."""
    p = rng.uniform(0.02, 0.98, 400)
    return change(p), (rng.random(400) < p).astype(int)


def of_three(rng, change):
    p = rng.dirichlet(np.ones(3), 400)
    return change(p), (p.cumsum(axis=1) < rng.random(400)[:, None]).sum(axis=1).clip(max=2)


def rare(rng):
    return coin(rng, 600, 5, 0.1)


def labelled(change):
    def make(rng):
        X, y = coin(rng)
        return X, change(X, y)

    return make


def doubled(rng, jitter=0.0):
    X, y = coin(rng)
    return np.vstack([X, X + jitter * rng.normal(size=X.shape)]), np.tile(y, 2)


def oversampled(rng):
    X, y = coin(rng, 400, 5, 0.1)
    again = rng.choice(np.flatnonzero(y), int((y == 0).sum() - y.sum()))
    rows = np.concatenate([np.arange(len(y)), again])
    return X[rows], y[rows]


spelled = labelled(
    lambda X, y: np.array(["no", "yes", "No", "Yes "])[y + 2 * (np.arange(len(y)) % 2)]
)
one_class = labelled(lambda X, y: np.zeros(len(y), int))


def forest(**settings):
    return RandomForestClassifier(40, random_state=0, **settings)


def fit(estimator, X, y, settings=None, **params):
    settings = {"merge": "log", "random_state": 0, **(settings or {})}
    return CalibratedClassifier(estimator, **settings).fit(X, y, **params)


def fitting(estimator, make=coin, settings=None, **params):
    def run(rng):
        X, y = make(rng)
        arguments = {name: p(y) if callable(p) else p for name, p in params.items()}
        model = estimator(rng) if callable(estimator) else estimator
        return fit(model, X, y, settings, **arguments)

    return run


def frozen(model):
    return lambda rng: FrozenEstimator(model.fit(*coin(rng)))


def in_tables(make):
    def as_frame(rng):
        X, y = make(rng)
        return pd.DataFrame(X), y

    return {
        "fit": fitting(forest(), make),
        "folds": fitting(GaussianNB(), make),
        "data frame": fitting(forest(), as_frame),
    }


def with_cv(cv, n=200, **settings):
    return fitting(GaussianNB(), lambda rng: coin(rng, n), {"cv": cv, **settings})


def over_rows(n):
    return list(KFold(5).split(np.zeros((n, 1))))


def in_order(part):
    def run(rng):
        X, y = coin(rng)
        series = {"y": y, "sample_weight": rng.random(200) + 0.5, "groups": np.arange(200) // 4}
        arguments = {name: pd.Series(values) for name, values in series.items()}
        if part:
            arguments[part] = arguments[part].sample(frac=1, random_state=1)
        return fit(forest(), pd.DataFrame(X), **arguments)

    return run


def in_part(wrap):
    return fitting(lambda rng: wrap(frozen(DecisionTreeClassifier())(rng)))


def own_rows(model, change=lambda table: table, **settings):
    def run(rng):
        X, y = coin(rng)
        return fit(FrozenEstimator(model.fit(X, y)), change(X), change(y), settings)

    return run


def chosen(run, source):
    return lambda rng: run(rng).calibrate_on_ == source


def edited(how):
    def draw(rng):
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

    return draw


class Other(ClassifierMixin, BaseEstimator):
    """A model whose probabilities have another shape or are missing, or with other classes."""

    def __init__(self, kind=""):
        self.kind = kind

    def fit(self, X, y):
        self.model_ = GaussianNB().fit(X, np.unique(y, return_inverse=True)[1])
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X):
        p = self.model_.predict_proba(X)
        if self.kind == "missing":
            return np.where(X[:, :1] > 1.5, np.nan, p)
        tables = {"column": p[:, 1], "three": np.column_stack([p, p[:, 0]]), "fewer": p[:-1]}
        return tables.get(self.kind, p)


bayes = GaussianNB()


def at_predict(change, model=None):
    def run(rng):
        X, y = coin(rng)
        table = pd.DataFrame(X, columns=list("abcde"))
        return fit(forest() if model is None else model, table, y).predict_proba(change(table))

    return run


def rare_mean(estimator):
    def run(rng):
        X, y = rare(rng)
        p = fit(estimator, X, y).predict_proba(coin(rng)[0])[:, 1]
        return abs(p.mean() - y.mean()) < 0.02

    return run


def resampled(rng):
    from imblearn.over_sampling import RandomOverSampler
    from imblearn.pipeline import make_pipeline

    return make_pipeline(RandomOverSampler(random_state=0), forest())


def balanced_forest(rng):
    from imblearn.ensemble import BalancedRandomForestClassifier

    return rare_mean(BalancedRandomForestClassifier(30, random_state=0))(rng)


def twice(make_estimator):
    def run(rng):
        X, y = coin(rng)
        used, new = fit(make_estimator(), *coin(rng)).fit(X, y), fit(make_estimator(), X, y)
        return np.array_equal(used.predict_proba(X + 1), new.predict_proba(X + 1))

    return run


def modest(estimator):
    return lambda rng: np.ptp(fit(estimator, *coin(rng)).predict_proba(coin(rng)[0])[:, 1]) < 0.4


def calibrate(scores, weight=None):
    return VennAbers().fit(scores, np.arange(50) % 2, sample_weight=weight)


def splits_used_up(rng):
    model = CalibratedClassifier(GaussianNB(), cv=KFold(5).split(np.zeros((200, 1))))
    model.fit(*coin(rng)).fit(*coin(rng))


OOB = {"calibrate_on": "oob"}
GROUPS, PAIRS = np.arange(200) // 4, np.arange(200) // 2
UNSHUFFLED = [(np.arange(200), np.arange(100)), (np.arange(200), np.arange(100, 200))]
"""Folds that score rows which they train on."""

REFUSED = [
    Hazard(
        "a fitted model or supervised step frozen inside the estimator",
        "trained again",
        {
            "voting": in_part(
                lambda tree: VotingClassifier([("a", tree), ("b", GaussianNB())], voting="soft")
            ),
            "prefit": in_part(
                lambda tree: StackingClassifier([("a", tree.estimator)], cv="prefit")
            ),
            "pipeline": in_part(lambda tree: make_pipeline(StandardScaler(), tree)),
            "selection": fitting(
                lambda rng: make_pipeline(frozen(SelectKBest(k=2))(rng), forest())
            ),
        },
        fitting(lambda rng: make_pipeline(frozen(StandardScaler())(rng), GaussianNB())),
    ),
    Hazard(
        'class_weight="balanced" of a forest with a rare class and calibrate_on="oob"',
        "leave class_weight and sample_weight out",
        {"fit": fitting(forest(class_weight="balanced"), rare, OOB)},
        fitting(forest(), rare, OOB),
    ),
    Hazard(
        'imbalanced-learn\'s samplers in a pipeline with calibrate_on="oob"',
        "changes which rows",
        {"fit": fitting(resampled, rare, OOB)},
    ),
    Hazard(
        'groups= with subforest="exchangeable"',
        r'subforest must be "all" where groups are given.*use calibrate_on="cv"',
        {"fit": fitting(forest(), coin, {**OOB, "subforest": "exchangeable"}, groups=PAIRS)},
        fitting(forest(), coin, OOB, groups=PAIRS),
    ),
    Hazard(
        "LeaveOneOut or very many folds with a calibrator each",
        "ensemble=False",
        {"LeaveOneOut": with_cv(LeaveOneOut(), 40), "KFold": with_cv(KFold(60), 80)},
        with_cv(LeaveOneOut(), 40, ensemble=False),
    ),
    Hazard(
        "a splitter that scores rows which it trains on",
        "rows that it trains on",
        {"ensemble": with_cv(UNSHUFFLED), "one model": with_cv(UNSHUFFLED, ensemble=False)},
    ),
    Hazard(
        "groups= with a splitter that does not know them",
        "every group on one side",
        {
            name: fitting(GaussianNB(), coin, {"cv": cv}, groups=GROUPS)
            for name, cv in {
                "KFold": KFold(5, shuffle=True, random_state=0),
                "ShuffleSplit": ShuffleSplit(3, random_state=0),
            }.items()
        },
        fitting(GaussianNB(), coin, {"cv": GroupKFold(5)}, groups=GROUPS),
    ),
    Hazard(
        'a splitter of times with calibrate_on="oob"',
        "cv must be left out",
        {"fit": fitting(forest(), coin, {"cv": TimeSeriesSplit(), "calibrate_on": "oob"})},
    ),
    Hazard(
        'calibrate_on="oob" where nothing is out of bag',
        "out of bag",
        {
            "extra trees": fitting(ExtraTreesClassifier(20), coin, OOB),
            "bagging": fitting(
                BaggingClassifier(DecisionTreeClassifier(), 20, bootstrap=False), coin, OOB
            ),
        },
        fitting(ExtraTreesClassifier(60, bootstrap=True), coin, OOB),
    ),
    Hazard(
        'a frozen forest with calibrate_on="oob" and other rows, another order, or members that '
        "saw other rows",
        "what the frozen model was trained on",
        {
            "order": own_rows(forest(), lambda table: table[::-1], calibrate_on="oob"),
            "rows": fitting(frozen(forest()), coin, OOB),
            "others": lambda rng: fit(*edited("others")(rng), OOB),
            "warm start": lambda rng: fit(*edited("warm start")(rng), OOB),
        },
        own_rows(forest(), calibrate_on="oob"),
    ),
    Hazard(
        "missing, continuous or mixed labels, or labels of one class",
        "NaN|continuous|class|sorted|missing",
        {
            "NaN": fitting(forest(), labelled(lambda X, y: np.where(X[:, 0] > 1, np.nan, y))),
            "NA": fitting(
                forest(),
                labelled(lambda X, y: pd.Series(y, dtype="Int64").where(X[:, 0] < 1, pd.NA)),
            ),
            "types": fitting(forest(), labelled(lambda X, y: np.array([1, "1"], object)[y])),
            "continuous": fitting(forest(), labelled(lambda X, y: X[:, 0])),
            "one class": fitting(forest(), one_class),
        },
        fitting(forest(), labelled(lambda X, y: pd.Series(y, dtype="Int64"))),
    ),
    Hazard(
        "negative or NaN weights, or none for a class",
        "negative|weight above zero",
        {
            "negative": fitting(forest(), sample_weight=np.linspace(-1, 1, 200)),
            "NaN": fitting(forest(), sample_weight=np.full(200, np.nan)),
            "no class": fitting(forest(), sample_weight=lambda y: y.astype(float)),
        },
        fitting(GaussianNB(), sample_weight=np.arange(200) % 3),
    ),
    Hazard(
        "NaN or None among groups",
        "for every row",
        {
            "NaN": fitting(forest(), groups=np.where(GROUPS < 9, np.nan, GROUPS)),
            "None": fitting(forest(), groups=np.where(GROUPS < 9, None, GROUPS.astype(str))),
        },
        fitting(GaussianNB(), groups=GROUPS.astype(float)),
    ),
    Hazard(
        "splits with negative row numbers, numbers beyond the last row, or a row twice",
        "row numbers from 0|at most once",
        {
            "negative": with_cv([(np.arange(-200, 0), np.arange(100))] * 2),
            "beyond": with_cv(over_rows(300)),
            "twice": with_cv([(a, np.repeat(b, 2)) for a, b in over_rows(200)]),
            "ShuffleSplit": with_cv(ShuffleSplit(5, random_state=0), ensemble=False),
        },
        with_cv(over_rows(200)),
    ),
    Hazard(
        "a generator of splits that is used up, or more folds than rows",
        "generator ended|n_splits|cv must be (an integer >= 2|at most)",
        {"generator": splits_used_up, "one fold": with_cv(1), "many folds": with_cv(300)},
        lambda rng: CalibratedClassifier(GaussianNB(), cv=KFold(5)).fit(*coin(rng)).fit(*coin(rng)),
    ),
    Hazard(
        "a model whose classes_ are not the labels of y",
        "classes_|labels",
        {"fit": fitting(Other(), spelled), "frozen": fitting(frozen(Other()), spelled)},
        fitting(Other()),
    ),
    Hazard(
        "predict_proba that returns one column, three, fewer rows, or NaN",
        "shape|finite",
        {kind: fitting(Other(kind)) for kind in ("column", "three", "fewer", "missing")},
    ),
    Hazard(
        "other columns at predict than at fit, of a model that reads names or positions",
        "columns of training|infinity|features",
        {
            "order": at_predict(lambda X: X[X.columns[::-1]]),
            "more": at_predict(lambda X: X.assign(f=1.0)),
            "fewer": at_predict(lambda X: X[list("abcd")]),
            "infinite": at_predict(lambda X: X.assign(a=np.inf)),
            "positions": at_predict(
                lambda X: X[X.columns[::-1]], make_pipeline(FunctionTransformer(np.asarray), bayes)
            ),
        },
        at_predict(lambda X: X),
    ),
    Hazard(
        "estimators without scores of classes",
        "predict_proba|two dimensions|multi-output",
        {
            "hard votes": fitting(VotingClassifier([("a", GaussianNB()), ("b", GaussianNB())])),
            "output codes": fitting(OutputCodeClassifier(GaussianNB())),
            "regression": fitting(RandomForestRegressor(5)),
            "no refit": fitting(GridSearchCV(GaussianNB(), {"var_smoothing": [0.1]}, refit=False)),
            "several outputs": fitting(MultiOutputClassifier(GaussianNB())),
        },
    ),
    Hazard(
        "scores of a calibrator that are NaN, infinite, text, percentages or of another length, "
        "or negative weights",
        r"finite|NaN|numbers|must have shape|negative|in \[0, 1\]",
        {
            "NaN": lambda rng: calibrate(np.where(np.arange(50) < 9, np.nan, 0.5)),
            "infinite": lambda rng: calibrate(np.full(50, np.inf)),
            "text": lambda rng: calibrate(np.array(["a"] * 50)),
            "percentages": lambda rng: (
                BetaCalibration().fit(rng.random(50), np.arange(50) % 2).predict_proba([90.0])
            ),
            "length": lambda rng: calibrate(rng.random(40)),
            "weights": lambda rng: calibrate(rng.random(50), weight=np.full(50, -1.0)),
        },
        lambda rng: calibrate(rng.random(50)).predict_proba([0.3]),
    ),
]

WARNED = [
    Hazard(
        "a number that stands for missing scores of a calibrator",
        "stand for missing values",
        {
            "-9999": lambda rng: calibrate(np.where(np.arange(50) < 5, -9999, rng.normal(size=50))),
            "1e300": lambda rng: calibrate(np.where(np.arange(50) < 5, 1e300, rng.normal(size=50))),
            "-1 among probabilities": lambda rng: calibrate(
                np.where(np.arange(50) < 5, -1, rng.random(50))
            ),
        },
        lambda rng: calibrate(rng.standard_cauchy(50)),
    ),
    Hazard("every row twice", "exact copies", in_tables(doubled)),
    Hazard("rare rows repeated before fit", "exact copies", in_tables(oversampled)),
    Hazard(
        'sample_weight=compute_sample_weight("balanced", y)',
        r"constant within each class.* class [01] makes up",
        {
            name: fitting(model, rare, sample_weight=lambda y: compute_sample_weight("balanced", y))
            for name, model in {"fit": forest(), "folds": GaussianNB()}.items()
        },
        fitting(GaussianNB(), sample_weight=np.linspace(0.5, 1.5, 200)),
    ),
    Hazard(
        'labels "yes" and "Yes "',
        "case or spaces",
        in_tables(spelled),
        fitting(forest(), labelled(lambda X, y: np.array(["no", "yes"])[y])),
    ),
    Hazard(
        'labels "" or "nan" where there is none',
        "missing value",
        {
            f'"{empty}"': fitting(
                forest(),
                labelled(lambda X, y, empty=empty: np.where(X[:, 0] > 1, empty, y.astype(str))),
            )
            for empty in ("", "nan")
        },
        fitting(forest(), labelled(lambda X, y: np.array(["none", "some"])[y])),
    ),
    Hazard(
        "groups= for a frozen model, which has no folds to keep them together",
        "no effect with a frozen model",
        {"fit": fitting(frozen(GaussianNB()), groups=GROUPS)},
        fitting(frozen(GaussianNB()), groups=np.arange(200)),
    ),
    Hazard(
        "y, weights or groups with the index of X in another order",
        "another order",
        {part: in_order(part) for part in ("y", "sample_weight", "groups")},
        in_order(None),
    ),
    Hazard(
        "sample_weight divided by its sum",
        "too few to calibrate on",
        {
            name: fitting(model, sample_weight=np.linspace(0.5, 1.5, 200) / 200)
            for name, model in {"out of bag": forest(), "folds": GaussianNB()}.items()
        },
    ),
    Hazard(
        "sample_weight of a survey, which sums to more than there are rows",
        "intervals are too narrow",
        {
            "out of bag": fitting(forest(), sample_weight=np.linspace(100.5, 900, 200)),
            "calibrator": lambda rng: VennAbers().fit(
                *scored(rng), sample_weight=np.linspace(100.5, 900, 400)
            ),
        },
        lambda rng: VennAbers().fit(*scored(rng), sample_weight=np.arange(400) % 7 + 1),
    ),
    Hazard(
        "columns of scores that are of other classes, or that are lower where a class is likely",
        "rank other classes|rank their classes backwards|which the map cannot follow",
        {
            "order": lambda rng: VennAbers().fit(*of_three(rng, lambda p: p[:, [1, 2, 0]])),
            "decimal odds": lambda rng: VennAbers().fit(*of_three(rng, lambda p: 1 / p)),
            "two classes": lambda rng: VennAbers().fit(*scored(rng, lambda p: 1 - p)),
        },
        lambda rng: VennAbers().fit(*of_three(rng, lambda p: p)),
    ),
    Hazard(
        "probabilities of the predicted label for those of the second class",
        "probabilities of the predicted label",
        {
            "calibrator": lambda rng: VennAbers().fit(*scored(rng, lambda p: np.maximum(p, 1 - p))),
            "check": lambda rng: check(*scored(rng, lambda p: np.maximum(p, 1 - p))[::-1]),
        },
        lambda rng: VennAbers().fit(*scored(rng, lambda p: p)),
    ),
    Hazard(
        "logarithms of one probability for temperature scaling",
        "no score is above 0",
        {"calibrator": lambda rng: TemperatureScaling().fit(*scored(rng, np.log))},
        lambda rng: TemperatureScaling().fit(*scored(rng, lambda p: np.log(p) - np.log1p(-p))),
    ),
    Hazard(
        "sample_weight for a model that takes none",
        "takes no sample_weight",
        {"fit": fitting(KNeighborsClassifier(), sample_weight=np.linspace(0.5, 1.5, 200))},
    ),
    Hazard(
        "an array at predict where fit had names",
        "feature names",
        {"predict": at_predict(lambda X: X.to_numpy())},
    ),
]

RIGHT = [
    Hazard(
        "a frozen forest calibrated on its own training rows, with members cut or reordered",
        "",
        {
            "forest": chosen(own_rows(forest()), "oob"),
            "fewer": lambda rng: fit(*edited("fewer")(rng)).calibrate_on_ == "oob",
            "reversed": lambda rng: fit(*edited("reversed")(rng)).calibrate_on_ == "oob",
        },
        fitting(frozen(forest())),
    ),
    Hazard(
        "feature selection or target encoding before the forest",
        "",
        {
            "selection": chosen(fitting(make_pipeline(SelectKBest(k=2), forest())), "cv"),
            "encoding": chosen(
                fitting(
                    make_pipeline(TargetEncoder(), forest()),
                    lambda rng: (rng.integers(0, 30, (200, 2)).astype(str), coin(rng)[1]),
                ),
                "cv",
            ),
        },
    ),
    Hazard(
        "class weights, balanced bags or samplers, for a rare class",
        "",
        {
            "weights": chosen(
                fitting(forest(class_weight="balanced"), rare), "cv" if DRAWN_BY_WEIGHT else "oob"
            ),
            "weights of bags": rare_mean(forest(class_weight="balanced_subsample")),
            "imbalanced-learn's forest": balanced_forest,
            "imbalanced-learn's samplers": lambda rng: rare_mean(resampled(rng))(rng),
        },
    ),
    Hazard(
        "warm starts and shared random states",
        "",
        {
            "warm start": twice(lambda: forest(warm_start=True)),
            "random state": twice(
                lambda: RandomForestClassifier(20, random_state=np.random.RandomState(0))
            ),
        },
    ),
    Hazard(
        "a calibrated classifier inside another",
        "",
        {
            "vennforest": modest(CalibratedClassifier(forest(), merge="log", random_state=0)),
            "scikit-learn": modest(CalibratedClassifierCV(forest(), cv=2)),
            "early stopping": modest(GradientBoostingClassifier(n_iter_no_change=3)),
        },
    ),
]
