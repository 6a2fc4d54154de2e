"""Protected probabilities beside every sequence of experts written out, and what they promise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import vennforest
from oracles import monitoring as oracle
from support.forging import save_spoilt
from vennforest import CalibratedClassifier
from vennforest._validation import InputError
from vennforest.monitoring import ProtectedClassifier, stream_kernels
from vennforest.monitoring import protected as module
from vennforest.monitoring.protected import JUMPS, LEAST, experts


class Given:
    """A classifier whose rows are their probabilities."""

    def __init__(self, k=2):
        self.classes_ = np.arange(k)
        self.n_features_in_ = k

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.asarray(X, float)


def draw(rng, n, k=2):
    p = rng.dirichlet(np.ones(k), n)
    return p, (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


@pytest.mark.parametrize("k", [2, 3])
def test_mixture_is_over_every_sequence_of_experts(k):
    rng = np.random.default_rng(0)
    for _ in range(60):
        p = rng.dirichlet(np.ones(k), 4)
        codes = rng.integers(0, k, 4)
        jumps, wait = rng.uniform(0, 1, 2), float(rng.uniform(1, 8))
        sharpness, shifts = rng.uniform(0.3, 2, 2), rng.normal(size=(2, k))
        state, weights = np.array([0.5, 0.25, 0.25]), np.zeros((2, 2))
        out = np.empty((4, k))
        for a, b in ((0, 1), (1, 4)):  # in two parts
            stream_kernels.protect(
                np.log(p[a:b]),
                codes[a:b],
                a,
                sharpness,
                shifts,
                jumps,
                wait,
                state,
                weights,
                True,
                out[a:b],
            )
        how = list(zip(sharpness.tolist(), shifts.tolist(), strict=True))
        expected = oracle.protected(p.tolist(), codes.tolist(), how, jumps.tolist(), wait)
        assert_allclose(out, expected, rtol=1e-9)
        assert abs(state.sum() + weights.sum() - 1) < 1e-12


@settings(max_examples=40, deadline=None)
@given(
    st.integers(2, 4), st.integers(0, 2**32 - 1), st.sampled_from(["fair", "worst", "best", "any"])
)
def test_loss_is_at_most_that_of_the_model_and_ln_2(k, seed, who):
    """Whatever the labels, even chosen to hurt."""
    rng = np.random.default_rng(seed)
    p, codes = draw(rng, 60, k)
    p[rng.random(60) < 0.1] = np.eye(k)[rng.integers(k)]
    protected = ProtectedClassifier(Given(k))
    floored = np.maximum(p, LEAST)
    floored /= floored.sum(axis=1, keepdims=True)
    own = mine = 0.0
    for row, safe, code in zip(p, floored, codes, strict=True):
        before = protected.predict_proba(row[None])[0]
        y = {"fair": code, "worst": before.argmin(), "best": before.argmax()}.get(
            who, rng.integers(k)
        )
        found = protected.update(row[None], [y])[0]
        if protected.n_seen_ > 1:
            assert_array_equal(found, before)
        assert abs(found.sum() - 1) < 1e-12 and found.min() >= 0
        own -= np.log(safe[y])
        mine -= np.log(found[y])
    assert mine <= own + np.log(2) + 1e-9


def test_before_labels_it_is_the_model():
    rng = np.random.default_rng(1)
    p, codes = draw(rng, 50)
    protected = ProtectedClassifier(Given())
    assert_array_equal(protected.predict_proba(p), p)
    assert protected.model_weight_ == 1 and protected.n_seen_ == 0
    first = protected.update(p[:1], codes[:1])
    assert_allclose(first, p[:1], atol=0.002)  # a thousandth of half is followed from the start


def test_it_follows_a_change_and_leaves_the_model_alone():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6000, 2))
    y = np.where(
        X[:, 0] + rng.logistic(size=6000) > np.where(np.arange(6000) < 3000, 0, 2), "u", "v"
    )
    model = CalibratedClassifier(
        RandomForestClassifier(20, min_samples_leaf=10, random_state=0), random_state=0
    ).fit(X[:1000], y[:1000])
    protected = ProtectedClassifier(model)
    protected.update(X[1000:3000], y[1000:3000])
    assert protected.model_weight_ > 0.5
    given_ = protected.update(X[3000:], y[3000:])
    static = model.predict_proba(X[3000:])
    of_label = (y[3000:] == "v").astype(int)
    rows = np.arange(3000)
    assert -np.log(given_[rows, of_label]).mean() < -np.log(static[rows, of_label]).mean() - 0.1
    assert protected.model_weight_ < 0.1
    assert_array_equal(model.predict_proba(X[3000:]), static)
    assert set(protected.predict(X[3000:])) == {"u", "v"}


def test_parts_missing_labels_and_files(tmp_path):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 2))
    y = (X[:, 0] + rng.logistic(size=500) > 1).astype(int)
    model = LogisticRegression().fit(X[:100], 1 - y[:100])
    whole, parts = ProtectedClassifier(model), ProtectedClassifier(model)
    expected = whole.update(X[100:], y[100:])
    found = [parts.update(X[100:200], y[100:200])]
    gaps = parts.update(X[:3], [None, np.nan, None])
    assert parts.n_seen_ == 100
    assert_array_equal(gaps, parts.predict_proba(X[:3]))
    calibrated = CalibratedClassifier(model, calibrate_on="holdout", random_state=0)
    calibrated.fit(X[:100], 1 - y[:100])
    vennforest.save(parts, tmp_path / "protected.skops")
    read = vennforest.load(tmp_path / "protected.skops")
    found.append(read.update(X[200:], y[200:]))
    assert_array_equal(np.concatenate(found), expected)
    assert read.n_seen_ == 400
    read.fit()
    assert read.n_seen_ == 0
    vennforest.save(ProtectedClassifier(calibrated), tmp_path / "fresh.skops")
    assert vennforest.load(tmp_path / "fresh.skops").model_weight_ == 1
    for name, wrong in (
        ("waiting", parts._weights.waiting * 2),
        ("following", parts._weights.following[:, 1:]),
        ("n_seen", -1),
    ):
        spoilt = ProtectedClassifier(model)
        spoilt.update(X[100:110], y[100:110])
        object.__setattr__(spoilt._weights, name, wrong)
        save_spoilt(spoilt, tmp_path / "spoilt.skops")
        with pytest.raises(InputError, match="damaged"):
            vennforest.load(tmp_path / "spoilt.skops")


def test_what_is_refused_changes_nothing():
    rng = np.random.default_rng(4)
    p, codes = draw(rng, 20)
    protected = ProtectedClassifier(Given())
    protected.update(p, codes)
    before = protected.predict_proba(p)
    for X, y, message in (
        (p[:1], [7], "y must contain labels of classes"),
        (p[:2], [1], "y must have 2 labels"),
        ([[np.nan, 0.5]], [1], "what predict_proba returns must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            protected.update(X, y)
    assert_array_equal(protected.predict_proba(p), before)
    for model in (LogisticRegression(), LinearSVC().fit([[0], [1]], [0, 1])):
        with pytest.raises(
            InputError, match="model must be a fitted classifier with predict_proba"
        ):
            ProtectedClassifier(model).predict_proba([[0.0]])


@pytest.mark.parametrize("k", [2, 3, 5])
def test_experts_hold_the_model_once(k):
    sharpness, shifts = experts(k)
    same = (sharpness == 1) & (shifts == 0).all(axis=1)
    assert same.sum() == 1
    assert shifts.shape == (len(sharpness), k)
    assert len({(a, *b) for a, b in zip(sharpness, shifts.tolist(), strict=True)}) == len(sharpness)
    assert ((JUMPS > 0) & (JUMPS < 1)).all() and module.WAIT >= 1
