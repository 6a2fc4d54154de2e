"""Evaluations that several tests look at."""

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
