"""Models that were trained on the rows are told from those that were not."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from vennforest.sources.memory import remembers

MODELS = {
    "forest": RandomForestClassifier(20, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=40, random_state=0),
    "histograms": HistGradientBoostingClassifier(max_iter=30, random_state=0),
    "tree": DecisionTreeClassifier(min_samples_leaf=3, random_state=0),
    "neighbours": KNeighborsClassifier(1),
}
SIGNALS = {
    "coin": lambda X: 0 * X[:, 0],
    "line": lambda X: 2 * X[:, 0],
    "product": lambda X: 4 * X[:, 0] * X[:, 1],
    "steep": lambda X: 20 * X[:, 0],
}


def drawn(signal, n, rng):
    X = rng.normal(size=(n, 6))
    return X, (rng.random(n) < 1 / (1 + np.exp(-SIGNALS[signal](X)))).astype(int)


@pytest.mark.parametrize("signal", ["coin", "line", "product"])
@pytest.mark.parametrize("name", MODELS)
def test_a_model_remembers_the_noisy_labels_it_was_trained_on(name, signal):
    X, y = drawn(signal, 400, np.random.default_rng(1))
    assert remembers(MODELS[name].fit(X, y), X, y)


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("name", [*MODELS, "logistic"])
@pytest.mark.parametrize("n", [200, 2000])
def test_a_model_of_other_rows_does_not(name, signal, n):
    rng = np.random.default_rng(2)
    model = MODELS.get(name, LogisticRegression())
    assert not remembers(model.fit(*drawn(signal, n, rng)), *drawn(signal, 400, rng))


def test_tables_with_other_columns():
    rng = np.random.default_rng(3)
    X, y = drawn("coin", 300, rng)
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(sex=rng.integers(0, 2, 300))
    assert remembers(RandomForestClassifier(20, random_state=0).fit(frame, y), frame, y)
    whole, others = rng.integers(0, 6, (2, 300, 8))
    tree = DecisionTreeClassifier(min_samples_leaf=2, random_state=0).fit(whole, y)
    assert remembers(tree, whole, y)
    assert not remembers(tree, others, y)


EVEN = {
    "logistic": LogisticRegression(),
    "scaled": make_pipeline(StandardScaler(), LogisticRegression(C=0.1)),
    "bayes": GaussianNB(),
    "discriminant": LinearDiscriminantAnalysis(),
    "margins": LinearSVC(random_state=0),
    "descent": SGDClassifier(loss="log_loss", random_state=0),
}


@pytest.mark.parametrize("signal", SIGNALS)
@pytest.mark.parametrize("name", EVEN)
def test_a_linear_model_of_the_rows_is_known_by_a_copy(name, signal):
    rng = np.random.default_rng(5)
    X, y = drawn(signal, 400, rng)
    others, of_others = drawn(signal, 400, rng)
    model = EVEN[name].fit(X, y)
    assert remembers(model, X, y)
    order = rng.permutation(400)
    if name not in ("margins", "descent"):  # which take the rows one by one
        assert remembers(model, X[order], y[order])
    assert not remembers(model, others, of_others)


def test_a_sparse_table_that_a_model_was_trained_on():
    rng = np.random.default_rng(6)
    X, others = sparse.random_array((2, 300, 40), density=0.2, rng=rng).toarray()
    y = rng.integers(0, 2, 300)
    for model in (LogisticRegression(), DecisionTreeClassifier(max_depth=8, random_state=0)):
        model.fit(sparse.csr_array(X), y)
        assert remembers(model, sparse.csr_array(X), y)
        assert not remembers(model, sparse.csr_array(others), y)


@pytest.mark.parametrize("strategy", ["prior", "uniform"])
def test_a_model_that_learns_next_to_nothing_gives_the_same_for_all_rows(strategy):
    X, y = drawn("coin", 100, np.random.default_rng(7))
    assert not remembers(DummyClassifier(strategy=strategy).fit(X, y), X[::-1], y)


def test_a_model_that_takes_long_is_not_trained_on_all_rows():
    fits = []

    class Slow(GaussianNB):
        def fit(self, X, y):
            fits.append(len(y))
            np.linalg.inv(np.eye(300))
            return super().fit(X, y)

    X, y = drawn("line", 200_000, np.random.default_rng(8))
    model = Slow().fit(X, y)
    assert not remembers(model, X, y)
    assert fits == [200_000, 500]


def test_nothing_is_told_of_few_rows_or_a_model_that_cannot_be_trained():
    rng = np.random.default_rng(4)
    X, y = drawn("coin", 30, rng)
    assert not remembers(DecisionTreeClassifier().fit(X, y), X, y)

    class Fixed(GaussianNB):
        def fit(self, X, y):
            if len(y) < 200:
                raise ValueError("too few")
            return super().fit(X, y)

    X, y = drawn("coin", 300, rng)
    assert not remembers(Fixed().fit(X, y), X, y)
