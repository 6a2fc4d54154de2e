"""Faults that `vennforest.audit` finds."""

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from hazards.table import Hazard, coin, doubled, edited, forest
from vennforest import CalibratedClassifier, audit


def numbered(make):
    def draw(rng):
        X, y = make(rng)
        return np.column_stack([rng.permutation(len(X)), X]), y

    return draw


def nearly_doubled(rng):
    return doubled(rng, 1e-3)


def visits(spread):
    def draw(rng):
        patient = np.repeat(np.arange(60), 5)
        X = rng.normal(size=(60, 5))[patient] + spread * rng.normal(size=(300, 5))
        return np.column_stack([patient, X]), rng.integers(0, 2, 60)[patient]

    return draw


def with_synthetic(X, y, rng):
    """Add points between examples of class 1 and near ones, until the classes are as frequent."""
    rare = X[y == 1]
    distance = np.linalg.norm(rare[:, None] - rare[None], axis=2)
    neighbors = np.argsort(distance, axis=1)[:, 1:4]
    n_synthetic = int((y == 0).sum() - y.sum())
    start = rng.integers(0, len(rare), n_synthetic)
    end = neighbors[start, rng.integers(0, 3, n_synthetic)]
    rows = rare[start] + rng.random((n_synthetic, 1)) * (rare[end] - rare[start])
    return np.vstack([X, rows]), np.concatenate([y, np.ones(n_synthetic, int)])


def synthetic(rng):
    return with_synthetic(*coin(rng, 400, 5, 0.1), rng)


def leaking(rng):
    X, y = coin(rng)
    return np.column_stack([X, 3 * y + rng.random(200)]), y


def steep(rng):
    X = rng.normal(size=(200, 5))
    return X, (X[:, 0] + 0.2 * rng.normal(size=200) > 0).astype(int)


def aged(rng):
    X, y = coin(rng)
    return np.column_stack([rng.integers(18, 90, 200), X]), y


def audited(make):
    def as_frame(rng):
        X, y = make(rng)
        return audit(forest(), pd.DataFrame(X), y)

    return {"array": lambda rng: audit(forest(), *make(rng)), "data frame": as_frame}


def counts(rng):
    return rng.poisson(4, (200, 8)), rng.integers(0, 2, 200)


def categories(rng):
    return rng.integers(0, 6, (200, 8)).astype(str), rng.integers(0, 2, 200)


def as_sparse(rng):
    X, y = coin(rng)
    return sparse.csr_array(X), y


def own_rows(model, make=coin, honest=False):
    def run(rng):
        X, y = make(rng)
        frozen = FrozenEstimator(clone(model).fit(X, y))
        return audit(frozen, *(make(rng) if honest else (X, y)))

    return run


def half_of_rows(model):
    def run(rng):
        X, y = coin(rng, 600)
        others, of_others = coin(rng, 300)
        model.fit(np.vstack([X[:300], others]), np.concatenate([y[:300], of_others]))
        return audit(FrozenEstimator(model), X, y)

    return run


class Encoder(TransformerMixin, BaseEstimator):
    """A target encoder that does not say that it needs labels."""

    def fit(self, X, y=None):
        cells = np.asarray(X)[:, 0]
        self.mean_ = 0.0 if y is None else float(np.mean(y))
        self.means_ = {} if y is None else {v: y[cells == v].mean() for v in np.unique(cells)}
        return self

    def transform(self, X):
        return np.array([[self.means_.get(v, self.mean_)] for v in np.asarray(X)[:, 0]])


def encoded(step):
    return lambda rng: audit(
        make_pipeline(step, forest()), rng.integers(0, 30, (200, 1)).astype(str), coin(rng)[1]
    )


def waves(rng):
    X = rng.random((800, 1))
    return X, (rng.random(800) < 0.5 - 0.4 * np.sin(2 * np.pi * X[:, 0])).astype(int)


def rising(rng):
    X = rng.random((800, 1))
    return X, (rng.random(800) < X[:, 0]).astype(int)


def falls(make, is_calibrated=False):
    def run(rng):
        model = FrozenEstimator(LogisticRegression().fit(*rising(rng)))
        X, y = make(rng)
        return audit(CalibratedClassifier(model).fit(X, y) if is_calibrated else model, X, y)

    return run


BOOSTING = GradientBoostingClassifier(n_estimators=30, random_state=0)
TRAINED = "trained on these rows"

FOUND = [
    Hazard(
        "every row twice beside a column that numbers the rows",
        "near-copy",
        audited(numbered(doubled)),
        audited(numbered(coin))["array"],
    ),
    Hazard("every row twice, changed by .001", "near-copy", audited(nearly_doubled)),
    Hazard(
        "visits of the same patients, with the patient's number as a feature",
        "near-copy",
        audited(visits(0.01)),
    ),
    Hazard(
        "visits of the same patients with other values each, and the patient's number",
        "repeated ID",
        audited(visits(10.0)),
        audited(aged)["array"],
    ),
    Hazard(
        "a column that was recorded after the outcome",
        "recorded after the outcome",
        audited(leaking),
        audited(steep)["array"],
    ),
    Hazard("rare rows made from others before fit", "SMOTE", audited(synthetic)),
    Hazard(
        "a frozen model and its own training rows",
        TRAINED,
        {
            "boosting": own_rows(BOOSTING),
            "pipeline": own_rows(make_pipeline(StandardScaler(), DecisionTreeClassifier())),
            "counts": own_rows(BOOSTING, counts),
            "categories": own_rows(
                make_pipeline(
                    OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier(random_state=0)
                ),
                categories,
            ),
        },
        own_rows(BOOSTING, counts, honest=True),
    ),
    Hazard(
        "a frozen linear model, naive Bayes, or any model of a sparse table, and its own rows",
        TRAINED,
        {
            "logistic": own_rows(LogisticRegression()),
            "naive Bayes": own_rows(GaussianNB()),
            "sparse": own_rows(LogisticRegression(), as_sparse),
        },
        own_rows(LogisticRegression(), honest=True),
    ),
    Hazard(
        "a frozen model and rows of which it was trained on half",
        TRAINED,
        {
            "tree": half_of_rows(DecisionTreeClassifier(min_samples_leaf=3, random_state=0)),
            "histograms": half_of_rows(HistGradientBoostingClassifier(random_state=0)),
        },
    ),
    Hazard(
        "a frozen forest with members that saw other or all rows",
        TRAINED,
        {how: lambda rng, how=how: audit(*edited(how)(rng)) for how in ("others", "warm start")},
        lambda rng: audit(*edited("")(rng)),
    ),
    Hazard(
        "a target encoder before a forest that does not say that it needs labels",
        "with labels than without",
        {"step": encoded(Encoder()), "columns": encoded(make_column_transformer((Encoder(), [0])))},
        encoded(OneHotEncoder(handle_unknown="ignore", sparse_output=False)),
    ),
    Hazard(
        "a model whose scores rise where the frequency falls",
        "falls from",
        {"fitted": falls(waves, is_calibrated=True), "frozen": falls(waves)},
        falls(rising),
    ),
]
