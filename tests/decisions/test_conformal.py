"""Prediction sets: against the definition, and exact by enumeration of every bag."""

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.svm import LinearSVC

from oracles.decisions import p_values
from support.cases import draw_scores
from vennforest import CalibratedClassifier, VennAbers
from vennforest.decisions import conformal_p_values, prediction_sets
from vennforest.decisions.conformal import combined

SCORES = (0.2, 0.5, 0.8)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("conditional", [True, False])
def test_p_values_against_the_definition(k, conditional):
    rng = np.random.default_rng(k)
    for _ in range(300):
        n = int(rng.integers(1, 12))
        scores, new = draw_scores(rng, n, k), draw_scores(rng, 3, k)
        if k == 2:  # on a scale on which taking off the boundary does not round
            scores, new = np.round(scores.clip(0, 1) * 64) / 64, np.round(new.clip(0, 1) * 64) / 64
        new[: min(2, n)] = scores[: min(2, n)]
        y = rng.integers(0, k, n)
        found = conformal_p_values(scores, y, new, classes=range(k), class_conditional=conditional)
        assert (found == p_values(scores, y, new, k, conditional)).all()


def test_weights_count_observations():
    rng = np.random.default_rng(0)
    scores, y, weight = rng.integers(0, 5, 30) / 4, rng.integers(0, 2, 30), rng.integers(0, 4, 30)
    for conditional in (True, False):
        one = conformal_p_values(
            scores, y, SCORES, sample_weight=weight, class_conditional=conditional
        )
        other = conformal_p_values(
            np.repeat(scores, weight), np.repeat(y, weight), SCORES, class_conditional=conditional
        )
        assert (one == other).all()


@pytest.mark.parametrize("conditional", [True, False])
def test_valid_by_enumeration(conditional):
    """Every bag of four of three scores and two labels, each of them new once.

    The error is never larger than stated, for each class (for all together), and is as stated where
    no two scores of the bag are equal.
    """
    errors = [Fraction(e, 12) for e in range(1, 12)]
    bags = 0
    for bag in combinations_with_replacement(list(product(SCORES, (0, 1))), 4):
        bags += 1
        for label in (0, 1) if conditional else (None,):
            new = [i for i in range(4) if label is None or bag[i][1] == label]
            found = []
            for i in new:
                s, y = zip(*(bag[:i] + bag[i + 1 :]), strict=True)
                score, true = bag[i]
                (row,) = conformal_p_values(
                    s, y, [score], classes=[0, 1], class_conditional=conditional
                )
                found.append(Fraction(row[true]).limit_denominator(4))
            for e in errors:
                assert sum(p <= e for p in found) <= e * len(new)
            if conditional and len({bag[i][0] for i in new}) == len(new):
                assert sorted(found) == [Fraction(i + 1, len(new)) for i in range(len(new))]
    assert bags == 126


def test_who_acts_above_a_threshold():
    """What bounds promise to who acts where p0 >= t and waits where p1 < t, for every bag.

    In between, U: the sum over acted on of y is that of P_Y less (1 - p1) over positives in U, and
    over waited for that of P_Y and p0 over negatives in U.
    """
    for bag in combinations_with_replacement(list(product(SCORES, (0, 1))), 4):
        found = []
        for i in range(4):
            s, y = zip(*(bag[:i] + bag[i + 1 :]), strict=True)
            m = VennAbers("log").fit(s, y, classes=[0, 1]).predict_multiprobability([bag[i][0]])
            p0, p1 = (Fraction(float(p)).limit_denominator(4) for p in (m.p0[0], m.p1[0]))
            found.append((p0, p1, bag[i][1]))
        for t in (Fraction(e, 12) for e in range(1, 12)):
            acted = [(p0, p1, y) for p0, p1, y in found if p0 >= t]
            waited = [(p0, p1, y) for p0, p1, y in found if p1 < t]
            between = [(p0, p1, y) for p0, p1, y in found if p0 < t <= p1]
            lost = sum(1 - p1 for _, p1, y in between if y == 1)
            gained = sum(p0 for p0, _, y in between if y == 0)
            assert sum(y for *_, y in acted) == sum((p0, p1)[y] for p0, p1, y in acted) - lost
            assert sum(y for *_, y in waited) == sum((p0, p1)[y] for p0, p1, y in waited) + gained
            assert sum(y for *_, y in acted) >= t * len(acted) - lost
            assert sum(y for *_, y in waited) <= t * len(waited) + gained


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (None, {"calibrate_on": "holdout", "holdout_size": 0.5}),
        (None, {"calibrate_on": "oob", "subforest": "exchangeable"}),
        (None, {"calibrate_on": "cv", "cv": 3}),
        (LinearSVC(), {"calibrate_on": "cv", "cv": 3, "ensemble": False}),
    ],
    ids=str,
)
def test_sets_of_models(k, estimator, options):
    X, y = make_classification(
        900, 8, n_informative=5, n_classes=k, flip_y=0.2, random_state=k, class_sep=0.8
    )
    forest = estimator or RandomForestClassifier(20, random_state=0)
    model = CalibratedClassifier(forest, random_state=0, **options).fit(X[:500], y[:500])
    codes, rows = y[500:], np.arange(400)
    for conditional in (True, False):
        sets = prediction_sets(model, X[500:], 0.2, class_conditional=conditional)
        assert (sets.contains == (sets.p_values > 0.2)).all()
        right = sets.contains[rows, codes]
        for label in range(k) if conditional else [None]:
            mine = right if label is None else right[codes == label]
            # The test rows and the calibration rows both vary: five standard errors of both.
            assert mine.mean() > 0.8 - 5 * np.sqrt(0.16 / len(mine) + 0.16 * k / 150)
        assert [len(one) for one in sets.labels()] == sets.size.tolist()
    assert len(sets) == 400 and sets.size.mean() < k
    other = model.recalibrate("platt")
    assert (
        prediction_sets(other, X[500:], 0.2).p_values
        == prediction_sets(model, X[500:], 0.2).p_values
    ).all()


def test_refused():
    with pytest.raises(ValueError, match="error must lie between"):
        prediction_sets(None, [[0]], 1.0)
    with pytest.raises(ValueError, match="a column for each of 3"):
        conformal_p_values([0.1, 0.2, 0.3], [0, 1, 2], [0.1])
    with pytest.raises(ValueError, match="two classes"):
        conformal_p_values([0.1, 0.2], [1, 1], [0.1])


def test_proven_sets_combine_the_p_values_of_folds():
    X, y = make_classification(400, 6, n_informative=4, flip_y=0.2, random_state=1)
    model = CalibratedClassifier(RandomForestClassifier(20, random_state=0), calibrate_on="cv")
    model.fit(X[:300], y[:300])
    sets = prediction_sets(model, X[300:], 0.2, proven=True)
    each = [
        conformal_p_values(f.scores, f.codes, f.estimator.predict_proba(X[300:])[:, 1])
        for f in model._fitted.folds
    ]
    expected = [
        [min(1, sorted(q)[2] * 5 / 3) for q in zip(*row, strict=True)]
        for row in zip(*each, strict=True)
    ]
    np.testing.assert_allclose(sets.p_values, expected, rtol=1e-12)
    assert (prediction_sets(model, X[300:], 0.2).size <= sets.size).mean() > 0.9


def test_combined_p_values_are_valid_whatever_the_dependence():
    """All folds agree, are independent, or just three reject wherever any does."""
    rng = np.random.default_rng()
    n, e = 40_000, 0.1
    same = np.tile(rng.random(n), (5, 1))
    worst = rng.uniform(0.6 * e, 1, (5, n))
    hit = np.flatnonzero(rng.random(n) < e)  # each fold is below 0.6 e in 0.6 of these
    for column in hit:
        worst[rng.permutation(5)[:3], column] = rng.uniform(0, 0.6 * e, 3)
    for p in (same, rng.random((5, n)), worst):
        assert (combined(p) <= e).mean() <= e + 4 * np.sqrt(e * (1 - e) / n)
    assert (combined(worst) <= e).mean() > 0.9 * e  # nothing is given away


def test_proven_is_refused_where_nothing_is():
    X, y = make_classification(200, 6, random_state=1)
    forest = RandomForestClassifier(20, random_state=0)
    for settings in ({"calibrate_on": "oob"}, {"calibrate_on": "cv", "ensemble": False}):
        model = CalibratedClassifier(forest, method="platt", **settings).fit(X, y)
        with pytest.raises(ValueError, match="proven must be False"):
            prediction_sets(model, X, proven=True)
    held = CalibratedClassifier(forest, method="platt", calibrate_on="holdout").fit(X, y)
    one, other = prediction_sets(held, X), prediction_sets(held, X, proven=True)
    assert (one.p_values == other.p_values).all()


def test_models_without_calibration_scores_are_refused():
    X, y = make_classification(200, 6, random_state=1)
    forest = RandomForestClassifier(5, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="model must be a CalibratedClassifier, got RandomForest"):
        prediction_sets(forest, X)
