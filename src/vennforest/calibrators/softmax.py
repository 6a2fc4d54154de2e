"""Temperature scaling and vector scaling: softmax maps of logits, fitted by maximum likelihood."""

from __future__ import annotations

from abc import abstractmethod
from functools import reduce
from typing import Any, Literal, Self, TypeVar

import numpy as np
from scipy.optimize import Bounds, minimize
from scipy.special import logsumexp

from vennforest._messages import warn
from vennforest._numerics import root_of_increasing, row_blocks
from vennforest._validation import FloatArray, check_inside, check_number, check_option
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import Term, Value, logistic_of_masked, softmax
from vennforest.calibrators.newton import (
    clip_limits,
    fit_logistic,
    group_scores,
    log_odds,
    log_odds_of,
)
from vennforest.counts import ScoreCounts
from vennforest.scores import MASKED, On

# The logarithm of the temperature stays this close to that of the logits' deviation.
MAX_LOG_RATIO = 10.0
# Difference of a mean probability from the share of the class that is warned of, in standard errors
# and at least.
MIN_MEAN_ERRORS, MIN_MEAN_DIFFERENCE = 4.0, 0.01
SMALLEST_LOGIT = -1e30  # stands for -inf, which times a probability of 0 is no number


class TemperatureScaling(Calibrator):
    """Temperature scaling: divide logits by one temperature T, then softmax.

    ``p = softmax(z / T)`` with the T that minimises the log loss of the calibration set (Guo,
    Pleiss, Sun & Weinberger 2017, eq. 9). The most probable class stays what it was. Any number
    of classes. The logits z of probabilities are their logarithms; scores that are no probabilities
    are logits themselves, and one column z stands for (0, z).

    Attributes
    ----------
    temperature_ : float
        T; above 1 it makes estimates less extreme.
    on_ : {"probability", "logit", "score"}
        What the calibration scores were.

    Notes
    -----
    Where the loss has no minimum, T is cut off at exp(-10) or exp(10) times the logits' deviation.
    Before logarithms are taken, probabilities are raised to half the smallest calibration score
    above 0.

    Examples
    --------
    >>> model = TemperatureScaling().fit([0.01, 0.99, 0.9, 0.98], [1, 2, 1, 2])
    >>> model.predict_proba([0.99]).round(2)
    array([[0.11, 0.89]])
    """

    title = "Temperature"
    _reads = "logits"
    temperature_: float
    low_: float
    high_: float
    """Where probabilities are clipped before logarithms are taken."""

    def _fit(self, counts: ScoreCounts) -> None:
        z = counts.scores
        self.low_, self.high_ = 0.0, 1.0
        if self.on_ == "probability":
            p = z if z.ndim == 1 else z / z.sum(axis=1, keepdims=True)
            self.low_, self.high_ = clip_limits(p.ravel())
            if p.ndim == 1:
                z = log_odds_of(p, self.low_, self.high_)
            else:
                z = np.log(np.maximum(p, self.low_))
        if z.ndim == 1:
            z = np.column_stack([np.zeros(len(z)), z])
        if self.on_ == "logit":
            is_masked = z - z.max(axis=1, keepdims=True) <= MASKED
            if is_masked.any():
                z = np.where(is_masked, -np.inf, z)
                if (n := float(counts.weights[is_masked].sum())) > 0:
                    warn(
                        f"{n:,.6g} calibration examples have a label whose logit is minus "
                        "infinity, or as far below as a mask, which no temperature makes possible: "
                        "they do not count for it"
                    )
        self.temperature_ = fit_temperature(z, counts.weights)

    def _warn_of_fit(self, counts: ScoreCounts) -> None:
        """Warn if the mean probability of the second of two classes is not their share."""
        if len(self.classes_) > 2:
            return
        x, total = counts.scores, counts.weights.sum(axis=1)
        p = self._predict_proba(self._reversed(x))[:, 1]
        mean, share = float(total @ p) / counts.total, float(self.class_shares_[1])
        # Of few events the larger one: the number expected by a map that is wrong is too small.
        variance = max(float(total @ (p * (1 - p))), counts.total * share * (1 - share))
        error = np.sqrt(variance) / counts.total
        if abs(mean - share) <= max(MIN_MEAN_ERRORS * error, MIN_MEAN_DIFFERENCE):
            return
        way_out = "PlattScaling and PooledCalibration, which have an intercept, fit it"
        if self.on_ != "probability" and x.max() <= 0:
            way_out = (
                "no score is above 0, as no logarithm of a probability p is: give the log-odds "
                "log p - log(1 - p)"
            )
        warn(
            f"the mean probability of {self.classes_.tolist()[1]!r} after temperature scaling is "
            f"{mean:.3f}, and its share of the examples is {share:.3f}: {way_out}"
        )

    def _formula(self, scores: Term) -> Term:
        if len(self.classes_) == 2:
            if self.on_ == "probability":
                scores = log_odds(scores, self.low_, self.high_)
            return logistic_of_masked(scores, self.temperature_)
        if self.on_ == "probability":
            scores = scores.max(self.low_).log()
        return softmax(scores, self.temperature_)


@np.errstate(under="ignore")
def fit_temperature(z: FloatArray, weights: FloatArray) -> float:
    """Return the T of the least log loss of ``softmax(z / T)``, for logits (n, k).

    Examples whose own logit is -inf have no likelihood at any T, and do not count.
    """
    if z.min() == -np.inf:
        weights = np.where(z == -np.inf, 0.0, weights)
    scaled = np.asarray(z, np.float64) / 2  # distances from the largest of a row may overflow
    scaled -= scaled.max(axis=1, keepdims=True)
    size = -float(scaled.min(where=scaled > -np.inf, initial=0.0))
    total: FloatArray = weights.sum(axis=1)
    mass = float(total.sum())
    if size == 0 or mass == 0:
        return 1.0
    finite = np.where(scaled == -np.inf, 0.0, scaled / size)
    deviation = float(np.sqrt(np.square(finite).mean(axis=1) @ total / mass)) or 1.0
    of_labels = float((weights * finite).sum()) / mass / deviation
    np.maximum(scaled / (size * deviation), SMALLEST_LOGIT, out=scaled)

    def slope(log_beta: float) -> tuple[float, float]:
        """Return the derivative of the loss by beta, and its derivative by the log of beta."""
        beta, first, second = np.exp(log_beta), 0.0, 0.0
        for block in row_blocks(*z.shape):
            e = np.exp(beta * scaled[block])
            divisor = e.sum(axis=1)
            e *= scaled[block]
            means = e.sum(axis=1) / divisor
            variances = np.einsum("ij,ij->i", e, scaled[block]) / divisor - means**2
            first += float(means @ total[block]) / mass
            second += float(variances @ total[block]) / mass
        return first - of_labels, float(beta * second)

    # T = 1 is near, and where the logits are of calibrated probabilities it is the answer.
    log_beta = root_of_increasing(slope, float(np.log(2 * size * deviation)), MAX_LOG_RATIO)
    return float(2 * size * deviation * np.exp(-log_beta))


class ProbabilityCalibrator(Calibrator):
    """Base of calibrators of probabilities; temperature scaling turns logits into these first."""

    _reads = "logits"
    temperature_: float
    """By which logits are divided before their softmax; 1 for probabilities."""

    def _fit(self, counts: ScoreCounts) -> None:
        self.temperature_, p = 1.0, counts.scores
        if self.on_ != "probability":
            scaling = TemperatureScaling()._fit_checked(counts, kind=self.on_)
            self.temperature_, p = scaling.temperature_, scaling._predict_proba(p)
            p = p[:, 1] if counts.scores.ndim == 1 else p
        elif p.ndim == 2:
            p = p / p.sum(axis=1, keepdims=True)
        self._fit_probabilities(ScoreCounts(counts.classes, p, counts.weights, counts.error))

    @abstractmethod
    def _fit_probabilities(self, counts: ScoreCounts) -> None:
        """Set the attributes of the map of probabilities (m,), which do not decrease, or (m, k)."""

    def _formula(self, scores: Term) -> Term:
        if self.on_ == "probability":
            return self._map_formula(scores)
        to_probabilities = softmax if len(self.classes_) > 2 else logistic_of_masked
        return self._map_formula(to_probabilities(scores, self.temperature_))

    @abstractmethod
    def _map_formula(self, p: Term) -> Term:
        """Return the formula of the map of probabilities."""


Structure = Literal["shared", "diagonal", "full"]
"""Which slopes are free: one for all classes, one per class, or one for each pair of classes."""

# Weight of the shared slope's distance from 1, beside 1 of the slopes' distances from it.
SHARED = 0.1
# Length of the mean loss's gradient, in units of the curvature, at which the search ends, and its
# largest step: the sum is convex, so long ones are safe.
GRADIENT_TOLERANCE, MAX_TRUST_RADIUS = 1e-9, 1e6
# Classes from which on the time of a fit counts more than its last digits, and where it ends: at a
# gain of the mean loss, relative to it, or at a gradient, which leaves a loss of 1e-7 or so.
MANY_CLASSES = 26
OPTIONS_OF_MANY = {"ftol": 1e-8, "gtol": 1e-6, "maxiter": 500, "maxcor": 10}
OPTIONS_OF_BOUNDED = {"ftol": 0.0, "gtol": 1e-12, "maxiter": 2_000, "maxcor": 30}


def smoothed_shares(counts: ScoreCounts) -> FloatArray:
    """Return ``(n_j + 1) / (n + k)``, (k,): the shares towards which probabilities are shrunk."""
    return np.asarray((counts.class_totals + 1) / (counts.total + len(counts.class_totals)))


AnyTerm = TypeVar("AnyTerm", Term, FloatArray)


def shrunk(p: AnyTerm, c: float, share: Value, k: int) -> AnyTerm:
    """Return ``k (p + c share) / (1 + c)``, above 0 where a forest gives 0."""
    return (p + c * share) * (k / (1 + c))


def shrunk_pair(
    p: AnyTerm, c: float, share_of_rest: Value, share: Value
) -> tuple[AnyTerm, AnyTerm]:
    """Return `shrunk` of 1 minus the probabilities of a class, and of the probabilities."""
    return shrunk(1.0 - p, c, share_of_rest, 2), shrunk(p, c, share, 2)


class SoftmaxMap(ProbabilityCalibrator):
    """The map ``softmax(W log(k s) + b)``, with a choice of slopes: see `VectorScaling`.

    Parameters
    ----------
    structure : {"shared", "diagonal", "full"}
        Which slopes are free with more than two classes: one for all, one per class, or one for
        each pair of classes.
    ridge, shrinkage : float
        Factor of the penalty, above 0, and the c of the shrinkage of scores, in (0, 1).
    """

    shrinkage_: float
    shares_: FloatArray
    coef_: FloatArray
    intercept_: FloatArray
    _start: FloatArray | None = None

    def __init__(
        self, structure: Structure = "diagonal", ridge: float = 1.0, shrinkage: float = 0.01
    ) -> None:
        self.structure = structure
        self.ridge = ridge
        self.shrinkage = shrinkage

    def _fit_from(self, start: Calibrator | None, counts: ScoreCounts) -> Self:
        """Fit as `_fit_checked`; of many classes the search begins at the map ``start``."""
        if isinstance(start, SoftmaxMap) and len(counts.classes) >= MANY_CLASSES:
            # A search from the beginning takes twice as long.
            self._start = np.vstack([np.diag(start.coef_), start.intercept_])
        self._fit_checked(counts)
        self._start = None
        return self

    def _fit_probabilities(self, counts: ScoreCounts) -> None:
        check_option(self.structure, Structure, "structure")
        check_number(self.ridge, "ridge", 0)
        self.shrinkage_ = check_inside(self.shrinkage, "shrinkage")
        self.shares_ = smoothed_shares(counts)
        if counts.scores.ndim > 1:
            logs, structure = self._logs(counts.scores), self.structure
            fit = fit_multinomial(logs, counts.weights, structure, self.ridge, self._start)
            # In rows, as files have it: products of other layouts differ in the last place.
            self.coef_, self.intercept_ = np.ascontiguousarray(fit[0]), fit[1]
            return
        # The difference of the two logits has slopes of the two logarithms, not below zero, and one
        # intercept; b1 = -b0 costs ridge b^2 / 2 in b = b1 - b0.
        counts = group_scores(counts)
        first, second = self._logs(counts.scores).T
        features = np.array([-first, second, np.ones(len(first))])
        # min over a of ridge * (SHARED * (a - 1)**2 + sum (w - a)**2) is a quadratic form in w - 1.
        penalty = self.ridge * np.diag([1.0, 1.0, 0.5])
        penalty[:2, :2] -= self.ridge / (SHARED + 2)
        mean, bounded = np.array([1.0, 1.0, 0.0]), np.array([True, True, False])
        theta, _ = fit_logistic(features, counts.weights, mean, bounded, mean=mean, penalty=penalty)
        self.coef_ = np.diag(theta[:2])
        self.intercept_ = np.array([-theta[2] / 2, theta[2] / 2])

    def _logs(self, p: FloatArray) -> FloatArray:
        """Return log(k s), (n, k), of shrunk probabilities (n,) or (n, k)."""
        if p.ndim == 1:
            pair = shrunk_pair(p, self.shrinkage_, *self.shares_.tolist())
            return np.log(np.column_stack(pair))
        return np.log(shrunk(p, self.shrinkage_, self.shares_, len(self.shares_)))

    def _log_loss(self, counts: ScoreCounts) -> float:
        """Return the log loss, summed over examples, of scores that are probabilities."""
        logits = self.coef_ @ self._logs(counts.scores).T + self.intercept_[:, None]
        log_sums = logsumexp(logits, axis=0)
        return float(counts.weights.sum(axis=1) @ log_sums - (counts.weights.T * logits).sum())

    def _map_formula(self, p: Term) -> Term:
        W, b = self.coef_, self.intercept_
        if len(b) == 2:
            of_two = shrunk_pair(p, self.shrinkage_, *self.shares_.tolist())
            pairs = zip((W[1] - W[0]).tolist(), of_two, strict=True)
            products: list[Term] = [slope * x.log() for slope, x in pairs if slope != 0]
            z = reduce(Term.__add__, products or [0.0 * p])
            return (z + float(b[1] - b[0])).logistic()
        logs = shrunk(p, self.shrinkage_, self.shares_, len(b)).log()
        # A product with zeros beside the diagonal would take as long as a full one.
        z = logs @ np.ascontiguousarray(W.T) if self.structure == "full" else logs * np.diag(W)
        return softmax(z + b)


class VectorScaling(SoftmaxMap):
    """Vector scaling: ``softmax(W log(k s) + b)`` of scores s of k classes, with a diagonal W.

    Minimises the log loss of the calibration set plus a penalty that shrinks the map towards
    leaving the scores alone (Guo, Pleiss, Sun & Weinberger 2017, section 4.2). Temperature scaling
    turns logits into probabilities first. With a full W it would be matrix scaling of logits, or
    Dirichlet calibration of probabilities (Kull et al. 2019, eq. 4), with k**2 slopes, which need
    many examples: `PooledCalibration` fits such maps too, with heavier penalties.

    Attributes
    ----------
    coef_ : ndarray of shape (k, k)
        W; row j has the slopes of class j's logit.
    intercept_ : ndarray of shape (k,)
        b.

    Notes
    -----
    The penalty is half of ``sum_j (w_jj - a)**2 + (a - 1)**2 / 10 + sum_j b_j**2``, with the shared
    slope a that makes it smallest. Scores are shrunk to the shares pi of the classes first,
    ``(s + c pi) / (1 + c)`` with c = 0.01, so zeros, which forests give, have logarithms. No slope
    is below 0: of two classes a higher score never gets a lower probability.

    Examples
    --------
    >>> scores = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.4, 0.1]]
    >>> model = VectorScaling().fit(scores, ["a", "b", "c", "b"])
    >>> model.predict_proba([[0.4, 0.4, 0.2]]).round(2)
    array([[0.29, 0.6 , 0.11]])
    """

    title = "Vector scaling"
    structure: Structure = "diagonal"
    ridge = 1.0
    shrinkage = 0.01

    def __init__(self, on: On = "auto") -> None:
        self.on = on


class MultinomialLoss:
    """The mean log loss with its penalty: rows of slopes (1 or k) above a row of intercepts.

    That is ``sum_i total_i log sum_j exp(z_ij) - sum_ij weight_ij z_ij`` of logits z, whose second
    sum is linear in the parameters.
    """

    def __init__(
        self, logs: FloatArray, weights: FloatArray, ridge: float, structure: Structure
    ) -> None:
        k = logs.shape[1]
        mass = max(float(weights.sum()), 1.0)  # the penalty stays finite where little counts
        self.is_full, self.is_shared = structure == "full", structure == "shared"
        self.ridge = ridge / mass
        self.mean = np.vstack([np.eye(k) if self.is_full else np.ones((1, k)), np.zeros((1, k))])
        self.blocks: list[tuple[FloatArray, FloatArray, FloatArray]] = []
        """Of each block logarithms, weights, and estimates at the last parameters."""
        self.of_labels = np.zeros_like(self.mean)
        # Classes are the rows of a block: sums over a few of them take a tenth of the time. A block
        # is not narrower than 256 examples.
        for rows in row_blocks(len(logs), min(k, 256)):
            block = np.ascontiguousarray(logs[rows].T)
            self.blocks.append((block, weights[rows].sum(axis=1) / mass, np.empty_like(block)))
            self.add_back(self.of_labels, np.ascontiguousarray(weights[rows].T) / mass, block)

    def logits(self, theta: FloatArray, logs: FloatArray) -> FloatArray:
        """Return the logits (k, m) of a block."""
        z: FloatArray = theta[:-1].T @ logs if self.is_full else logs * theta[0][:, None]
        z += theta[-1][:, None]
        return z

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss and its gradient at ``theta``, and store the estimates."""
        offset = theta - self.mean
        gradient = self.pull(offset)
        loss = (gradient * offset).sum() / 2 - (self.of_labels * theta).sum()
        gradient -= self.of_labels
        for logs, total, p in self.blocks:
            z = self.logits(theta, logs)
            largest = z.max(axis=0)
            z -= largest
            np.exp(z, out=p)
            divisor = p.sum(axis=0)
            loss += total @ (np.log(divisor) + largest)
            p /= divisor
            self.add_back(gradient, np.multiply(p, total, out=z), logs)
        return float(loss), gradient

    def pull(self, offset: FloatArray) -> FloatArray:
        """Return the derivative of the penalty at an offset from its minimum."""
        pull = self.ridge * offset
        slopes = np.diag(offset) if self.is_full else offset[0]
        # As in `SoftmaxMap`; of a shared slope, each of the k equal ones bears its part.
        of_diagonal = slopes * (SHARED / len(slopes))
        if not self.is_shared:
            of_diagonal = slopes - slopes.sum() / (SHARED + len(slopes))
        if not self.is_full:
            pull[0] = self.ridge * of_diagonal
            return pull
        pull[:-1] *= len(slopes)
        np.fill_diagonal(pull[:-1], self.ridge * of_diagonal)
        return pull

    def add_back(self, out: FloatArray, g: FloatArray, logs: FloatArray) -> None:
        """Add the derivative of ``sum g * logits`` by the parameters."""
        if self.is_full:
            out[:-1] += logs @ g.T
        else:
            slopes = np.einsum("ji,ji->j", logs, g)
            out[0] += slopes.mean() if self.is_shared else slopes
        out[-1] += g.sum(axis=1)

    def diagonal(self) -> FloatArray:
        """Return each parameter's own second derivative, at the last estimates."""
        diagonal = np.full_like(self.mean, self.ridge)
        for logs, total, p in self.blocks:
            self.add_back(diagonal, total * p * (1 - p), logs**2)
        return diagonal

    def curve(self, v: FloatArray) -> FloatArray:
        """Return the second derivative, applied to a change v, at the last estimates."""
        curve = self.pull(v)
        for logs, total, p in self.blocks:
            dz = self.logits(v, logs)
            dz -= np.einsum("ji,ji->i", p, dz)
            dz *= p
            dz *= total
            self.add_back(curve, dz, logs)
        return curve


@np.errstate(under="ignore")
def fit_multinomial(
    logs: FloatArray,
    weights: FloatArray,
    structure: Structure,
    ridge: float,
    start: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the W (k, k) and b (k,) of `VectorScaling`, for logarithms (n, k).

    The search for the slopes of W's diagonal and for b begins at ``start`` (2, k). Slopes of a
    diagonal W are not below 0: a row out of fold scores a little low for its own label, and maps
    that fall would read that backwards, which new rows do not repay.
    """
    problem = MultinomialLoss(logs, weights, ridge, structure)
    if problem.is_full:
        W, b = fit_multinomial(logs, weights, "diagonal", ridge, start)
        start = np.vstack([W.T, b])
    elif start is None:
        start = problem.mean
    problem.evaluate(start)
    # Parameters in units that their own curvature makes about equally large.
    scale, at = 1 / np.sqrt(problem.diagonal()), np.empty(0)

    def parameters(t: FloatArray) -> FloatArray:
        return np.asarray(start + scale * t.reshape(scale.shape))

    def loss(t: FloatArray) -> tuple[float, FloatArray]:
        nonlocal at
        value, gradient = problem.evaluate(parameters(t))
        at = t.copy()
        return value, (scale * gradient).ravel()

    def curve(t: FloatArray, v: FloatArray) -> FloatArray:
        if not np.array_equal(t, at):
            loss(t)
        return np.ravel(scale * problem.curve(scale * v.reshape(scale.shape)))

    of_many = logs.shape[1] >= MANY_CLASSES
    options: dict[str, Any] = {"gtol": GRADIENT_TOLERANCE, "max_trust_radius": MAX_TRUST_RADIUS}
    search: dict[str, Any] = {"method": "trust-ncg", "hessp": curve, "options": options}
    if of_many:
        search = {"method": "L-BFGS-B", "options": OPTIONS_OF_MANY}
    x = minimize(loss, np.zeros(scale.size), jac=True, **search).x
    if not problem.is_full and parameters(x)[0].min() < 0:  # some scores rank backwards
        low = np.vstack([-start[0] / scale[0], np.full_like(start[1], -np.inf)]).ravel()
        options = OPTIONS_OF_MANY if of_many else OPTIONS_OF_BOUNDED
        search = {"method": "L-BFGS-B", "options": options, "bounds": Bounds(low, np.inf)}
        x = minimize(loss, np.maximum(x, low), jac=True, **search).x
    theta = parameters(x)
    if not problem.is_full:
        theta[0] = np.where(theta[0] < 1e-12, 0.0, theta[0])  # rounding
    # In the order in memory that a matrix read from a file has: products round by it.
    W = np.ascontiguousarray(theta[:-1].T) if problem.is_full else np.diag(theta[0])
    return W, theta[-1]
