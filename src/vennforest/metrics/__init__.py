"""Measures of probability estimates and of intervals that scikit-learn lacks.

Log loss, the two-class Brier score and the area under the ROC curve are scikit-learn's.

`brier_decomposition` describes the arguments that all measures share. All raise a ValueError that
names the argument where labels, estimates and weights do not fit, or an option has no such value.
"""

from vennforest.metrics.brier import BrierDecomposition, brier_decomposition
from vennforest.metrics.calibration_error import (
    calibration_error,
    confidence_minus_accuracy,
)
from vennforest.metrics.calibration_line import (
    CalibrationLine,
    IntervalEstimate,
    calibration_line,
)
from vennforest.metrics.calibration_tests import (
    CalibrationTest,
    kuiper_test,
    spiegelhalter_test,
)
from vennforest.metrics.curves import (
    ReliabilityCurve,
    SmoothCurve,
    reliability_curve,
    smooth_calibration_curve,
)
from vennforest.metrics.intervals import (
    IntervalCurve,
    IntervalSummary,
    interval_curve,
    interval_summary,
)
from vennforest.metrics.ranking import (
    AucInterval,
    DecisionCurve,
    ThresholdTable,
    auc_interval,
    decision_curve,
    threshold_table,
)

__all__ = [
    "AucInterval",
    "BrierDecomposition",
    "CalibrationLine",
    "CalibrationTest",
    "DecisionCurve",
    "IntervalCurve",
    "IntervalEstimate",
    "IntervalSummary",
    "ReliabilityCurve",
    "SmoothCurve",
    "ThresholdTable",
    "auc_interval",
    "brier_decomposition",
    "calibration_error",
    "calibration_line",
    "confidence_minus_accuracy",
    "decision_curve",
    "interval_curve",
    "interval_summary",
    "kuiper_test",
    "reliability_curve",
    "smooth_calibration_curve",
    "spiegelhalter_test",
    "threshold_table",
]
