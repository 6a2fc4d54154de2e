"""The theorems for whole classifiers by simulation: Vovk & Petej (2014), Theorem 1, Corollary 1.

A Venn predictor has a selector that is perfectly calibrated: of the distributions P^v it gives for
the tentative labels v, the one of the true label Y. So E[(1{Y = j} - P^Y(j)) g(P^Y)] = 0 for every
class j and every function g. Each test estimates such expectations over independent repetitions,
each with its own calibration set and one new object, and refuses means more than four standard
errors away from 0. Seeds are fixed: the tests are sharp for faults and give no false alarms.
"""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier

LIMIT = 4.0


def z_value(differences):
    """Mean over standard error, for independent differences."""
    error = differences.std(ddof=1) / np.sqrt(len(differences))
    return 0.0 if error == 0 else differences.mean() / error


def calibration_z(y, selected):
    """z values of E[(1{Y = j} - p_j) g(p_j)] for several g and every class j."""
    values = []
    for j in range(selected.shape[1]):
        p, off = selected[:, j], (y == j) - selected[:, j]
        gs = (np.ones_like(p), p, p**2, p < 0.3, (p >= 0.3) & (p < 0.6), p >= 0.6)
        values += [z_value(off * g) for g in gs]
    return np.array(values)


def unbiasedness_z(y, lower, upper):
    """z values of Corollary 1, E lower <= P(Y = j) <= E upper: both not far below 0."""
    is_label = y[:, None] == np.arange(lower.shape[1])
    return np.array([z_value(column) for column in (*(is_label - lower).T, *(upper - is_label).T)])


def select(y, lower, upper):
    """The distribution of the true label: its upper bound, and everybody else's lower bound."""
    return np.where(np.arange(lower.shape[1]) == y[:, None], upper, lower)


def draw_objects(rng, n, k=2):
    X = rng.normal(size=(n, 2))
    noisy = X[:, 0] + 1.5 * rng.normal(size=n)
    return X, np.digitize(noisy, [0.6] if k == 2 else [-0.6, 1.0])


def simulate_classifier(make, repetitions, n, seed=0, objects=draw_objects):
    """Return labels and bounds of one new object a repetition, each with a model of its own."""
    rng = np.random.default_rng(seed)
    ys, lower, upper = [], [], []
    for repetition in range(repetitions):
        X, y = objects(rng, n + 1)
        while np.bincount(y, minlength=2).min() < 2:
            X, y = objects(rng, n + 1)
        model = make(repetition).fit(X[:-1], y[:-1])
        m = model.predict_multiprobability(X[-1:])
        ys.append(y[-1])
        lower.append(m.lower[0])
        upper.append(m.upper[0])
    return np.array(ys), np.array(lower), np.array(upper)


@pytest.mark.parametrize(
    ("method", "repetitions"),
    [("venn-abers", 200), pytest.param("venn", 300, marks=pytest.mark.slow)],
)
@pytest.mark.filterwarnings("ignore:.*out of bag for no tree")
def test_out_of_bag_bounds_hold_for_an_object_that_takes_an_examples_place(method, repetitions):
    def make(seed):
        forest = RandomForestClassifier(6, max_depth=2, random_state=seed)
        merge = "log" if method == "venn-abers" else "auto"
        return CalibratedClassifier(
            forest, method=method, subforest="exchangeable", merge=merge, random_state=seed
        )

    y, lower, upper = simulate_classifier(make, repetitions, 30)
    assert np.abs(calibration_z(y, select(y, lower, upper))).max() < LIMIT
    assert unbiasedness_z(y, lower, upper).min() > -LIMIT
    assert np.abs(calibration_z(y, select(1 - y, lower, upper))).max() > LIMIT


class Memory(ClassifierMixin, BaseEstimator):
    """Knows the label of every object it was trained on, and says 1 of any other."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = {tuple(x): label for x, label in zip(X.tolist(), y, strict=True)}
        return self

    def predict_proba(self, X):
        p = np.array([self.known_.get(tuple(x), 1) for x in X.tolist()], float)
        return np.column_stack([1 - p, p])


def test_calibrating_on_the_training_set_is_not_valid_and_on_other_data_is():
    """Vovk & Petej (2014), Proposition 2: bounds of a model that was scored on its own examples.

    All training scores are right, so p0 of a new object is near 1, while few objects are of class
    1. The same model calibrated on objects that are new to it is valid.
    """

    def objects(rng, n):
        return rng.normal(size=(n, 1)), (rng.random(n) < 0.3).astype(int)

    def on(source):
        return lambda seed: CalibratedClassifier(
            Memory(), calibrate_on=source, merge="log", random_state=seed
        )

    y, lower, upper = simulate_classifier(on("training"), 120, 30, objects=objects)
    assert unbiasedness_z(y, lower, upper).min() < -10
    assert lower[:, 1].mean() > y.mean() + 0.4
    y, lower, upper = simulate_classifier(on("holdout"), 120, 30, objects=objects)
    assert unbiasedness_z(y, lower, upper).min() > -LIMIT
