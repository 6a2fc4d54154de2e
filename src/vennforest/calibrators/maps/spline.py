"""Spline calibration: a smooth curve of the log-odds that never decreases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from vennforest._state import stored
from vennforest._validation import FloatArray, InputError, check_count
from vennforest.calibrators.core.one_vs_rest import Column, Maps
from vennforest.calibrators.core.penalised import Counts, PenalisedFit
from vennforest.calibrators.maps.log_scores import On, Shrinkage, check_not_negative
from vennforest.calibrators.maps.quadratic import LogOddsCalibrator
from vennforest.calibrators.maps.slopes import SlopeMap, SlopeProblem

ROUGHNESS = (1000.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
"""Penalties of the bend that ``"auto"`` chooses among, from the straightest to the most pliable."""

NARROW = 1e-9
"""Relative range of the log-odds up to which all of them count as one."""


@stored("spline-calibration")
class SplineCalibration(LogOddsCalibrator):
    """Spline calibration: ``1 / (1 + exp(-f(z)))`` with a smooth f that never decreases.

    f is a spline of the log-odds z of the score: its slope runs straight from knot to knot and is
    nowhere negative. It is fitted by maximum likelihood with a penalty on the bend, as in
    smoothing splines (Lucena 2018 for calibration; Eilers & Marx 1996), and a ridge that draws it
    towards leaving the scores alone. Many classes: one map per class against the rest, normalised.

    Parameters
    ----------
    n_knots : int, default=8
        At least 2. They stand at quantiles of the calibration scores' log-odds, moved a tenth of
        the way towards even spacing.
    roughness : float or "auto", default="auto"
        Above 0: half of it times the integral of the squared bend ``f''`` is added to the sum of
        the losses, in units of the range of the log-odds. ``"auto"``: what predicts each
        calibration example best from all others, by one Newton step from the fit to all.
    ridge : float, default=0.3
        Above 0: weight of the squared distance of the slope from 1, the mean over the knots, and
        half as much of the intercept from 0.
    shrinkage : float, default=0.01
        Non-negative: see `MatrixScaling`.
    on : {"auto", "probabilities", "logits"}, default="auto"
        What the scores are: see `MatrixScaling`.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    maps_ : tuple of SlopeMap
        One map for two classes, else one a class.
    roughness_ : ndarray of shape (1,) or (k,)
        The penalty of every map.
    on_ : {"probabilities", "logits"}
        What the calibration scores were taken for.

    Raises
    ------
    ValueError
        From ``fit``, if a parameter has none of these values; from ``fit`` and ``predict_proba``,
        if scores are to be probabilities and are none.

    References
    ----------
    Eilers & Marx (1996), Flexible smoothing with B-splines and penalties, Statistical Science 11.
    Lucena (2018), Spline-based probability calibration, arXiv:1809.07751.

    Examples
    --------
    >>> from vennforest.calibrators.maps.spline import SplineCalibration
    >>> model = SplineCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1])
    >>> model.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.14, 0.92])
    """

    def __init__(
        self,
        n_knots: int = 8,
        roughness: float | Literal["auto"] = "auto",
        ridge: float = 0.3,
        shrinkage: float = 0.01,
        on: On = "auto",
    ) -> None:
        self.n_knots = n_knots
        self.roughness = roughness
        self.ridge = ridge
        self.shrinkage = shrinkage
        self.on = on

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        check_count(self.n_knots, "n_knots", 2)
        self._tried()
        return super()._fit_columns(columns)

    def _tried(self) -> Sequence[float]:
        """Return the penalties of the bend to choose among."""
        if not isinstance(self.roughness, str):
            return [check_not_negative(self.roughness, "roughness", zero=False)]
        if self.roughness != "auto":
            raise InputError(f'roughness must be a number or "auto", got {self.roughness!r}')
        return ROUGHNESS

    @property
    def roughness_(self) -> FloatArray:
        """The penalty of every map."""
        return np.array([one.roughness for one in self.maps_])

    def _fit_slopes(self, shrinkage: Shrinkage, z: FloatArray, counts: Counts) -> SlopeMap:
        knots = _knots(z, counts.negative + counts.positive, self.n_knots)
        problem = SlopeProblem.of(z, knots, counts, float(self.ridge))
        tried = self._tried()
        best: tuple[float, float, PenalisedFit] | None = None
        start = None
        for roughness in tried:
            fit = problem.fit(roughness, start)
            start = fit.theta
            loss = fit.left_out_loss(problem.features, counts) if len(tried) > 1 else 0.0
            if best is None or loss < best[0]:
                best = loss, roughness, fit
        assert best is not None
        theta = best[2].theta
        return SlopeMap(shrinkage, knots, theta[:-1], float(theta[-1]), best[1])


def _knots(z: FloatArray, weight: FloatArray, n_knots: int) -> FloatArray:
    """Return knots at quantiles of ascending log-odds, moved a tenth towards even spacing.

    So no two are so near to each other that the bend between them loses its digits. Log-odds that
    hardly differ have one knot.
    """
    if z[-1] - z[0] <= NARROW * max(1.0, abs(z[0]), abs(z[-1])):
        return z[:1]
    mass = np.cumsum(weight)
    middle = (mass - weight / 2) / mass[-1]
    part = np.linspace(0, 1, n_knots)
    quantiles = np.interp(part, middle, z)
    quantiles[0], quantiles[-1] = z[0], z[-1]
    knots: FloatArray = 0.9 * quantiles + 0.1 * (z[0] + part * (z[-1] - z[0]))
    knots[0], knots[-1] = z[0], z[-1]
    return knots
