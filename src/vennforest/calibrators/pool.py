"""A linear pool of calibrators, weighted by their predictions of held-out examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from functools import reduce
from itertools import islice

import numpy as np

from vennforest._validation import FloatArray, IntArray, check_array, check_number
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import FormulaFunction, Score, Term
from vennforest.calibrators.newton import group_scores
from vennforest.calibrators.sigmoid import PlattScaling
from vennforest.calibrators.softmax import (
    MANY_CLASSES,
    ProbabilityCalibrator,
    SoftmaxMap,
    TemperatureScaling,
)
from vennforest.calibrators.spline import SplineCalibration
from vennforest.counts import ScoreCounts
from vennforest.prior import log_factors_for_means

# Examples that each member counts as having predicted before any is seen; temperature, a member
# from 26 classes on, costs next to nothing by chance, and counts for more.
PRIOR_EXAMPLES, PRIOR_OF_TEMPERATURE = 0.5, 10.0
# Steps to the weights, the change of a weight after which they are over, and the largest change of
# its logarithm.
MAX_EM_STEPS, EM_TOLERANCE, MAX_LOG_STEP = 1_000, 1e-9, 5.0
SHRINKAGES = (0.001, 0.003, 0.01, 0.03, 0.1)  # shrinkages to choose among
# Folds that are held out, and the examples from which on only the first one is.
N_POOL_FOLDS, MIN_EXAMPLES_FOR_ONE_FOLD = 4, 10_000
# Examples for each slope of a full matrix from which on one ridge is as good as another.
EXAMPLES_PER_SLOPE = 4
MAX_CLASSES_OF_FULL = 50  # classes up to which full matrices are fitted
MAX_POOLED_SCORES = 1_024  # scores of two classes from which on near-equal ones are put together
COARSE_BITS = np.uint32(0xFFFFFF00)  # of single precision: sixteen digits of the mantissa
MAX_SHUFFLED_UNITS = 1 << 16  # units of a line that are shuffled; a longer line repeats them


class PooledCalibration(ProbabilityCalibrator):
    """Weighted mean of the probabilities of several calibrators, right on average.

    ``p_j ~ factor_j sum_m weight_m p_mj``, a linear opinion pool. The weights minimise the log loss
    of the members' predictions for each fold after a fit to the other folds: stacking (Wolpert
    1992). With the factors, the mean probability of each class over the calibration examples is the
    share of the class; classes without examples keep theirs, and the others share the rest. From 26
    classes on the factors are 1: to match k shares of n examples costs (k - 1) / (2 n) of log loss
    where the scores are right already.

    For two classes the members are `VectorScaling`, `PlattScaling` on log-odds, and
    `SplineCalibration`; for more softmax maps as in `VectorScaling`, with a shared slope and with
    full ones under one to three ridges; from 26 classes on `TemperatureScaling` and softmax maps
    with a shared slope and with a slope per class, and up to 50 classes a full one where there are
    four examples or more for each of its slopes. Softmax maps and splines have the shrinkage, of
    0.001 to 0.1, under which the map with a shared slope fits best.

    Attributes
    ----------
    members_ : dict of str to calibrator
        The fitted members.
    weights_ : dict of str to float
        The weight of each member, not below 0, with sum 1.
    factors_ : ndarray of shape (k,)
        The factor of each class.

    Notes
    -----
    The weights maximise ``sum_i w_i log sum_m weight_m p_im + sum_m log(weight_m) / 2`` over
    examples i: with few examples the members weigh nearly the same, and none is ever left out. From
    26 classes on the logarithm of temperature's weight counts ten times in place of one half.
    There are four folds, which do not depend on the order of the examples; from 10,000 examples on
    the first alone is held out. With up to 25 classes each fold has its part of every class. With
    more the folds are drawn whatever the class: an intercept that only follows how many examples a
    class happens to have would otherwise look right. Where temperature is exactly right, the pool's
    log loss is then above it by about 0.001 with ten examples for each of 30 classes, and by less
    with more; stratified folds lost 0.03.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(500)
    >>> model = PooledCalibration().fit(scores, rng.random(500) < scores**2)
    >>> model.predict_proba([0.5, 0.9])[:, 1].round(2)
    array([0.24, 0.83])
    >>> {name: round(weight, 1) for name, weight in model.weights_.items()}
    {'vector': 0.4, 'platt': 0.3, 'spline': 0.3}
    """

    title = "Pooled"
    members_: dict[str, Calibrator]
    weights_: dict[str, float]
    factors_: FloatArray

    def _fit_probabilities(self, counts: ScoreCounts) -> None:
        # Members know classes by number.
        k = len(counts.classes)
        counts = examples = ScoreCounts(np.arange(k), counts.scores, counts.weights)
        if counts.scores.ndim == 1:
            examples = group_scores(counts)
            counts = group_scores(examples, MAX_POOLED_SCORES)
        members = make_members(counts)
        weight, p = held_out(list(members.values()), counts)
        prior = [PRIOR_OF_TEMPERATURE if m == "temperature" else PRIOR_EXAMPLES for m in members]
        self.weights_ = dict(zip(members, pool_weights(weight, p, prior).tolist(), strict=True))
        first, *unfitted = members.values()
        fitted = first, *fit_members(unfitted, counts, start=first)
        self.members_ = dict(zip(members, fitted, strict=True))
        self.factors_ = np.ones(k)
        if k < MANY_CLASSES:
            pooled = FormulaFunction(self._pooled(Score()))(examples.scores)
            if k == 2:
                pooled = np.column_stack([1 - pooled, pooled])
            # Classes without examples keep their mean probability, and the others share the rest.
            total, shares = examples.weights.sum(axis=1), examples.class_totals / examples.total
            total /= examples.total
            absent = np.where(shares > 0, 0.0, total @ pooled)
            means = shares * (1 - absent.sum()) + absent
            self.factors_ = np.exp(log_factors_for_means(pooled, means, total))

    def _pooled(self, p: Term) -> Term:
        """Return the weighted mean of the members' probabilities."""
        total = sum(self.weights_.values())
        members = [w / total * self.members_[name]._formula(p) for name, w in self.weights_.items()]
        return reduce(Term.__add__, members)

    def _map_formula(self, p: Term) -> Term:
        pooled = self._pooled(p)
        if len(self.factors_) == 2:
            first, second = map(float, self.factors_)
            of_second = pooled * second
            return of_second / ((1.0 - pooled) * first + of_second)
        raised = pooled * self.factors_
        return raised / raised.sum()

    def _check_map(self) -> None:
        check_array(self.factors_, "factors_", (len(self.classes_),), low=0)
        for weight in self.weights_.values():
            check_number(weight, "weights_", 0, 1)
        super()._check_map()


def make_members(counts: ScoreCounts) -> dict[str, Calibrator]:
    """Return the members by name, of which the first is fitted: see `PooledCalibration`."""
    k, best = len(counts.classes), best_map(counts)
    c = best.shrinkage
    if k == 2:
        platt, spline = PlattScaling(on="probability"), SplineCalibration()
        spline.shrinkage = c
        return {"vector": best, "platt": platt, "spline": spline}
    members: dict[str, Calibrator] = {"shared": best}
    if k >= MANY_CLASSES:
        members |= {"diagonal": SoftmaxMap(shrinkage=c), "temperature": TemperatureScaling()}
    enough = counts.total >= EXAMPLES_PER_SLOPE * k**2
    if k < MANY_CLASSES or (enough and k <= MAX_CLASSES_OF_FULL):
        members["full"] = SoftmaxMap("full", shrinkage=c)
    if k < MANY_CLASSES and not enough:
        members["full, heavy ridge"] = SoftmaxMap("full", ridge=5.0, shrinkage=c)
        members["full, light ridge"] = SoftmaxMap("full", ridge=0.3, shrinkage=c)
    return members


def best_map(counts: ScoreCounts) -> SoftmaxMap:
    """Return the first member, fitted under the shrinkage with which it has the least log loss.

    With many classes the search ends at the first one that is worse than the one before.
    """
    maps: list[SoftmaxMap] = []
    losses: list[float] = []
    k = len(counts.classes)
    for c in SHRINKAGES:
        if k >= MANY_CLASSES and losses[-2:] != sorted(losses[-2:])[::-1]:
            break
        start = maps[-1] if maps else None
        member = SoftmaxMap("diagonal" if k == 2 else "shared", shrinkage=c)
        maps.append(member._fit_from(start, counts))
        losses.append(maps[-1]._log_loss(counts))
    # Of those that rounding alone sets apart (a slope of 0) the largest.
    is_best = np.array(losses) <= min(losses) + 1e-9 * counts.total
    return maps[int(np.flatnonzero(is_best)[-1])]


def fit_members(
    members: Iterable[Calibrator], counts: ScoreCounts, start: Calibrator | None = None
) -> list[Calibrator]:
    """Return fitted copies of the members; a search for a softmax map begins at the one before."""
    fitted = []
    for member in map(copy, members):
        fitted.append(member)
        if isinstance(member, SoftmaxMap):
            start = member._fit_from(start, counts)
        else:
            member._fit_checked(counts)
    return fitted


def split(counts: ScoreCounts) -> Iterator[FloatArray]:
    """Yield each fold's share (m, k) of the weights.

    The examples of a label lie side by side on a line in the order of that label's score, each as
    long as its weight, and the units of the line are dealt out to the folds in a shuffled order.
    Unshuffled, folds would have nearly the same shares of labels at each score, and a map that
    follows chance would look as good as on what it was fitted to. The same holds for intercepts of
    many classes with few examples each: they share one line, so that folds differ in their labels.
    """
    lines = []
    for rows, labels in _lines(counts):
        ends = np.append(0.0, np.cumsum(counts.weights[rows, labels]))
        # Sums of other weights than integers may leave a hair beyond a unit.
        n_units = int(np.clip(np.ceil(ends[-1] * (1 - 1e-12)), 1, MAX_SHUFFLED_UNITS))
        deal = np.random.RandomState(0).permutation(np.arange(n_units) % N_POOL_FOLDS)
        lines.append((rows, labels, ends, deal))
    for fold in range(N_POOL_FOLDS):
        share = np.zeros_like(counts.weights)
        for rows, labels, ends, deal in lines:
            # The length of the part of [0, end] in units of the fold, which repeat.
            in_fold = np.append(0.0, np.cumsum(deal == fold))
            rounds, position = np.divmod(ends, len(deal))
            length = np.interp(position, np.arange(len(in_fold)), in_fold)
            share[rows, labels] = np.diff(rounds * in_fold[-1] + length)
        yield np.clip(share, 0.0, counts.weights)


def _lines(counts: ScoreCounts) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield the rows and labels of examples that are dealt out together, in their order."""
    rows, labels = np.nonzero(counts.weights > 0)
    if len(counts.classes) >= MANY_CLASSES:
        # Any order will do that examples bring along: that of bytes is several times faster. The
        # last digits differ between processors, and would deal out all examples anew.
        bits = counts.scores.astype(np.float32).view(np.uint32) & COARSE_BITS
        examples = np.column_stack([bits[rows], labels.astype(np.uint32)])
        width = f"V{examples.itemsize * examples.shape[1]}"
        order = np.argsort(np.ascontiguousarray(examples).view(width)[:, 0], kind="stable")
        yield rows[order], labels[order]
        return
    for j in range(len(counts.classes)):
        of_label = rows[labels == j]
        if counts.scores.ndim == 1:
            of_label = of_label if j else of_label[::-1]
        else:
            x = counts.scores[of_label]
            of_label = of_label[np.lexsort([*x.T[::-1], x[:, j]])]
        yield of_label, np.full_like(of_label, j)


def held_out(members: list[Calibrator], counts: ScoreCounts) -> tuple[FloatArray, FloatArray]:
    """Return weights (r,) of held-out examples, and members' probabilities (M, r) of their labels.

    An example is a score with one of its labels. Copies of the ``members`` are fitted to the counts
    of the other folds.
    """
    weights, likelihoods = [np.empty(0)], [np.empty((len(members), 0))]
    n_folds = 1 if counts.total >= MIN_EXAMPLES_FOR_ONE_FOLD else N_POOL_FOLDS
    for share in islice(split(counts), n_folds):
        fold, training = with_weights(counts, share), with_weights(counts, counts.weights - share)
        if not len(fold) or not len(training):
            continue
        is_present = fold.weights > 0
        weights.append(fold.weights[is_present])
        fitted = fit_members(members, training)
        predictions = [member._predict_proba(fold.scores) for member in fitted]
        likelihoods.append(np.array([p[is_present] for p in predictions]))
    return np.concatenate(weights), np.concatenate(likelihoods, axis=1)


def with_weights(counts: ScoreCounts, weights: FloatArray) -> ScoreCounts:
    """Return counts of m scores with other weights (m, k), without scores of no weight."""
    rows = weights.any(axis=1)
    return ScoreCounts(counts.classes, counts.scores[rows], weights[rows])


@np.errstate(under="ignore")
def pool_weights(weight: FloatArray, p: FloatArray, prior: list[float]) -> FloatArray:
    """Return the weights (M,) of a pool from what `held_out` returns.

    They maximise ``sum_i weight_i log sum_m weights_m p_mi + sum_m prior_m log weights_m``. A step
    is Newton's in the logarithms of the weights, or of the EM algorithm where that gains more.
    ``prior`` (M,) is the number of examples that each member counts as having predicted before.
    """
    likelihood, counted = np.maximum(p, np.finfo(float).tiny), np.asarray(prior)
    total = float(weight.sum() + counted.sum())

    def gain(weights: FloatArray) -> float:
        return float(weight @ np.log(weights @ likelihood) + counted @ np.log(weights))

    weights: FloatArray = np.full(len(p), 1 / len(p))
    for _ in range(MAX_EM_STEPS):
        share = weights[:, None] * likelihood
        share /= share.sum(axis=0)
        predicted = share @ weight
        expected = (predicted + counted) / total  # by expectation and maximisation
        if np.abs(weights - expected).max() < EM_TOLERANCE:
            break
        hessian = (share * weight) @ share.T + np.diag(total * weights - predicted)
        step = np.linalg.lstsq(hessian, total * (expected - weights), rcond=None)[0]
        newton = weights * np.exp(np.clip(step, -MAX_LOG_STEP, MAX_LOG_STEP))
        newton /= newton.sum()
        weights = newton if gain(newton) > gain(expected) else expected
    return weights
