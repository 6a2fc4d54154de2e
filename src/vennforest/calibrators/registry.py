"""The registry of calibrators: the one list of those that go by a name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sklearn.base import clone

from vennforest._validation import InputError
from vennforest.calibrators.core.bounded import has_bounds
from vennforest.calibrators.core.interface import Calibrator
from vennforest.calibrators.maps.beta import BetaCalibration
from vennforest.calibrators.maps.bostrom import BostromScaling
from vennforest.calibrators.maps.isotonic import IsotonicCalibration
from vennforest.calibrators.maps.matrix import MatrixScaling
from vennforest.calibrators.maps.platt import PlattScaling
from vennforest.calibrators.maps.spline import QuadraticScaling, SplineCalibration
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
        The class.
    parameters : dict
        What it is made with.
    bounds : bool
        Whether it has ``predict_multiprobability``.
    """

    name: str
    title: str
    calibrator: type[Calibrator]
    parameters: dict[str, Any] = field(default_factory=dict)
    bounds: bool = field(init=False)

    def __post_init__(self) -> None:
        """See whether the class gives bounds."""
        object.__setattr__(self, "bounds", has_bounds(self.calibrator))

    def make(self) -> Calibrator:
        """Return an unfitted calibrator."""
        return self.calibrator(**self.parameters)


METHODS: dict[str, Method] = {}
"""Every calibrator by name, in the order in which reports list them."""


def register_calibrator(
    name: str, title: str, calibrator: type[Calibrator], **parameters: Any
) -> None:
    """Let a calibrator go by a name, wherever names of calibrators are taken or listed.

    In `CalibratedClassifier`, on the command line, in its help and in reports. For model files
    the class, and what it learns, are registered with `vennforest.contributing.stored`.

    Parameters
    ----------
    name : str
        The value of ``method``, such as ``"venn-abers"``.
    title : str
        What a reader of reports and plots sees.
    calibrator : type
        A subclass of `Calibrator`, whose parameters have defaults.
    **parameters
        Those that the name stands for, where they are not the defaults.

    Raises
    ------
    InputError
        A ``ValueError``: another calibrator has the name.
    TypeError
        If the class is no calibrator.
    """
    if not (isinstance(calibrator, type) and issubclass(calibrator, Calibrator)):
        raise TypeError(f"calibrator must be a subclass of Calibrator, got {calibrator!r}")
    known = METHODS.get(name)
    if known is not None and known.calibrator.__qualname__ != calibrator.__qualname__:
        other = known.calibrator.__name__
        raise InputError(f"name must be new, got {name!r}, which {other} has")
    METHODS[name] = Method(name, title, calibrator, parameters)


register_calibrator("none", "Uncalibrated", Uncalibrated)
register_calibrator("platt", "Platt scaling", PlattScaling, on="auto")
register_calibrator("isotonic", "Isotonic", IsotonicCalibration)
register_calibrator("beta", "Beta", BetaCalibration)
register_calibrator("temperature", "Temperature", TemperatureScaling)
register_calibrator("bostrom", "Boström", BostromScaling)
register_calibrator("matrix", "Matrix scaling", MatrixScaling)
register_calibrator("quadratic", "Quadratic", QuadraticScaling)
register_calibrator("spline", "Spline", SplineCalibration)
register_calibrator("pooled", "Pooled", PooledCalibration)
register_calibrator("venn", "Venn", Venn)
register_calibrator("venn-abers", "Venn–Abers", VennAbers)


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
    return check_method(method).make()
