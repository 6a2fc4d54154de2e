"""An audit finds the faults that the table of hazards does not draw, and nothing in honest data."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from hazards.audits import with_synthetic
from hazards.table import coin
from vennforest import CalibratedClassifier, VennAbers, audit
from vennforest.auditing.audit import find_faults
from vennforest.auditing.memory import remembers
from vennforest.auditing.steps import sees_labels


def kinds(*arguments, **options):
    return [finding.kind for finding in audit(*arguments, **options)]


def forest(n=20):
    return RandomForestClassifier(n, random_state=0)


def test_the_rows_of_near_copies_are_named():
    rng = np.random.default_rng(0)
    X, y = rng.poisson(6, (300, 8)), rng.integers(0, 2, 300)
    order = rng.permutation(600)
    numbered = np.column_stack([np.arange(600), np.vstack([X, X])[order]])
    (finding,) = audit(forest(), pl.DataFrame(numbered), np.tile(y, 2)[order])
    assert finding.kind == "near-copies" and len(finding.rows) > 350


def test_copies_within_a_group_are_no_fault():
    rng = np.random.default_rng(1)
    X, y = coin(rng, 200, 6)
    patient = np.arange(400) % 200
    for jitter in (0.0, 1e-3):
        table = np.vstack([X, X + jitter * rng.normal(size=X.shape)])
        assert kinds(forest(), table, np.tile(y, 2), groups=patient) == []
        assert len(kinds(forest(), table, np.tile(y, 2), groups=np.arange(400))) == 1


def test_synthetic_rows_are_named():
    rng = np.random.default_rng(1)
    X, y = coin(rng, 1000, 6, 0.06)
    (finding,) = audit(forest(), *with_synthetic(X, y, rng))
    assert finding.kind == "synthetic rows" and (finding.rows >= 1000).mean() > 0.9
    rows = np.concatenate([np.arange(1000), rng.choice(np.flatnonzero(y), 880)])
    (finding,) = audit(forest(), X[rows], y[rows])
    assert finding.kind == "copies" and (y[rows][finding.rows] == 1).all()


def test_rows_of_weight_zero_are_left_out():
    rng = np.random.default_rng(2)
    X, y = coin(rng, 100, 4)
    X, y, weight = np.vstack([X, X]), np.tile(y, 2), np.repeat([1.0, 0.0], 100)
    assert kinds(forest(), X, y, sample_weight=weight) == []
    (finding,) = audit(forest(), X, y, sample_weight=np.arange(200))
    assert finding.rows.tolist() == [*range(1, 100), *range(101, 200)]


def test_sparse_tables_are_compared_exactly():
    rng = np.random.default_rng(3)
    X, y = coin(rng, 60, 3)
    assert kinds(forest(), sparse.csr_array(np.vstack([X, X])), np.tile(y, 2)) == ["copies"]
    assert kinds(forest(), sparse.csr_array(X), y) == []


def test_tables_with_nothing_to_compare():
    numbers = [np.ones((40, 2)), np.arange(40.0)[:, None], np.full((40, 2), np.nan)]
    days = pd.date_range("2024-01-01", periods=40)
    columns = ([[1]] * 40, [f"row {i}" for i in range(40)], days)
    for table in (*numbers, *(pd.DataFrame({"a": column}) for column in columns)):
        assert kinds(forest(), table, np.arange(40) % 2) == []


def honest(rng):
    """Return a table of one of five kinds, and labels with a signal or without."""
    n, d = int(rng.integers(10, 600)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d))
    kind = rng.integers(0, 5)
    if kind == 1:
        X = rng.integers(0, rng.integers(2, 6), (n, d)).astype(float)
    elif kind == 2:
        X = X.round(1)
    elif kind == 3:
        X = np.column_stack([X, rng.integers(0, 3, (n, 3)), np.arange(n)])
    elif kind == 4:
        X = np.column_stack([X, rng.integers(18, 90, n)])
    score = (X[:, -1] - np.median(X[:, -1])) / max(X[:, -1].std(), 1e-9)
    p = 1 / (1 + np.exp(-3 * rng.integers(0, 3) * score))
    return X, (rng.random(n) < p).astype(int)


def draw_honest(rng):
    """Return an estimator of one of five kinds, rows and labels, all without a fault."""
    X, y = honest(rng)
    y[:2] = 0, 1
    others, of_others = rng.normal(size=(len(y), X.shape[1])) * X.std(0) + X.mean(0), y.copy()
    rng.shuffle(of_others)
    models = [
        forest(),
        LogisticRegression(),
        make_pipeline(StandardScaler(), PCA(1), forest()),
        FrozenEstimator(GradientBoostingClassifier(n_estimators=20).fit(others, of_others)),
        FrozenEstimator(DecisionTreeClassifier(min_samples_leaf=3).fit(others, of_others)),
    ]
    return models[rng.integers(0, len(models))], X, y


@pytest.mark.filterwarnings("ignore")
def test_honest_data_have_no_findings():
    rng = np.random.default_rng(20)
    findings = [kinds(*draw_honest(rng)) for _ in range(15)]
    # Models of other labels may well score high where the event is rare.
    assert {kind for kinds_of_one in findings for kind in kinds_of_one} <= {"falling frequency"}


def test_nothing_is_said_of_few_rows_or_a_model_that_learns_nothing():
    X, y = coin(np.random.default_rng(7), 100, 6)
    assert not remembers(DecisionTreeClassifier().fit(X[:30], y[:30]), X[:30], y[:30])
    for strategy in ("prior", "uniform"):
        assert not remembers(DummyClassifier(strategy=strategy).fit(X, y), X[::-1], y)


def test_rows_that_a_calibrated_classifier_was_trained_on_are_found_among_new_ones():
    rng = np.random.default_rng(8)
    X, y = coin(rng, 400, 5)
    model = CalibratedClassifier(forest(), method="platt").fit(X, y)
    assert kinds(model, X, y) == []
    assert kinds(model, X[:200], y[:200]) == ["training rows"]
    assert kinds(model, *coin(rng, 200, 5)) == []


class Moved(TransformerMixin, BaseEstimator):
    """Moves features by the share of label 1."""

    def fit(self, X, y=None):
        self.by_ = 0.0 if y is None else float(np.mean(y))
        return self

    def transform(self, X):
        return X + self.by_


def test_labels_in_features_are_found():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(600, 2)), np.arange(600) % 2
    for step in (StandardScaler(), FunctionTransformer(), "passthrough"):
        assert sees_labels(Pipeline([("step", step)]), X, y) is None
    for step, reason in (
        (Moved(), "other features with labels than without"),
        (FunctionTransformer(lambda X: X[::2]), "change which rows there are"),
        (SelectKBest(k=1), "cannot be fitted without labels"),
    ):
        assert reason in sees_labels(Pipeline([("step", step)]), X, y)
    (finding,) = audit(make_pipeline(StandardScaler(), Moved(), forest()), X, y)
    assert finding.kind == "steps that see labels" and "Moved" in finding.message
    assert kinds(make_pipeline(Moved(), GaussianNB()), X, y) == []  # on folds


@pytest.mark.parametrize("settings", [
    {}, {"calibrate_on": "training"}, {"calibrate_on": "holdout"}, {"calibrate_on": "cv"},
    {"calibrate_on": "cv", "ensemble": False},
])  # fmt: skip
def test_a_fitted_classifier_is_audited_with_its_rows_and_with_others(settings):
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    weight = np.where(rng.random(300) < 0.2, 0.0, 1.0)
    model = CalibratedClassifier(forest(), random_state=0, **settings)
    model.fit(X[:200], y[:200], sample_weight=weight[:200])
    assert kinds(model, X[:200], y[:200], sample_weight=weight[:200]) == []
    assert kinds(model, X[200:], y[200:]) == []


def test_weights_that_lose_others_are_refused_before_anything_is_trained():
    X, y = np.zeros((30, 2)), np.arange(30) % 2
    with pytest.raises(ValueError, match="sample_weight must differ by a factor of at most"):
        CalibratedClassifier(Untrainable()).fit(X, y, sample_weight=np.r_[1e12, np.ones(29)])


class Untrainable(GaussianNB):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("it was trained")


def test_arguments_that_fit_would_refuse_are_refused():
    X, y = np.random.default_rng(3).normal(size=(60, 3)), np.arange(60) % 2
    table = pd.DataFrame(X, columns=list("abc"))
    model = CalibratedClassifier(LogisticRegression(), calibrate_on="cv").fit(table, y)
    for arguments, words in [
        ((model, table + 1, y.astype(str)), "labels of classes"),
        ((model, table + 1, np.arange(60) % 3), "labels of classes"),
        ((model, table[["c", "b", "a"]], y), "feature names"),
        ((model, table[["a", "b"]], y), "feature names"),
        ((FrozenEstimator(model.estimators_[0]), table, y + 1), "labels of classes"),
        ((LogisticRegression(), X[:0], y[:0]), "at least one row"),
        ((LogisticRegression(), X, 0 * y), "two classes"),
        ((VennAbers(), X, y), "a classifier of rows"),
    ]:
        with pytest.raises(ValueError, match=words):
            audit(*arguments)
    with pytest.raises(TypeError, match="must be a classifier"):
        audit(LinearRegression(), X, y)
    with pytest.warns(UserWarning, match="y has the index of the rows in another order"):
        audit(LogisticRegression(), table, pd.Series(y, index=table.index[::-1]))


@pytest.mark.parametrize("convert", [lambda t: t.set_axis(["a"] * 4, axis=1), pa.table])
def test_columns_are_judged_whatever_their_names_and_library(convert):
    rng = np.random.default_rng(4)
    y = np.arange(80) % 2
    table = pd.DataFrame({"a": rng.random(80), "b": rng.random(80), "leak": y, "c": rng.random(80)})
    assert kinds(LogisticRegression(), convert(table), y) == ["leaking column"]
    twice = convert(pd.concat([table.drop(columns="leak").assign(d=rng.random(80))] * 2))
    assert kinds(LogisticRegression(), twice, np.r_[y, y]) == ["copies"]


def test_equal_rows_and_faulty_columns_are_found_once_where_the_table_was_screened():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 120)
    X = np.column_stack([rng.normal(size=(120, 3)), y])
    model = CalibratedClassifier(random_state=0)
    for table, labels, kind in (
        (X, y, "leaking column"),
        (np.vstack([X[:, :3]] * 2), np.tile(y, 2), "copies"),
    ):
        assert [finding.kind for finding in audit(model, table, labels)] == [kind]
        assert not list(find_faults(model, table, labels, None, is_screened=True))
