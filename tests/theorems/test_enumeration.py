"""Theorem 1 of Vovk & Petej (2014) by full enumeration, in exact fractions and without tolerance.

Of a Venn predictor's distributions, one for each tentative label, that of the true label is
perfectly calibrated: given that it says p, the label is j with probability p_j. Where examples are
exchangeable this holds for each bag of examples, all their orders being equally likely. So here
every bag of a small discrete problem is put in every order (or every way to hand out the parts is
gone through), the library predicts the last object, and for each p that occurs the sum of
1{y = j} - p_j over the orders with that p must be 0 exactly.

The library's numbers are floats: each is read as the fraction of small denominator whose rounding
it is, and refused if there is none.
"""

from collections import defaultdict
from fractions import Fraction
from functools import partial
from itertools import combinations, combinations_with_replacement, permutations, product

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import StratifiedKFold

from oracles import formulas as oracle
from vennforest import CalibratedClassifier, Venn, VennAbers
from vennforest.sources import splits

SCORES = (0.2, 0.5, 0.8)


def exact(value, largest):
    """The fraction of denominator up to ``largest`` that a float is the rounding of."""
    fraction = Fraction(float(value)).limit_denominator(largest)
    assert float(fraction) == value
    return fraction


class Sums:
    """The sum of 1{y = j} - p_j for every p = (p_1, ...) that was selected."""

    def __init__(self):
        self.of = defaultdict(Fraction)

    def add(self, y, selected):
        for j, p in enumerate(selected):
            self.of[j, tuple(selected)] += (y == j) - p

    def deviation(self):
        """The largest absolute sum over all values of p; 0 where all are calibrated."""
        return max(abs(total) for total in self.of.values())


def of_two(p0, p1, y, largest):
    """The distribution over two classes that the true label selects."""
    p = exact((p0, p1)[y], largest)
    return 1 - p, p


def of_many(lower, upper, y, largest):
    """The distribution that the true label selects in a Venn predictor: its own upper bound."""
    return tuple(exact(upper[j] if j == y else lower[j], largest) for j in range(len(lower)))


def bags(points, n):
    """All multisets of n points."""
    return combinations_with_replacement(points, n)


def with_one_new(bag):
    """Every way to take one example out of a bag: (the others, the new one)."""
    return [([*bag[:i], *bag[i + 1 :]], bag[i]) for i in range(len(bag))]


def predict_two(calibration, new):
    s, y = zip(*calibration, strict=True)
    m = VennAbers("log").fit(s, y, classes=[0, 1]).predict_multiprobability([new])
    return m.p0[0], m.p1[0]


def test_inductive_venn_abers():
    """Every bag of five examples of three scores and two labels, each being new once."""
    for bag in bags(list(product(SCORES, (0, 1))), 5):
        sums = Sums()
        for calibration, (s, y) in with_one_new(bag):
            sums.add(y, of_two(*predict_two(calibration, s), y, 5))
        assert sums.deviation() == 0


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("taxonomy", ["label", "bins"])
def test_inductive_venn(taxonomy, k):
    scores = SCORES if k == 2 else ((0.5, 0.3, 0.2), (0.1, 0.8, 0.1), (0.2, 0.2, 0.6))
    for bag in bags(list(product(scores, range(k))), 4):
        sums = Sums()
        for calibration, (s, y) in with_one_new(bag):
            venn = Venn(taxonomy).fit(*zip(*calibration, strict=True), classes=range(k))
            m = venn.predict_multiprobability([s])
            sums.add(y, of_many(m.lower[0], m.upper[0], y, 4))
        assert sums.deviation() == 0


def test_the_enumeration_sees_the_wrong_label_and_a_count_too_few():
    wrong, naive = 0, 0
    for bag in list(bags(list(product(SCORES, (0, 1))), 4))[::2]:
        other, plain = Sums(), Sums()
        for calibration, (s, y) in with_one_new(bag):
            other.add(y, of_two(*predict_two(calibration, s), 1 - y, 4))
            fitted = oracle.isotonic_max_min(*zip(*calibration, strict=True))
            p = oracle.isotonic_read(fitted, s)
            plain.add(y, (1 - p, p))
        wrong += other.deviation() > 0
        naive += plain.deviation() > 0
    assert wrong > 50  # of 63 bags; in some all labels are equal
    assert naive > 25


class Frequencies(ClassifierMixin, BaseEstimator):
    """The share of class 1 among training examples with the same feature; .5 where there are none.

    Its sums are exact, so that it does not depend on the order of the examples.
    """

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        x = np.asarray(X)[:, 0]
        self.shares_ = {v: float(np.mean(y[x == v])) for v in np.unique(x)}
        return self

    def predict_proba(self, X):
        p = np.array([self.shares_.get(v, 0.5) for v in np.asarray(X)[:, 0]])
        return np.column_stack([1 - p, p])


def table(examples):
    x, y = zip(*examples, strict=True)
    return np.array(x, float)[:, None], np.array(y)


def deviation_over_parts(bag):
    """Of the holdout predictor over every new object and every training part of two others."""
    sums = Sums()
    for others, (x, y) in with_one_new(bag):
        X, labels = table(others)
        equally = [list(part) for part in combinations(range(len(labels)), 2)]
        for train in equally:
            held = np.setdiff1d(np.arange(len(others)), train)
            model = Frequencies().fit(X[train], labels[train])
            pairs = list(zip(model.predict_proba(X[held])[:, 1], labels[held], strict=True))
            p0, p1 = predict_two(pairs, model.predict_proba([[x]])[0, 1])
            # every new object has the same weight, however many splits there are
            selected = of_two(p0, p1, y, len(held) + 1)
            for j, p in enumerate(selected):
                sums.of[j, selected] += ((y == j) - p) / len(equally)
    return sums.deviation()


POINTS = list(product((0, 1), (0, 1)))


def test_a_part_held_out_at_random():
    """Every bag of five, and some of six, every new object, every split 2 : 2 and 2 : 3."""
    for bag in (*bags(POINTS, 5), *list(bags(POINTS, 6))[::5]):
        assert deviation_over_parts(bag) == 0


def deviation_of_folds(bag, cv):
    """Each fold's own predictor, through the library's door: the largest deviation of any."""
    n = len(bag) - 1
    sums = defaultdict(Sums)
    for order in sorted(set(permutations(bag))):
        X, labels = table(order[:n])
        x, y = order[n]
        model = CalibratedClassifier(Frequencies(), calibrate_on="cv", cv=cv(labels), merge="log")
        model.fit(X, labels)
        pairs = zip(model._state.folds, model._state.overall.calibrators, strict=True)
        for fold, (part, calibrator) in enumerate(pairs):
            draw_scores, _ = part.score_for_bounds(np.array([[x]], float))
            m = calibrator.predict_multiprobability(draw_scores)
            sums[fold].add(y, of_two(m.p0[0], m.p1[0], y, len(part.scores) + 1))
    return max(fold.deviation() for fold in sums.values())


def halves(labels):
    first, second = np.array_split(np.arange(len(labels)), 2)
    return [(second, first), (first, second)]


FOLD_BAGS = [bag for bag in bags(POINTS, 5) if 2 <= sum(y for _, y in bag) <= 3]


@pytest.mark.filterwarnings("ignore:The least populated class", "ignore:.*exact copies")
def test_each_fold_is_exact_and_a_stratified_one_is_not(monkeypatch):
    """Every order of every third bag of five with both classes whoever is new: two folds each."""
    # The theorem needs the folds that `fit` refuses too: this model learns from one class alone.
    monkeypatch.setattr(splits, "_check_fold_classes", lambda *arguments: None)
    assert {deviation_of_folds(bag, halves) for bag in FOLD_BAGS[::3]} == {0}
    stratified = [
        deviation_of_folds(bag, lambda labels: list(StratifiedKFold(2).split(labels, labels)))
        for bag in FOLD_BAGS[::12]
    ]
    assert max(stratified) > 0


@pytest.mark.parametrize("make", [partial(VennAbers, "log"), Venn])
def test_an_example_left_out_at_random(make):
    """Every bag of four, every order, every example drawn: the others are exchangeable with it."""
    for bag in bags(list(product(SCORES[:2], (0, 1))), 4):
        sums = Sums()
        for order in sorted(set(permutations(bag))):
            (scores, labels), (s, y) = zip(*order[:-1], strict=True), order[-1]
            model = make().fit(scores, labels, classes=[0, 1])
            m = model.predict_multiprobability(np.full(3, s), np.arange(3))
            for lower, upper in zip(m.lower, m.upper, strict=True):
                if make is Venn:
                    sums.add(y, of_many(lower, upper, y, 4))
                else:
                    sums.add(y, of_two(lower[1], upper[1], y, 4))
        assert sums.deviation() == 0
