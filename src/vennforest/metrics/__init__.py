"""Measures of probability estimates and of intervals that scikit-learn lacks.

Those that scikit-learn has too (log loss, Brier score, area under the ROC curve) have intervals.
`Estimates` validates labels and estimates once and has all measures as methods; the functions are
these methods for a single measure, and take the keyword arguments of `Estimates` too.
"""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from vennforest.metrics._inputs import Strategy
from vennforest.metrics.calibration_error import BrierDecomposition, ErrorKind
from vennforest.metrics.calibration_line import CalibrationLine
from vennforest.metrics.calibration_tests import CalibrationTest, CalibrationTests
from vennforest.metrics.curves import Band, CalibrationBand, ReliabilityCurve
from vennforest.metrics.estimates import Estimates, LossIntervals
from vennforest.metrics.flagging import DecisionCurve, ThresholdTable
from vennforest.metrics.intervals import IntervalCurve, interval_curve
from vennforest.metrics.smooth import CalibrationDistances
from vennforest.metrics.variance import IntervalEstimate
from vennforest.multiprobability import BoundsOfClasses

__all__ = [
    "BrierDecomposition",
    "CalibrationBand",
    "CalibrationDistances",
    "CalibrationLine",
    "CalibrationTest",
    "CalibrationTests",
    "DecisionCurve",
    "Estimates",
    "IntervalCurve",
    "IntervalEstimate",
    "LossIntervals",
    "ReliabilityCurve",
    "ThresholdTable",
    "auc_difference",
    "auc_interval",
    "brier_decomposition",
    "calibration_band",
    "calibration_distances",
    "calibration_error",
    "calibration_line",
    "calibration_tests",
    "confidence_minus_accuracy",
    "decision_curve",
    "interval_curve",
    "kuiper_test",
    "loss_intervals",
    "reliability_curve",
    "spiegelhalter_test",
    "threshold_table",
]


def auc_interval(
    y: ArrayLike, p: ArrayLike, *, level: float = 0.95, **options: Any
) -> IntervalEstimate:
    """Return the area under the ROC curve with its interval; see `Estimates.auc`."""
    return Estimates(y, p, **options).auc(level=level)


def auc_difference(
    y: ArrayLike, p: ArrayLike, versus: ArrayLike, *, level: float = 0.95, **options: Any
) -> IntervalEstimate:
    """Return the area of p minus that of ``versus``; see `Estimates.auc`."""
    estimates = Estimates(y, p, **options)
    return estimates.auc(versus=estimates.versus(versus), level=level)


def brier_decomposition(
    y: ArrayLike,
    p: ArrayLike,
    *,
    bins: int = 100,
    strategy: Strategy = "uniform",
    **options: Any,
) -> BrierDecomposition:
    """Split the Brier score into its parts; see `Estimates.brier_decomposition`.

    Examples
    --------
    >>> brier_decomposition(["no", "no", "yes", "yes"], [0.2, 0.2, 0.2, 0.8])
    BrierDecomposition(reliability=0.0233..., resolution=0.0833..., uncertainty=0.25, ...)
    """
    return Estimates(y, p, **options).brier_decomposition(bins=bins, strategy=strategy)


def calibration_band(
    y: ArrayLike, p: ArrayLike, *, level: float = 0.95, **options: Any
) -> CalibrationBand:
    """Return a band that contains the calibration curve; see `Estimates.calibration_band`.

    Examples
    --------
    >>> x, lower, upper = calibration_band([0] * 30 + [1] * 30, [0.2] * 30 + [0.7] * 30)
    >>> x, lower.round(2), upper.round(2)
    (array([0. , 0.2, 0.7, 1. ]), array([0.  , 0.  , 0.85, 0.85]), array([0.15, 0.15, 1.  , 1.  ]))
    """
    return Estimates(y, p, **options).calibration_band(level=level)


def calibration_distances(
    y: ArrayLike,
    p: ArrayLike,
    *,
    level: float = 0.95,
    n_draws: int = 200,
    random_state: int = 0,
    **options: Any,
) -> CalibrationDistances:
    """Return the integrated calibration index and its like; see `Estimates.distances`."""
    estimates = Estimates(y, p, **options)
    return estimates.distances(level=level, n_draws=n_draws, random_state=random_state)


def calibration_error(
    y: ArrayLike,
    p: ArrayLike,
    *,
    kind: ErrorKind = "expected",
    bins: int = 15,
    strategy: Strategy = "uniform",
    **options: Any,
) -> float:
    """Return the calibration error over bins; see `Estimates.calibration_error`.

    Examples
    --------
    >>> calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75])
    0.25
    """
    estimates = Estimates(y, p, **options)
    return estimates.calibration_error(kind=kind, bins=bins, strategy=strategy)


def calibration_line(
    y: ArrayLike, p: ArrayLike, *, level: float = 0.95, **options: Any
) -> CalibrationLine:
    """Return observed over expected events, intercept and slope; see `Estimates.line`."""
    return Estimates(y, p, **options).line(level=level)


def calibration_tests(y: ArrayLike, p: ArrayLike, **options: Any) -> CalibrationTests:
    """Test the calibration of all classes; see `Estimates.tests`."""
    return Estimates(y, p, **options).tests()


def confidence_minus_accuracy(y: ArrayLike, p: ArrayLike, **options: Any) -> float:
    """Return the mean confidence minus the accuracy; see `Estimates.overconfidence`."""
    return Estimates(y, p, **options).overconfidence()


def decision_curve(
    y: ArrayLike,
    p: ArrayLike,
    thresholds: ArrayLike,
    *,
    versus: ArrayLike | None = None,
    level: float = 0.95,
    **options: Any,
) -> DecisionCurve:
    """Return the net benefit of decisions at thresholds; see `Estimates.net_benefit`.

    Examples
    --------
    >>> y, p, q = [0, 0, 1, 1] * 50, [0.1, 0.2, 0.6, 0.7] * 50, [0.1, 0.6, 0.2, 0.7] * 50
    >>> curve = decision_curve(y, p, [0.5], versus=q)
    >>> curve.difference, curve.difference_low.round(2), curve.difference_high.round(2)
    (array([0.5]), array([0.43]), array([0.57]))
    """
    return Estimates(y, p, **options).net_benefit(thresholds, versus=versus, level=level)


def kuiper_test(y: ArrayLike, p: ArrayLike, **options: Any) -> CalibrationTest:
    """Test calibration by the range of cumulative differences; see `Estimates.kuiper`."""
    return Estimates(y, p, **options).kuiper()


def loss_intervals(
    y: ArrayLike,
    p: ArrayLike,
    *,
    versus: ArrayLike | None = None,
    level: float = 0.95,
    **options: Any,
) -> LossIntervals:
    """Return log loss, Brier score and skill, or their differences; see `Estimates.losses`.

    Examples
    --------
    >>> intervals = loss_intervals([0, 0, 1, 1] * 50, [0.1, 0.3, 0.6, 0.9] * 50)
    >>> {name: round(estimate.value, 3) for name, estimate in vars(intervals).items()}
    {'log_loss': 0.27, 'brier': 0.068, 'brier_skill': 0.73}
    """
    return Estimates(y, p, **options).losses(versus=versus, level=level)


def reliability_curve(
    y: ArrayLike,
    p: ArrayLike,
    *,
    bins: int = 10,
    strategy: Strategy = "quantile",
    level: float = 0.95,
    band: Band = "smooth",
    **options: Any,
) -> ReliabilityCurve:
    """Return bins, curves and band of a reliability diagram; see `Estimates.reliability_curve`."""
    estimates = Estimates(y, p, **options)
    return estimates.reliability_curve(bins=bins, strategy=strategy, level=level, band=band)


def spiegelhalter_test(y: ArrayLike, p: ArrayLike, **options: Any) -> CalibrationTest:
    """Test calibration by the Brier score; see `Estimates.spiegelhalter`."""
    return Estimates(y, p, **options).spiegelhalter()


def threshold_table(
    y: ArrayLike,
    p: ArrayLike,
    thresholds: ArrayLike,
    *,
    bounds: BoundsOfClasses | None = None,
    level: float | None = None,
    **options: Any,
) -> ThresholdTable:
    """Return shares and predictive values at thresholds; see `Estimates.threshold_table`."""
    return Estimates(y, p, **options).threshold_table(thresholds, bounds=bounds, level=level)
