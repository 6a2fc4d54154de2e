"""The registry of calibrators: all that the other rooms know of a calibrator by its name."""

from __future__ import annotations

from dataclasses import dataclass, field

from sklearn.base import clone

from vennforest._validation import InputError
from vennforest.calibrators._log_scores import Shrinkage, ToProbabilities
from vennforest.calibrators._logistic import Standard
from vennforest.calibrators._multinomial import Multinomial
from vennforest.calibrators._probabilities import Interior
from vennforest.calibrators._slopes import SlopeMap
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.beta import BetaCalibration, BetaMap
from vennforest.calibrators.bostrom import BostromScaling
from vennforest.calibrators.bounded import has_bounds
from vennforest.calibrators.isotonic import IsotonicCalibration, LinearMap, StepMap
from vennforest.calibrators.matrix import MatrixScaling
from vennforest.calibrators.platt import PlattMap, PlattScaling
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.calibrators.quadratic import QuadraticScaling
from vennforest.calibrators.spline import SplineCalibration
from vennforest.calibrators.temperature import TemperatureScaling
from vennforest.calibrators.uncalibrated import Uncalibrated
from vennforest.calibrators.venn import Venn
from vennforest.calibrators.venn.taxonomies import (
    CallableTaxonomy,
    ConfidenceBins,
    LabelTaxonomy,
    LargestProbability,
    Margin,
    NeighbourCells,
    SecondProbability,
)
from vennforest.calibrators.venn_abers import VennAbers
from vennforest.calibrators.venn_abers.smooth import SmoothEstimate
from vennforest.calibrators.venn_abers.step_table import Examples, StepTable


@dataclass(frozen=True)
class Method:
    """A calibrator that goes by a name.

    Attributes
    ----------
    name : str
        The value of ``method`` in `CalibratedClassifier` and on the command line.
    title : str
        What a reader of reports and plots sees.
    calibrator : type
        The class; made without arguments.
    parts : tuple of type
        The further types of vennforest that a fitted one consists of, for model files.
    bounds : bool
        Whether it has ``predict_multiprobability``.
    """

    name: str
    title: str
    calibrator: type[Calibrator]
    parts: tuple[type, ...] = ()
    bounds: bool = field(init=False)

    def __post_init__(self) -> None:
        """See whether the class gives bounds."""
        object.__setattr__(self, "bounds", has_bounds(self.calibrator))


_TAXONOMIES = (
    CallableTaxonomy,
    ConfidenceBins,
    LabelTaxonomy,
    LargestProbability,
    Margin,
    NeighbourCells,
    SecondProbability,
)
_LOG_SCORES = (Shrinkage, ToProbabilities, TemperatureScaling, Interior)
_VENN_ABERS = (StepTable, Examples, SmoothEstimate, PlattMap, Standard, Interior)

METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("none", "Uncalibrated", Uncalibrated),
        Method("platt", "Platt scaling", PlattScaling, (PlattMap, Standard, Interior)),
        Method("isotonic", "Isotonic", IsotonicCalibration, (StepMap, LinearMap)),
        Method("beta", "Beta", BetaCalibration, (BetaMap, Standard, Interior)),
        Method("temperature", "Temperature", TemperatureScaling, (Standard, Interior)),
        Method("bostrom", "Boström", BostromScaling),
        Method("matrix", "Matrix scaling", MatrixScaling, (Multinomial, *_LOG_SCORES)),
        Method("quadratic", "Quadratic", QuadraticScaling, (SlopeMap, *_LOG_SCORES)),
        Method("spline", "Spline", SplineCalibration, (SlopeMap, *_LOG_SCORES)),
        Method("pooled", "Pooled", PooledCalibration, _LOG_SCORES),
        Method("venn", "Venn", Venn, (*_TAXONOMIES, *_VENN_ABERS)),
        Method("venn-abers", "Venn–Abers", VennAbers, _VENN_ABERS),
    )
}
"""Every calibrator by name, in the order in which reports list them."""


def check_method(method: object, name: str = "method") -> Method:
    """Return the calibrator of a name.

    Raises
    ------
    InputError
        A ``ValueError``: there is none of this name.
    """
    if not isinstance(method, str) or method not in METHODS:
        raise InputError(
            f"{name} must be one of {list(METHODS)} or a calibrator instance, got {method!r}"
        )
    return METHODS[method]


def make_calibrator(method: str | Calibrator) -> Calibrator:
    """Return an unfitted calibrator for a name, or a clone of an instance.

    Raises
    ------
    InputError
        A ``ValueError``: there is none of this name.
    """
    if isinstance(method, Calibrator):
        copy: Calibrator = clone(method)
        return copy
    return check_method(method).calibrator()
