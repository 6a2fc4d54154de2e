"""Predictions of several methods, their measures, and the choice of one of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc
from scipy.stats import t as student

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.intervals import ConfidenceIntervals
from vennforest.classifier.intervals import ForestSpread
from vennforest.metrics import (
    auc_interval,
    calibration_error,
    confidence_minus_accuracy,
    interval_summary,
    kuiper_test,
    spiegelhalter_test,
)
from vennforest.metrics._inputs import bin_codes
from vennforest.multiprobability import Multiprobability

RAW: str = "none"
"""The model as it is, without calibration."""

BASELINE: str = "baseline"
"""The class frequencies as the probabilities of every row."""


@dataclass(frozen=True, eq=False)
class MethodEstimates:
    """One method's probabilities (n, k) of every row, by models that were not trained on it.

    With bounds, where the method gives them, and confidence intervals around the probabilities at
    the level .95, where the calibration scores are known.
    """

    p: FloatArray
    bounds: Multiprobability | None = None
    confidence: ConfidenceIntervals | None = None


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """Estimates of all methods for every row.

    ``codes``, ``fold`` and ``rows`` (n,) are each row's class, the fold in which it was predicted,
    its position in X; ``importances`` and ``encodings`` are of columns, ``missing`` is the share of
    missing cells. ``ratio`` is predicted over training rows, the mean over folds, and ``forest``
    how far another forest of this size would move probabilities.
    """

    classes: NDArray[Any]
    codes: IntArray
    fold: IntArray
    rows: IntArray
    estimates: dict[str, MethodEstimates]
    importances: dict[str, float]
    encodings: dict[str, str]
    missing: float | None = None
    notes: list[str] = field(default_factory=list)
    groups: IntArray | None = None
    ratio: float | None = None
    forest: ForestSpread | None = None

    @classmethod
    def without_folds(
        cls,
        classes: NDArray[Any],
        codes: IntArray,
        estimates: dict[str, MethodEstimates],
        groups: IntArray | None,
    ) -> Self:
        """Return estimates by models that were not trained on any of these rows."""
        rows = np.arange(len(codes))
        return cls(classes, codes, np.zeros_like(rows), rows, estimates, {}, {}, groups=groups)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def baseline(self) -> MethodEstimates:
        """Return the share of each class in the rows predicted: the best constant probabilities."""
        shares = np.bincount(self.codes, minlength=len(self.classes)) / len(self.codes)
        return MethodEstimates(np.tile(shares, (len(self.codes), 1)), None)


CLIP = float(np.finfo(np.float64).eps)
"""Where scikit-learn's log loss clips."""

CALIBRATION_TESTS = (spiegelhalter_test, kuiper_test)

BINS = 15
"""Of the expected calibration error."""

LEVEL = 0.02
"""Of the tests of calibration: calibrated probabilities are called miscalibrated no more often."""

REDRAWN = 200
"""How often labels are drawn to see which calibration error chance alone gives."""

TURNED = 499
"""How often the signs of groups are turned for the same."""


@dataclass(frozen=True)
class Measures:
    """The measures of one method.

    Attributes
    ----------
    log_loss : float
        Mean of −ln p of the observed class; infinite where one p is 0.
    log_loss_clipped : float
        The same with p clipped at 2.2e-16, as scikit-learn does.
    impossible : int
        Number of rows whose observed class had probability 0.
    brier : float
        With two classes the mean squared error of the positive one's probability, in [0, 1]; with
        more the mean squared distance of vectors, in [0, 2].
    auc : float
        Area under the ROC curve; with many classes each against the rest, weighted by shares.
    accuracy : float
        Share of rows whose most probable class is the observed one.
    calibration_error : float
        Expected calibration error over 15 bins, of the positive class; with many of the confidence
        in the predicted label.
    chance_error, chance_limit : float
        Mean and 95 % quantile of that error if the estimates were perfectly calibrated.
    mean_error : float
        Distance of that mean probability from the observed frequency, √(distance² − variance): the
        part that chance leaves unexplained.
    pvalue : float
        Of the hypothesis that the estimates are calibrated: the smaller of Spiegelhalter's test
        and Kuiper's, doubled; with groups, of tests that turn the signs of whole groups.
    overconfidence : float
        Mean confidence in the predicted label minus accuracy.
    size : float or None
        Mean width of the bounds of the predicted label.
    brier_skill, log_loss_skill : float
        1 minus the score over that of the baseline, at most 1; 0 as good as the base rate, NaN
        where there is nothing to divide by.
    """

    log_loss: float
    log_loss_clipped: float
    impossible: int
    brier: float
    auc: float
    accuracy: float
    calibration_error: float
    chance_error: float
    chance_limit: float
    mean_error: float
    pvalue: float
    overconfidence: float
    size: float | None = None
    brier_skill: float = float("nan")
    log_loss_skill: float = float("nan")

    @property
    def miscalibration(self) -> float:
        """The calibration error that chance leaves unexplained, in [0, 1].

        The squares of what is there and of what chance adds sum up, about; it is no less than the
        distance of the means.
        """
        binned = self.calibration_error**2 - self.chance_error**2
        return float(max(np.sqrt(max(0.0, binned)), self.mean_error))

    @property
    def detectable(self) -> float:
        """The least miscalibration that is not hidden by chance on so many rows, in [0, 1]."""
        return float(np.sqrt(max(0.0, self.chance_limit**2 - self.chance_error**2)))

    def exceeds(self, tolerance: float) -> bool:
        """Whether the miscalibration is larger than a tolerance, and no chance."""
        return self.pvalue < LEVEL and self.miscalibration > tolerance


def of_observed(p: FloatArray, codes: IntArray) -> FloatArray:
    """Return the probability given to each row's observed class, (n,)."""
    return np.take_along_axis(p, codes[:, None], axis=1)[:, 0]


def log_losses(p: FloatArray, codes: IntArray) -> FloatArray:
    """Return −ln p of each row's observed class, (n,); infinite where p is 0."""
    with np.errstate(divide="ignore"):
        losses: FloatArray = -np.log(of_observed(p, codes))
    return np.maximum(losses, 0.0)


def squared_losses(p: FloatArray, codes: IntArray) -> FloatArray:
    """Return each row's squared distance of vectors, (n,); halved for two classes."""
    right = of_observed(p, codes)
    losses: FloatArray = np.einsum("ij,ij->i", p, p) - 2 * right + 1
    return losses / 2 if p.shape[1] == 2 else losses


def measure(
    estimates: MethodEstimates,
    codes: IntArray,
    classes: NDArray[Any],
    positive: int | None,
    seed: int = 0,
    baseline: Measures | None = None,
    groups: IntArray | None = None,
) -> Measures:
    """Measure one method, with each row's class (n,) by its index, and that of the positive one.

    ``seed`` is of the labels drawn for ``chance_error``; skill scores compare with ``baseline``.
    """
    p, y = estimates.p, classes[codes]
    label = None if positive is None else classes[positive]
    losses, brier = log_losses(p, codes), float(squared_losses(p, codes).mean())
    error = calibration_error(y, p, bins=BINS, classes=classes, pos_label=label)
    column = p.argmax(axis=1) if positive is None else np.full(len(codes), positive)
    event = np.take_along_axis(p, column[:, None], axis=1)[:, 0].clip(0, 1)
    residual = (column == codes) - event
    if groups is None:
        chance, spread = _chance_errors(event, seed), float((event * (1 - event)).sum()) ** 0.5
        pvalue = min(test(y, p, classes=classes).pvalue for test in CALIBRATION_TESTS)
    else:
        chance, spread, pvalue = _grouped_errors(event, residual, groups, error, seed)
    log_loss, bounds = float(losses.mean()), estimates.bounds
    return Measures(
        log_loss=log_loss,
        log_loss_clipped=float(np.minimum(losses, -np.log(CLIP)).mean()),
        impossible=int(np.isinf(losses).sum()),
        brier=brier,
        auc=auc_interval(y, p, classes=classes, pos_label=label).auc,
        accuracy=float((p.argmax(axis=1) == codes).mean()),
        calibration_error=error,
        chance_error=float(chance.mean()),
        chance_limit=float(np.quantile(chance, 0.95)),
        mean_error=max(0.0, float(residual.sum()) ** 2 - spread**2) ** 0.5 / len(codes),
        pvalue=min(1.0, 2 * pvalue),
        overconfidence=confidence_minus_accuracy(y, p, classes=classes),
        size=None if bounds is None else interval_summary(y, bounds).size,
        brier_skill=_skill(brier, None if baseline is None else baseline.brier),
        log_loss_skill=_skill(log_loss, None if baseline is None else baseline.log_loss),
    )


def _skill(score: float, reference: float | None) -> float:
    return 1 - score / reference if reference else float("nan")


def _chance_errors(event: FloatArray, seed: int) -> FloatArray:
    """Return the calibration errors of labels drawn with the estimates as probabilities."""
    draws = REDRAWN if len(event) <= 100_000 else REDRAWN // 4
    random = np.random.default_rng((seed, 1))
    bins = bin_codes(event, BINS)
    expected = np.bincount(bins, weights=event, minlength=BINS)
    errors = np.empty(draws)
    for i in range(draws):
        happened = random.random(len(event)) < event
        errors[i] = np.abs(np.bincount(bins, weights=happened, minlength=BINS) - expected).sum()
    return errors / len(event)


def _grouped_errors(
    event: FloatArray, residual: FloatArray, groups: IntArray, error: float, seed: int
) -> tuple[FloatArray, float, float]:
    """Return calibration errors by chance, the residuals' spread, and the smaller of two p-values.

    If the estimates are calibrated, a group's sums of residuals vary about 0, whatever happens
    within it: signs of whole groups are turned at random. One test is of the calibration error, the
    other of the mean residual, whose variance is the sum of the groups' squares.
    """
    member = np.unique(groups, return_inverse=True)[1]
    cell = member * BINS + bin_codes(event, BINS)
    n_groups = int(member.max()) + 1
    sums = np.bincount(cell, weights=residual, minlength=n_groups * BINS).reshape(-1, BINS)
    random = np.random.default_rng((seed, 2))
    errors = np.empty(TURNED)
    for i in range(TURNED):
        errors[i] = np.abs(random.choice([-1.0, 1.0], n_groups) @ sums).sum()
    errors /= len(event)
    largest = (1 + np.count_nonzero(errors >= error - 1e-12)) / (1 + TURNED)
    of_groups = sums.sum(axis=1)
    spread = float(np.sqrt(of_groups @ of_groups))
    mean = float(erfc(abs(of_groups.sum()) / spread / np.sqrt(2))) if spread > 0 else 1.0
    return errors, spread, min(largest, mean)


@dataclass(frozen=True)
class Difference:
    """The mean difference of two methods' losses, and half its 95 % confidence interval."""

    mean: float
    margin: float
    loss: str = "log loss"

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return abs(self.mean) > self.margin


def mean_difference(first: FloatArray, second: FloatArray, folds: OutOfFold) -> Difference:
    """Return the mean difference of losses (n,) over folds, with its interval.

    By the corrected resampled t-test (Nadeau & Bengio 2003, section 3): training sets of different
    folds overlap, so the variance of the mean is (1/K + n_test/n_train) times that of the K fold
    means. With one fold as `difference_over_rows`.
    """
    k = folds.n_folds
    if k == 1:
        return difference_over_rows(first, second, folds)
    gap = first - second
    sizes = np.bincount(folds.fold, minlength=k)
    means = np.bincount(folds.fold, weights=gap, minlength=k) / sizes
    ratio = 1 / (k - 1) if folds.ratio is None else folds.ratio
    error = np.sqrt((1 / k + ratio) * means.var(ddof=1))
    return Difference(float(gap.mean()), float(student.ppf(0.975, k - 1) * error))


def difference_over_rows(first: FloatArray, second: FloatArray, folds: OutOfFold) -> Difference:
    """Return the mean difference of losses (n,), with Student's interval over rows or groups.

    It is of these predictions: what other training rows would have given is not in it.
    """
    gap = first - second
    mean = float(gap.mean())
    moves: FloatArray = gap - mean
    if folds.groups is not None:
        moves = np.bincount(folds.groups, weights=moves).astype(np.float64)
    m = len(moves)
    if m < 2:
        return Difference(mean, float("inf"))
    error = np.sqrt(moves @ moves * m / (m - 1)) / len(gap)
    return Difference(mean, float(student.ppf(0.975, m - 1) * error))


@dataclass(frozen=True)
class Verdict:
    """The recommended method and how the others compare with it.

    Attributes
    ----------
    method : str
        The recommended one.
    rule : str
        How it was chosen.
    against : dict of str to Difference
        For every other method its loss minus the recommended one's; where either log loss is
        infinite, of Brier scores.
    """

    method: str
    rule: str
    against: dict[str, Difference]


NEGLIGIBLE = 0.01
"""Relative difference of log losses that matters less than bounds do."""


def judge(measures: dict[str, Measures], folds: OutOfFold, tolerance: float) -> Verdict:
    """Choose a method by the rule, and compare every other one with it.

    Those count whose log loss is the lowest, within chance of it, or less than 1 % above (an
    infinite one only if all are); of these those within the tolerance (the lowest if none is), then
    those with bounds if there are any; of what is left the best ranking.
    """
    lowest = min(measures, key=lambda m: (measures[m].log_loss, measures[m].brier))

    def level_with_lowest(method: str) -> bool:
        if measures[method].impossible and not measures[lowest].impossible:
            return False
        gap = compare_losses(method, lowest, measures, folds)
        least = measures[lowest].log_loss if gap.loss == "log loss" else measures[lowest].brier
        return not gap.clear or gap.mean < NEGLIGIBLE * least

    level = [m for m in measures if m == lowest or level_with_lowest(m)]
    accurate = [m for m in level if not measures[m].exceeds(tolerance)] or [lowest]
    bounded = [m for m in accurate if folds.estimates[m].bounds is not None]
    among = bounded or accurate
    best = max(among, key=lambda m: (np.nan_to_num(measures[m].auc), -measures[m].log_loss))
    whom = "all methods" if len(measures) > 1 else "the only method"
    rule = f"the lowest log loss of {whom}"
    if len(among) > 1 or best != lowest:
        which = "with bounds" if bounded else "none of which has bounds"
        rule = f"the best ranking (AUC) of the methods {which} level in log loss with the best"
    others = [other for other in measures if other != best]
    against = {other: compare_losses(other, best, measures, folds) for other in others}
    return Verdict(best, rule, against)


def compare_losses(
    first: str, second: str, measures: dict[str, Measures], folds: OutOfFold
) -> Difference:
    """Return the first method's log loss minus the second's; the Brier score's if one is inf."""
    finite = measures[first].impossible == 0 and measures[second].impossible == 0
    losses = log_losses if finite else squared_losses
    one, other = (losses(folds.estimates[method].p, folds.codes) for method in (first, second))
    gap = mean_difference(one, other, folds)
    return gap if finite else replace(gap, loss="Brier score")


def settled_labels(bounds: Multiprobability) -> NDArray[np.bool_]:
    """Tell for which rows (n,) a class's lower bound is at least all others' upper bounds."""
    best = bounds.lower.argmax(axis=1)[:, None]
    others: FloatArray = bounds.upper.copy()
    np.put_along_axis(others, best, -np.inf, axis=1)
    lowest = np.take_along_axis(bounds.lower, best, axis=1)[:, 0]
    settled: NDArray[np.bool_] = lowest >= others.max(axis=1)
    return settled
