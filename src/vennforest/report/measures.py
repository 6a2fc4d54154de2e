"""Estimates of several methods for the same rows, and their measures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import logit, ndtri

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.intervals import ConfidenceIntervals
from vennforest.metrics import CalibrationTests, Estimates, IntervalEstimate
from vennforest.metrics._inputs import bin_codes
from vennforest.metrics.dependence import draw_labels, intragroup_correlation, variance_of_sums
from vennforest.metrics.losses import Difference, log_losses, squared_losses
from vennforest.metrics.variance import mean_estimate, units_of
from vennforest.multiprobability import Multiprobability

RAW = "none"
"""The model without calibration."""

BASELINE = "baseline"
"""The class frequencies as the probabilities of every row."""

BLEND = "blend of all"
"""Name of the blend in the table of models."""

CALIBRATION_TEST_LEVEL = 0.02
DETECTABLE_ERRORS = float(ndtri(1 - CALIBRATION_TEST_LEVEL / 4) + ndtri(0.8))
"""Size of a shift that one of two tests at half the level detects with power 80%, in errors."""

DOUBTFUL_LEVEL = 0.1
"""p-value of the tests of calibration above which an error is attributed to chance."""

MAX_RATIO = 0.1
"""Distance of slope and observed over expected from 1 that does not matter."""

N_ERROR_BINS = 15
"""Bins of the expected calibration error."""

N_LABEL_DRAWS = 200
"""Draws of labels from the estimates, for the calibration error by chance."""

RARE_SHARE = 0.1
"""Share of the positive class below which levels and thresholds are powers of ten."""

Judgement = Literal["off", "unclear", "not seen", "by chance", "untested", "within"]
"""The error is above the tolerance and tests reject calibration, or the error is above and tests
are doubtful; an error of twice the tolerance would not be seen; tests take an error above it for
chance; there is no test; or the error is within the tolerance."""

Ends = tuple[FloatArray, FloatArray]
"""Lower and upper ends of intervals."""


@dataclass(frozen=True, eq=False)
class MethodEstimates:
    """Probabilities (n, k) of one method; bounds and 95% confidence intervals, if any.

    ``seconds`` are those of training, and ``predict_seconds`` those of predicting these rows, where
    models are compared.
    """

    p: FloatArray
    bounds: Multiprobability | None = None
    confidence: ConfidenceIntervals | None = None
    seconds: float = 0.0
    predict_seconds: float = 0.0


@dataclass(frozen=True, eq=False)
class Event:
    """One method's estimates (n,) of the event that is looked at, and its ``outcome``, 0 or 1.

    With two classes it is the positive class, with more that the predicted label is right.
    """

    p: FloatArray
    outcome: FloatArray
    bounds: Ends | None
    confidence: Ends | None


@dataclass(frozen=True, eq=False)
class Predictions:
    """Estimates of several methods for n rows, by models that were not trained on them.

    ``codes``, ``fold`` and ``rows`` (n,) are the index of the class of each row, the fold that
    predicted it, and its position in X; ``groups`` (n,) are codes from 0 of groups whose rows count
    as one observation in intervals and tests, and ``weight`` (n,) weights above 0 of rows.
    ``test_ratio`` is the mean over folds of the number of predicted rows over that of training
    rows, and ``positive`` the index of the positive class of two (None with more). ``compared`` are
    models beside the one whose estimates these are, by name, that one too as "".
    """

    classes: NDArray[Any]
    codes: IntArray
    fold: IntArray
    rows: IntArray
    estimates: dict[str, MethodEstimates]
    groups: IntArray | None = None
    weight: FloatArray | None = None
    test_ratio: float | None = None
    positive: int | None = None
    compared: Mapping[str, MethodEstimates] = field(default_factory=dict)
    _judged: dict[MethodEstimates, Estimates] = field(default_factory=dict, init=False, repr=False)

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    @property
    def label(self) -> Any:
        """The positive class of two; None with more."""
        return None if self.positive is None else self.classes[self.positive]

    @property
    def share(self) -> float | None:
        """The share of the positive class; None with more than two classes."""
        return None if self.positive is None else self.mean(self.codes == self.positive)

    @property
    def weights(self) -> FloatArray:
        """The weight of each row, (n,); without weights 1."""
        return np.ones(len(self.codes)) if self.weight is None else self.weight

    @property
    def is_rare(self) -> bool:
        """Whether levels and thresholds are powers of ten, since the positive class is rare."""
        return self.share is not None and self.share < RARE_SHARE

    @cached_property
    def baseline(self) -> MethodEstimates:
        """The share of each class: the best constant probabilities."""
        shares = np.bincount(self.codes, self.weight, minlength=len(self.classes))
        return MethodEstimates(np.tile(shares / shares.sum(), (len(self.codes), 1)))

    def take(self, rows: IntArray) -> Predictions:
        """Return the predictions of some rows."""
        estimates = {
            name: replace(
                e,
                p=e.p[rows],
                bounds=None if e.bounds is None else e.bounds[rows],
                confidence=None if e.confidence is None else e.confidence[rows],
            )
            for name, e in self.estimates.items()
        }
        groups = self.groups
        return replace(
            self,
            codes=self.codes[rows],
            fold=self.fold[rows],
            rows=self.rows[rows],
            estimates=estimates,
            groups=None if groups is None else np.unique(groups[rows], return_inverse=True)[1],
        )

    def mean(self, values: NDArray[Any], rows: Any = slice(None)) -> float:
        """Return the weighted mean of values (n,) in some rows."""
        weight = None if self.weight is None else self.weight[rows]
        return float(np.average(values[rows], weights=weight))

    def event(self, estimates: MethodEstimates) -> Event:
        """Return the event by one method."""
        n = len(self.codes)
        column = np.full(n, self.positive) if self.positive is not None else estimates.p.argmax(1)
        cells = np.arange(n), column
        outcome = (column == self.codes).astype(np.float64)
        bounds, confidence = (
            None if intervals is None else (intervals.lower[cells], intervals.upper[cells])
            for intervals in (estimates.bounds, estimates.confidence)
        )
        return Event(estimates.p[cells], outcome, bounds, confidence)

    def for_metric(self, estimates: MethodEstimates) -> dict[str, Any]:
        """Return labels and one method's estimates as the arguments of a metric."""
        options = {"y": self.classes[self.codes], "p": estimates.p, "classes": self.classes}
        weights = {} if self.weight is None else {"sample_weight": self.weight}
        return {**options, "pos_label": self.label, **weights}

    def difference(self, first: FloatArray, second: FloatArray) -> Difference:
        """Return the mean difference of losses (n,) over rows, or groups, with its interval."""
        gap = mean_estimate(first - second, self.weights, self.groups, self.units, null=0.0)
        return Difference(gap.value, (gap.high - gap.low) / 2)

    def judged(self, estimates: MethodEstimates) -> Estimates:
        """Return one method's estimates with their measures; the last two are kept."""
        if estimates not in self._judged:
            if len(self._judged) > 1:  # of many methods all would double the memory
                del self._judged[next(iter(self._judged))]
            options = self.for_metric(estimates)
            self._judged[estimates] = Estimates(**options, groups=self.groups)
        return self._judged[estimates]

    @property
    def units(self) -> float:
        """Number of rows, or groups, of the rarer of the positive class and the others.

        With more than two classes it is the most frequent class against the others.
        """
        event = np.bincount(self.codes).argmax() if self.positive is None else self.positive
        outcome = (self.codes == event).astype(np.float64)
        return units_of(outcome, self.weights, self.groups)


@dataclass(frozen=True)
class Measures:
    """Measures of one method.

    Attributes
    ----------
    log_loss, brier, auc, accuracy : float
        The log loss is infinite if there are ``impossible`` rows, whose observed class had
        probability 0. With more than two classes the Brier score is in [0, 2], and the AUC is the
        mean of one-versus-rest AUCs, weighted by class share.
    calibration_error, chance_error, chance_limit : float
        Expected calibration error over 15 bins of the probability of the event; mean and 95%
        quantile of that error for perfectly calibrated estimates.
    mean_error : float
        √(distance² − variance) of the mean probability from the observed frequency.
    detectable : float
        The distance of the mean probability from the frequency that tests of such a size detect
        with power 80%.
    pvalue : float
        p-value of the hypothesis that the estimates are calibrated, see `CalibrationTests`. NaN
        with fewer than ten groups that have the rarer outcome.
    overconfidence : float
        Mean confidence in the predicted label minus accuracy.
    expected, observed : float
        Mean probability and share of the event.
    intervals : dict of str to IntervalEstimate
        Losses, AUC, and with two classes slope, intercept and observed over expected, with their
        intervals; of the base rate losses alone.
    tests : CalibrationTests
        The tests of calibration.
    certain : int or None
        Number of rows of probability 0 or 1, with two classes.
    width : float or None
        Mean width of the bounds of the predicted label.
    """

    log_loss: float
    impossible: int
    brier: float
    auc: float
    accuracy: float
    calibration_error: float
    chance_error: float
    chance_limit: float
    mean_error: float
    detectable: float
    pvalue: float
    overconfidence: float
    expected: float
    observed: float
    intervals: Mapping[str, IntervalEstimate] = field(repr=False, compare=False)
    tests: CalibrationTests = field(repr=False, compare=False)
    certain: int | None = None
    width: float | None = None

    @property
    def miscalibration(self) -> float:
        """The calibration error that chance does not explain, in [0, 1].

        √(error² − chance²), or the distance of the means if that is larger.
        """
        binned = self.calibration_error**2 - self.chance_error**2
        return float(max(np.sqrt(max(0.0, binned)), self.mean_error))

    @property
    def is_rejected(self) -> bool:
        """Whether tests reject that the estimates are calibrated."""
        return self.pvalue < CALIBRATION_TEST_LEVEL

    def loss(self, name: str) -> float:
        """Return the log loss or the Brier score, by its name in a `Difference`."""
        return self.log_loss if name == "log loss" else self.brier

    def exceeds(self, tolerance: float) -> bool:
        """Whether tests reject calibration and the miscalibration is larger than a tolerance."""
        return self.is_rejected and self.miscalibration > tolerance

    def judgement(self, tolerance: float) -> Judgement:
        """Return how the error beyond chance compares with a tolerance, and what tests say."""
        if math.isnan(self.pvalue):
            return "untested"
        if self.exceeds(tolerance):
            return "off"
        is_large = self.miscalibration > tolerance
        if is_large and self.pvalue < DOUBTFUL_LEVEL:
            return "unclear"
        if self.detectable > 2 * tolerance:
            return "not seen"
        return "by chance" if is_large else "within"


def measure(predictions: Predictions, estimates: MethodEstimates, seed: int = 0) -> Measures:
    """Compute the measures of one method."""
    p, codes, bounds = estimates.p, predictions.codes, estimates.bounds
    judged, event = predictions.judged(estimates), predictions.event(estimates)
    mean, q = predictions.mean, event.p.clip(0, 1)
    residual = event.outcome - q
    groups, correlation = predictions.groups, 0.0
    if groups is not None:
        correlation = intragroup_correlation(event.outcome, q, groups)
    weight = predictions.weights / predictions.weights.sum()
    chance = chance_errors(q, seed, groups, correlation, weight)
    spread = float(variance_of_sums(weight[:, None], q, groups, correlation)[0, 0]) ** 0.5
    losses, area, tests = log_losses(p, codes), judged.auc(), judged.tests()
    intervals, certain = vars(judged.losses()), None
    if estimates is not predictions.baseline:
        intervals["auc"] = area
        if predictions.positive is not None:
            intervals |= vars(judged.line())
            certain = intervals.pop("certain")
    return Measures(
        log_loss=mean(losses),
        impossible=int(np.isinf(losses).sum()),
        brier=mean(squared_losses(p, codes)),
        auc=area.value,
        accuracy=mean(p.argmax(axis=1) == codes),
        calibration_error=judged.calibration_error(bins=N_ERROR_BINS),
        chance_error=float(chance.mean()),
        chance_limit=float(np.quantile(chance, 0.95)),
        mean_error=max(0.0, mean(residual) ** 2 - spread**2) ** 0.5,
        detectable=DETECTABLE_ERRORS * spread,
        pvalue=tests.pvalue,
        overconfidence=judged.overconfidence(),
        expected=mean(event.p),
        observed=mean(event.outcome),
        intervals=intervals,
        tests=tests,
        certain=certain,
        width=None if bounds is None else float(np.subtract(*bounds.of_label()[::-1]).mean()),
    )


def rows_for_precision(p: FloatArray, auc: float) -> dict[str, float]:
    """Return the number of independent rows for which 95% intervals have a given half-width.

    The result is by measure and width, for a calibrated event with probabilities p (n,): Riley et
    al. (2021), Statistics in Medicine 40, 4230-4251; Newcombe (2006) for the variance of the AUC.
    """
    weight, share = p * (1 - p), p.mean()
    log_odds = logit(np.where(weight > 0, p, 0.5))
    half = ((1 - auc) / (2 - auc) + auc / (1 + auc)) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = (weight * log_odds**2).mean() - (weight * log_odds).mean() ** 2 / weight.mean()
        ratio = (1.96 / 0.05) ** 2 * auc * (1 - auc) / (share * (1 - share))
        return {
            "calibration slope within ±0.1": (1.96 / 0.1) ** 2 / np.abs(spread),
            "AUC within ±0.05": ratio * half / 2
            + np.sqrt((ratio * half / 2) ** 2 + ratio * (1 - 2 * half)),
            "number of events within 10%": (1.96 / 0.1) ** 2 * (1 - share) / share,
        }


def chance_errors(
    q: FloatArray,
    seed: int,
    groups: IntArray | None = None,
    correlation: float = 0.0,
    weight: FloatArray | None = None,
) -> FloatArray:
    """Return the calibration error of each draw of labels from the estimates (n,), shape (200,).

    ``weight`` (n,) sums to 1. ``correlation`` is that of labels in a group; 50 draws are made for
    more than 100,000 rows.
    """
    n_draws = N_LABEL_DRAWS if len(q) <= 100_000 else N_LABEL_DRAWS // 4
    random = np.random.default_rng((seed, 1))
    bins = bin_codes(q, N_ERROR_BINS)
    weight = np.full(len(q), 1 / len(q)) if weight is None else weight
    expected = np.bincount(bins, weights=weight * q, minlength=N_ERROR_BINS)
    errors = np.empty(n_draws)
    for i in range(n_draws):
        outcome = draw_labels(random, q, groups, correlation, 1)[0]
        errors[i] = np.abs(
            np.bincount(bins, weights=weight * outcome, minlength=N_ERROR_BINS) - expected
        ).sum()
    return errors
