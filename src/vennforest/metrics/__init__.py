"""Measures of probability estimates and of intervals that scikit-learn lacks.

Those that scikit-learn has too (log loss, Brier score, area under the ROC curve) have intervals.

`brier_decomposition` describes the arguments that all measures share. All functions raise a
ValueError for invalid options, and for labels, estimates and weights of different lengths.
"""

from vennforest.metrics.auc import AucDifference, AucInterval, auc_difference, auc_interval
from vennforest.metrics.calibration_error import (
    BrierDecomposition,
    brier_decomposition,
    calibration_error,
    confidence_minus_accuracy,
)
from vennforest.metrics.calibration_line import CalibrationLine, IntervalEstimate, calibration_line
from vennforest.metrics.calibration_tests import (
    CalibrationTest,
    CalibrationTests,
    calibration_tests,
    kuiper_test,
    spiegelhalter_test,
)
from vennforest.metrics.curves import (
    CalibrationBand,
    ReliabilityCurve,
    calibration_band,
    reliability_curve,
)
from vennforest.metrics.flagging import (
    DecisionCurve,
    ThresholdTable,
    decision_curve,
    threshold_table,
)
from vennforest.metrics.intervals import IntervalCurve, interval_curve
from vennforest.metrics.losses import LossIntervals, loss_intervals
from vennforest.metrics.smooth import CalibrationDistances, calibration_distances

__all__ = [
    "AucDifference",
    "AucInterval",
    "BrierDecomposition",
    "CalibrationBand",
    "CalibrationDistances",
    "CalibrationLine",
    "CalibrationTest",
    "CalibrationTests",
    "DecisionCurve",
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
