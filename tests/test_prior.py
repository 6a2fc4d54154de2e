"""Models for populations in which classes have other shares, and what those shares are."""

import copy
import dataclasses
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
from imblearn.ensemble import BalancedRandomForestClassifier
from imblearn.over_sampling import RandomOverSampler
from imblearn.pipeline import make_pipeline
from imblearn.under_sampling import RandomUnderSampler
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from oracles import prior as oracle
from oracles.formulas import venn_abers
from support.cases import draw_scores
from vennforest import CalibratedClassifier, Venn, VennAbers, load, save
from vennforest.calibrators import METHODS
from vennforest.classifier.prediction import parts_of, predict_rows
from vennforest.export import from_json, to_json
from vennforest.multiprobability import Multiprobability
from vennforest.prior import (
    estimate_shares,
    factors_for_means,
    mixture_shares,
    read_shares,
    shift_bounds,
    shift_probabilities,
)

SCORES = (0.2, 0.5, 0.8)


def test_shifted_distributions_of_a_venn_predictor():
    rng = np.random.default_rng(5)
    for _ in range(80):
        k = int(rng.integers(2, 5))
        counts = rng.integers(0, 6, k).tolist()
        factors = rng.choice([1e-3, 0.25, 1.0, 3.0], k)
        scores = np.eye(k)[np.repeat(0, max(1, sum(counts)))]
        codes = np.repeat(np.arange(k), counts)
        if not len(codes):
            continue
        m = Venn().fit(scores, codes, classes=range(k)).predict_multiprobability(scores[:1])
        found = shift_bounds(m, factors)
        every = [
            oracle.shifted(p, [Fraction(f) for f in factors])
            for p in oracle.venn_distributions(counts)
        ]
        for j in range(k):
            assert found.lower[0, j] == pytest.approx(float(min(p[j] for p in every)), abs=1e-12)
            assert found.upper[0, j] == pytest.approx(float(max(p[j] for p in every)), abs=1e-12)
        assert m.distributions and not m.widen(m.merge("log")).distributions


def test_intervals_of_each_class_hold_every_composition_of_the_rest():
    rng = np.random.default_rng(6)
    tight = 0
    for _ in range(60):
        k = int(rng.integers(3, 6))
        factors = rng.choice([0.2, 1.0, 4.0], k)
        p = rng.dirichlet(np.ones(k) / 2, 50)
        low, high = (p + sign * 0.1 * rng.random(p.shape) for sign in (-1, 1))
        low, high = low.clip(0), high.clip(0, 1)
        bounds = Multiprobability(low, high, np.arange(k))
        found, point = shift_bounds(bounds, factors), shift_probabilities(p, factors)
        assert (found.lower <= point + 1e-12).all() and (point <= found.upper + 1e-12).all()
        for j in range(k):
            if len(set(np.delete(factors, j))) == 1:  # nothing is lost then
                other = factors[(j + 1) % k]
                odds = factors[j] * low[:, j] / (other * (1 - low[:, j]))
                assert found.lower[:, j] == pytest.approx(odds / (1 + odds))
                tight += 1
    assert tight > 15


def drawn_as_new(bag, factors):
    """Each example of a bag as the new one, with the weight that the new population gives it."""
    for i, (_, y) in enumerate(bag):
        yield [*bag[:i], *bag[i + 1 :]], bag[i], Fraction(factors[y])


def test_exact_for_two_classes_by_enumeration():
    """Calibration examples of one population, the new object of another: every bag of four.

    Given the bag, example i is the new object with a chance in proportion to the factor of its
    class. For every value p of the shifted bound of the true label the weighted sum of y - p is 0.
    """
    factors = (1, 3)
    wrong = 0
    for bag in list(combinations_with_replacement(list(product(SCORES, (0, 1))), 4))[::2]:
        sums, plain = {}, {}
        for others, (s, y), weight in drawn_as_new(bag, factors):
            model = VennAbers("log").fit(*zip(*others, strict=True), classes=[0, 1])
            m = model.predict_multiprobability([s])
            old = Fraction(float((m.p0, m.p1)[y][0])).limit_denominator(4)
            shifted = shift_bounds(m, np.array(factors, float))
            p = 3 * old / (1 + 2 * old)
            assert (shifted.p0, shifted.p1)[y][0] == pytest.approx(float(p), abs=1e-15)
            sums[p] = sums.get(p, 0) + weight * (y - p)
            plain[old] = plain.get(old, 0) + weight * (y - old)
        assert set(sums.values()) == {0}
        wrong += set(plain.values()) != {0}
    assert wrong > 25  # of 63: unshifted bounds do not pass


def test_exact_for_venn_and_on_average_for_intervals_of_three_classes():
    factors = (1, 2, 4)
    scores = ((0.5, 0.3, 0.2), (0.1, 0.8, 0.1), (0.2, 0.2, 0.6))
    f = np.array(factors, float)
    for bag in list(combinations_with_replacement(list(product(scores, range(3))), 3))[::2]:
        sums, low, high = {}, np.zeros(3), np.zeros(3)
        for others, (s, y), weight in drawn_as_new(bag, factors):
            given = list(zip(*others, strict=True))
            m = Venn().fit(*given, classes=range(3)).predict_multiprobability([s])
            old = [Fraction(float(v)).limit_denominator(3) for v in m.lower[0]]
            old[y] = Fraction(float(m.upper[0, y])).limit_denominator(3)
            selected = tuple(oracle.shifted(old, [Fraction(v) for v in factors]))
            found = shift_bounds(m, f)
            for j in range(3):
                assert found.lower[0, j] - 1e-12 <= selected[j] <= found.upper[0, j] + 1e-12
                sums[j, selected] = sums.get((j, selected), 0) + weight * ((y == j) - selected[j])
            each = VennAbers("log").fit(*given, classes=range(3)).predict_multiprobability([s])
            moved = shift_bounds(each, f)
            seen = np.eye(3)[y]
            low += float(weight) * (moved.lower[0] - seen)
            high += float(weight) * (moved.upper[0] - seen)
        assert set(sums.values()) == {0}
        assert (low <= 1e-9).all() and (high >= -1e-9).all()


def problem(k, n=160, seed=0):
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=k, flip_y=0.2, random_state=seed, class_sep=0.7
    )
    return X[: n // 2], y[: n // 2], X[n // 2 :]


SETTINGS = [
    {},
    {"calibrate_on": "holdout"},
    {"calibrate_on": "cv", "cv": 3, "merge": "log"},
    {"subforest": "exchangeable", "merge": "log"},
    {"method": "venn"},
    {"method": "isotonic", "calibrate_on": "cv", "cv": 3},
]


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_models_shift_their_odds(settings, k):
    X, y, new = problem(k)
    forest = RandomForestClassifier(15, random_state=0)
    model = CalibratedClassifier(forest, random_state=0, **settings).fit(X, y)
    shares = {0: 0.1, 1: 0.9} if k == 2 else {0: 0.05, 1: 0.35, 2: 0.6}
    other = model.with_prior(shares)
    assert other.prior_ == pytest.approx(list(shares.values()))
    factors = np.array(list(shares.values())) / model.prior_
    p, q = model.predict_proba(new), other.predict_proba(new)
    odds = p * factors
    assert q == pytest.approx(odds / odds.sum(axis=1, keepdims=True), abs=1e-12)
    assert (other.predict(new) == q.argmax(axis=1)).all()
    bounds, again = predict_rows(other._state, new)
    assert (again == q).all()
    # The first model is as it was, and one shifted back is it again.
    assert (model.predict_proba(new) == p).all()
    old = {j: float(share) for j, share in enumerate(model.prior_)}
    assert other.with_prior(old).predict_proba(new) == pytest.approx(p, abs=1e-12)
    if bounds is None:
        return
    assert (bounds.lower <= q).all() and (q <= bounds.upper).all()
    assert bounds.lower.min() >= 0 and bounds.upper.max() <= 1
    if settings in ({}, {"calibrate_on": "holdout"}):
        unpooled = dataclasses.replace(
            model._state, overall=dataclasses.replace(model._state.overall, point=None)
        )
        wide = shift_bounds(predict_rows(unpooled, new)[0], factors).widen(q)
        assert bounds.lower == pytest.approx(wide.lower, abs=1e-12)
        assert bounds.upper == pytest.approx(wide.upper, abs=1e-12)


def test_shifted_models_are_kept_recalibrated_and_refitted(tmp_path):
    X, y, new = problem(2)
    model = CalibratedClassifier(LogisticRegression(), calibrate_on="cv", random_state=0).fit(X, y)
    other = model.with_prior({0: 0.01})
    save(other, tmp_path / "model.skops")
    kept = load(tmp_path / "model.skops")
    assert (kept.predict_proba(new) == other.predict_proba(new)).all()
    assert kept.prior_ == pytest.approx([0.01, 0.99])
    assert other.recalibrate("platt").prior_ == pytest.approx([0.01, 0.99])
    assert clone(other).fit(X, y).prior_ == pytest.approx(model.prior_)
    assert copy.copy(other).fit(X, y).prior_ == pytest.approx(model.prior_)


@pytest.mark.parametrize(
    ("shares", "message"),
    [
        ({"no": 0.5, "so": 0.1, "yes": 0.3}, "sum to 1, got 0.9"),
        ({"maybe": 0.5}, "shares must be of classes"),
        ({"no": 1.0}, "below 1"),
        ({}, "must name a class"),
        ([0.5, 0.5], "must name labels"),
        ({"no": 0.7, "so": 0.6}, "leave something to"),
    ],
)
def test_shares_are_of_named_labels(shares, message):
    classes, known = np.array(["no", "so", "yes"]), np.array([0.5, 0.3, 0.2])
    with pytest.raises(ValueError, match=message):
        read_shares(shares, classes, known)
    assert read_shares({"no": 0.8}, classes, known) == pytest.approx([0.8, 0.12, 0.08])
    series = pd.Series(["no", "no", "so", "so", "so", "yes"]).value_counts(normalize=True)
    assert read_shares(series, classes, known) == pytest.approx([2 / 6, 3 / 6, 1 / 6])


def test_a_class_without_calibration_examples():
    X, y, _ = problem(3)
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    two = y < 2
    model = CalibratedClassifier(frozen).fit(X[two], y[two])
    for method, argument in ((model.with_prior, {2: 0.1}), (model.estimate_prior, X)):
        with pytest.raises(ValueError, match=r"got none of \[2\]"):
            method(argument)
    known = {0: 0.4, 1: 0.4, 2: 0.2}
    moved = model.with_prior({2: 0.1}, instead_of=known)
    assert moved.prior_ == pytest.approx([0.45, 0.45, 0.1])


def rare(n, seed):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.1).astype(int)
    return rng.normal(size=(n, 2)) + y[:, None], y


def truth(X):
    ratio = np.exp(X.sum(axis=1) - 1)
    return 0.1 * ratio / (0.1 * ratio + 0.9)


def error(model, X):
    return float(np.sqrt(np.mean((model.predict_proba(X)[:, 1] - truth(X)) ** 2)))


def test_undersampled_data_are_repaired():
    X, y = rare(4000, 0)
    new = rare(2000, 1)[0]
    model = CalibratedClassifier(LogisticRegression(), method="platt", random_state=0)
    model.fit(*RandomUnderSampler(random_state=0).fit_resample(X, y))
    assert model.prior_ == pytest.approx([0.5, 0.5]) and error(model, new) > 0.2
    assert error(model.with_prior({1: y.mean()}), new) < 0.03


UNTOUCHED = {
    "resampler": make_pipeline(RandomOverSampler(random_state=0), LogisticRegression()),
    "class weights": LogisticRegression(class_weight="balanced"),
    "balanced forest": BalancedRandomForestClassifier(20, random_state=0, min_samples_leaf=20),
}


@pytest.mark.parametrize("name", UNTOUCHED)
def test_untouched_calibration_examples_need_no_repair(name):
    X, y = rare(3000, 4)
    new = rare(2000, 5)[0]
    model = CalibratedClassifier(UNTOUCHED[name], method="platt", random_state=0).fit(X, y)
    assert model.prior_ == pytest.approx([1 - y.mean(), y.mean()])
    assert error(model, new) < 0.05
    assert error(model.with_prior({1: 0.5}), new) > 0.15


def test_shares_against_expectation_maximisation():
    rng = np.random.default_rng(8)
    boundary = 0
    for _ in range(40):
        k, m = int(rng.integers(2, 5)), int(rng.integers(20, 60))
        prior = rng.dirichlet(np.full(k, 5.0))
        p = rng.dirichlet(rng.choice([0.3, 2.0]) * prior * k, m)
        p = (p + 1e-6) / (1 + k * 1e-6)
        ratio = p / prior
        found = mixture_shares(ratio, prior)
        slow = oracle.expectation_maximisation(p, prior, 20_000, 1e-12)
        assert np.log(ratio @ found).mean() >= np.log(ratio @ slow).mean() - 1e-9
        # Optimal: no direction of the simplex leads up.
        assert (ratio / (ratio @ found)[:, None]).mean(axis=0).max() <= 1 + 1e-6
        boundary += found.min() < 1e-6
    assert 4 < boundary < 36


def test_estimated_prior_repairs_a_model():
    X, y = rare(3000, 6)
    rng = np.random.default_rng(7)
    labels = rng.random(2000) < 0.5
    new = rng.normal(size=(2000, 2)) + labels[:, None]
    model = CalibratedClassifier(LogisticRegression(), method="platt", random_state=0).fit(X, y)
    found = model.estimate_prior(new)
    assert found.identified
    assert abs(found.estimate[1] - labels.mean()) < 0.06
    other = model.with_prior(found.shares)
    assert abs(other.predict_proba(new)[:, 1].mean() - labels.mean()) < 0.06
    assert abs(model.predict_proba(new)[:, 1].mean() - labels.mean()) > 0.15
    # What was set does not change what is estimated.
    assert (other.estimate_prior(new).estimate == found.estimate).all()


def test_scores_that_do_not_tell_classes_apart():
    first = np.random.default_rng(1).random(200)
    alike = np.column_stack([first, (1 - first) / 2, (1 - first) / 2])
    for p in (np.tile([0.5, 0.25, 0.25], (50, 1)), alike):
        with pytest.warns(UserWarning, match="do not tell all classes apart"):
            estimate = estimate_shares(p, np.array([0.5, 0.25, 0.25]), np.arange(3))
        assert not estimate.identified
        assert estimate.estimate.sum() == pytest.approx(1)


@pytest.mark.parametrize("method", ["venn-abers", "venn", "platt"])
def test_honest_predictions_of_the_training_rows_move_too(method):
    X, y, _ = problem(2)
    y = y * (np.arange(len(y)) % 3 > 0)  # rarer
    forest = RandomForestClassifier(30, random_state=0)
    merge = "log" if method == "venn-abers" else "auto"
    model = CalibratedClassifier(forest, method=method, merge=merge, random_state=0).fit(X, y)
    moved = model.with_prior({1: 0.5})
    parts = parts_of(np.arange(len(y)))
    old = np.array([y[parts != part].mean() for part in parts])  # counted without the row, too

    def shifted(p):
        odds = p / (1 - p) * (1 - old) / old
        return odds / (1 + odds)

    p = moved.oob_probability_
    assert_allclose(p[:, 1], shifted(model.oob_probability_[:, 1]), rtol=1e-9)
    if method != "platt":
        bounds, before = moved.oob_multiprobability_, model.oob_multiprobability_
        assert ((bounds.lower <= p) & (p <= bounds.upper)).all()
        assert_allclose(bounds.lower[:, 1], shifted(before.lower[:, 1]), rtol=1e-9)


def test_a_calibrator_with_prior_is_the_fit_to_weighted_examples():
    rng = np.random.default_rng(20261123)
    for case in range(120):
        n = int(rng.integers(2, 15))
        scores, y = draw_scores(rng, n, 2), rng.integers(0, 2, n)
        if len(set(y)) < 2:
            continue
        new, share = np.append(draw_scores(rng, 2, 2), scores[0]), float(rng.uniform(0.01, 0.99))
        moved = VennAbers("log").fit(scores, y).with_prior({1: share})
        moved.score_range_ = None  # new scores are of another kind
        found, p = moved.predict_multiprobability(new), moved.predict_proba(new)[:, 1]
        positive = Fraction(int(y.sum()), n)
        factors = [Fraction(1 - share) / (1 - positive), Fraction(share) / positive]
        for i, s in enumerate(new):
            weights = [factors[label] for label in y]
            p0, p1 = venn_abers(scores, y, s, weights, new_weights=factors)
            assert found.p0[i] == pytest.approx(float(p0), rel=1e-9, abs=1e-15)
            assert found.p1[i] == pytest.approx(float(p1), rel=1e-9, abs=1e-15)
            assert found.p0[i] - 1e-12 <= p[i] <= found.p1[i] + 1e-12
            assert found.lower[i, 0] == 1 - found.p1[i] and found.upper[i, 0] == 1 - found.p0[i]
        if case % 10:
            continue
        before = VennAbers("log").fit(scores, y).predict_confidence(scores)
        lower = before.lower[:, 1] * float(factors[1])
        lower /= lower + float(factors[0]) * (1 - before.lower[:, 1])
        intervals, p = moved.predict_confidence(scores), moved.predict_proba(scores)
        assert intervals.lower[:, 1] == pytest.approx(lower, abs=1e-12)
        assert (intervals.lower <= p).all() and (p <= intervals.upper).all()


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_calibrator_with_prior_answers_as_its_classifier(method, k):
    X, y, new = problem(k, 400)
    forest = RandomForestClassifier(15, random_state=0).fit(X[:100], y[:100])
    model = CalibratedClassifier(FrozenEstimator(forest), method=method)
    model.fit(X[100:], y[100:])
    shares = {0: 0.1, 1: 0.9} if k == 2 else {0: 0.05, 1: 0.35, 2: 0.6}
    scores = forest.predict_proba(new)
    scores = scores[:, 1] if k == 2 else scores
    counted = np.bincount(y[100:]) / len(y[100:])
    known = dict(enumerate(counted.tolist()))
    plain = model.calibrator_
    moved = plain.with_prior(shares)
    factors = np.array(list(shares.values())) / counted
    p = shift_probabilities(plain.predict_proba(scores), factors)
    assert moved.predict_proba(scores) == pytest.approx(p, abs=1e-12)
    if model.prior_ == pytest.approx(counted) and method in ("platt", "isotonic", "venn"):
        assert model.with_prior(shares).predict_proba(new) == pytest.approx(p, abs=1e-12)
    if hasattr(plain, "predict_multiprobability"):
        wanted = shift_bounds(plain.predict_multiprobability(scores), factors)
        found = moved.predict_multiprobability(scores)
        assert found.lower == pytest.approx(wanted.lower, abs=1e-12)
        assert found.upper == pytest.approx(wanted.upper, abs=1e-12)
    # Shifted twice is shifted once, and shifted back is the calibrator again.
    back = moved.with_prior(dict(enumerate([1 / k] * k))).with_prior(known)
    assert back.predict_proba(scores) == pytest.approx(plain.predict_proba(scores), abs=1e-12)
    try:
        written = to_json(moved)
    except ValueError:
        return
    read = from_json(written)
    assert np.array_equal(read.predict_proba(scores), moved.predict_proba(scores))


def test_shares_that_leave_out_a_class_without_examples_are_refused():
    scores = np.random.default_rng(0).dirichlet(np.ones(3), 30)
    model = VennAbers().fit(scores, np.arange(30) % 2, classes=[0, 1, 2])
    for instead_of in ({0: 0.5}, {0: 0.5, 1: 0.2}):
        if len(instead_of) == 2:
            assert model.with_prior({2: 0.1}, instead_of=instead_of).shift_ is not None
            continue
        with pytest.raises(ValueError, match=r"shares must name \[2\], .* no calibration examples"):
            model.with_prior({2: 0.1}, instead_of=instead_of)


def test_shares_too_small_for_ratios_are_refused():
    m = VennAbers().fit(np.linspace(0, 1, 40), np.arange(40) % 3 == 0)
    message = "shares must be at least 1e-12 and below 1, got 1e-320 for True"
    for refuse in (
        lambda: m.with_prior({True: 1e-320}),
        lambda: m.with_prior({True: 0.2}, instead_of={True: 1e-320}),
        lambda: m.with_mean({True: 1e-320}, [0.2, 0.9]),
    ):
        with pytest.raises(ValueError, match=message):
            refuse()


@pytest.mark.parametrize("mean", [1e-12, 1e-9, 0.3])
def test_a_small_mean_is_exact_to_its_digits(mean):
    s = np.linspace(0, 1, 40)
    m = VennAbers().fit(s, np.arange(40) % 3 == 0).with_mean({True: mean}, s)
    assert m.predict_proba(s)[:, 1].mean() == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("n", [5, 50])
def test_nearly_certain_probabilities_have_a_given_mean(n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        z = 60 * rng.normal(size=(n, 3))
        p = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        means = rng.dirichlet([1, 1, 1])
        shifted = shift_probabilities(p, factors_for_means(p, means, np.full(n, 1 / n)))
        assert_allclose(shifted.mean(axis=0), means, rtol=0, atol=1e-14)


@pytest.mark.filterwarnings("error")
def test_a_mean_out_of_reach_is_refused_in_one_sentence():
    rng = np.random.default_rng(5)
    for _ in range(200):
        p = np.eye(3)[rng.integers(0, 3, 20)] * (1 - 1e-12) + 1e-12 / 3
        p = np.where(rng.random((20, 1)) < 0.9, np.round(p), p)
        p[:3] = np.eye(3)
        with pytest.raises(ValueError, match="a shift of the log-odds can give these rows"):
            means = np.array([1e-9, 0.5, 0.5 - 1e-9])
            factors_for_means(p / p.sum(axis=1, keepdims=True), means, np.full(20, 1 / 20))
