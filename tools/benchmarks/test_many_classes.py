"""Maps of logits of many classes beside those of scikit-learn, scipy and probmetrics.

Each case is measured in time, fit and predictions, and in the log loss of rows of the same kind.
"""

import contextlib
import io

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from vennforest import PooledCalibration, TemperatureScaling, VectorScaling

ROWS = {10: 10_000, 100: 10_000, 1_000: 5_000}
N_TEST = 5_000


def draw(k):
    """Return logits twice too steep, each also off by a number of its class, and labels."""
    rng = np.random.default_rng([20261127, k])
    n = ROWS[k] + N_TEST
    right = 2 * rng.normal(size=(n, k))
    y = (right + rng.gumbel(size=right.shape)).argmax(axis=1)
    y[:k] = np.arange(k)  # a row of each class calibrates
    logits = 2 * (right + 0.3 * rng.normal(size=k))
    return logits, y


class Logits(ClassifierMixin, BaseEstimator):
    """A network whose rows are its logits."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]


def by_scipy(logits, y, new):
    rows = np.arange(len(y))
    best = minimize_scalar(
        lambda t: -log_softmax(logits * np.exp(t), axis=1)[rows, y].mean(),
        bounds=(-4, 4), method="bounded",
    )  # fmt: skip
    return softmax(new * np.exp(best.x), axis=1)


def by_scikit_learn(logits, y, new):
    network = FrozenEstimator(Logits().fit(logits, y))
    return CalibratedClassifierCV(network, method="temperature").fit(logits, y).predict_proba(new)


def by_probmetrics(name):
    def calibrate(logits, y, new):
        calibrators = pytest.importorskip("probmetrics.calibrators")
        # It takes probabilities; there is no printing in the time that is measured.
        with contextlib.redirect_stdout(io.StringIO()):
            calibrator = calibrators.get_calibrator(name)
            calibrator.fit(softmax(logits, axis=1), y)
            return np.asarray(calibrator.predict_proba(softmax(new, axis=1)), np.float64)

    return calibrate


PEERS = {
    "scipy, temperature": by_scipy,
    "scikit-learn, temperature": by_scikit_learn,
    "probmetrics, temperature": by_probmetrics("temp-scaling"),
    "probmetrics, svs": by_probmetrics("svs"),
    "probmetrics, sms": by_probmetrics("sms"),
}
OURS = {
    "temperature": TemperatureScaling,
    "vector": VectorScaling,
    "pool": PooledCalibration,
}
PAIRS = [
    ("temperature", "scipy, temperature"),
    ("temperature", "scikit-learn, temperature"),
    ("temperature", "probmetrics, temperature"),
    ("vector", "probmetrics, svs"),
    ("pool", "probmetrics, sms"),
]


def loss(p, y):
    return -np.log(np.maximum(p[np.arange(len(y)), y], 1e-300)).mean()


@pytest.mark.parametrize("k", ROWS)
@pytest.mark.parametrize(("ours", "peer"), PAIRS)
def test_maps_of_logits(k, ours, peer, versus, record):
    logits, y = draw(k)
    n = ROWS[k]
    answers = {}

    def run_ours():
        model = OURS[ours]().fit(logits[:n], y[:n], classes=np.arange(k))
        answers["ours"] = model.predict_proba(logits[n:])

    def run_peer():
        answers["peer"] = PEERS[peer](logits[:n], y[:n], logits[n:])

    work = f"{ours} of logits, {n:,} rows, {k:,} classes"
    versus(work, peer, run_ours, run_peer, None, rounds=1 if k == 1_000 else 3)
    losses = {name: loss(p, y[n:]) for name, p in answers.items()}
    record(work, f"{peer}: log loss", losses["ours"], None, losses["peer"], unit="")
