"""Naïve Bayes and imputation on columns of numbers and codes, against formulas and peers."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from sklearn.impute import SimpleImputer
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.preprocessing import OneHotEncoder

from vennforest_experiments.papers.protocol.learners import FilledOneHot, MixedNaiveBayes

# --- naïve Bayes -----------------------------------------------------------------------------


def test_kernel_naive_bayes_is_the_formula_with_missing_cells():
    """Against integrals of the kernels by quadrature, cell by cell."""

    def share(column, gap, x):
        rounded = [round(v / gap) * gap for v in column]
        sd = max((max(rounded) - min(rounded)) / math.sqrt(len(rounded)), gap / 6)

        def density(t):
            return sum(math.exp(-(((t - v) / sd) ** 2) / 2) for v in rounded)

        area = quad(density, x - gap / 2, x + gap / 2)[0]
        return area / (len(rounded) * sd * math.sqrt(2 * math.pi))

    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(30):
        n = int(rng.integers(6, 15))
        X = np.column_stack([rng.normal(size=n).round(1), rng.exponential(size=n), np.ones(n)])
        X[rng.random(X.shape) < 0.15] = np.nan
        y = rng.permutation(np.arange(n) % 2)
        gaps = []
        for column in X.T:
            distinct = np.unique(column[~np.isnan(column)])
            several = len(distinct) > 1
            gaps.append((distinct[-1] - distinct[0]) / (len(distinct) - 1) if several else 0.01)
        p = MixedNaiveBayes(density="kernel").fit(X, y).predict_proba(X)
        for row, found in zip(X, p[:, 1], strict=True):
            odds = (np.sum(y == 1) + 1) / (np.sum(y == 0) + 1)
            for j, x in enumerate(row):
                given = [X[(y == c) & ~np.isnan(X[:, j]), j] for c in (0, 1)]
                if math.isnan(x) or not all(map(len, given)):
                    continue
                below, above = (max(share(v, gaps[j], x), 1e-75) for v in given)
                odds *= above / below
            assert found == pytest.approx(odds / (1 + odds), abs=1e-7)
            compared += 1
    assert compared > 250
    with pytest.raises(ValueError, match="density must be"):
        MixedNaiveBayes(density="flat").fit(X, y)


def test_naive_bayes_agrees_with_scikit_learn_on_columns_of_one_kind():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 200)
    numbers = rng.normal(size=(200, 3)) + y[:, None]
    ours = MixedNaiveBayes((0, 0, 0), smoothing=1e-12).fit(numbers, y).predict_proba(numbers)
    theirs = GaussianNB(var_smoothing=0).fit(numbers, y).predict_proba(numbers)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)
    names = np.column_stack([(y + rng.integers(0, 2, 200)) % 4, rng.integers(0, 3, 200)])
    names[:4, 0], names[:3, 1] = np.arange(4), np.arange(3)
    ours = MixedNaiveBayes((4, 3)).fit(names, y).predict_proba(names)
    prior = (np.bincount(y) + 1) / 203
    theirs = CategoricalNB(alpha=1, class_prior=prior).fit(names, y).predict_proba(names)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


# --- imputation ------------------------------------------------------------------------------


def test_filled_columns_are_those_of_the_training_part():
    nan = np.nan
    X = np.array([[1.0, 0, 2, nan], [nan, 1, 2, nan], [4.0, 1, 0, nan], [nan, nan, nan, nan]])
    model = FilledOneHot((0, 2, 3, 0)).fit(X)
    assert model.transform(X).tolist() == [
        [1, 0, 0, 0, 1, 0],
        [2.5, 1, 0, 0, 1, 0],
        [4, 1, 1, 0, 0, 0],
        [2.5, 1, 0, 0, 1, 0],
    ]
    new = np.array([[nan, nan, 1, 7.0]])
    assert model.transform(new).tolist() == [[2.5, 1, 0, 1, 0, 7]]
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=40), rng.integers(0, 4, 40), rng.integers(0, 2, 40)])
    X[rng.random(X.shape) < 0.3] = nan
    numbers = SimpleImputer().fit_transform(X[:, :1])
    names = SimpleImputer(strategy="most_frequent").fit_transform(X[:, 1:])
    wide = OneHotEncoder(drop="if_binary", sparse_output=False).fit_transform(names)
    found = FilledOneHot((0, 4, 2)).fit_transform(X)
    np.testing.assert_allclose(found, np.column_stack([numbers, wide]))
