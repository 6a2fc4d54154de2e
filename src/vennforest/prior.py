"""Prior shift: probabilities and bounds for new class shares, and estimates of these shares."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from vennforest._messages import shown, warn
from vennforest._numerics import root_of_increasing
from vennforest._validation import FloatArray, InputError, check_array, require
from vennforest.multiprobability import Multiprobability

__all__ = ["PriorEstimate"]

SUM_SLACK = 1e-6
"""Tolerance for the sum of user-provided shares."""

SMALLEST_SHARE = 1e-6
"""Value that replaces an estimated share of 0, so that no class is ruled out."""

SMALLEST_GIVEN_SHARE = 1e-12
"""Smallest share of a class that a user may give: ratios of smaller ones lose their digits."""

MAX_STEPS, MAX_LOG_STEP = 100, 5.0
"""Steps of the search for factors, and the largest change of a logarithm in one of Newton's."""

MEAN_TOLERANCE = 1e-14
"""Difference of a mean from its target at which the search for factors ends."""

MAX_SHIFT = 700.0
"""Largest shift of log-odds: its exponential is a finite number."""

SMALLEST_INFORMATION = 1e-9
"""Eigenvalue of the information matrix below which a direction of shares is not identified."""


def read_shares(
    named: Mapping[Any, float], classes: NDArray[Any], present: FloatArray
) -> FloatArray:
    """Return the share of each class, (k,), from a mapping of labels to shares in (0, 1).

    Classes that are not in ``named`` divide the remainder in proportion to ``present`` (k,).
    """
    if not hasattr(named, "items"):
        raise InputError(
            f"shares must name labels, as in {{label: share}}, got {type(named).__name__}"
        )
    column = {label: j for j, label in enumerate(classes.tolist())}
    shares = np.full(len(classes), np.nan)
    for label, share in named.items():
        if label not in column:
            raise InputError(f"shares must be of classes {shown(classes.tolist())}, got {label!r}")
        is_number = isinstance(share, Real) and not isinstance(share, bool)
        if not is_number or not SMALLEST_GIVEN_SHARE <= float(share) < 1:
            raise InputError(
                f"shares must be at least {SMALLEST_GIVEN_SHARE:g} and below 1, got {share!r} for "
                f"{label!r}"
            )
        shares[column[label]] = share
    missing = np.isnan(shares)
    remainder = 1 - float(shares[~missing].sum())
    if missing.all():
        raise InputError("shares must name a class, got none")
    if missing.any():
        if remainder <= 0:
            raise InputError(
                f"shares must leave something to {shown(classes[missing].tolist())}, got "
                f"{1 - remainder:g}"
            )
        unseen = missing & (present == 0)
        if missing.sum() == 1:  # all the rest, whether or not it has examples
            present = missing.astype(np.float64)
        elif unseen.any():
            raise InputError(
                f"shares must name {shown(classes[unseen].tolist())}, of which there are no "
                "calibration examples, got none for them"
            )
        shares[missing] = remainder * present[missing] / present[missing].sum()
    elif abs(remainder) > SUM_SLACK:
        raise InputError(f"shares must sum to 1, got {1 - remainder:g}")
    return np.asarray(shares / shares.sum())


def shift_probabilities(p: FloatArray, factors: FloatArray) -> FloatArray:
    """Return probabilities (n, k) for new class shares; rows sum to 1.

    Factors (k,) are the new share of each class divided by the old one, up to a common factor:
    ``p'_j = f_j p_j / sum_i f_i p_i`` (Elkan 2001, Theorem 2; Saerens, Latinne & Decaestecker
    2002, eq. 2.4).
    """
    shifted = p * factors
    if p.shape[1] == 2:
        second = shifted[:, 1] / shifted.sum(axis=1)
        return np.column_stack([1 - second, second])
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def shift_bounds(bounds: Multiprobability, factors: FloatArray) -> Multiprobability:
    """Return the bounds of one predictor for new class shares.

    ``factors`` (k,) are defined as in `shift_probabilities`.

    *Two classes*: the odds of both bounds are multiplied by ``f_1 / f_0``.

    *Bounds of k distributions* (``bounds.distributions``): each is shifted as a whole, and the
    bounds are the least and the largest value of each class. With ``D_y = sum_i f_i l_i + f_y (u_y
    - l_y)`` these are ``f_j l_j / max over y != j of D_y`` and ``f_j u_j / D_j``.

    *Intervals of each class against the rest*: the distribution of the other classes at a score is
    unknown, so the lower bound takes their largest factor and the upper one their smallest:
    ``f_j l / (f_j l + f_max (1 - l))`` and ``f_j u / (f_j u + f_min (1 - u))``. The intervals do
    not widen by this if the factors of the other classes are equal.
    """
    low, high = bounds.lower, bounds.upper
    if bounds.distributions and len(factors) > 2:
        total = (low @ factors)[:, None] + factors * (high - low)
        upper = factors * high / total
        lower = np.empty_like(low)
        for j, factor in enumerate(factors):
            lower[:, j] = factor * low[:, j] / np.delete(total, j, axis=1).max(axis=1)
    else:
        lower, upper = shift_intervals(low, high, factors)
    return Multiprobability(lower, upper, bounds.classes, widened=bounds.widened)


def shift_intervals(
    low: FloatArray, high: FloatArray, factors: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper ends (n, k) of intervals for new class shares, see `shift_bounds`."""
    k = len(factors)
    if k == 2:  # the ends of the first class are 1 minus those of the second
        lower, upper = shift_ends(low[:, 1], high[:, 1], factors, 1)
        return np.column_stack([1 - upper, lower]), np.column_stack([1 - lower, upper])
    ends = [shift_ends(low[:, j], high[:, j], factors, j) for j in range(k)]
    lower, upper = np.stack(ends, axis=2)
    return lower, upper


def shift_ends(low: FloatArray, high: FloatArray, factors: FloatArray, j: int) -> FloatArray:
    """Return the ends (2, n) of intervals of class j for new class shares, see `shift_bounds`."""
    of_others = np.delete(factors, j)
    ends = zip((low, high), (of_others.max(), of_others.min()), strict=True)
    return np.array([factors[j] * p / (factors[j] * p + factor * (1 - p)) for p, factor in ends])


@dataclass(frozen=True, eq=False)
class ShiftedPrior:
    """Class shares that replace those of the calibration examples."""

    shares: FloatArray
    """The new shares, (k,), with sum 1."""
    factors: FloatArray
    """The new shares divided by those of the calibrators, (k,), scaled to a maximum of 1."""
    is_counted: bool = False
    """Whether those of the calibrators are the shares of the calibration examples."""

    def _check_state(self) -> None:
        """Raise a ValueError for shares or factors, read from a file, that are out of range."""
        check_array(self.shares, "shares", (None,), low=0, high=1)
        check_array(self.factors, "factors", (len(self.shares),), low=0, high=1)
        require(abs(self.shares.sum() - 1) < 1e-9, "shares must sum to 1")
        require(isinstance(self.is_counted, bool), "is_counted must be True or False")
        require((self.shares > 0).all() and (self.factors > 0).all(), "shares must be above 0")

    @classmethod
    def of(
        cls,
        shares: Mapping[Any, float],
        instead_of: Mapping[Any, float] | None,
        present: FloatArray,
        before: ShiftedPrior | None,
        classes: NDArray[Any],
    ) -> Self:
        """Return the shift to new class shares, see `read_shares`.

        The current shares are ``instead_of`` if given, else ``present`` (k,). They result from the
        earlier shift ``before``, if any.
        """
        if instead_of is not None:
            present = read_shares(instead_of, classes, present)
        elif (present == 0).any():
            raise InputError(
                f"shares must be of classes with calibration examples, got none of "
                f"{shown(classes[present == 0].tolist())}: name the shares they were drawn with "
                "(instead_of), or set more examples aside"
            )
        new_shares = read_shares(shares, classes, present)
        factors = new_shares / present
        if before is not None:
            factors = before.factors * factors
        is_counted = instead_of is None and (before is None or before.is_counted)
        return cls(new_shares, factors / factors.max(), is_counted)

    def from_shares(self, present: FloatArray) -> ShiftedPrior:
        """Return the shift from other shares (k,) to the same ones."""
        factors = self.shares / np.maximum(present, SMALLEST_GIVEN_SHARE)
        return replace(self, factors=factors / factors.max())

    @classmethod
    def of_means(
        cls,
        means: Mapping[Any, float],
        p: FloatArray,
        before: ShiftedPrior | None,
        classes: NDArray[Any],
        weight: FloatArray | None = None,
    ) -> Self:
        """Return the shift after which probabilities (n, k) have given means, see `read_shares`.

        The probabilities result from the earlier shift ``before``, if any, and may have weights
        (n,). Classes that are not named share the rest in proportion to their mean probabilities.
        """
        if not len(p):
            raise InputError("mean must be of at least one row, got none")
        weight = np.full(len(p), 1 / len(p)) if weight is None else weight / weight.sum()
        target = read_shares(means, classes, weight @ p)
        factors = factors_for_means(p, target, weight)
        if before is not None:
            factors = before.factors * factors
        return cls(target, factors / factors.max())


def with_step(
    record: dict[str, Any], step: str, classes: NDArray[Any], shares: FloatArray
) -> dict[str, Any]:
    """Return a record of how a model came to be with one more step, such as ``"with_mean"``.

    ``shares`` (k,) are the frequencies or mean probabilities that the step sets.
    """
    entry = {
        "step": step,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **dict(zip(map(str, classes.tolist()), shares.tolist(), strict=True)),
    }
    return {**record, "steps": [*record.get("steps", []), entry]}


def factors_for_means(p: FloatArray, means: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the factors (k,), at most 1, by which `shift_probabilities` gives p (n, k) the means.

    ``weight`` (n,) sums to 1.

    Raises
    ------
    InputError
        If no shift gives these means, since probabilities of 0 and 1 do not move.
    """
    if not (p > 0).any(axis=0).all():
        raise InputError("mean must be of classes with a probability above 0 in some row")
    logs = log_factors_for_means(p, means, weight)
    factors = np.exp(logs - logs.max())
    with np.errstate(invalid="ignore"):  # rows whose factors are all 0
        error = np.abs(weight @ shift_probabilities(p, factors) - means)
    if not (error < np.minimum(1e-9, 1e-3 * means)).all():
        raise InputError(
            f"mean must be one that a shift of the log-odds can give these rows, got "
            f"{shown(means)}: probabilities of exactly 0 and 1 do not move"
        )
    return np.asarray(factors)


@np.errstate(all="ignore")
def log_factors_for_means(p: FloatArray, means: FloatArray, weight: FloatArray) -> FloatArray:
    """Return the logarithms (k,), with mean 0, of the factors that give p (n, k) weighted means.

    With weights (n,) of sum 1, the logarithms a minimise the convex function
    ``sum_i weight_i log sum_j p_ij exp(a_j) - means @ a``, whose gradient is the mean of the
    shifted probabilities minus the target. A step is Newton's, or of iterative scaling (Darroch &
    Ratcliff 1972) where that gains more.
    """
    p, k = np.maximum(p, np.finfo(float).tiny), len(means)
    p = p / p.sum(axis=1, keepdims=True)
    if k == 2:  # the shift of the log-odds is one number
        first, second = np.ascontiguousarray(p.T)

        def excess(shift: float) -> tuple[float, float]:
            """Return the mean at a shift minus the target, and its derivative."""
            q = second / (second + first * np.exp(-shift))
            mean = float(weight @ q)
            return mean - float(means[1]), mean - float(weight @ q**2)

        shift = root_of_increasing(excess, 0.0, MAX_SHIFT)
        return np.array([-shift / 2, shift / 2])

    def loss(logs: FloatArray) -> float:
        return float(weight @ np.log(p @ np.exp(logs - logs.max())) + logs.max() - means @ logs)

    logs = np.zeros(k)
    for _ in range(MAX_STEPS):
        q = shift_probabilities(p, np.exp(logs - logs.max()))
        mean = np.maximum(weight @ q, np.finfo(float).tiny)
        if (np.abs(mean - means) < np.minimum(MEAN_TOLERANCE, 1e-6 * means)).all():
            break
        hessian = np.diag(mean) - (weight[:, None] * q).T @ q
        unit = 1 / np.sqrt(np.maximum(hessian.diagonal(), np.finfo(float).tiny))
        scaled_hessian = hessian * unit * unit[:, None]
        step = np.linalg.lstsq(scaled_hessian, unit * (means - mean), rcond=1e-14)[0]
        newton = logs + np.clip(unit * step, -MAX_LOG_STEP, MAX_LOG_STEP)
        scaled = logs + np.log(means / mean)  # iterative scaling, which never raises the loss
        logs = newton if loss(newton) <= loss(scaled) else scaled
        logs = np.clip(logs - logs.mean(), -MAX_SHIFT, MAX_SHIFT)
    return logs


@dataclass(frozen=True, eq=False)
class PriorEstimate:
    """Estimated shares of the classes among unlabelled objects.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        The labels.
    estimate : ndarray of shape (k,)
        The share of each, in [0, 1]; they sum to 1.
    identified : bool
        Whether the scores identify the shares of all classes.
    """

    classes: NDArray[Any]
    estimate: FloatArray
    identified: bool

    @property
    def shares(self) -> dict[Any, float]:
        """The estimate as a dict for ``with_prior``; shares of 0 are replaced by 1e-6."""
        positive = np.maximum(self.estimate, SMALLEST_SHARE)
        return dict(zip(self.classes.tolist(), (positive / positive.sum()).tolist(), strict=True))


def estimate_shares(p: FloatArray, prior: FloatArray, classes: NDArray[Any]) -> PriorEstimate:
    """Estimate the shares of the classes among new objects from their probabilities.

    Probabilities (m, k) are calibrated for the class shares ``prior`` (k,), which are above 0. A
    warning is issued if the scores do not identify the shares of all classes.

    The estimate maximises the likelihood of Saerens, Latinne & Decaestecker (2002),
    ``L(q) = sum_i log sum_j q_j p_ij / prior_j`` over shares q.
    """
    if not len(p):
        raise InputError("X must contain at least one row, got none")
    ratio = np.asfortranarray(p / prior)
    q = mixture_shares(ratio, prior)
    m, k = ratio.shape
    g = ratio / (ratio @ q)[:, None]
    tangent = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, 1:]]))[0][:, 1:]
    information = np.linalg.eigvalsh(tangent.T @ (g.T @ g / m) @ tangent)
    identified = bool(information[0] > SMALLEST_INFORMATION * max(1.0, information[-1]))
    if not identified:
        warn(
            "the scores of X do not tell all classes apart, so the shares of some are not known "
            "from them: the estimate is one of several that fit as well"
        )
    return PriorEstimate(classes, q, identified)


def mixture_shares(ratio: FloatArray, start: FloatArray) -> FloatArray:
    """Return the shares q (k,) that maximise ``sum_i log sum_j q_j ratio_ij``.

    ``ratio`` (m, k) is not negative and has no row of zeros; the search begins at ``start`` (k,),
    which is above 0. The maximum of ``mean log(ratio q) - sum q`` over q >= 0 lies on the simplex.
    """

    def loss(q: FloatArray) -> tuple[float, FloatArray]:
        mixed = np.maximum(ratio @ q, np.finfo(float).tiny)
        gradient = 1 - (1 / mixed) @ ratio / len(ratio)
        return float(q.sum() - np.log(mixed).mean()), gradient

    result = minimize(
        loss,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, None)] * len(start),
        options={"ftol": 0.0, "gtol": 1e-10, "maxiter": 1_000},
    )
    return np.asarray(result.x / result.x.sum())
