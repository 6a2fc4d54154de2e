"""Comparisons with other people's packages, and which value is right where they differ."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, softmax
from sklearn.calibration import CalibratedClassifierCV, _SigmoidCalibration, _TemperatureScaling
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB

from vennforest import CalibratedClassifier, VennAbers
from vennforest.calibrators import BetaCalibration, PlattScaling, TemperatureScaling
from vennforest.calibrators.isotonic import IsotonicCalibration


def drawn(seed, n=400):
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.8, 1.2, n).clip(1e-6, 1 - 1e-6)
    y = (rng.random(n) < 0.1 + 0.7 * scores).astype(int)
    return scores, y, rng.random(n) * 3


# --- scikit-learn: Platt ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_platt_agrees_with_scikit_learn(seed, weighted):
    scores, y, weight = drawn(seed)
    weight = weight if weighted else None
    peer = _SigmoidCalibration().fit(scores, y, sample_weight=weight)
    model = PlattScaling(on="score").fit(scores, y, sample_weight=weight)
    assert_allclose(model.predict_proba(scores)[:, 1], peer.predict(scores), atol=2e-5)
    A = -model.slope_ / model.scale_
    B = model.slope_ * model.center_ / model.scale_ - model.intercept_
    assert_allclose([A[0], B[0]], [peer.a_, peer.b_], rtol=1e-4, atol=1e-4)


def platt_loss(p, y):
    n1, n0 = y.sum(), (1 - y).sum()
    t = np.where(y == 1, (n1 + 1) / (n1 + 2), 1 / (n0 + 2))
    return -(t * np.log(p) + (1 - t) * np.log1p(-p)).mean()


@pytest.mark.parametrize(("scale", "offset"), [(1e-9, 0), (1e-9, 1), (1e-5, 25)])
def test_platt_finds_the_maximum_where_scikit_learn_stays_at_the_start(scale, offset):
    """Scores close together: its gradient is below its tolerance. The likelihood tells."""
    scores, y, _ = drawn(0)
    moved = scores * scale + offset
    expected = PlattScaling(on="score").fit(scores, y).predict_proba(scores)[:, 1]
    mine = PlattScaling(on="score").fit(moved, y).predict_proba(moved)[:, 1]
    peers = _SigmoidCalibration().fit(moved, y).predict(moved)
    assert_allclose(mine, expected, rtol=1e-4)  # the digits that the offset left
    assert platt_loss(mine, y) < platt_loss(peers, y) - 0.1


# --- scikit-learn: isotonic ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("decimals", [1, 2, 15])
def test_linear_isotonic_agrees_with_scikit_learn(seed, decimals):
    scores, y, weight = drawn(seed)
    scores = np.round(scores, decimals)
    new = np.linspace(-0.5, 1.5, 1001)
    for w in (None, weight):
        peer = IsotonicRegression(out_of_bounds="clip").fit(scores, y, sample_weight=w)
        model = IsotonicCalibration(between="linear").fit(scores, y, sample_weight=w)
        assert_allclose(model.predict_proba(new)[:, 1], peer.predict(new), atol=1e-9)


def test_neighbours_one_ulp_apart_are_two_points_where_scikit_learn_makes_them_one():
    scores = np.array([0.5, np.nextafter(0.5, 1)])
    mine = IsotonicCalibration(between="linear").fit(scores, [0, 1]).predict_proba(scores)
    peer = IsotonicRegression(out_of_bounds="clip").fit(scores, [0, 1]).predict(scores)
    assert mine[:, 1].tolist() == [0, 1]  # the non-decreasing map with no error at all
    assert peer.tolist() == [0.5, 0.5]


# --- scikit-learn: temperature ---------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 6])
@pytest.mark.parametrize("seed", range(3))
def test_temperature_agrees_with_scikit_learn(k, seed):
    rng = np.random.default_rng(seed)
    logits = rng.normal(scale=2, size=(300, k))
    y = np.array([rng.choice(k, p=softmax(row / 1.7)) for row in logits])
    weight = rng.random(300)
    for scores in (logits, softmax(logits, axis=1)):
        for w in (None, weight):
            peer = _TemperatureScaling().fit(scores, y, sample_weight=w)
            model = TemperatureScaling().fit(scores, y, sample_weight=w)
            assert_allclose(model.temperature_, 1 / peer.beta_, rtol=1e-6)
            assert_allclose(model.predict_proba(scores), peer.predict(scores), atol=1e-6)


def test_temperature_of_one_column_agrees_with_scikit_learn():
    """There one column x stands for (-x, x), here for (0, x): twice the temperature, same p."""
    rng = np.random.default_rng(0)
    x = rng.normal(scale=3, size=300)
    y = (rng.random(300) < expit(x / 2)).astype(int)
    peer = _TemperatureScaling().fit(x, y)
    model = TemperatureScaling().fit(x, y)
    assert_allclose(model.temperature_, 0.5 / peer.beta_, rtol=1e-6)
    assert_allclose(model.predict_proba(x), peer.predict(x), atol=1e-6)


def test_temperature_is_right_for_labels_that_are_not_0_1_2():
    """scikit-learn's map takes labels for column numbers; its front door encodes them first."""
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 300)
    y = np.array([rng.choice(3, p=row) for row in p])
    expected = _TemperatureScaling().fit(p, y).predict(p)
    for labels in ([1, 2, 3], [-1, 0, 1], ["a", "b", "c"]):
        model = TemperatureScaling().fit(p, np.array(labels)[y])
        assert_allclose(model.predict_proba(p), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("method", "calibrator"),
    [
        ("sigmoid", PlattScaling(on="score")),
        ("isotonic", IsotonicCalibration(between="linear")),
        ("temperature", TemperatureScaling()),
    ],
)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [GaussianNB(), LogisticRegression()], ids=repr)
def test_a_calibrated_classifier_of_scikit_learn_gives_the_same(
    method, calibrator, n_classes, estimator
):
    X, y = make_classification(
        900, 8, n_informative=5, n_classes=n_classes, flip_y=0.2, random_state=0
    )
    y = np.array(["x", "y", "z"])[y]
    fitted = estimator.fit(X[:300], y[:300])
    response = getattr(fitted, "decision_function", fitted.predict_proba)
    peer = CalibratedClassifierCV(FrozenEstimator(fitted), method=method, ensemble=False, cv=2)
    peer.fit(X[300:600], y[300:600])
    model = calibrator.fit(response(X[300:600]), y[300:600])
    new = X[600:]
    if method == "temperature" and isinstance(estimator, GaussianNB):
        # Beyond the calibration set's smallest probabilities log-odds are not extrapolated here.
        seen = response(X[300:600])
        new = new[(response(new) >= seen.min()).all(axis=1)]
        assert len(new) > 250
    mine, peers = model.predict_proba(response(new)), peer.predict_proba(new)
    assert_allclose(mine, peers, atol=3e-4 if method == "sigmoid" else 1e-6)


# --- betacal ---------------------------------------------------------------------------------


def betacal_of(scores, y, new):
    betacal = pytest.importorskip("betacal")
    with warnings.catch_warnings():  # it silences all warnings of the process
        return betacal.BetaCalibration("abm").fit(scores, y).predict(new)


def log_loss(p, y):
    return -(y * np.log(p) + (1 - y) * np.log1p(-p)).mean()


@pytest.mark.parametrize("seed", range(4))
def test_beta_agrees_with_betacal(seed):
    """Within the tolerance that its solver stops at; the likelihood here is never worse."""
    scores, y, _ = drawn(seed)
    new = np.linspace(scores.min(), scores.max(), 200)
    model = BetaCalibration().fit(scores, y)
    assert (model.coef_[0, :2] > 0).all()
    peers = betacal_of(scores, y, new)
    assert_allclose(model.predict_proba(new)[:, 1], peers, atol=5e-3)
    mine, peers = model.predict_proba(scores)[:, 1], betacal_of(scores, y, scores)
    assert log_loss(mine, y) <= log_loss(peers, y) + 1e-4


# --- venn-abers ------------------------------------------------------------------------------


def peer_of(scores, y, new, **settings):
    """Its merged probabilities (n, 2) and its bounds (n, 2)."""
    package = pytest.importorskip("venn_abers")
    peer = package.VennAbers()
    with np.errstate(all="ignore"):
        peer.fit(np.column_stack([1 - scores, scores]), y, **settings)
        return peer.predict_proba(np.column_stack([1 - new, new]))


@pytest.mark.parametrize("decimals", [1, 2, 15])
@pytest.mark.parametrize("seed", range(5))
def test_inductive_venn_abers_agrees_with_venn_abers(seed, decimals):
    scores, y, _ = drawn(seed)
    scores = np.round(scores, decimals)
    y[scores == scores.max()] = 1
    new = np.concatenate([np.linspace(0, 1, 301), scores])
    merged, bounds = peer_of(scores, y, new)
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


def test_rounding_calibration_scores_alone_moves_the_bounds_there_and_is_not_done_here():
    """``precision`` rounds calibration scores and not new ones, which then meet other neighbours.

    The right value is that of the definition: the isotonic fit to the pairs and the new one.
    """
    scores, y, _ = drawn(0)
    new = scores[:50]
    m = VennAbers().fit(scores, y).predict_multiprobability(new)
    for i, s in enumerate(new):
        for label, found in ((0, m.p0[i]), (1, m.p1[i])):
            fit = IsotonicRegression().fit(np.append(scores, s), np.append(y, label))
            assert_allclose(found, fit.predict([s])[0], atol=1e-9)
    rounded = peer_of(scores, y, new, precision=2)[1]
    assert np.abs(rounded[:, 0] - m.p0).max() > 0.05


def test_labels_1_and_2_are_labels_where_venn_abers_takes_them_for_numbers():
    scores, y, _ = drawn(0)
    new = np.linspace(0, 1, 20)
    expected = VennAbers("log").fit(scores, y).predict_proba(new)
    assert_allclose(VennAbers("log").fit(scores, y + 1).predict_proba(new), expected, atol=0)
    peers = peer_of(scores, y + 1, new)[0]
    assert peers.max() > 1.1 or peers.min() < -0.1  # no probabilities


# --- scikit-learn: the whole way -------------------------------------------------------------


@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    ("name", "method", "atol"),
    [
        ("sigmoid", "platt", 3e-4),
        ("isotonic", IsotonicCalibration(between="linear"), 1e-6),
        ("temperature", "temperature", 1e-5),
    ],
)
def test_calibration_on_folds_agrees_with_calibrated_classifier_cv(
    name, method, atol, n_classes, ensemble
):
    X, y = make_classification(
        700, 8, n_informative=5, n_classes=n_classes, flip_y=0.2, random_state=1
    )
    base = LogisticRegression()  # its decision values are what the other package calibrates

    class Decision(LogisticRegression):
        predict_proba = property()

    peer = CalibratedClassifierCV(base, method=name, cv=4, ensemble=ensemble).fit(X[:500], y[:500])
    model = CalibratedClassifier(Decision(), method=method, cv=4, ensemble=ensemble)
    model.fit(X[:500], y[:500])
    found, expected = model.predict_proba(X[500:]), peer.predict_proba(X[500:])
    assert_allclose(found, expected, rtol=0, atol=atol)
