"""Softmax maps: temperature scaling, and matrix scaling by multinomial regression."""

from __future__ import annotations

import math
from typing import Literal, Self

import attrs
import numpy as np
from attrs.validators import instance_of, optional
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

from vennforest._state import stored
from vennforest._validation import FloatArray, IntArray, array, check_option, number, require
from vennforest.calibrators.core.formula import Term, Terms, softmax, summed
from vennforest.calibrators.core.interface import Calibrator, Learnt
from vennforest.calibrators.core.scores import (
    LARGEST_SLOPE,
    MUST_BE_PROBABILITIES,
    SMALLEST,
    Counts,
    Interior,
    On,
    Prior,
    Shrinkage,
    check_not_negative,
    check_probabilities,
    check_unit_interval,
    choose_on,
    count_labels,
    fit_penalised,
    halved,
    is_last,
)

FARTHEST = 10.0
"""The logarithm of the temperature stays this close to that of the logits' deviation."""


@stored("temperature")
@attrs.frozen(eq=False)
class Temperature(Learnt):
    """What halves of logits are divided by, and the inverse temperature that they then have."""

    interior: Interior | None = attrs.field(validator=optional(instance_of(Interior)))
    """Where probabilities are clipped before logarithms are taken; None: scores are logits."""
    unit: float = attrs.field(validator=number(SMALLEST))
    beta: float = attrs.field(validator=number(SMALLEST))


@stored("temperature-scaling")
class TemperatureScaling(Calibrator):
    """Temperature scaling: divide logits by one temperature T, then softmax.

    ``p = softmax(z / T)`` with the T that minimises the log loss of the calibration set (Guo,
    Pleiss, Sun & Weinberger 2017, eq. 9). The most probable class stays what it was. Any number
    of classes.

    Parameters
    ----------
    on : {"auto", "probabilities", "logits"}, default="auto"
        What the scores are. ``"probabilities"``: in [0, 1], rows of columns summing to 1; z are
        their logarithms, with zeros and whatever is less than half the smallest calibration
        score above 0 put there (within 2.2e-16 and 0.01). ``"logits"``: decision values, taken
        as they are; one column z stands for (0, z). ``"auto"``: probabilities where the
        calibration scores can be such, else logits; new scores are then taken for the same.

    Notes
    -----
    The loss is convex in 1 / T, so T is where its derivative is zero. Where that is nowhere
    (every label is that of the largest logit, or the logits are worse than none) T is cut off at
    exp(-10) or exp(10) times the logits' deviation from the largest of their row.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks, ICML.

    Examples
    --------
    >>> model = TemperatureScaling().fit([0.01, 0.99, 0.9, 0.98], [1, 2, 1, 2])
    >>> model.predict_proba([0.99]).round(2)
    array([[0.11, 0.89]])
    """

    _learns = Temperature
    _learnt: Temperature
    _keeps_columns = True

    def __init__(self, on: On = "auto") -> None:
        self.on = on

    def _fit(
        self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> Temperature:
        interior = None
        if choose_on(self.on, scores) == "probabilities":
            p = check_probabilities(scores, MUST_BE_PROBABILITIES)
            # Two classes are clipped by the second's share, so one column and two agree.
            interior = Interior.of(p[:, 1] if p.shape[1] == 2 else p.ravel())
        half = _half_logits(scores, interior)
        largest = float(-half.min())
        unit = float(np.ldexp(1.0, int(np.clip(np.frexp(largest)[1], -1021, 1023))))
        with np.errstate(under="ignore"):
            z = half / unit
            deviation = float(np.sqrt(np.average(np.square(z).mean(axis=0), weights=weight)))
            z /= deviation or 1.0
            beta = _inverse_temperature(z, codes, weight) / (deviation or 1.0)
        return Temperature(interior, unit, beta)

    @property
    def on_(self) -> Literal["probabilities", "logits"]:
        """What the calibration scores were taken for."""
        return "logits" if self._learnt.interior is None else "probabilities"

    @property
    def temperature_(self) -> float:
        """T; above 1 it makes estimates less extreme."""
        with np.errstate(over="ignore", under="ignore"):
            return float(2 * np.float64(self._learnt.unit) / self._learnt.beta)

    def _formula(self, scores: Terms) -> Terms:
        found = self._learnt
        if len(scores) == 1:
            (x,) = scores
            z = x if found.interior is None else found.interior.log_odds_formula(x)
            # Half of the logit is what is scaled, see the class.
            return ((z / (2 * found.unit) * found.beta).logistic(),)
        if found.interior is not None:
            scores = tuple(one.max(found.interior.low).log() for one in scores)
        return softmax([one / (2 * found.unit) * found.beta for one in scores])

    @np.errstate(under="ignore", over="ignore")
    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        found = self._learnt
        p = np.exp(_half_logits(scores, found.interior) / found.unit * found.beta)
        p /= p.sum(axis=0)
        return np.ascontiguousarray(p.T)


def _half_logits(scores: FloatArray, interior: Interior | None) -> FloatArray:
    """Return half of each logit's distance from the largest of its row, (k, n), at most 0.

    Halves, because the distance itself may overflow; a row per class makes sums over few fast.
    """
    if interior is not None:
        p = check_probabilities(scores, MUST_BE_PROBABILITIES)
        if p.shape[1] == 2:
            scores = interior.log_odds(p[:, 1])
        else:
            scores = np.log(np.maximum(p, interior.low))
    if scores.ndim == 1:
        logits = np.stack([np.zeros(len(scores)), scores])
    else:
        logits = np.ascontiguousarray(scores.T)
    with np.errstate(under="ignore"):
        half: FloatArray = logits / 2
        half -= half.max(axis=0)
    return half


def _inverse_temperature(z: FloatArray, codes: IntArray, weight: FloatArray | None) -> float:
    """Return the beta that minimises the log loss of ``softmax(beta * z)``.

    z (k, n) has a mean square of 1 (or is all zero) and the largest number of each column is 0;
    codes and weights (n,) are of the columns.
    """
    if not z.any():
        return 1.0
    of_label = z[codes, np.arange(len(codes))]
    w = np.ones(len(codes)) if weight is None else weight / weight.max()

    def slope(log_beta: float) -> float:
        e = np.exp(np.exp(log_beta) * z)
        expected = (e * z).sum(axis=0) / e.sum(axis=0)
        return float((w * (expected - of_label)).sum())

    if slope(-FARTHEST) >= 0:
        return float(np.exp(-FARTHEST))
    if slope(FARTHEST) <= 0:
        return float(np.exp(FARTHEST))
    return float(np.exp(brentq(slope, -FARTHEST, FARTHEST, xtol=1e-15, rtol=1e-15)))


@stored("to-probabilities")
@attrs.frozen(eq=False)
class ToProbabilities:
    """Turns decision values into probabilities by temperature scaling; probabilities stay.

    So the maps that follow see the same whatever the scale of the decision values.
    """

    temperature: TemperatureScaling | None = attrs.field(
        validator=optional(instance_of(TemperatureScaling))
    )

    @classmethod
    def fit(
        cls, on: On, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> Self:
        """Fit to calibration scores (n,) or (n, k), their codes and weights."""
        if choose_on(on, scores) == "probabilities":
            return cls(None)
        model = TemperatureScaling(on="logits")
        return cls(model.fit(scores, codes, sample_weight=weight, classes=np.arange(k)))

    def check_classes(self, k: int) -> None:
        """Refuse a temperature of another number of classes than k."""
        one = self.temperature
        require(one is None or len(one.classes_) == k, f"temperature must be of {k} classes")

    @property
    def on(self) -> Literal["probabilities", "logits"]:
        """What the calibration scores were taken for."""
        return "probabilities" if self.temperature is None else "logits"

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) of the second class, or (n, k) of every class."""
        if self.temperature is not None:
            p = self.temperature._predict_proba(scores)
            return p if scores.ndim == 2 else np.ascontiguousarray(p[:, 1])
        if scores.ndim == 2:
            return check_probabilities(scores, MUST_BE_PROBABILITIES)
        check_unit_interval(scores, MUST_BE_PROBABILITIES)
        return scores

    def formula(self, scores: Terms) -> Terms:
        """Return the probabilities as formulas of the scores."""
        if self.temperature is not None:
            return self.temperature._formula(scores)
        return scores if len(scores) == 1 else tuple(one / summed(scores) for one in scores)


@np.errstate(under="ignore")
def probabilities(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the softmax (n, k) of logits (n, k), and the logarithm of its divisor, (n,)."""
    largest = z.max(axis=1, keepdims=True)
    p = np.exp(z - largest)
    total = p.sum(axis=1, keepdims=True)
    p /= total
    return p, (np.log(total) + largest)[:, 0]


@stored("multinomial")
@attrs.frozen(eq=False)
class Multinomial:
    """A fitted map ``softmax(logs @ slopes + intercepts)``."""

    slopes: FloatArray = attrs.field(
        validator=array(None, None, low=-LARGEST_SLOPE, high=LARGEST_SLOPE)
    )
    intercepts: FloatArray = attrs.field(
        validator=array(None, low=-LARGEST_SLOPE, high=LARGEST_SLOPE)
    )

    def __attrs_post_init__(self) -> None:
        """Refuse slopes and intercepts of different classes."""
        k = len(self.intercepts)
        require(self.slopes.shape == (k, k), f"slopes must have shape {(k, k)}")

    def __call__(self, logs: FloatArray) -> FloatArray:
        """Return probabilities (n, k) for logarithms (n, k)."""
        # Not a matrix product: its last bits depend on how many rows there are.
        z = np.tile(self.intercepts, (len(logs), 1))
        for column, slopes in zip(logs.T, self.slopes, strict=True):
            z += column[:, None] * slopes
        return probabilities(z)[0]


Structure = Literal["shared", "diagonal", "full"]
"""Which slopes are free."""

MAX_MULTINOMIAL_STEPS = 100
"""Newton steps with many classes; fewer than ten are usual."""

INNER_STEPS = 200
"""Conjugate gradients within one Newton step."""


SHARED = 0.1
"""How much less the distance of the shared slope from 1 weighs than what sets classes apart."""


def diagonal_penalty(k: int, ridge: float) -> FloatArray:
    """Return the penalty (k, k) of slopes' distances from 1, the shared slope left to its best.

    ``min over a of ridge * (SHARED * (a - 1)**2 + sum (w - a)**2)`` is a quadratic form in w - 1.
    """
    penalty: FloatArray = ridge * (np.eye(k) - np.full((k, k), 1 / (SHARED + k)))
    return penalty


class _Problem:
    """The mean loss with its penalty over slopes and intercepts, and its derivatives.

    Parameters are a matrix: the slopes (one row where they are diagonal, else k rows) above a row
    of intercepts.
    """

    def __init__(
        self,
        logs: FloatArray,
        codes: IntArray,
        weight: FloatArray | None,
        ridge: float,
        structure: Structure,
    ) -> None:
        n, k = logs.shape
        w = np.ones(n) if weight is None else weight
        mass = max(float(w.sum()), 1.0)  # the penalty stays finite where next to nothing counts
        self.w: FloatArray = (w / mass)[:, None]
        self.logs, self.codes, self.rows, self.k = logs, codes, np.arange(n), k
        self.full, self.shared = structure == "full", structure == "shared"
        self.ridge = ridge / mass
        self.diagonal: FloatArray = diagonal_penalty(k, self.ridge)
        if self.shared:  # each of the k equal slopes bears its part
            self.diagonal = np.eye(k) * SHARED * self.ridge / k
        self.mean: FloatArray = np.vstack(
            [np.eye(k) if self.full else np.ones((1, k)), np.zeros((1, k))]
        )

    def logits(self, theta: FloatArray) -> FloatArray:
        """Return logits (n, k)."""
        z: FloatArray = self.logs @ theta[:-1] if self.full else self.logs * theta[0]
        z += theta[-1]
        return z

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss, and the estimates (n, k)."""
        z = self.logits(theta)
        p, total = probabilities(z)
        loss = float(self.w[:, 0] @ (total - z[self.rows, self.codes]))
        away = theta - self.mean
        return loss + float((self.pull(away) * away).sum() / 2), p

    def pull(self, away: FloatArray) -> FloatArray:
        """Return the derivative of the penalty at a distance from its minimum."""
        pull = self.ridge * away
        if not self.full:
            pull[0] = self.diagonal @ away[0]
            return pull
        pull[:-1] *= self.k
        own = np.arange(self.k)
        pull[own, own] = self.diagonal @ away[own, own]
        return pull

    def _back(self, g: FloatArray) -> FloatArray:
        """Return the derivative of ``sum g * logits`` by the parameters."""
        slopes = self.logs.T @ g if self.full else (self.logs * g).sum(axis=0, keepdims=True)
        return np.vstack([slopes, g.sum(axis=0, keepdims=True)])

    def gradient(self, theta: FloatArray, p: FloatArray) -> FloatArray:
        """Return the derivative of the loss by the parameters."""
        g = self.w * p
        g[self.rows, self.codes] -= self.w[:, 0]
        return self._back(g) + self.pull(theta - self.mean)

    def curve(self, p: FloatArray, v: FloatArray) -> FloatArray:
        """Return the second derivative of the loss, applied to a change v of the parameters."""
        dz = self.logits(v)
        dz -= (p * dz).sum(axis=1, keepdims=True)
        dz *= p
        dz *= self.w
        return self._back(dz) + self.pull(v)

    def solve_small(self, p: FloatArray, gradient: FloatArray) -> FloatArray:
        """Return the Newton step of diagonal or shared slopes."""
        k = self.k
        steep = self.logs * p
        both = np.hstack([steep, p])
        hessian = -((both * self.w).T @ both)
        middle = np.diag((steep * self.w).sum(axis=0))
        hessian[:k, :k] += np.diag((steep * self.logs * self.w).sum(axis=0))
        hessian[:k, k:] += middle
        hessian[k:, :k] += middle
        hessian[k:, k:] += np.diag((p * self.w).sum(axis=0))
        hessian[:k, :k] += self.diagonal
        hessian[k:, k:] += self.ridge * np.eye(k)
        if not self.shared:
            return -_solve_positive(hessian, gradient.ravel()).reshape(2, k)
        join = np.zeros((2 * k, k + 1))  # the slopes of all classes move together
        join[:k, 0] = 1.0
        join[k:, 1:] = np.eye(k)
        step = join @ _solve_positive(join.T @ hessian @ join, join.T @ gradient.ravel())
        return -step.reshape(2, k)

    def _bounds(self, j: int) -> FloatArray:
        """Return the penalty of class j's own slopes and intercept, (k + 1,)."""
        penalty: FloatArray = np.full(self.k + 1, self.k * self.ridge)
        penalty[j] = penalty[-1] = self.ridge
        return penalty

    def solve_full(self, p: FloatArray, gradient: FloatArray, tolerance: float) -> FloatArray:
        """Return a Newton step of full slopes by conjugate gradients.

        These are preconditioned with the blocks of each class's own slopes and intercept.
        """
        features = np.hstack([self.logs, np.ones((len(self.logs), 1))])
        own = self.w * p * (1 - p)
        blocks = [
            cho_factor((features * own[:, j, None]).T @ features + np.diag(self._bounds(j)))
            for j in range(self.k)
        ]

        def precondition(r: FloatArray) -> FloatArray:
            return np.column_stack([cho_solve(b, r[:, j]) for j, b in enumerate(blocks)])

        step = np.zeros_like(gradient)
        residual = -gradient
        direction = z = precondition(residual)
        size = first = float((residual * z).sum())
        for _ in range(INNER_STEPS):
            if size <= tolerance**2 * first:
                break
            bent = self.curve(p, direction)
            length = size / float((direction * bent).sum())
            step = step + length * direction
            residual = residual - length * bent
            z = precondition(residual)
            size, before = float((residual * z).sum()), size
            direction = z + size / before * direction
        return step


def _solve_positive(hessian: FloatArray, right: FloatArray) -> FloatArray:
    unit = 1 / np.sqrt(np.diag(hessian))
    scaled = hessian * unit * unit[:, None] + 1e-15 * np.eye(len(unit))
    return cho_solve(cho_factor(scaled), right * unit) * unit


@np.errstate(under="ignore")
def fit_multinomial(
    logs: FloatArray,
    codes: IntArray,
    weight: FloatArray | None,
    structure: Structure,
    ridge: float,
    start: Multinomial | None = None,
) -> Multinomial:
    """Minimise the log loss plus the ridge of `MatrixScaling` over logarithms (n, k) of scores.

    A full matrix is searched from ``start`` on, or else from the diagonal fit.
    """
    problem = _Problem(logs, codes, weight, ridge, structure)
    theta = problem.mean
    if structure == "full":
        start = start or fit_multinomial(logs, codes, weight, "diagonal", ridge)
        theta = np.vstack([start.slopes, start.intercepts])
    loss, p = problem.evaluate(theta)
    gradient = problem.gradient(theta, p)
    first, decrease = float(np.linalg.norm(gradient)), np.inf
    for _ in range(MAX_MULTINOMIAL_STEPS):
        if structure == "full":
            size = float(np.linalg.norm(gradient))
            step = problem.solve_full(p, gradient, min(0.1, size / first if first else 0.0))
        else:
            step = problem.solve_small(p, gradient)
        decrease, before = -float((gradient * step).sum()), decrease
        if is_last(decrease, before, loss):
            theta = theta + step
            break
        found = halved(problem.evaluate, (theta,), (step,), loss, decrease)
        if found is None:
            break
        length, (loss, p) = found
        theta = theta + length * step
        gradient = problem.gradient(theta, p)
    if structure == "full":
        return Multinomial(theta[:-1], theta[-1])
    return Multinomial(np.diag(theta[0]), theta[1])


@stored("matrix-map")
@attrs.frozen(eq=False)
class MatrixMap(Learnt):
    """Scores become probabilities, these logarithms, and these the probabilities of a softmax."""

    to_probabilities: ToProbabilities = attrs.field(validator=instance_of(ToProbabilities))
    shrinkage: Shrinkage = attrs.field(validator=instance_of(Shrinkage))
    softmax: Multinomial = attrs.field(validator=instance_of(Multinomial))

    def check_classes(self, k: int) -> None:
        """Refuse parts of other classes."""
        self.to_probabilities.check_classes(k)
        require(len(self.shrinkage.shares) == k, f"shrinkage must be of {k} classes")
        require(len(self.softmax.intercepts) == k, f"softmax must be of {k} classes")


@stored("matrix-scaling")
class MatrixScaling(Calibrator):
    """Matrix scaling: ``softmax(W log(k s) + b)`` of scores s of k classes.

    Minimises the log loss of the calibration set plus a penalty that draws the map towards leaving
    the scores alone. With probabilities as scores this is Dirichlet calibration (Kull et al. 2019,
    eq. 4), for decision values matrix or vector scaling (Guo, Pleiss, Sun & Weinberger 2017,
    section 4.2).

    Parameters
    ----------
    structure : {"shared", "diagonal", "full"}, default="diagonal"
        Which slopes are free: one for all classes (temperature scaling with intercepts), one a
        class (vector scaling), or one for each pair of classes.
    ridge : float, default=1.0
        Above 0. The penalty is half of it, times ``sum_j (w_jj - a)**2 + (a - 1)**2 / 10 +
        k sum_(i != j) w_ij**2 + sum_j b_j**2``, with the shared slope a that makes it least: what
        all classes share is nearly free, what sets them apart is not. As it is added to the sum
        over examples, it weighs the less the more there are.
    shrinkage : float, default=0.01
        Non-negative. Scores are drawn to the shares pi of the classes first,
        ``(s + c pi) / (1 + c)`` with this c, so zeros, which forests give, have logarithms;
        with 0 they are put halfway to the smallest calibration score instead (within 2.2e-16 and
        0.01).
    on : {"auto", "probabilities", "logits"}, default="auto"
        As of `TemperatureScaling`, which makes probabilities of decision values first.

    Notes
    -----
    The sum is strictly convex, so there is one minimum, which Newton steps find. It stays finite
    where labels are separable or a class is missing: such a class keeps a small probability. Two
    classes are fitted to counts at distinct scores, from 16,384 examples on to groups of
    near-equal ones. As in beta calibration, the difference of their two logits has slopes that are
    not below zero, so a higher score never gets a lower probability.

    References
    ----------
    Guo, Pleiss, Sun & Weinberger (2017), On calibration of modern neural networks, ICML. Kull et
    al. (2019), Beyond temperature scaling, NeurIPS.

    Examples
    --------
    >>> scores = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.4, 0.1]]
    >>> model = MatrixScaling("full").fit(scores, ["a", "b", "c", "b"])
    >>> model.predict_proba([[0.4, 0.4, 0.2]]).round(2)
    array([[0.29, 0.61, 0.1 ]])
    """

    _learns = MatrixMap
    _learnt: MatrixMap

    def __init__(
        self,
        structure: Structure = "diagonal",
        ridge: float = 1.0,
        shrinkage: float = 0.01,
        on: On = "auto",
    ) -> None:
        self.structure = structure
        self.ridge = ridge
        self.shrinkage = shrinkage
        self.on = on

    def _fit(
        self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> MatrixMap:
        check_option(self.structure, Structure, "structure")
        ridge = check_not_negative(self.ridge, "ridge", zero=False)
        c = check_not_negative(self.shrinkage, "shrinkage")
        to_probabilities = ToProbabilities.fit(self.on, scores, codes, weight, k)
        p = to_probabilities(scores)
        shrinkage = Shrinkage.of(c, p, np.bincount(codes, weight, k).astype(np.float64))
        if p.ndim == 1:
            counts = count_labels(p, codes.astype(np.float64), weight)
            fitted = fit_two_classes(shrinkage.logs(counts.x), counts, self.structure, ridge)
        else:
            fitted = fit_multinomial(shrinkage.logs(p), codes, weight, self.structure, ridge)
        return MatrixMap(to_probabilities, shrinkage, fitted)

    @property
    def on_(self) -> Literal["probabilities", "logits"]:
        """What the calibration scores were taken for."""
        return self._learnt.to_probabilities.on

    @property
    def coef_(self) -> FloatArray:
        """W, (k, k); row j has the slopes of class j's logit."""
        return self._learnt.softmax.slopes.T.copy()

    @property
    def intercept_(self) -> FloatArray:
        """B, (k,)."""
        return self._learnt.softmax.intercepts.copy()

    def _formula(self, scores: Terms) -> Terms:
        found = self._learnt
        k = len(self.classes_)
        p = found.to_probabilities.formula(scores)
        logs = tuple(one + math.log(k) for one in found.shrinkage.log_formulas(p))
        W, b = found.softmax.slopes, found.softmax.intercepts.tolist()

        def logit(slopes: FloatArray, intercept: float) -> Term:
            products = zip(slopes.tolist(), logs, strict=True)
            return summed(slope * log for slope, log in products) + intercept

        if k == 2:
            return (logit(W[:, 1] - W[:, 0], b[1] - b[0]).logistic(),)
        return softmax([logit(W[:, j], b[j]) for j in range(k)])

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        found = self._learnt
        return found.softmax(found.shrinkage.logs(found.to_probabilities(scores)))


@np.errstate(under="ignore")
def fit_two_classes(
    logs: FloatArray, counts: Counts, structure: Structure, ridge: float
) -> Multinomial:
    """Fit two classes, counted at logarithms (m, 2), as a regression of the second on the first.

    The difference of the two logits has slopes d1 and d0 of the two logarithms and one intercept;
    among the matrices that give these the penalty takes the cheapest.
    """
    # b1 = -b0 costs ridge b^2 / 2 in b = b1 - b0.
    b_penalty = ridge / 2
    rising, falling = logs[:, 1], -logs[:, 0]
    ones = np.ones(len(rising))
    if structure == "shared":
        features = np.array([rising + falling, ones])
        penalty = np.diag([ridge * SHARED, b_penalty])
    else:
        features = np.array([falling, rising, ones])
        penalty = np.zeros((3, 3))
        penalty[2, 2] = b_penalty
        penalty[:2, :2] = diagonal_penalty(2, ridge)
        if structure == "full":
            # The slope of the difference is 1 + d = (1 + x) - w with the other entry w, which
            # costs 2 ridge w^2: what x is left with minimises x P x + 2 ridge (d - x)^2.
            off = 2 * ridge * np.eye(2)
            own = np.linalg.solve(penalty[:2, :2] + off, off)  # x = own @ d
            rest = np.eye(2) - own
            penalty[:2, :2] = own.T @ penalty[:2, :2] @ own + rest.T @ off @ rest
    d = len(features) - 1
    mean = np.append(np.ones(d), 0.0)
    theta = fit_penalised(features, counts, Prior(mean, penalty, np.arange(d + 1) < d)).theta
    slopes, b = theta[:-1], theta[-1]
    W = np.diag(np.broadcast_to(slopes, 2))
    if structure == "full":
        x = own @ (slopes - 1)
        w = x - (slopes - 1)
        W = np.array([[1 + x[0], w[0]], [w[1], 1 + x[1]]])
    return Multinomial(W, np.array([-b / 2, b / 2]))
