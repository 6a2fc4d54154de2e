"""Comparisons with other people's packages, and which value is right where they differ."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from vennforest import CalibratedClassifier, VennAbers
from vennforest.calibrators import BetaCalibration


def drawn(seed, n=400):
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.8, 1.2, n).clip(1e-6, 1 - 1e-6)
    y = (rng.random(n) < 0.1 + 0.7 * scores).astype(int)
    return scores, y


def log_loss(p, y):
    return -(y * np.log(p) + (1 - y) * np.log1p(-p)).mean()


@pytest.mark.parametrize("seed", range(4))
def test_beta_agrees_with_betacal(seed):
    """Within the tolerance that its solver stops at; the likelihood here is never worse."""
    betacal = pytest.importorskip("betacal")
    scores, y = drawn(seed)
    new = np.linspace(scores.min(), scores.max(), 200)
    model = BetaCalibration().fit(scores, y)
    assert (model.coef_[0, :2] > 0).all()
    with warnings.catch_warnings():  # it silences all warnings of the process
        peer = betacal.BetaCalibration("abm").fit(scores, y)
    assert_allclose(model.predict_proba(new)[:, 1], peer.predict(new), atol=5e-3)
    mine, peers = model.predict_proba(scores)[:, 1], peer.predict(scores)
    assert log_loss(mine, y) <= log_loss(peers, y) + 1e-4


@pytest.mark.parametrize("decimals", [1, 2, 15])
@pytest.mark.parametrize("seed", range(5))
def test_inductive_venn_abers_agrees_with_venn_abers(seed, decimals):
    scores, y = drawn(seed)
    scores = np.round(scores, decimals)
    y[scores == scores.max()] = 1
    new = np.concatenate([np.linspace(0, 1, 301), scores])
    peer = pytest.importorskip("venn_abers").VennAbers()
    with np.errstate(all="ignore"):
        peer.fit(np.column_stack([1 - scores, scores]), y)
        merged, bounds = peer.predict_proba(np.column_stack([1 - new, new]))
    model = VennAbers("log").fit(scores, y)
    m = model.predict_multiprobability(new)
    assert_allclose(m.p0, bounds[:, 0], rtol=0, atol=1e-12)
    assert_allclose(m.p1, bounds[:, 1], rtol=0, atol=1e-12)
    assert_allclose(model.predict_proba(new), merged, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", ["log", "brier"])
@pytest.mark.parametrize("seed", range(3))
def test_cross_venn_abers_agrees_with_venn_abers(loss, seed):
    package = pytest.importorskip("venn_abers")
    X, y = make_classification(300, 6, n_informative=3, flip_y=0.2, random_state=seed)
    peer = package.VennAbersCalibrator(
        GaussianNB(), inductive=False, n_splits=4, random_state=1, shuffle=True
    )
    peer.fit(X[:200], y[:200])
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    model = CalibratedClassifier(GaussianNB(), cv=folds, merge=loss).fit(X[:200], y[:200])
    found, expected = model.predict_proba(X[200:]), peer.predict_proba(X[200:], loss=loss)
    assert_allclose(found, expected, rtol=0, atol=1e-9)
