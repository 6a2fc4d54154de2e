"""The pool: its folds, its weights, and that it is the weighted mean of what its members say."""

import secrets
from collections import Counter

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import softmax

from vennforest.calibrators import PlattScaling, PooledCalibration, TemperatureScaling, pool
from vennforest.calibrators.pool import (
    PRIOR_EXAMPLES,
    SHRINKAGES,
    held_out,
    pool_weights,
    split,
)
from vennforest.calibrators.softmax import SoftmaxMap
from vennforest.counts import ScoreCounts


def listed(scores):
    """Return numbers, or a tuple for each row."""
    return scores.tolist() if scores.ndim == 1 else [tuple(row) for row in scores.tolist()]


def naive_folds(scores, codes, n_folds):
    """Examples of each label, sorted by the label's own score, dealt out as if shuffled."""
    folds = [Counter() for _ in range(n_folds)]
    for label in sorted(set(codes)):
        own = [s for s, y in zip(scores, codes, strict=True) if y == label]
        if np.ndim(own) == 1:
            own.sort(reverse=label == 0)
        else:
            own = [row[1:] for row in sorted((s[label], *s) for s in own)]
        deal = np.random.RandomState(0).permutation([i % n_folds for i in range(len(own))])
        for fold, s in zip(deal, own, strict=True):
            folds[fold][s, label] += 1
    return folds


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("n_folds", [2, 7])
def test_folds_depend_on_the_multiset_of_the_examples(k, n_folds, monkeypatch):
    monkeypatch.setattr(pool, "N_POOL_FOLDS", n_folds)
    rng = np.random.default_rng(0)
    for _ in range(15):
        n = int(rng.integers(1, 40))
        codes = rng.integers(0, k, n)
        scores = rng.multinomial(3, [0.2, 0.3, 0.5], n) / 3 if k == 3 else rng.integers(0, 6, n) / 5
        expected = naive_folds(listed(scores), codes.tolist(), n_folds)
        counts = ScoreCounts.from_scores(scores, codes, classes=range(k))
        folds = list(split(counts))
        assert_allclose(np.sum(folds, axis=0), counts.weights)
        rows = listed(counts.scores)
        for share, counter in zip(folds, expected, strict=True):
            dealt = Counter({(rows[i], y): share[i, y] for i, y in np.argwhere(share).tolist()})
            assert dealt == counter


def test_folds_of_many_classes_are_drawn_whatever_the_class():
    rng = np.random.default_rng(secrets.randbelow(2**32))
    k, n = 26, 2_000
    scores = rng.multinomial(4, np.full(k, 1 / k), n) / 4
    codes = rng.integers(0, k, n)
    counts = ScoreCounts.from_scores(scores, codes, classes=range(k))
    folds = np.array(list(split(counts)))
    assert_allclose(folds.sum(axis=0), counts.weights)
    assert_allclose(folds.sum(axis=(1, 2)), n / 4)
    # The shares of a class vary as those of examples drawn at random: chi-square, 3 (k - 1) df.
    by_class, expected = folds.sum(axis=1), counts.class_totals / 4
    df = 3 * (k - 1)
    chi_square = ((by_class - expected) ** 2 / expected).sum()
    assert abs(chi_square - df) < 6 * np.sqrt(2 * df)
    order = rng.permutation(len(counts))
    scores = np.asfortranarray(counts.scores[order])
    shuffled = ScoreCounts(counts.classes, scores, counts.weights[order])
    assert_allclose(np.array(list(split(shuffled))), folds[:, order])


def test_weights_are_the_maximum_of_the_formula():
    rng = np.random.default_rng(2)
    for _ in range(6):
        p = rng.beta(2, 1, (3, 40))
        counts, prior = rng.choice([0.5, 1.0, 4.0], 40), rng.choice([0.5, 10.0], 3).tolist()

        def loss(v, p=p, counts=counts, prior=prior):
            w = softmax(v)
            return -(counts @ np.log(w @ p) + np.dot(prior, np.log(w)))

        best = softmax(minimize(loss, np.zeros(3), tol=1e-12).x)
        weights = pool_weights(counts, p, prior)
        assert_allclose(weights, best, atol=2e-4)
        moved = weights * np.array([[1.001], [0.999]]) ** rng.normal(size=3)
        for w in moved / moved.sum(axis=1, keepdims=True):
            assert loss(np.log(w)) >= loss(np.log(weights)) - 1e-7


@pytest.mark.parametrize("k", [2, 3])
def test_the_pool_is_the_weighted_mean_of_its_members(k):
    rng = np.random.default_rng(3)
    if k == 2:
        s = np.round(rng.random(300), 2)
        y = (rng.random(300) < s).astype(int)
        new = np.linspace(0, 1, 40)
    else:
        s = rng.multinomial(10, [0.2, 0.3, 0.5], 300) / 10
        y = np.array([rng.choice(3, p=row) for row in s])
        new = s
    model = PooledCalibration().fit(s, y)
    assert list(model.weights_) == (["vector", "platt", "spline"] if k == 2 else ["shared", "full"])
    assert_allclose(sum(model.weights_.values()), 1)
    again = pool.make_members(ScoreCounts.from_scores(s, y))
    expected = sum(w * again[n].fit(s, y).predict_proba(new) for n, w in model.weights_.items())
    expected = expected * model.factors_
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(model.predict_proba(new), expected, rtol=1e-8)
    # The weights come from estimates of examples that were held out.
    estimates = {name: [] for name in again}
    for fold in naive_folds(listed(s), y.tolist(), 4):
        test = [[*key] for key, c in fold.items() for _ in range(c)]
        rest = Counter(zip(listed(s), y.tolist(), strict=True))
        rest.subtract(fold)
        train = [key for key, c in rest.items() for _ in range(c)]
        for name, member in again.items():
            member.fit([v for v, _ in train], [label for _, label in train])
            p = member.predict_proba([v for v, _ in test])
            estimates[name].extend(p[range(len(test)), [int(label) for _, label in test]])
    expected = pool_weights(
        np.ones(300), np.array(list(estimates.values())), [PRIOR_EXAMPLES] * len(again)
    )
    assert_allclose(list(model.weights_.values()), expected, atol=1e-6)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_the_mean_probability_of_a_class_is_its_share(k):
    rng = np.random.default_rng(secrets.randbelow(2**32))
    for kind in ("probability", "votes", "logit"):
        n = 150
        truth = rng.dirichlet(np.full(k, 0.5) * rng.choice([1, 0.05], k, p=[0.7, 0.3]), n)
        y = np.array([rng.choice(k, p=row) for row in 0.7 * truth + 0.3 * np.eye(k)[0]])
        s = truth if kind == "probability" else rng.multinomial(15, truth) / 15
        s = np.log(truth + 1e-4) * 3 if kind == "logit" else s
        s = s[:, 1] if k == 2 else s
        weight = rng.choice([0.5, 1.0, 3.0], n)
        model = PooledCalibration().fit(s, y, sample_weight=weight, classes=range(k))
        p = model.predict_proba(s)
        assert_allclose(p.sum(axis=1), 1)
        shares = np.bincount(y, weight, k) / weight.sum()
        mean = np.average(p, axis=0, weights=weight)
        absent = mean[shares == 0]
        assert (absent > 0).all()
        assert_allclose(mean[shares > 0], (shares * (1 - absent.sum()))[shares > 0], rtol=1e-7)


def loss_beside_temperature(rng, k, n, bias):
    """Mean log loss of the pool minus that of temperature, for logits that are right but for both.

    Measured without the labels' chance: the true probabilities weigh the logarithms.
    """
    logits = rng.normal(size=(n + 2_000, k)) * 2
    truth = softmax(logits + bias, axis=1)
    y = (logits + bias + rng.gumbel(size=logits.shape)).argmax(axis=1)[:n]
    pool_, temperature = (
        m.fit(1.5 * logits[:n], y, classes=range(k)).predict_proba(1.5 * logits[n:])
        for m in (PooledCalibration(), TemperatureScaling())
    )
    return float((truth[n:] * np.log(temperature / pool_)).sum(axis=1).mean())


@pytest.mark.parametrize(
    ("k", "n"), [(30, 300), (30, 1_500), pytest.param(60, 3_000, marks=pytest.mark.slow)]
)
def test_many_classes_lose_nothing_to_temperature_where_it_is_right(k, n):
    rng = np.random.default_rng(10)
    limit = 0.0015 if n == 300 else 0.001
    assert np.mean([loss_beside_temperature(rng, k, n, 0.0) for _ in range(8)]) < limit
    # An intercept for each class is taken where there is one.
    assert loss_beside_temperature(rng, k, n, rng.normal(size=k) / 2) < -0.03


def test_last_digits_of_many_logits_do_not_deal_the_examples_anew():
    """Other processors round otherwise; folds that follow the bits would differ altogether."""
    rng = np.random.default_rng(11)
    logits = rng.normal(size=(600, 30)) * 2
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    other = logits * (1 + rng.choice([-1, 0, 1], logits.shape) * 2.0**-52)
    p, q = (
        PooledCalibration().fit(z, y, classes=range(30)).predict_proba(z) for z in (logits, other)
    )
    assert_allclose(p, q, rtol=0, atol=1e-7)
    order = rng.permutation(600)
    r = PooledCalibration().fit(logits[order], y[order], classes=range(30)).predict_proba(logits)
    assert_allclose(p, r, rtol=0, atol=1e-7)


def test_one_example_and_weights_below_one_give_equal_weights():
    for weight in (None, [0.25]):
        model = PooledCalibration().fit([0.4], [1], sample_weight=weight, classes=[0, 1])
        assert_allclose(list(model.weights_.values()), 1 / len(model.weights_))
    counts, p = held_out([PlattScaling()], ScoreCounts.from_scores([0.4], [1], classes=[0, 1]))
    assert counts.shape == (0,) and p.shape == (1, 0)


def test_cells_of_many_scores_and_one_fold_hardly_move_it(monkeypatch):
    rng = np.random.default_rng(8)
    s = rng.beta(0.5, 0.5, 12_000)
    y = rng.random(12_000) < 0.1 + 0.8 * s**2
    new = np.linspace(0, 1, 101)
    one = PooledCalibration().fit(s, y)
    monkeypatch.setattr(pool, "MIN_EXAMPLES_FOR_ONE_FOLD", np.inf)
    all_folds = PooledCalibration().fit(s, y)
    assert_allclose(one.predict_proba(new), all_folds.predict_proba(new), atol=0.01)
    monkeypatch.setattr(pool, "MAX_POOLED_SCORES", 50_000)
    exact = PooledCalibration().fit(s, y)
    assert_allclose(exact.predict_proba(new), all_folds.predict_proba(new), atol=2e-3)
    truth = 0.1 + 0.8 * new**2
    assert np.abs(one.predict_proba(new)[:, 1] - truth)[5:-5].max() < 0.03


def test_the_shrinkage_is_that_of_the_best_map():
    rng = np.random.default_rng(9)
    truth = rng.beta(0.3, 0.3, 4_000)
    y = rng.random(4_000) < truth
    votes = rng.binomial(10, truth) / 10  # coarse: zeros that are no zeros
    for s, is_larger in ((votes, True), (np.clip(truth, 1e-9, 1 - 1e-9), False)):
        losses = {}
        for c in SHRINKAGES:
            p = SoftmaxMap(shrinkage=c).fit(s, y).predict_proba(s)
            losses[c] = -np.log(p[np.arange(4_000), y.astype(int)]).sum()
        members = PooledCalibration().fit(s, y).members_
        assert members["vector"].shrinkage_ == min(losses, key=losses.get)
        assert members["spline"].shrinkage == members["vector"].shrinkage_
        assert (members["vector"].shrinkage_ > 0.01) == is_larger
