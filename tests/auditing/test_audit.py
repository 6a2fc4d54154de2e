"""An audit finds the faults that the table of hazards does not draw, and nothing in honest data."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from auditing.findings import forest, kinds
from vennforest import CalibratedClassifier, VennAbers, audit
from vennforest.auditing.audit import find_faults


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
