"""Promised thresholds: against the definitions, exact by enumeration, and what is refused."""

import math
from itertools import combinations_with_replacement, product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from oracles.decisions import (
    precise_threshold,
    promised_quantity,
    quiet_threshold,
    recalling_threshold,
    specific_threshold,
)
from report.reading import has_in_turn
from vennforest import CalibratedClassifier
from vennforest.decisions import threshold_for
from vennforest.decisions.thresholds import limits

X, Y = make_classification(900, 6, n_informative=4, flip_y=0.1, random_state=0)


ORACLES = {
    "precision": precise_threshold,
    "recall": recalling_threshold,
    "specificity": specific_threshold,
    "false_alarms": quiet_threshold,
}


def drawn(rng):
    """Scores and labels with ties, of one class now and then, tiny and huge."""
    n = int(rng.integers(1, 40))
    scores = rng.integers(0, int(rng.integers(1, 30)), n) / 7
    y = (rng.random(n) < rng.choice([0.0, 0.3, 0.9, 1.0]) + scores / 9).astype(int)
    return scores * rng.choice([1, 1e-300, 1e300, -1]), y


def test_thresholds_against_the_definitions():
    rng = np.random.default_rng(7)
    some = 0
    for _ in range(150):
        scores, y = drawn(rng)
        if len(set(y.tolist())) < 2:
            continue
        share, delta = rng.uniform(0.05, 0.95), rng.uniform(0.02, 0.6)
        for promise, slow in ORACLES.items():
            expected = slow(scores.tolist(), y.tolist(), share, delta)
            assert threshold_for(scores, y, **{promise: share}, delta=delta).threshold == expected
            some += promise == "precision" and expected is not None
    assert some > 12


@pytest.mark.parametrize("share", [0.5, 0.7])
def test_precision_is_exact_by_enumeration(share):
    """Every sample of seven of three scores and two labels: the promise fails in delta at most."""
    of_score = {0: (0.3, 0.2), 1: (0.3, 0.65), 2: (0.4, 0.8)}  # how often, and the class's share
    cells = list(product(of_score, (0, 1)))
    chance = [of_score[s][0] * (of_score[s][1] if y else 1 - of_score[s][1]) for s, y in cells]
    true = {}
    for t in of_score:
        above = [of_score[s] for s in of_score if s >= t]
        true[t] = sum(q * eta for q, eta in above) / sum(q for q, _ in above)
    for delta in (0.2, 0.4):
        fails = found = 0.0
        for bag in combinations_with_replacement(range(6), 7):
            counts = np.bincount(bag, minlength=6)
            p = math.factorial(7) * math.prod(
                chance[i] ** int(c) / math.factorial(c) for i, c in enumerate(counts)
            )
            scores, y = zip(*(cells[i] for i in bag), strict=True)
            if len(set(y)) < 2:
                continue  # refused: there is no second class
            t = threshold_for(scores, y, precision=share, delta=delta).threshold
            found += p * (t is not None)
            fails += p * (t is not None and true[t] < share)
        assert fails <= delta
        assert found > 0


def test_limits_hold_for_all_thresholds_at_once():
    rng = np.random.default_rng(7)
    n, repetitions, delta = 60, 1000, 0.2
    failed = 0
    for _ in range(repetitions):
        beyond = np.sort(rng.random(n))  # probability beyond each example
        counts = np.arange(n + 1)  # just before the example of that rank
        truth = np.append(beyond, 1.0)
        failed += bool((limits(counts, n, delta) < truth).any())
    assert failed / repetitions <= delta + 3 * math.sqrt(delta * (1 - delta) / repetitions)
    assert failed > 0


def test_cost_is_below_its_limit_and_impossible_below_that():
    rng = np.random.default_rng(0)
    scores = rng.random(2000)
    y = rng.random(2000) < scores**2
    found = threshold_for(scores, y, cost=0.45, costs=(1, 3))
    alarms, misses = (scores >= found.threshold) & ~y, (scores < found.threshold) & y
    assert found.observed == (alarms.sum() + 3 * misses.sum()) / 2000 < 0.45
    none = threshold_for(scores, y, cost=0.2, costs=(1, 3))
    assert none.threshold is None
    assert has_in_turn(none.reason, [0.2, 0.95])  # the cost, and with which probability


def test_models_decide_as_their_scores_do():
    for source in ("holdout", "oob", "cv"):
        forest = RandomForestClassifier(20, random_state=0)
        model = CalibratedClassifier(forest, method="platt", calibrate_on=source, random_state=0)
        model.fit(X[:600], Y[:600])
        found = threshold_for(model, precision=0.7, delta=0.3)
        assert found.exact is (source == "holdout")
        scores, y = model.calibration_scores_, model.calibration_y_
        given = threshold_for(scores, y, precision=0.7, delta=0.3)
        assert found.threshold == given.threshold
        p = np.mean([m.predict_proba(X[600:])[:, 1] for m in model.estimators_], axis=0)
        clear = np.abs(p - found.threshold) > 1e-9  # sums of trees in another order
        decided = found.decide(X[600:])
        assert (decided == (p >= found.threshold))[clear].all()
        assert 0 < decided.mean() < 1


def test_classes_by_name_and_more_than_two():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 900)
    X = rng.normal(size=(900, 2)) + 3 * np.column_stack([y == 0, y == 1])
    names = np.array(["a", "b", "c"])[y]
    model = CalibratedClassifier(GaussianNB(), calibrate_on="holdout", random_state=0)
    found = threshold_for(model.fit(X, names), precision=0.8, pos_label="b")
    hits = names[found.decide(X) == 1] == "b"
    assert hits.mean() > 0.75
    with pytest.raises(ValueError, match=r"pos_label must be one of \['a', 'b', 'c'\]"):
        threshold_for(model, precision=0.8)
    two = model.fit(X[y < 2], names[y < 2])
    first = threshold_for(two, precision=0.8, pos_label="a")
    assert (names[y < 2][first.decide(X[y < 2]) == 1] == "a").mean() > 0.75


def test_what_is_refused():
    scores, y = np.linspace(0, 1, 50), np.arange(50) % 2
    for wrong in (
        {},
        {"precision": 0.9, "recall": 0.9},
        {"precision": float("nan")},
        {"recall": 0.0},
        {"precision": 0.9, "costs": (1, 1)},
        {"cost": 1},
        {"cost": 1, "costs": (1, -1)},
        {"precision": 0.9, "delta": 0},
    ):
        with pytest.raises(ValueError, match="must"):
            threshold_for(scores, y, **wrong)
    for arguments, message in (
        (([0.1, np.nan], [0, 1]), "finite"),
        ((scores, np.ones(50)), "y must contain two classes or more"),
        ((np.ones((50, 2)), y), "one column"),
        ((scores,), "fitted CalibratedClassifier"),
    ):
        with pytest.raises(ValueError, match=message):
            threshold_for(*arguments, precision=0.9)
    with pytest.raises(NotFittedError):
        threshold_for(CalibratedClassifier(), precision=0.9)
    none = threshold_for(scores, y, precision=0.9)
    assert none.threshold is None
    with pytest.raises(ValueError, match="29 examples of the class are needed at least and 25"):
        none.decide(scores)
    ranks, is_high = np.arange(85), np.arange(85) >= 50  # with two starts the first takes 36 rows
    assert has_in_turn(threshold_for(ranks, is_high, precision=0.9).reason, [36, 35])
    assert threshold_for(np.arange(86), np.arange(86) >= 50, precision=0.9).threshold == 50
    few = threshold_for(scores, y, specificity=0.9)
    assert "29 examples of other classes are needed at least and 25 are there" in few.reason
    with pytest.raises(ValueError, match=r"groups must have shape \(50,\), got \(49,\)"):
        threshold_for(scores, y, precision=0.9, groups=np.arange(49))
    model = CalibratedClassifier(GaussianNB(), calibrate_on="cv").fit(X, Y)
    with pytest.raises(ValueError, match="a model has those of its fit"):
        threshold_for(model, precision=0.9, groups=np.arange(900))


PROMISES = {
    "precision": {"precision": 0.7},
    "recall": {"recall": 0.8},
    "specificity": {"specificity": 0.75},
    "false_alarms": {"false_alarms": 0.2},
    "cost": {"cost": 0.9, "costs": (1, 3)},
}


@pytest.mark.parametrize("promise", list(PROMISES))
def test_the_promise_holds_for_groups_drawn_from_a_population(promise):
    """Groups of 1 to 12 rows of one label and almost one score: rows are not independent."""
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    rng, delta, n_samples, n_failed, n_thresholds = np.random.default_rng(seed), 0.2, 200, 0, 0
    target = next(iter(PROMISES[promise].values()))
    for i in range(n_samples):
        if i % 10 == 0:
            population = []
            for size in rng.choice([1, 2, 12], 30):
                score = rng.integers(0, 20) / 20
                label = bool(rng.random() < 0.1 + 0.8 * score)
                population.append([(score + m / 40, label) for m in rng.integers(-1, 2, size)])
        sample = enumerate(rng.integers(0, len(population), 90))
        rows = [(s, y, g) for g, kind in sample for s, y in population[kind]]
        scores, y, groups = map(np.array, zip(*rows, strict=True))
        t = threshold_for(scores, y, **PROMISES[promise], delta=delta, groups=groups).threshold
        if t is not None:
            truth, n_thresholds = promised_quantity(promise, population, t), n_thresholds + 1
            n_failed += truth > target if promise in ("cost", "false_alarms") else truth < target
    assert n_thresholds > n_samples / 20
    assert n_failed <= binom.ppf(1 - 1e-6, n_samples, delta)


def test_groups_of_one_row_and_groups_of_a_model():
    rng = np.random.default_rng(1)
    scores = rng.random(500)
    y = rng.random(500) < scores
    for options in PROMISES.values():
        alone = threshold_for(scores, y, **options)
        same = threshold_for(scores, y, **options, groups=rng.permutation(500))
        assert (alone.threshold, alone.observed) == (same.threshold, same.observed)
    copies = np.repeat(np.arange(500), 20)
    many = threshold_for(scores[copies], y[copies], recall=0.9, groups=copies)
    assert many.threshold == threshold_for(scores, y, recall=0.9).threshold
    assert many.n_examples == y.sum()
    groups = np.arange(900) // 2
    for source in ("holdout", "cv"):
        model = CalibratedClassifier(GaussianNB(), calibrate_on=source, random_state=0)
        by_model = threshold_for(model.fit(X, Y, groups=groups), recall=0.7)
        of_rows = groups[np.concatenate([fold.rows for fold in model._state.folds])]
        scores, y = model.calibration_scores_, model.calibration_y_
        by_scores = threshold_for(scores, y, recall=0.7, groups=of_rows)
        assert by_model.threshold == by_scores.threshold is not None
        assert by_model.exact is (source == "holdout")


@pytest.mark.parametrize("what", ["sample_weight", "with_prior", "training"])
def test_models_without_independent_examples_are_refused(what):
    source = "training" if what == "training" else "cv"
    model = CalibratedClassifier(GaussianNB(), method="platt", calibrate_on=source)
    given = {what: 1 + np.arange(300) // 2} if what == "sample_weight" else {}
    model.fit(X[:300], Y[:300], **given)
    if what == "with_prior":
        model = model.with_prior({0: 0.9})
    with pytest.raises(ValueError, match=what):
        threshold_for(model, precision=0.6)


@pytest.mark.parametrize("pos_label", ["no", "yes"])
def test_a_column_named_as_the_other_class_gives_the_same_decisions(pos_label):
    rng = np.random.default_rng(31)
    p = rng.integers(1, 256, 400) / 256  # 1 - p is exact
    y = np.where(rng.random(400) < p, "yes", "no")
    decisions = []
    for name, column in (("p(yes)", p), ("p(no)", 1 - p)):
        scores = pd.DataFrame({name: column})
        threshold = threshold_for(scores, y, recall=0.8, delta=0.1, pos_label=pos_label)
        decisions.append(threshold.decide(scores))
    np.testing.assert_array_equal(*decisions)
    assert 0.2 < decisions[0].mean() < 0.95
