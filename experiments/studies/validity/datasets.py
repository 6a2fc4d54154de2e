"""Real data as a process: a random fifth of a data set is new, and its truth is its labels."""

import os

import numpy as np
import pandas as pd
from experiments.studies.validity.processes import PROCESSES, Process, Sample

from vennforest_experiments.datasets import load

PREFIX = "data:"


def process(name):
    """Return the process of a name; ``data:NAME`` is a data set in the folder VENNFOREST_DATA."""
    if not name.startswith(PREFIX):
        return PROCESSES[name]
    X, y = table(name.removeprefix(PREFIX))
    classes = int(y.max()) + 1

    def draw(rng, n, m):
        order = rng.permutation(len(y))
        test, train = order[: len(y) // 5], order[len(y) // 5 :]
        return Sample(X[train], y[train], X[test], np.eye(classes)[y[test]])

    return Process(name, classes, draw)


def table(name):
    """Return a data set as numbers (a column a category) and class codes.

    Missing numbers are the column's median: the quick forests take none.
    """
    data = load(name, data_dir=os.environ["VENNFOREST_DATA"])
    X = pd.get_dummies(data.X, dummy_na=False, dtype=float)
    X = X.fillna(X.median()).to_numpy(np.float64)
    return X, np.unique(np.asarray(data.y), return_inverse=True)[1]
