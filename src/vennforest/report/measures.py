"""Estimates of several methods for the same rows, their measures, and the choice of one method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc
from scipy.stats import t as student

from vennforest._validation import FloatArray, IntArray
from vennforest.metrics import (
    auc_interval,
    calibration_error,
    confidence_minus_accuracy,
    kuiper_test,
    spiegelhalter_test,
)
from vennforest.metrics._inputs import bin_codes
from vennforest.multiprobability import Multiprobability

RAW = "none"
"""The model without calibration."""

BASELINE = "baseline"
"""The class frequencies as the probabilities of every row."""

LOG_LOSS_CLIP = float(np.finfo(np.float64).eps)
"""Smallest probability in scikit-learn's log loss."""

CALIBRATION_TESTS = (spiegelhalter_test, kuiper_test)
CALIBRATION_TEST_LEVEL = 0.02
N_BINS = 15
"""Bins of the expected calibration error."""

N_LABEL_DRAWS = 200
"""Draws of labels from the estimates, for the calibration error by chance."""

N_SIGN_DRAWS = 499
"""The same with groups: draws of the signs of whole groups."""

NEGLIGIBLE_LOSS = 0.01
"""Relative difference of log losses up to which bounds count for more."""


@dataclass(frozen=True, eq=False)
class MethodEstimates:
    """Probabilities (n, k) of one method; bounds and ends of 95% confidence intervals, if any."""

    p: FloatArray
    bounds: Multiprobability | None = None
    confidence: tuple[FloatArray, FloatArray] | None = None


@dataclass(frozen=True, eq=False)
class Predictions:
    """Estimates of several methods for n rows, by models that were not trained on them.

    Attributes
    ----------
    classes : ndarray of shape (k,)
    codes, fold, rows : ndarray of shape (n,)
        Index of the class of each row, the fold that predicted it, and its position in X.
    estimates : dict of str to MethodEstimates
    groups : ndarray of shape (n,) or None
        Codes from 0 of groups whose rows count as one observation in intervals and tests.
    test_ratio : float or None
        Mean over folds of the number of predicted rows over that of training rows.
    """

    classes: NDArray[Any]
    codes: IntArray
    fold: IntArray
    rows: IntArray
    estimates: dict[str, MethodEstimates]
    groups: IntArray | None = None
    test_ratio: float | None = None

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def baseline(self) -> MethodEstimates:
        """Return the share of each class: the best constant probabilities."""
        shares = np.bincount(self.codes, minlength=len(self.classes)) / len(self.codes)
        return MethodEstimates(np.tile(shares, (len(self.codes), 1)))


@dataclass(frozen=True)
class Measures:
    """Measures of one method.

    Attributes
    ----------
    log_loss : float
        Mean of −ln p of the observed class; infinite where one p is 0.
    log_loss_clipped : float
        The same with p clipped at 2.2e-16, as in scikit-learn.
    impossible : int
        Number of rows whose observed class had probability 0.
    brier : float
        Of two classes the mean squared error of the positive one's probability, in [0, 1]; of more
        the mean squared distance of vectors, in [0, 2].
    auc : float
        Area under the ROC curve; of more than two classes each against the rest, weighted by share.
    accuracy : float
        Share of rows whose most probable class is the observed one.
    calibration_error : float
        Expected calibration error over 15 bins of the positive class's probability; of more than
        two classes, of the confidence in the predicted label.
    chance_error, chance_limit : float
        Mean and 95% quantile of that error for perfectly calibrated estimates.
    mean_error : float
        √(distance² − variance) of the mean probability from the observed frequency.
    pvalue : float
        Of the hypothesis that the estimates are calibrated: the smaller one of Spiegelhalter's and
        Kuiper's tests, doubled; with groups, of tests that turn the signs of whole groups.
    overconfidence : float
        Mean confidence in the predicted label minus accuracy.
    width : float or None
        Mean width of the bounds of the predicted label.
    brier_skill, log_loss_skill : float
        1 minus the score over that of the baseline; NaN where the baseline's is 0.
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
    width: float | None = None
    brier_skill: float = float("nan")
    log_loss_skill: float = float("nan")

    @property
    def miscalibration(self) -> float:
        """The calibration error that chance does not explain, in [0, 1].

        √(error² − chance²), or the distance of the means if that is larger.
        """
        binned = self.calibration_error**2 - self.chance_error**2
        return float(max(np.sqrt(max(0.0, binned)), self.mean_error))

    @property
    def detectable(self) -> float:
        """The smallest miscalibration that chance does not hide on so many rows, in [0, 1]."""
        return float(np.sqrt(max(0.0, self.chance_limit**2 - self.chance_error**2)))

    @property
    def is_rejected(self) -> bool:
        """Whether tests reject that the estimates are calibrated."""
        return self.pvalue < CALIBRATION_TEST_LEVEL

    def exceeds(self, tolerance: float) -> bool:
        """Whether tests reject calibration and the miscalibration is larger than a tolerance."""
        return self.is_rejected and self.miscalibration > tolerance


def _of_observed(p: FloatArray, codes: IntArray) -> FloatArray:
    """Return the probability of each row's observed class, (n,)."""
    return np.take_along_axis(p, codes[:, None], axis=1)[:, 0]


def log_losses(p: FloatArray, codes: IntArray) -> FloatArray:
    """Return −ln p of each row's observed class, (n,); infinite where p is 0."""
    with np.errstate(divide="ignore"):
        return np.maximum(-np.log(_of_observed(p, codes)), 0.0)


def squared_losses(p: FloatArray, codes: IntArray) -> FloatArray:
    """Return each row's squared distance of vectors, (n,); halved for two classes."""
    losses: FloatArray = np.einsum("ij,ij->i", p, p) - 2 * _of_observed(p, codes) + 1
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
    """Measure one method; skill scores compare it with ``baseline``."""
    p, y = estimates.p, classes[codes]
    label = None if positive is None else classes[positive]
    losses, brier = log_losses(p, codes), float(squared_losses(p, codes).mean())
    error = calibration_error(y, p, bins=N_BINS, classes=classes, pos_label=label)
    column = p.argmax(axis=1) if positive is None else np.full(len(codes), positive)
    event = np.take_along_axis(p, column[:, None], axis=1)[:, 0].clip(0, 1)
    residual = (column == codes) - event
    if groups is None:
        chance, spread = chance_errors(event, seed), float((event * (1 - event)).sum()) ** 0.5
        pvalue = min(test(y, p, classes=classes).pvalue for test in CALIBRATION_TESTS)
    else:
        chance, spread, pvalue = _grouped_errors(event, residual, groups, error, seed)
    log_loss, bounds = float(losses.mean()), estimates.bounds
    return Measures(
        log_loss=log_loss,
        log_loss_clipped=float(np.minimum(losses, -np.log(LOG_LOSS_CLIP)).mean()),
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
        width=None if bounds is None else float(np.subtract(*bounds.of_label()[::-1]).mean()),
        brier_skill=_skill(brier, None if baseline is None else baseline.brier),
        log_loss_skill=_skill(log_loss, None if baseline is None else baseline.log_loss),
    )


def _skill(score: float, reference: float | None) -> float:
    return 1 - score / reference if reference else float("nan")


def chance_errors(event: FloatArray, seed: int) -> FloatArray:
    """Return calibration errors of labels drawn with the estimates (n,) as probabilities."""
    n_draws = N_LABEL_DRAWS if len(event) <= 100_000 else N_LABEL_DRAWS // 4
    random = np.random.default_rng((seed, 1))
    bins = bin_codes(event, N_BINS)
    expected = np.bincount(bins, weights=event, minlength=N_BINS)
    errors = np.empty(n_draws)
    for i in range(n_draws):
        outcome = random.random(len(event)) < event
        errors[i] = np.abs(np.bincount(bins, weights=outcome, minlength=N_BINS) - expected).sum()
    return errors / len(event)


def _grouped_errors(
    event: FloatArray, residual: FloatArray, groups: IntArray, error: float, seed: int
) -> tuple[FloatArray, float, float]:
    """Return calibration errors by chance, the residuals' spread, and the smaller of two p-values.

    If the estimates are calibrated, a group's sum of residuals has mean 0, however its rows depend
    on each other, so the signs of whole groups are turned at random. One test is of the calibration
    error, the other of the mean residual, whose variance is the sum of the groups' squares.
    """
    member = np.unique(groups, return_inverse=True)[1]
    cell = member * N_BINS + bin_codes(event, N_BINS)
    n_groups = int(member.max()) + 1
    sums = np.bincount(cell, weights=residual, minlength=n_groups * N_BINS).reshape(-1, N_BINS)
    random = np.random.default_rng((seed, 2))
    errors = np.empty(N_SIGN_DRAWS)
    for i in range(N_SIGN_DRAWS):
        errors[i] = np.abs(random.choice([-1.0, 1.0], n_groups) @ sums).sum()
    errors /= len(event)
    of_error = (1 + np.count_nonzero(errors >= error - 1e-12)) / (1 + N_SIGN_DRAWS)
    of_groups = sums.sum(axis=1)
    spread = float(np.sqrt(of_groups @ of_groups))
    of_mean = float(erfc(abs(of_groups.sum()) / spread / np.sqrt(2))) if spread > 0 else 1.0
    return errors, spread, min(of_error, of_mean)


@dataclass(frozen=True)
class Difference:
    """The mean difference of two methods' losses, and half its 95% confidence interval."""

    mean: float
    margin: float
    loss: str = "log loss"

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out 0."""
        return abs(self.mean) > self.margin


def difference_over_folds(
    first: FloatArray, second: FloatArray, predictions: Predictions
) -> Difference:
    """Return the mean difference of losses (n,) over folds, with its interval.

    Training sets of different folds overlap, so the variance of the mean is (1/K + n_test/n_train)
    times that of the K fold means (Nadeau & Bengio 2003, section 3). With one fold it is that of
    `difference_over_rows`.
    """
    k, fold = predictions.n_folds, predictions.fold
    if k == 1:
        return difference_over_rows(first, second, predictions.groups)
    gap = first - second
    means = np.bincount(fold, weights=gap, minlength=k) / np.bincount(fold, minlength=k)
    ratio = 1 / (k - 1) if predictions.test_ratio is None else predictions.test_ratio
    error = np.sqrt((1 / k + ratio) * means.var(ddof=1))
    return Difference(float(gap.mean()), float(student.ppf(0.975, k - 1) * error))


def difference_over_rows(
    first: FloatArray, second: FloatArray, groups: IntArray | None
) -> Difference:
    """Return the mean difference of losses (n,), with Student's interval over rows or groups.

    It is of these predictions: the variation between training sets is not in it.
    """
    gap = first - second
    residual: FloatArray = gap - gap.mean()
    if groups is not None:
        residual = np.bincount(groups, weights=residual).astype(np.float64)
    m = len(residual)
    if m < 2:
        return Difference(float(gap.mean()), float("inf"))
    error = np.sqrt(residual @ residual * m / (m - 1)) / len(gap)
    return Difference(float(gap.mean()), float(student.ppf(0.975, m - 1) * error))


@dataclass(frozen=True)
class Choice:
    """The recommended method, the rule that chose it, and the others' losses minus its loss.

    Losses are log losses; where one of the two is infinite, Brier scores.
    """

    method: str
    rule: str
    against: dict[str, Difference]


def choose(measures: dict[str, Measures], predictions: Predictions, tolerance: float) -> Choice:
    """Choose a method, and compare every other one with it.

    Candidates have the lowest log loss, or one within chance of it, or less than 1% above (an
    infinite one only if all are). Of these remain those within the tolerance (the lowest if none
    is), then those with bounds if there are any; the best ranking is chosen.
    """
    lowest = min(measures, key=lambda m: (measures[m].log_loss, measures[m].brier))

    def is_candidate(method: str) -> bool:
        if measures[method].impossible and not measures[lowest].impossible:
            return False
        gap = compare_losses(method, lowest, measures, predictions)
        loss = measures[lowest].log_loss if gap.loss == "log loss" else measures[lowest].brier
        return not gap.clear or gap.mean < NEGLIGIBLE_LOSS * loss

    candidates = [m for m in measures if m == lowest or is_candidate(m)]
    accurate = [m for m in candidates if not measures[m].exceeds(tolerance)] or [lowest]
    bounded = [m for m in accurate if predictions.estimates[m].bounds is not None]
    finalists = bounded or accurate
    best = max(finalists, key=lambda m: (np.nan_to_num(measures[m].auc), -measures[m].log_loss))
    rule = f"the lowest log loss of {'all methods' if len(measures) > 1 else 'the only method'}"
    if len(finalists) > 1 or best != lowest:
        which = "with bounds" if bounded else "none of which has bounds"
        rule = f"the best ranking (AUC) of the methods {which} level in log loss with the best"
    others = [method for method in measures if method != best]
    return Choice(best, rule, {m: compare_losses(m, best, measures, predictions) for m in others})


def compare_losses(
    first: str, second: str, measures: dict[str, Measures], predictions: Predictions
) -> Difference:
    """Return the first method's loss minus the second's: log loss, or Brier score if one is inf."""
    is_finite = not measures[first].impossible and not measures[second].impossible
    losses = log_losses if is_finite else squared_losses
    of_first, of_second = (
        losses(predictions.estimates[method].p, predictions.codes) for method in (first, second)
    )
    gap = difference_over_folds(of_first, of_second, predictions)
    return gap if is_finite else replace(gap, loss="Brier score")
