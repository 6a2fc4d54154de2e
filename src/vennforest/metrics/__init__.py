"""Measures of probability estimates and of intervals that scikit-learn lacks.

Those that scikit-learn has too (log loss, Brier score, area under the ROC curve) have intervals.
`Estimates` validates labels and estimates once and has all measures as methods; the functions are
these methods for a single measure, and take the keyword arguments of `Estimates` too.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from numpy.typing import ArrayLike

from vennforest.metrics.calibration_line import CalibrationLine
from vennforest.metrics.calibration_tests import CalibrationTest, CalibrationTests
from vennforest.metrics.curves import CalibrationBand, ReliabilityCurve
from vennforest.metrics.estimates import BrierDecomposition, Estimates, LossIntervals
from vennforest.metrics.flagging import DecisionCurve, ThresholdTable
from vennforest.metrics.intervals import IntervalCurve, interval_curve
from vennforest.metrics.smooth import CalibrationDistances
from vennforest.metrics.variance import IntervalEstimate

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


MeasureOptions = ParamSpec("MeasureOptions")
MeasureResult = TypeVar("MeasureResult")


def _as_function(
    name: str, measure: Callable[Concatenate[Estimates, MeasureOptions], MeasureResult]
) -> Callable[..., MeasureResult]:
    """Return a measure as a function of labels and estimates, with all options as keywords."""
    (y, p, *of_rows), (_, *options) = (
        inspect.signature(value).parameters.values() for value in (Estimates, measure)
    )
    names = {parameter.name for parameter in of_rows}

    def function(y: ArrayLike, p: ArrayLike, *arguments: Any, **options: Any) -> MeasureResult:
        values = {key: options.pop(key) for key in names & set(options)}
        return measure(Estimates(y, p, **values), *arguments, **options)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{inspect.getdoc(measure)}\n\nOther parameters are those of `Estimates`."
    function.__signature__ = inspect.Signature([y, p, *options, *of_rows])  # type: ignore[attr-defined]
    return function


auc_interval = _as_function("auc_interval", Estimates.auc)
brier_decomposition = _as_function("brier_decomposition", Estimates.brier_decomposition)
calibration_band = _as_function("calibration_band", Estimates.calibration_band)
calibration_distances = _as_function("calibration_distances", Estimates.distances)
calibration_error = _as_function("calibration_error", Estimates.calibration_error)
calibration_line = _as_function("calibration_line", Estimates.line)
calibration_tests = _as_function("calibration_tests", Estimates.tests)
confidence_minus_accuracy = _as_function("confidence_minus_accuracy", Estimates.overconfidence)
decision_curve = _as_function("decision_curve", Estimates.net_benefit)
kuiper_test = _as_function("kuiper_test", Estimates.kuiper)
loss_intervals = _as_function("loss_intervals", Estimates.losses)
reliability_curve = _as_function("reliability_curve", Estimates.reliability_curve)
spiegelhalter_test = _as_function("spiegelhalter_test", Estimates.spiegelhalter)
threshold_table = _as_function("threshold_table", Estimates.threshold_table)


def auc_difference(
    y: ArrayLike, p: ArrayLike, versus: ArrayLike, *, level: float = 0.95, **options: Any
) -> IntervalEstimate:
    """Return the area of p minus that of ``versus``; see `Estimates.auc`."""
    estimates = Estimates(y, p, **options)
    return estimates.auc(versus=estimates.versus(versus), level=level)
