"""Graphs that are run, and the same answers in Python."""

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import (
    RandomForestClassifier,
)

X, Y = make_classification(900, 6, random_state=0, flip_y=0.2)


NEW = X[500:]


def run(model, name, values):
    from onnxruntime import InferenceSession

    session = InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    return dict(zip(names, session.run(None, {name: values}), strict=True))


def of_python(model, X, confidence=True):
    """Return what a model answers in Python, (n,) for the second of two classes or (n, k)."""
    answers = {"p": model.predict_proba(X)}
    if hasattr(model, "predict_multiprobability"):
        bounds = model.predict_multiprobability(X)
        answers |= {"p0": bounds.lower, "p1": bounds.upper}
    if confidence:
        intervals = model.predict_confidence(X)
        answers |= {"low95": intervals.lower, "high95": intervals.upper}
    return {name: a[:, 1] if a.shape[1] == 2 else a for name, a in answers.items()}


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=0, atol=1e-12, err_msg=name)


def forest(**options):
    return RandomForestClassifier(20, random_state=0, **options)


def drawn_for(seed, k):
    """Return rows with ties and equal cells, some missing, and labels of k classes."""
    rng = np.random.default_rng([20261128, seed])
    rows = rng.normal(2, 1, size=(500, 5)).round(1)
    y = np.digitize(rows[:, 0] + rng.logistic(size=500) / 2, [2.0] if k == 2 else [1.0, 2.5])
    return rows, y


BOOSTERS = ["xgboost", "lightgbm", "catboost"]
