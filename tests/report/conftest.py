"""Evaluations that several tests look at."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from support.quick_fits import quick_fits
from support.report_data import SCRIPT, nasty_table
from vennforest.report import evaluate


@pytest.fixture(scope="session")
def cancer():
    bunch = load_breast_cancer(as_frame=True)
    costs = {"benign": {"wait": 0, "operate": 1}, "malignant": {"wait": 5, "operate": 0.5}}
    options = {"name": "breast cancer", "target": "diagnosis", "costs": costs, "n_trees": 20}
    with quick_fits():
        return evaluate(bunch.data, bunch.target_names[bunch.target], n_folds=3, **options)


@pytest.fixture(scope="session")
def nasty():
    X, y = nasty_table()
    with quick_fits():
        return evaluate(X, y, n_folds=3, n_trees=20, target=SCRIPT, name=SCRIPT)


def draw_linear_rows(n=240):
    """Rows of a linear log-odds, which a small forest does not fit well."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 8))
    return X, (X @ np.arange(8) + 2 * rng.logistic(size=n) > 0).astype(int)


@pytest.fixture(scope="session")
def linear_rows():
    """Return a function that draws n rows of a linear log-odds, and labels."""
    return draw_linear_rows


@pytest.fixture(scope="session")
def blended():
    """An evaluation of a small forest beside logistic regression and the blend of both."""
    X, y = draw_linear_rows()
    options = {"methods": ["venn-abers"], "n_folds": 3, "n_trees": 20}
    with quick_fits():
        return evaluate(X, y, compare=["logistic"], **options)
