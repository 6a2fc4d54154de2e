"""The registry of calibrators: all that the other rooms know of a calibrator by its name."""

from __future__ import annotations

from dataclasses import dataclass, field

from sklearn.base import clone

from vennforest._validation import InputError
from vennforest.calibrators.core.bounded import has_bounds
from vennforest.calibrators.core.interface import Calibrator
from vennforest.calibrators.maps.beta import BetaCalibration
from vennforest.calibrators.maps.bostrom import BostromScaling
from vennforest.calibrators.maps.isotonic import IsotonicCalibration
from vennforest.calibrators.maps.matrix import MatrixScaling
from vennforest.calibrators.maps.platt import PlattScaling
from vennforest.calibrators.maps.quadratic import QuadraticScaling
from vennforest.calibrators.maps.spline import SplineCalibration
from vennforest.calibrators.maps.temperature import TemperatureScaling
from vennforest.calibrators.maps.uncalibrated import Uncalibrated
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.calibrators.venn import Venn
from vennforest.calibrators.venn_abers import VennAbers


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
    bounds : bool
        Whether it has ``predict_multiprobability``.
    """

    name: str
    title: str
    calibrator: type[Calibrator]
    bounds: bool = field(init=False)

    def __post_init__(self) -> None:
        """See whether the class gives bounds."""
        object.__setattr__(self, "bounds", has_bounds(self.calibrator))


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method("none", "Uncalibrated", Uncalibrated),
        Method("platt", "Platt scaling", PlattScaling),
        Method("isotonic", "Isotonic", IsotonicCalibration),
        Method("beta", "Beta", BetaCalibration),
        Method("temperature", "Temperature", TemperatureScaling),
        Method("bostrom", "Boström", BostromScaling),
        Method("matrix", "Matrix scaling", MatrixScaling),
        Method("quadratic", "Quadratic", QuadraticScaling),
        Method("spline", "Spline", SplineCalibration),
        Method("pooled", "Pooled", PooledCalibration),
        Method("venn", "Venn", Venn),
        Method("venn-abers", "Venn–Abers", VennAbers),
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
        other = " or a calibrator instance" if name == "method" else ""
        raise InputError(f"{name} must be one of {list(METHODS)}{other}, got {method!r}")
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
