"""Platt scaling against Newton steps with 60 digits, and where its maximum is hard to reach."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, logit, softmax

from oracles import formulas as oracle
from vennforest._messages import CalibrationWarning
from vennforest.calibrators import PlattScaling, make_calibrator
from vennforest.counts import ScoreCounts


def fit_platt(scores, y, weight=None, targets="smoothed", on="score"):
    return PlattScaling(targets, on).fit(scores, y, sample_weight=weight, classes=[0, 1])


def parameters(model):
    """A and B of ``1 / (1 + exp(A s + B))``."""
    slope = model.slope_ / model.scale_
    return -slope, slope * model.center_ - model.intercept_


def second(model, scores):
    return model._predict_proba(np.asarray(scores, float))[:, 1]


def drawn(rng, n=None):
    """A small calibration set of random size, scale, offset, ties and weights."""
    n = n or int(rng.integers(2, 14))
    scores = rng.normal(size=n)
    if rng.random() < 0.4:
        scores = np.round(scores)
    scores = scores * 10.0 ** rng.integers(-9, 10)
    y = (rng.random(n) < expit(scores / (np.abs(scores).max() or 1))).astype(float)
    weight = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else None
    return scores, y, weight


@pytest.mark.parametrize("targets", ["smoothed", "hard"])
def test_the_fit_agrees_with_the_oracle(targets):
    rng = np.random.default_rng(0)
    for _ in range(25):
        scores, y, weight = drawn(rng)
        ones, zeros = scores[y == 1], scores[y == 0]
        is_separable = not len(ones) or not len(zeros)
        is_separable = is_separable or ones.min() >= zeros.max() or zeros.min() >= ones.max()
        if np.ptp(scores) == 0 or (targets == "hard" and is_separable):
            continue  # no finite maximum
        target = oracle.platt_targets(y, weight, targets)
        slope, intercept = oracle.logistic_fit([scores], target, weight)
        found = fit_platt(scores, y, weight, targets)
        expected = expit(slope * scores + intercept)
        assert_allclose(second(found, scores), expected, rtol=1e-10)
        A, B = parameters(found)
        if abs(slope) * np.ptp(scores) > 1e-6:  # else A is a rounding error
            assert_allclose(A, -slope, rtol=1e-8)
        assert_allclose(B, -intercept, rtol=1e-8, atol=1e-10)


def test_zeros_and_ones_stand_halfway_to_their_neighbours():
    scores = np.array([0.0, 0.004, 0.3, 0.9, 0.998, 1.0])
    y = np.array([0, 1, 0, 1, 0, 1.0])
    moved = np.array([0.002, 0.004, 0.3, 0.9, 0.998, 0.999])
    expected = fit_platt(logit(moved), y)
    found = fit_platt(scores, y, on="probability")
    assert_allclose(second(found, scores), second(expected, logit(moved)), rtol=1e-12)
    # New scores beyond the ends are not extrapolated.
    assert_array_equal(second(found, [1e-9, 1 - 1e-9]), second(found, [0.0, 1.0]))
    # Nothing inside (0, 1), and neighbours beyond the bounds.
    only = fit_platt(np.array([0.0, 1, 0, 1]), np.array([0.0, 1, 1, 0]), on="probability")
    assert only.clip_.tolist() == [[0.01, 0.99]]
    near = fit_platt(np.array([1e-300, 1 - 1e-16, 0.5]), np.array([0.0, 1, 1]), on="probability")
    assert near.clip_[0, 0] == 1 - near.clip_[0, 1] == np.finfo(float).eps


@pytest.mark.parametrize("targets", ["smoothed", "hard"])
@pytest.mark.parametrize(("scale", "offset"), [(1e-150, 0), (1e300, 0), (1, 1e6), (1e9, -1e15)])
def test_the_fit_does_not_depend_on_scale_or_offset(targets, scale, offset):
    rng = np.random.default_rng(1)
    scores = np.round(rng.normal(size=300) * 1024) / 1024  # so that the offset loses no digits
    y = (rng.random(300) < expit(2 * scores)).astype(float)
    expected = second(fit_platt(scores, y, None, targets), scores)
    moved = scores * scale + offset
    assert_allclose(second(fit_platt(moved, y, None, targets), moved), expected, rtol=1e-8)


@pytest.mark.parametrize("targets", ["smoothed", "hard"])
@pytest.mark.parametrize(
    "scores",
    [
        [0.0, 1.0, 2.0, 3.0],
        [0.1, 0.1, 0.1, 0.1],
        [1.0, 1.0 + 2.3e-16, 1.0, 1.0 + 2.3e-16],
        [1e-150, 1.7e308, -1.7e308, 3.0],
        [1e6, 1e6 + 1e-9, 1e6 + 2e-9, 1e6],
    ],
    ids=str,
)
def test_it_stops_at_finite_values_without_warnings(targets, scores):
    """Constant, separable, one-label and extreme scores, under the strictest error state."""
    scores = np.array(scores)
    for code in range(16):
        y = np.array([(code >> i) & 1 for i in range(4)], float)
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            found = fit_platt(scores, y, None, targets)
            p = second(found, np.concatenate([scores, [0.0, 1e300, -1e300, 1e-308]]))
        assert np.isfinite([found.slope_, found.intercept_]).all()
        assert ((p >= 0) & (p <= 1)).all()
        # Estimates follow the mean of the targets, which is a condition for the maximum.
        target = np.array(oracle.platt_targets(y, None, targets))
        assert_allclose(p[:4].mean(), target.mean(), atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_auto_takes_log_odds_where_every_score_is_a_probability(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    n = int(rng.integers(8, 40))
    y = rng.permutation(np.arange(n) % k)
    scores = rng.dirichlet(np.full(k, 0.3), n)
    if decides := rng.random() < 0.5:
        scores[rng.integers(n), rng.integers(1, k)] = rng.choice([-0.1, 1.5])
    scores = scores[:, 1] if k == 2 else scores
    kind = ("score" if k == 2 else "logit") if decides else "probability"
    expected = PlattScaling(on=kind).fit(scores, y)
    for calibrator in (PlattScaling(on="auto"), make_calibrator("platt")):
        found = calibrator.fit(scores, y)
        assert_array_equal(found.predict_proba(scores), expected.predict_proba(scores))
    if k == 2:
        counted = PlattScaling(on="auto").fit_counts(ScoreCounts.from_scores(scores, y))
        assert_allclose(counted.predict_proba(scores), expected.predict_proba(scores), rtol=1e-9)


@pytest.mark.parametrize("wrong", [1.0000001, -1e-8])
def test_log_odds_of_what_is_no_probability_are_refused_with_the_way_out(wrong):
    message = r"scores must lie in \[0, 1\], got .* in row 1 .*on=\"score\" for other scores"
    model = PlattScaling(on="probability").fit([0.2, 0.4, 0.3], [0, 1, 1])
    with pytest.raises(ValueError, match=message):
        model.predict_proba([0.5, wrong])
    with pytest.raises(ValueError, match=message):
        model.fit([0.2, wrong, 0.3], [0, 1, 1])


def test_percentages_are_pointed_out():
    s, y = np.array([3.5, 12.0, 40.2, 77.0]), [0, 0, 1, 1]
    with pytest.warns(CalibrationWarning, match="look like percentages: divide percentages by"):
        PlattScaling().fit(s, y)
    for model, scores in (
        (PlattScaling(on="score"), s),
        (PlattScaling(), s / 100),
        (PlattScaling(), np.rint(s)),
        (PlattScaling(), 10 * s),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.fit(scores, y)


@pytest.mark.parametrize("mask", [-1e9, -1e4, float(np.finfo(np.float32).min)])
def test_finite_masks_of_logits_count_as_minus_infinity(mask):
    rng = np.random.default_rng(4)
    logits, is_masked = rng.normal(size=(600, 3)), rng.random((600, 3)) < 0.2
    is_masked[np.arange(600), logits.argmax(axis=1)] = False
    y = np.where(is_masked, -np.inf, logits + rng.gumbel(size=(600, 3))).argmax(axis=1)
    p, q = (
        PlattScaling(on="logit").fit(scores, y).predict_proba(scores)
        for scores in (np.where(is_masked, value, logits) for value in (-np.inf, mask))
    )
    assert_allclose(p, q, rtol=1e-12)
    with np.errstate(divide="ignore"):
        shares = softmax(np.where(is_masked, -np.inf, logits), axis=1)
    expected = PlattScaling().fit(shares, y).predict_proba(shares)
    assert_allclose(p, expected, atol=0.01)
