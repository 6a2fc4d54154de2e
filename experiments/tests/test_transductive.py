"""Bounds by retraining: beside the naive double loop, by enumeration and by simulation."""

import functools
from fractions import Fraction

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from oracles import formulas as oracle
from theorems.test_enumeration import POINTS, Frequencies, Sums, bags, exact, table, with_one_new
from theorems.test_validity import LIMIT, calibration_z, draw_objects, unbiasedness_z
from vennforest.calibrators.bounded import normalised_bounds
from vennforest_experiments.transductive import (
    TransductiveClassifier,
    isotonic_value,
    label_values,
)


def transductive_scores(estimator, X, y, x, label):
    """Train on the training set plus (x, label) and score everybody with that model."""
    extended = [*X, x]
    model = estimator.fit(extended, [*y, label])
    if hasattr(model, "predict_proba"):
        scores = model.predict_proba(extended)
        return [row[1] for row in scores] if len(scores[0]) == 2 else [list(row) for row in scores]
    scores = model.decision_function(extended)
    return [list(row) for row in scores] if scores.ndim == 2 else list(scores)


def transductive_venn_abers(make_estimator, X, y, x, n_classes):
    """Vovk & Petej (2014), Algorithm 1: every class's isotonic value for each tentative label.

    Returns values[v][j]: of the indicator of class j, read at x, in the model trained with (x, v).
    Two classes: the one fit of class 1, and its complement for class 0.
    """
    values = []
    for v in range(n_classes):
        scores = transductive_scores(make_estimator(), X, y, x, v)
        labels = [*y, v]
        if n_classes == 2:
            p = oracle.isotonic_max_min(scores, labels)[float(scores[-1])]
            values.append([1 - p, p])
            continue
        row = []
        for j in range(n_classes):
            column = [s[j] for s in scores]
            fitted = oracle.isotonic_max_min(column, [int(label == j) for label in labels])
            row.append(fitted[float(column[-1])])
        values.append(row)
    return values


def transductive_venn(make_estimator, X, y, x, n_classes, category):
    """The transductive Venn predictor: [(min, max) over tentative labels] of every class."""
    shares = []
    for v in range(n_classes):
        scores = transductive_scores(make_estimator(), X, y, x, v)
        categories = [category(s) for s in scores]
        mates = [label for label, c in zip([*y, v], categories, strict=True) if c == categories[-1]]
        shares.append([Fraction(mates.count(j), len(mates)) for j in range(n_classes)])
    return [(min(s[j] for s in shares), max(s[j] for s in shares)) for j in range(n_classes)]


def draw_bag(rng, n, k):
    """Objects and labels, at least two of each class, so that any n - 1 of them train a model.

    A condition on the first n - 1 alone would break the exchangeability that the theorem needs.
    """
    while True:
        X, y = draw_objects(rng, n, k)
        if np.bincount(y, minlength=k).min() >= 2:
            return X, y


def draw_data(seed, n=18, k=2, d=2, discrete=False):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (n + 5, d)).astype(float) if discrete else rng.normal(size=(n + 5, d))
    y = np.argsort(np.argsort(X[:, 0] + rng.normal(size=n + 5))) * k // (n + 5)
    y[:k] = range(k)
    return X[:n], y[:n], X[n:]


ESTIMATORS = {
    "naive Bayes": GaussianNB,
    "tree": functools.partial(DecisionTreeClassifier, max_depth=2, random_state=0),
    "neighbours": functools.partial(KNeighborsClassifier, 3),
    "decision values": functools.partial(RidgeClassifier, solver="cholesky"),
}


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("estimator", "discrete"),
    # The oracle keeps equal rows apart where matrix products round them differently.
    [("naive Bayes", False), ("tree", True), ("neighbours", True), ("decision values", False)],
)
def test_venn_abers_equals_the_naive_double_loop(estimator, k, discrete):
    X, y, new = draw_data(3, n=14, k=k, discrete=discrete)
    m = TransductiveClassifier(ESTIMATORS[estimator]()).fit(X, y).predict_multiprobability(new)
    for i, x in enumerate(new):
        values = transductive_venn_abers(ESTIMATORS[estimator], X, y, x, k)
        p0 = np.array([[float(min(row[j] for row in values)) for j in range(k)]])
        p1 = np.array([[float(max(row[j] for row in values)) for j in range(k)]])
        lower, upper = (p0, p1) if k == 2 else normalised_bounds(p0, p1)
        np.testing.assert_allclose(m.lower[i], lower[0], rtol=0, atol=1e-12)
        np.testing.assert_allclose(m.upper[i], upper[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("estimator", ["naive Bayes", "tree", "neighbours"])
@pytest.mark.parametrize("k", [2, 3])
def test_venn_equals_the_naive_double_loop(estimator, k):
    X, y, new = draw_data(4, k=k)
    model = TransductiveClassifier(ESTIMATORS[estimator](), method="venn").fit(X, y)
    m = model.predict_multiprobability(new)
    for i, x in enumerate(new):
        values = transductive_venn(ESTIMATORS[estimator], X, y, x, k, oracle.label_category)
        np.testing.assert_allclose(m.lower[i], [float(low) for low, _ in values], atol=1e-12)
        np.testing.assert_allclose(m.upper[i], [float(up) for _, up in values], atol=1e-12)


def test_isotonic_value_equals_the_oracle():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n = int(rng.integers(2, 20))
        scores, y = rng.integers(0, 6, n) / 5, rng.integers(0, 2, n)
        fitted = oracle.isotonic_max_min(list(scores), list(y))
        value = isotonic_value(scores, y, np.ones(n), -1)
        assert value == pytest.approx(float(fitted[float(scores[-1])]), abs=1e-12)


@pytest.mark.parametrize("venn", [False, True])
def test_every_bag_of_five_objects_is_calibrated_exactly(venn):
    """Every bag of five objects and labels, each of them new once, under both labels."""
    for bag in bags(POINTS, 5):
        sums = Sums()
        for others, (x, y) in with_one_new(bag):
            X, labels = table([*others, (x, 0)])
            values = label_values(Frequencies(), X, labels[:-1], np.arange(2), venn)
            p = exact(values[y, 1], 5)
            sums.add(y, (1 - p, p))
        assert sums.deviation() == 0


@pytest.mark.slow
@pytest.mark.parametrize(("venn", "k"), [(False, 2), (False, 3), (True, 2), (True, 3)])
def test_the_bound_of_the_true_label_is_calibrated(venn, k):
    rng = np.random.default_rng(7)
    labels, values = [], []
    for _ in range(700):
        X, y = draw_bag(rng, 15, k)
        labels.append(y[-1])
        values.append(label_values(GaussianNB(), X, y[:-1], np.arange(k), venn))
    y, values = np.array(labels), np.array(values)
    assert np.abs(calibration_z(y, values[np.arange(len(y)), y])).max() < LIMIT
    assert unbiasedness_z(y, values.min(axis=1), values.max(axis=1)).min() > -LIMIT
    wrong = values[np.arange(len(y)), (y + 1) % k]
    assert np.abs(calibration_z(y, wrong)).max() > LIMIT


@pytest.mark.parametrize("method", ["venn-abers", "venn"])
def test_an_object_is_predicted_by_itself(method):
    X, y, new = draw_data(5, k=3)
    model = TransductiveClassifier(GaussianNB(), method=method, n_jobs=2).fit(X, y)
    alone = np.vstack([model.predict_proba(row[None]) for row in new])
    np.testing.assert_array_equal(model.predict_proba(new), alone)
    assert (model.predict(new) == model.classes_[alone.argmax(axis=1)]).all()


def test_random_state_reaches_every_step_that_has_none_of_its_own():
    X, y, new = draw_data(6)
    tree = DecisionTreeClassifier(max_features=1, splitter="random")
    first, second = (TransductiveClassifier(tree, random_state=3).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(new), second.predict_proba(new))


def test_what_is_refused():
    X, y, _ = draw_data(7)
    with pytest.raises(ValueError, match='method must be "venn-abers" or "venn"'):
        TransductiveClassifier(method="platt").fit(X, y)
    with pytest.raises(ValueError, match="y must contain at least two classes, got one class"):
        TransductiveClassifier().fit(X, np.zeros(len(X)))
