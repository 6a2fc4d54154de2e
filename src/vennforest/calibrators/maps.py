"""Smooth maps of scores with a few parameters, fitted by maximum likelihood, and a pool of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline
from scipy.optimize import brentq, minimize
from scipy.special import expit

from vennforest._messages import warn
from vennforest._validation import FloatArray, IntArray, check_option, columns
from vennforest.calibrators.base import (
    SUM_TOLERANCE,
    Calibrator,
    OneVsRestCalibrator,
    normalised_formula,
)
from vennforest.calibrators.formula import (
    Evaluation,
    Score,
    Term,
    Terms,
    divided_by_sum,
    softmax,
    summed,
)
from vennforest.counts import ScoreCounts

# --- logits, and temperature scaling --------------------------------------------------------------

# The logarithm of the temperature stays this close to that of the logits' deviation.
MAX_LOG_RATIO = 10.0
ScoreKind = Literal["probabilities", "logits"]


class LogitCalibrator(Calibrator):
    """Base of calibrators that take probabilities, or logits where scores lie outside [0, 1].

    Of two columns of logits the difference is taken, of two columns of probabilities the second.
    """

    on: ScoreKind | None = None
    """What the scores are, where the caller knows it; None: as the calibration scores show."""
    on_: ScoreKind
    """What the calibration scores were: new scores are taken for the same."""

    def _columns(self, scores: FloatArray, k: int, is_fitted: bool) -> FloatArray:
        kind = self.on_ if is_fitted else self._kind(scores)
        if k == 2 and scores.ndim == 2 and scores.shape[1] == 2 and kind == "logits":
            return np.asarray(scores[:, 1] - scores[:, 0])
        return columns(scores, k)

    def _kind(self, scores: FloatArray) -> ScoreKind:
        """Return what calibration scores (n,) or (n, k) are."""
        if self.on is not None:
            return self.on
        are_logits = ((scores < 0) | (scores > 1)).any()
        if scores.ndim == 2:
            are_logits |= (np.abs(scores.sum(axis=1) - 1) > SUM_TOLERANCE).any()
        return "logits" if are_logits else "probabilities"

    def _fit(self, counts: ScoreCounts) -> None:
        self.on_ = self._kind(counts.scores)
        if self.on_ == "probabilities":
            self._check_probabilities(counts.scores)

    @property
    def _takes_probabilities(self) -> bool:
        return self.on_ == "probabilities"


class TemperatureScaling(LogitCalibrator):
    """Temperature scaling: divide logits by one temperature T, then softmax.

    ``p = softmax(z / T)`` with the T that minimises the log loss of the calibration set (Guo,
    Pleiss, Sun & Weinberger 2017, eq. 9). The most probable class stays what it was. Any number
    of classes. The logits z of probabilities are their logarithms; scores that are no probabilities
    are logits themselves, and one column z stands for (0, z).

    Attributes
    ----------
    temperature_ : float
        T; above 1 it makes estimates less extreme.
    on_ : {"probabilities", "logits"}
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
    temperature_: float
    low_: float
    high_: float
    """Where probabilities are clipped before logarithms are taken."""

    def _fit(self, counts: ScoreCounts) -> None:
        super()._fit(counts)
        z = counts.scores
        self.low_, self.high_ = 0.0, 1.0
        if self.on_ == "probabilities":
            p = z if z.ndim == 1 else z / z.sum(axis=1, keepdims=True)
            self.low_, self.high_ = clip_limits(p.ravel())
            if p.ndim == 1:
                z = log_odds_of(p, self.low_, self.high_)
            else:
                z = np.log(np.maximum(p, self.low_))
        # Distances from the largest of the row may overflow, their halves not.
        half = np.stack([np.zeros(len(z)), z / 2]) if z.ndim == 1 else z.T / 2
        half -= half.max(axis=0)
        self.temperature_ = 2 * fit_temperature(half, counts.weights.T)

    def _formula(self, scores: Terms) -> Terms:
        if len(scores) == 1:
            z = scores[0]
            if self.on_ == "probabilities":
                z = log_odds(z, self.low_, self.high_)
            return ((z / self.temperature_).logistic(),)
        if self.on_ == "probabilities":
            scores = tuple(p.max(self.low_).log() for p in divided_by_sum(scores))
        return softmax([score / self.temperature_ for score in scores])


def fit_temperature(z: FloatArray, weights: FloatArray) -> float:
    """Return the T of the least log loss of ``softmax(z / T)``; columns of z have maximum 0."""
    size = float(-z.min())
    if size == 0:
        return 1.0
    weights = weights / weights.sum()
    total = weights.sum(axis=0)
    z = z / size
    deviation = float(np.sqrt(np.square(z).mean(axis=0) @ total))
    z = z / deviation
    of_labels = float((weights * z).sum())

    def slope(log_beta: float) -> float:
        e = np.exp(np.exp(log_beta) * z)
        return float(total @ ((e * z).sum(axis=0) / e.sum(axis=0))) - of_labels

    if slope(-MAX_LOG_RATIO) >= 0:
        log_beta = -MAX_LOG_RATIO
    elif slope(MAX_LOG_RATIO) <= 0:
        log_beta = MAX_LOG_RATIO
    else:
        log_beta = brentq(slope, -MAX_LOG_RATIO, MAX_LOG_RATIO, xtol=1e-15, rtol=1e-15)
    return float(size * deviation * np.exp(-log_beta))


class ProbabilityCalibrator(LogitCalibrator):
    """Base of calibrators of probabilities; temperature scaling turns logits into these first."""

    temperature_: float
    """By which logits are divided before their softmax; 1 for probabilities."""

    def _fit(self, counts: ScoreCounts) -> None:
        super()._fit(counts)
        self.temperature_, p = 1.0, counts.scores
        if self.on_ == "logits":
            scaling = TemperatureScaling()._fit_checked(counts)
            self.temperature_, p = scaling.temperature_, scaling._predict_proba(p)
            p = p[:, 1] if counts.scores.ndim == 1 else p
        elif p.ndim == 2:
            p = p / p.sum(axis=1, keepdims=True)
        self._fit_probabilities(ScoreCounts(counts.classes, p, counts.weights, counts.error))

    @abstractmethod
    def _fit_probabilities(self, counts: ScoreCounts) -> None:
        """Set the attributes of the map of probabilities (m,), which do not decrease, or (m, k)."""

    def _formula(self, scores: Terms) -> Terms:
        if self.on_ == "logits":
            scaled = [score / self.temperature_ for score in scores]
            scores = (scaled[0].logistic(),) if len(scaled) == 1 else softmax(scaled)
        elif len(scores) > 1:
            scores = divided_by_sum(scores)
        return self._map_formula(scores)

    @abstractmethod
    def _map_formula(self, p: Terms) -> Terms:
        """Return the formulas of the map of probabilities."""


# --- Platt scaling --------------------------------------------------------------------------------

SigmoidOf = Literal["auto", "score", "logit"]

# Between these absolute values standard scores are computed with in formulas.
SMALLEST_STANDARD_SCORE, MAX_STANDARD_SCORE = 1e-290, 1e100


class PlattScaling(OneVsRestCalibrator):
    """Platt scaling: a sigmoid of the score, fitted by maximum likelihood.

    ``p = 1 / (1 + exp(A s + B))`` (Platt 2000). Many classes: one sigmoid per class, normalised.

    Parameters
    ----------
    targets : {"smoothed", "hard"}, default="smoothed"
        ``"smoothed"``: (N+ + 1) / (N+ + 2) for the N+ examples of the class and 1 / (N- + 2) for
        the N- others (Niculescu-Mizil & Caruana 2005, eq. 4); with weights N+ and N- are sums of
        weights. ``"hard"``: 1 and 0 (Boström 2008, section 2.2.1); of separable scores the sigmoid
        is then steep.
    on : {"auto", "score", "logit"}, default="auto"
        ``"score"``: s is the score itself, any finite number. ``"logit"``: s is the log-odds of a
        score in [0, 1]; 0 and 1, which forests give, are moved halfway to the nearest calibration
        score inside. ``"auto"``: the log-odds if all calibration scores are in [0, 1], else the
        score.

    Attributes
    ----------
    on_ : {"score", "logit"}
        What s is.
    slope_, intercept_ : ndarray of shape (1,) or (k,)
        Of the second class or of each: ``p = 1 / (1 + exp(-(slope_ z + intercept_)))`` of the
        standard score ``z = (s - center_) / scale_``.

    Examples
    --------
    >>> model = PlattScaling(on="score").fit([0.1, 0.3, 0.4, 0.8], ["no", "no", "yes", "yes"])
    >>> model.predict_proba([0.2, 0.9]).round(2)
    array([[0.66, 0.34],
           [0.15, 0.85]])
    """

    title = "Platt scaling"
    on_: str
    clip_: FloatArray
    """Where the scores of each column are clipped before their log-odds are taken, (c, 2)."""
    center_: FloatArray
    scale_: FloatArray
    slope_: FloatArray
    intercept_: FloatArray

    def __init__(self, targets: Targets = "smoothed", on: SigmoidOf = "auto") -> None:
        self.targets = targets
        self.on = on

    def _fit_columns(self, columns: list[ScoreCounts]) -> None:
        check_option(self.targets, Targets, "targets")
        check_option(self.on, SigmoidOf, "on")
        low = min(counts.scores[0] for counts in columns)
        high = max(counts.scores[-1] for counts in columns)
        self.on_ = self.on
        if self.on == "auto":
            self.on_ = "logit" if low >= 0 and high <= 1 else "score"
            in_range = low >= 0 and 1 < high <= 100
            if in_range and any((counts.scores % 1 != 0).any() for counts in columns):
                warn(
                    f"scores between {low:g} and {high:g} look like percentages: divide "
                    "percentages by 100, so that the sigmoid is one of their log-odds, or set "
                    'on="score" for other scores'
                )
        fits = []
        for counts in columns:
            scores, limits = counts.scores, (0.0, 1.0)
            if self.on_ == "logit":
                self._check_probabilities(scores)
                limits = clip_limits(scores)
                scores = log_odds_of(scores, *limits)
            center, scale = standardise(scores, counts.weights.sum(axis=1))
            z = (scores / 4 - center / 4) / (scale / 4)  # the difference may overflow
            (slope,), intercept = fit_sigmoid(z[None], counts.weights, self.targets, 0)
            fits.append((*limits, center, scale, slope, intercept))
        low_, high_, self.center_, self.scale_, self.slope_, self.intercept_ = np.array(fits).T
        self.clip_ = np.column_stack([low_, high_])

    @property
    def _takes_probabilities(self) -> bool:
        return self.on_ == "logit"

    def _column_formula(self, score: Term, j: int) -> Term:
        if self.on_ == "logit":
            score = log_odds(score, *self.clip_[j].tolist())
        center, scale = float(self.center_[j]), float(self.scale_[j])
        z = (score.without_underflow(scale * SMALLEST_STANDARD_SCORE) - center) / scale
        z = z.clip(-MAX_STANDARD_SCORE, MAX_STANDARD_SCORE)
        return (float(self.slope_[j]) * z + float(self.intercept_[j])).logistic()


# --- beta calibration -----------------------------------------------------------------------------


class BetaCalibration(OneVsRestCalibrator):
    """Beta calibration: ``1 / (1 + exp(-(a ln s - b ln(1 - s) + c)))`` of scores s in [0, 1].

    The map that is right when the scores of either class follow a beta distribution (Kull, Silva
    Filho & Flach 2017, eq. 3), fitted by maximum likelihood with a, b >= 0 so it does not
    decrease. Scores of 0 and 1 are moved as in `PlattScaling`. Many classes: one map per class
    against the rest, normalised.

    Parameters
    ----------
    targets : {"smoothed", "hard"}, default="smoothed"
        As of `PlattScaling`.

    Attributes
    ----------
    coef_ : ndarray of shape (1, 3) or (k, 3)
        a, b and c of the second class or of each.

    Examples
    --------
    >>> model = BetaCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1])
    >>> model.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.28, 0.79])
    """

    title = "Beta"
    _takes_probabilities = True
    coef_: FloatArray
    clip_: FloatArray
    """Where the scores of each column are clipped before logarithms are taken, (c, 2)."""

    def __init__(self, targets: Targets = "smoothed") -> None:
        self.targets = targets

    def _fit_columns(self, columns: list[ScoreCounts]) -> None:
        check_option(self.targets, Targets, "targets")
        limits, fits = [], []
        for counts in columns:
            self._check_probabilities(counts.scores)
            low, high = clip_limits(counts.scores)
            s = np.clip(counts.scores, low, high)
            features = np.array([np.log(s), -np.log1p(-s)])
            weight = counts.weights.sum(axis=1)
            center, scale = np.array([standardise(x, weight) for x in features]).T
            z = (features - center[:, None]) / scale[:, None]
            slopes, c = fit_sigmoid(z, counts.weights, self.targets, 2)
            slopes /= scale
            limits.append((low, high))
            fits.append((*slopes, c - slopes @ center))
        self.clip_, self.coef_ = np.array(limits), np.array(fits)

    def _column_formula(self, score: Term, j: int) -> Term:
        (low, high), (a, b, c) = self.clip_[j].tolist(), self.coef_[j].tolist()
        s = score.clip(low, high)
        f: Term = a * s.log() - b * (1.0 - s).log() + c
        return f.logistic()


# --- matrix scaling -------------------------------------------------------------------------------

Structure = Literal["shared", "diagonal", "full"]
"""Which slopes are free: one for all classes, one per class, or one for each pair of classes."""

# Weight of the shared slope's distance from 1, beside 1 of the slopes' distances from it.
SHARED = 0.1
# Length of the mean loss's gradient, in units of the curvature, at which the search ends, and its
# largest step: the sum is convex, so long ones are safe.
GRADIENT_TOLERANCE, MAX_TRUST_RADIUS = 1e-9, 1e6


def smoothed_shares(counts: ScoreCounts) -> FloatArray:
    """Return ``(n_j + 1) / (n + k)``, (k,): the shares towards which probabilities are shrunk."""
    return np.asarray((counts.class_totals + 1) / (counts.total + len(counts.class_totals)))


def shrunk_logs(p: Terms, c: float, shares: FloatArray) -> Terms:
    """Return ``log(k (p + c shares) / (1 + c))`` of k classes, finite where a forest gives 0."""
    p, k = (1.0 - p[0], p[0]) if len(p) == 1 else p, len(shares)
    added = (c * shares).tolist()
    return tuple(((x + y) * (k / (1 + c))).log() for x, y in zip(p, added, strict=True))


class SoftmaxMap(ProbabilityCalibrator):
    """The map ``softmax(W log(k s) + b)``, with a choice of slopes: see `MatrixScaling`.

    Parameters
    ----------
    structure : {"shared", "diagonal", "full"}
        Which slopes are free with more than two classes: one for all, one per class, or one for
        each pair of classes.
    ridge, shrinkage : float
        Factor of the penalty, and the c of the shrinkage of scores, above 0.
    """

    shrinkage_: float
    shares_: FloatArray
    coef_: FloatArray
    intercept_: FloatArray

    def __init__(
        self, structure: Structure = "diagonal", ridge: float = 1.0, shrinkage: float = 0.01
    ) -> None:
        self.structure = structure
        self.ridge = ridge
        self.shrinkage = shrinkage

    def _fit_probabilities(self, counts: ScoreCounts) -> None:
        self.shrinkage_, self.shares_ = self.shrinkage, smoothed_shares(counts)
        logs_of = Evaluation(shrunk_logs(self._score_terms(), self.shrinkage_, self.shares_))
        if counts.scores.ndim == 1:
            counts = group_scores(counts)
            fit = fit_two_classes(logs_of(counts.scores), counts.weights, self.ridge)
        else:
            logs = logs_of(counts.scores)
            fit = fit_multinomial(logs, counts.weights, self.structure, self.ridge)
        self.coef_, self.intercept_ = fit

    def _map_formula(self, p: Terms) -> Terms:
        k, W, b = len(self.classes_), self.coef_, self.intercept_.tolist()
        logs = shrunk_logs(p, self.shrinkage_, self.shares_)

        def logit(slopes: FloatArray, intercept: float) -> Term:
            pairs = zip(slopes.tolist(), logs, strict=True)
            products = [slope * log for slope, log in pairs if slope != 0]
            return summed(products or [0.0 * logs[0]]) + intercept

        if k == 2:
            return (logit(W[1] - W[0], b[1] - b[0]).logistic(),)
        return softmax([logit(W[j], b[j]) for j in range(k)])


class MatrixScaling(SoftmaxMap):
    """Matrix scaling: ``softmax(W log(k s) + b)`` of scores s of k classes, with a diagonal W.

    Minimises the log loss of the calibration set plus a penalty that shrinks the map towards
    leaving the scores alone. With probabilities as scores this is a form of Dirichlet calibration
    (Kull et al. 2019, eq. 4); with logits, which temperature scaling turns into probabilities
    first, of vector scaling (Guo, Pleiss, Sun & Weinberger 2017, section 4.2).

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
    ``(s + c pi) / (1 + c)`` with c = 0.01, so zeros, which forests give, have logarithms. Of two
    classes a higher score never gets a lower probability.

    Examples
    --------
    >>> scores = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.5, 0.4, 0.1]]
    >>> model = MatrixScaling().fit(scores, ["a", "b", "c", "b"])
    >>> model.predict_proba([[0.4, 0.4, 0.2]]).round(2)
    array([[0.29, 0.6 , 0.11]])
    """

    title = "Matrix scaling"
    structure: Structure = "diagonal"
    ridge = 1.0
    shrinkage = 0.01

    def __init__(self) -> None:
        """Take no parameters."""


def diagonal_penalty(k: int, ridge: float) -> FloatArray:
    """Return the penalty (k, k) of slopes' distances from 1, the shared slope left to its best."""
    # min over a of ridge * (SHARED * (a - 1)**2 + sum (w - a)**2) is a quadratic form in w - 1.
    return np.asarray(ridge * (np.eye(k) - np.full((k, k), 1 / (SHARED + k))))


class MultinomialLoss:
    """The mean log loss with its penalty: rows of slopes (1 or k) above a row of intercepts."""

    def __init__(
        self, logs: FloatArray, weights: FloatArray, ridge: float, structure: Structure
    ) -> None:
        k = logs.shape[1]
        mass = max(float(weights.sum()), 1.0)  # the penalty stays finite where little counts
        self.logs, self.weights, self.ridge = logs, weights / mass, ridge / mass
        self.total: FloatArray = self.weights.sum(axis=1, keepdims=True)
        self.is_full, self.is_shared = structure == "full", structure == "shared"
        self.diagonal: FloatArray = diagonal_penalty(k, self.ridge)
        if self.is_shared:  # each of the k equal slopes bears its part
            self.diagonal = np.eye(k) * SHARED * self.ridge / k
        self.mean = np.vstack([np.eye(k) if self.is_full else np.ones((1, k)), np.zeros((1, k))])

    def logits(self, theta: FloatArray) -> FloatArray:
        """Return logits (n, k)."""
        z = self.logs @ theta[:-1] if self.is_full else self.logs * theta[0]
        return np.asarray(z + theta[-1])

    def evaluate(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the loss, and the estimates (n, k)."""
        z, offset = self.logits(theta), theta - self.mean
        largest = z.max(axis=1, keepdims=True)
        p = np.exp(z - largest)
        divisor = p.sum(axis=1, keepdims=True)
        loss = (self.total * (np.log(divisor) + largest)).sum() - (self.weights * z).sum()
        return float(loss + (self.pull(offset) * offset).sum() / 2), p / divisor

    def pull(self, offset: FloatArray) -> FloatArray:
        """Return the derivative of the penalty at an offset from its minimum."""
        pull = self.ridge * offset
        if not self.is_full:
            pull[0] = self.diagonal @ offset[0]
            return pull
        pull[:-1] *= offset.shape[1]
        np.fill_diagonal(pull[:-1], self.diagonal @ np.diag(offset[:-1]))
        return pull

    def back(self, g: FloatArray, logs: FloatArray) -> FloatArray:
        """Return the derivative of ``sum g * logits`` by the parameters."""
        slopes = logs.T @ g if self.is_full else (logs * g).sum(axis=0, keepdims=True)
        if self.is_shared:
            slopes[:] = slopes.mean()
        return np.vstack([slopes, g.sum(axis=0, keepdims=True)])

    def gradient(self, theta: FloatArray, p: FloatArray) -> FloatArray:
        """Return the derivative of the loss by the parameters."""
        return self.back(self.total * p - self.weights, self.logs) + self.pull(theta - self.mean)

    def curve(self, p: FloatArray, v: FloatArray) -> FloatArray:
        """Return the second derivative of the loss, applied to a change v of the parameters."""
        dz = self.logits(v)
        dz -= (p * dz).sum(axis=1, keepdims=True)
        return self.back(self.total * p * dz, self.logs) + self.pull(v)


@np.errstate(under="ignore")
def fit_multinomial(
    logs: FloatArray, weights: FloatArray, structure: Structure, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Return the W (k, k) and b (k,) of `MatrixScaling`, for logarithms (n, k)."""
    problem = MultinomialLoss(logs, weights, ridge, structure)
    start = problem.mean
    if problem.is_full:
        W, b = fit_multinomial(logs, weights, "diagonal", ridge)
        start = np.vstack([W.T, b])
    p, at = problem.evaluate(start)[1], np.empty(0)
    # Parameters in units that their own curvature makes about equally large.
    scale = 1 / np.sqrt(problem.back(problem.total * p * (1 - p), logs**2) + problem.ridge)

    def parameters(t: FloatArray) -> FloatArray:
        return np.asarray(start + scale * t.reshape(scale.shape))

    def loss(t: FloatArray) -> tuple[float, FloatArray]:
        nonlocal p, at
        value, p = problem.evaluate(parameters(t))
        at = t.copy()
        return value, (scale * problem.gradient(parameters(t), p)).ravel()

    def curve(t: FloatArray, v: FloatArray) -> FloatArray:
        if not np.array_equal(t, at):
            loss(t)
        return np.ravel(scale * problem.curve(p, scale * v.reshape(scale.shape)))

    options = {"gtol": GRADIENT_TOLERANCE, "max_trust_radius": MAX_TRUST_RADIUS}
    result: Any = minimize(  # type: ignore[call-overload]
        loss, np.zeros(scale.size), jac=True, hessp=curve, method="trust-ncg", options=options
    )
    theta = parameters(result.x)
    return (theta[:-1].T if problem.is_full else np.diag(theta[0])), theta[-1]


@np.errstate(under="ignore")
def fit_two_classes(
    logs: FloatArray, weights: FloatArray, ridge: float
) -> tuple[FloatArray, FloatArray]:
    """Return the diagonal W (2, 2) and b (2,) of `MatrixScaling`, for logarithms (n, 2)."""
    # The difference of the two logits has slopes of the two logarithms, not below zero, and one
    # intercept; b1 = -b0 costs ridge b^2 / 2 in b = b1 - b0.
    features = np.array([-logs[:, 0], logs[:, 1], np.ones(len(logs))])
    penalty = np.diag([0.0, 0.0, ridge / 2])
    penalty[:2, :2] = diagonal_penalty(2, ridge)
    mean, bounded = np.array([1.0, 1.0, 0.0]), np.array([True, True, False])
    theta, _ = fit_logistic(features, weights, mean, bounded, mean=mean, penalty=penalty)
    return np.diag(theta[:2]), np.array([-theta[2] / 2, theta[2] / 2])


# --- a spline -------------------------------------------------------------------------------------

N_KNOTS = 8  # knots of the slope
# Penalties of the bend to choose among, from the straightest map to the most pliable.
ROUGHNESS = (1000.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03)
RIDGE = 0.3  # penalty of the distance of the mean slope from 1 and of the intercept from 0
NARROW_RANGE = 1e-9  # relative range of the log-odds up to which all of them count as one


class SplineCalibration(ProbabilityCalibrator):
    """Spline calibration: ``1 / (1 + exp(-f(z)))`` with a smooth f that never decreases.

    f is a spline of the log-odds z of the score: its slope runs straight from knot to knot and is
    nowhere negative. It is fitted by maximum likelihood with a penalty on the bend, as in
    smoothing splines (Lucena 2018; Eilers & Marx 1996), and a ridge that shrinks it towards leaving
    the scores alone. Scores are shrunk as in `MatrixScaling`. Many classes: one map per class
    against the rest, normalised.

    Attributes
    ----------
    knots_, slopes_ : list of ndarray
        Of the second class or of each: eight log-odds near quantiles of the calibration scores',
        and the slopes there, with straight lines between and level beyond.
    intercept_ : ndarray of shape (1,) or (k,)
        f(0).
    roughness_ : ndarray of shape (1,) or (k,)
        The penalty of the bend, of nine that with the smallest approximate leave-one-out loss.

    Examples
    --------
    >>> model = SplineCalibration().fit([0.1, 0.3, 0.4, 0.6, 0.8], [0, 0, 1, 0, 1])
    >>> model.predict_proba([0.2, 0.9])[:, 1].round(2)
    array([0.14, 0.92])
    """

    title = "Spline"
    shrinkage = 0.01
    shrinkage_: float
    shares_: FloatArray
    """Shares of the rest and of the class towards which scores are shrunk, (1 or k, 2)."""
    knots_: list[FloatArray]
    slopes_: list[FloatArray]
    intercept_: FloatArray
    roughness_: FloatArray

    def _fit_probabilities(self, counts: ScoreCounts) -> None:
        self.shrinkage_ = self.shrinkage
        self.knots_, self.slopes_ = [], []
        shares, intercepts, roughness = [], [], []
        for column in counts.columns():
            column = group_scores(column)
            share = smoothed_shares(column)
            z = Evaluation((shrunk_log_odds(Score(), self.shrinkage_, share),))(column.scores)[:, 0]
            knots = place_knots(z, column.weights.sum(axis=1))
            theta, penalty = fit_slopes(z, column.weights, knots)
            self.knots_.append(knots)
            self.slopes_.append(theta[:-1])
            shares.append(share)
            intercepts.append(theta[-1])
            roughness.append(penalty)
        self.shares_ = np.array(shares)
        self.intercept_, self.roughness_ = np.array(intercepts), np.array(roughness)

    def _map_formula(self, p: Terms) -> Terms:
        columns = tuple(self._column_formula(score, j) for j, score in enumerate(p))
        return normalised_formula(columns, p)

    def _column_formula(self, score: Term, j: int) -> Term:
        z = shrunk_log_odds(score, self.shrinkage_, self.shares_[j])
        knots, slopes = self.knots_[j].tolist(), self.slopes_[j].tolist()
        areas = integrals(self.knots_[j], self.knots_[j], self.slopes_[j][:, None])[:, 0]
        at_knots: list[float] = (areas + self.intercept_[j]).tolist()

        def line(k: int) -> Term:
            rise: Term = slopes[k] * (z - knots[k])
            return at_knots[k] + rise

        f = line(len(knots) - 1)
        for k in range(len(knots) - 2, -1, -1):
            bend = (slopes[k + 1] - slopes[k]) / (knots[k + 1] - knots[k]) / 2
            t = z - knots[k]
            f = z.unless_above(knots[k + 1], line(k) + bend * t * t, f)
        return z.unless_above(knots[0], line(0), f).logistic()


def shrunk_log_odds(score: Term, c: float, shares: FloatArray) -> Term:
    """Return the log-odds of a score that is shrunk to the shares (2,)."""
    first, second = shrunk_logs((score,), c, shares)
    return second - first


def fit_slopes(z: FloatArray, weights: FloatArray, knots: FloatArray) -> tuple[FloatArray, float]:
    """Return slopes at the knots and the intercept, (m + 1,), and the roughness chosen."""
    m = len(knots)
    # What a slope of 1 at one knot and 0 at the others adds to f, and the intercept.
    features = np.vstack([integrals(z, knots, np.eye(m)).T, np.ones(len(z))])
    mean, bounded = np.append(np.ones(m), 0.0), np.arange(m + 1) < m
    theta = mean
    fits, losses = [], []
    for roughness in ROUGHNESS:
        penalty = slope_penalty(knots, roughness)
        theta, hessian = fit_logistic(features, weights, theta, bounded, mean=mean, penalty=penalty)
        fits.append(theta)
        losses.append(left_out_loss(features, weights, theta, hessian, ~bounded | (theta > 0)))
    best = int(np.argmin(losses))
    return fits[best], ROUGHNESS[best]


def left_out_loss(
    features: FloatArray,
    weights: FloatArray,
    theta: FloatArray,
    hessian: FloatArray,
    is_free: NDArray[np.bool_],
) -> float:
    """Return the sum over the examples of the log loss under the fit to all others."""
    # One Newton step from the fit to all, f + g h / (1 - h p (1 - p)) with the gradient g and the
    # leverage h of the example (Rad & Maleki 2020, approximate leave-one-out).
    x = features[is_free]
    inverse = np.linalg.pinv(hessian[np.ix_(is_free, is_free)], hermitian=True)
    leverage = np.einsum("in,in->n", x, inverse @ x)
    f = theta @ features
    p, q = expit(f), expit(-f)
    remaining = np.maximum(1 - leverage * p * q, 1e-3)
    negative, positive = weights.T
    return float(
        negative @ np.logaddexp(0, f + p * leverage / remaining)
        + positive @ np.logaddexp(0, -(f - q * leverage / remaining))
    )


def integrals(z: FloatArray, knots: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the integrals (n, d) from 0 to each z (n,) of d slopes (m, d), level beyond knots."""
    if len(knots) == 1:
        return np.asarray(z[:, None] * slopes)
    slope = make_interp_spline(knots, slopes, k=1)
    area = slope.antiderivative()

    def from_first(x: FloatArray) -> FloatArray:
        clipped = np.clip(x, knots[0], knots[-1])
        return np.asarray(area(clipped) + (x - clipped)[:, None] * slope(clipped))

    return from_first(z) - from_first(np.zeros(1))


def slope_penalty(knots: FloatArray, roughness: float) -> FloatArray:
    """Return the penalty (m + 1, m + 1) of the slopes' distance from 1, the intercept, the bend."""
    m = len(knots)
    penalty = np.diag(np.append(np.full(m, RIDGE / m), RIDGE / 2))
    if m > 1:
        width = np.diff(knots)  # the integral of the squared bend, in units of the knots' range
        bends = np.diff(np.eye(m), axis=0) / np.sqrt(width / width.sum())[:, None]
        penalty[:m, :m] += roughness * bends.T @ bends
    return penalty


def place_knots(z: FloatArray, weight: FloatArray) -> FloatArray:
    """Return knots at quantiles of ascending log-odds; a single knot where these hardly differ."""
    if z[-1] - z[0] <= NARROW_RANGE * max(1.0, abs(z[0]), abs(z[-1])):
        return z[:1]
    mass = np.cumsum(weight)
    middle = (mass - weight / 2) / mass[-1]
    part = np.linspace(0, 1, N_KNOTS)
    quantiles = np.interp(part, middle, z)
    quantiles[0], quantiles[-1] = z[0], z[-1]
    # A tenth towards even spacing: the bend between knots too near each other loses its digits.
    knots: FloatArray = 0.9 * quantiles + 0.1 * (z[0] + part * (z[-1] - z[0]))
    knots[0], knots[-1] = z[0], z[-1]
    return knots


# --- a pool of maps -------------------------------------------------------------------------------

# Examples of which each member counts as the one that predicted them, before any is seen.
PRIOR_EXAMPLES = 0.5
# Steps of expectation and maximisation, and the change of a weight after which they are over.
MAX_EM_STEPS, EM_TOLERANCE = 1_000, 1e-8
SHRINKAGES = (0.001, 0.003, 0.01, 0.03, 0.1)  # shrinkages to choose among
# Folds that are held out, and the examples from which on only the first one is.
N_FOLDS, MIN_EXAMPLES_FOR_ONE_FOLD = 4, 10_000
# Examples for each slope of a full matrix from which on one ridge is as good as another.
EXAMPLES_PER_SLOPE = 4
MAX_POOLED_SCORES = 4_096  # scores of two classes from which on near-equal ones are put together
MAX_SHUFFLED_UNITS = 1 << 20  # units of a line that are shuffled; a longer line repeats them


class PooledCalibration(ProbabilityCalibrator):
    """Weighted mean of the probabilities of several calibrators.

    ``p = sum_m weight_m p_m``, a linear opinion pool. The weights minimise the log loss of the
    members' predictions for each fold after a fit to the other folds: stacking (Wolpert 1992).

    For two classes the members are `MatrixScaling`, `PlattScaling` on log-odds, and
    `SplineCalibration`; for more softmax maps as in `MatrixScaling`, with a shared slope and with
    full ones under one to three ridges. All but Platt's have the shrinkage, of 0.001 to 0.1, under
    which the map with a shared slope fits best.

    Attributes
    ----------
    members_ : dict of str to calibrator
        The fitted members.
    weights_ : dict of str to float
        The weight of each member, not below 0, with sum 1.

    Notes
    -----
    The weights maximise ``sum_i w_i log sum_m weight_m p_im + sum_m log(weight_m) / 2`` over
    examples i: with few examples the members weigh nearly the same, and none is ever left out.
    There are four folds, which do not depend on the order of the examples; from 10,000 examples on
    the first alone is held out.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.random(500)
    >>> model = PooledCalibration().fit(scores, rng.random(500) < scores**2)
    >>> model.predict_proba([0.5, 0.9])[:, 1].round(2)
    array([0.24, 0.83])
    >>> {name: round(weight, 1) for name, weight in model.weights_.items()}
    {'matrix': 0.4, 'platt': 0.3, 'spline': 0.3}
    """

    title = "Pooled"
    members_: dict[str, Calibrator]
    weights_: dict[str, float]

    def _fit_probabilities(self, counts: ScoreCounts) -> None:
        # Members know classes by number.
        k = len(counts.classes)
        counts = ScoreCounts(np.arange(k), counts.scores, counts.weights)
        if counts.scores.ndim == 1:
            counts = group_scores(counts, MAX_POOLED_SCORES)
        members = make_members(counts)
        weight, p = held_out(list(members.values()), counts)
        self.weights_ = dict(zip(members, pool_weights(weight, p).tolist(), strict=True))
        self.members_ = {name: member._fit_checked(counts) for name, member in members.items()}

    def _map_formula(self, p: Terms) -> Terms:
        weights = list(self.weights_.values())
        members = [self.members_[name]._formula(p) for name in self.weights_]
        return tuple(
            summed(w * term for w, term in zip(weights, column, strict=True)) / sum(weights)
            for column in zip(*members, strict=True)
        )


def make_members(counts: ScoreCounts) -> dict[str, Calibrator]:
    """Return the unfitted members by name: see `PooledCalibration`."""
    k, c = len(counts.classes), best_shrinkage(counts)
    if k == 2:
        spline = SplineCalibration()
        spline.shrinkage = c
        matrix = SoftmaxMap("diagonal", shrinkage=c)
        return {"matrix": matrix, "platt": PlattScaling(on="logit"), "spline": spline}
    members: dict[str, Calibrator] = {
        "shared": SoftmaxMap("shared", shrinkage=c),
        "full": SoftmaxMap("full", shrinkage=c),
    }
    if counts.total < EXAMPLES_PER_SLOPE * k**2:
        members["full, heavy ridge"] = SoftmaxMap("full", ridge=5.0, shrinkage=c)
        members["full, light ridge"] = SoftmaxMap("full", ridge=0.3, shrinkage=c)
    return members


def best_shrinkage(counts: ScoreCounts) -> float:
    """Return the shrinkage under which the first member has the least log loss."""
    losses = []
    for c in SHRINKAGES:
        member = SoftmaxMap("shared", shrinkage=c)._fit_checked(counts)
        p = np.maximum(member._predict_proba(counts.scores), np.finfo(float).tiny)
        losses.append(-float((counts.weights * np.log(p)).sum()))
    # Of those that rounding alone sets apart (a slope of 0) the largest.
    is_best = np.array(losses) <= min(losses) + 1e-9 * counts.total
    return SHRINKAGES[int(np.flatnonzero(is_best)[-1])]


def split(counts: ScoreCounts) -> Iterator[FloatArray]:
    """Yield each fold's share (m, k) of the weights.

    The examples of a label lie side by side on a line in the order of that label's score, each as
    long as its weight, and the units of the line are dealt out to the folds in a shuffled order.
    Unshuffled, folds would have nearly the same shares of labels at each score, and a map that
    follows chance would look as good as on what it was fitted to.
    """
    lines = []
    for j, weight in enumerate(counts.weights.T):
        rows = np.flatnonzero(weight > 0)
        if counts.scores.ndim == 1:
            rows = rows if j else rows[::-1]
        else:
            x = counts.scores[rows]
            rows = rows[np.lexsort([*x.T[::-1], x[:, j]])]
        ends = np.append(0.0, np.cumsum(weight[rows]))
        # Sums of other weights than integers may leave a hair beyond a unit.
        n_units = int(np.clip(np.ceil(ends[-1] * (1 - 1e-12)), 1, MAX_SHUFFLED_UNITS))
        deal = np.random.RandomState(0).permutation(np.arange(n_units) % N_FOLDS)
        lines.append((rows, ends, deal))
    for fold in range(N_FOLDS):
        share = np.zeros_like(counts.weights)
        for j, (rows, ends, deal) in enumerate(lines):
            share[rows, j] = np.diff(_length_within(ends, deal == fold))
        yield np.clip(share, 0.0, counts.weights)


def _length_within(x: FloatArray, in_fold: NDArray[np.bool_]) -> FloatArray:
    """Return how much of each [0, x] lies in the fold's units, repeated without end."""
    total = np.append(0.0, np.cumsum(in_fold))
    rounds, position = np.divmod(x, len(in_fold))
    return np.asarray(rounds * total[-1] + np.interp(position, np.arange(len(total)), total))


def held_out(members: list[Calibrator], counts: ScoreCounts) -> tuple[FloatArray, FloatArray]:
    """Return weights (r,) of held-out examples, and members' probabilities (M, r) of the labels."""
    weights, likelihoods = [np.empty(0)], [np.empty((len(members), 0))]
    n_folds = 1 if counts.total >= MIN_EXAMPLES_FOR_ONE_FOLD else N_FOLDS
    for share in islice(split(counts), n_folds):
        fold, training = with_weights(counts, share), with_weights(counts, counts.weights - share)
        if not len(fold) or not len(training):
            continue
        is_present = fold.weights > 0
        weights.append(fold.weights[is_present])
        predictions = [m._fit_checked(training)._predict_proba(fold.scores) for m in members]
        likelihoods.append(np.array([p[is_present] for p in predictions]))
    return np.concatenate(weights), np.concatenate(likelihoods, axis=1)


def with_weights(counts: ScoreCounts, weights: FloatArray) -> ScoreCounts:
    """Return the counts under other weights (m, k), without scores that have none."""
    rows = weights.any(axis=1)
    return ScoreCounts(counts.classes, counts.scores[rows], weights[rows])


@np.errstate(under="ignore")
def pool_weights(weight: FloatArray, p: FloatArray) -> FloatArray:
    """Return the weights (M,) of a pool from what `held_out` returns, by the EM algorithm."""
    likelihood = np.maximum(p, np.finfo(float).tiny)
    weights: FloatArray = np.full(len(p), 1 / len(p))
    for _ in range(MAX_EM_STEPS):
        share = weights[:, None] * likelihood
        examples = PRIOR_EXAMPLES + (share / share.sum(axis=0)) @ weight
        weights, before = examples / examples.sum(), weights
        if np.abs(weights - before).max() < EM_TOLERANCE:
            break
    return weights


# --- log-odds, and logistic regression on counts --------------------------------------------------

# Limits of the distance between 0 or 1 and the score at which log-odds are cut off.
MARGINS = float(np.finfo(np.float64).eps), 0.01
Targets = Literal["smoothed", "hard"]
"""The targets of a sigmoid's fit."""


def clip_limits(scores: FloatArray) -> tuple[float, float]:
    """Return where probabilities (n,) are clipped, halfway from 0 and 1 to the nearest inside."""
    # A forest gives exact zeros and ones, whose log-odds are infinite.
    distances = scores, 1 - scores
    low, high = (x.min(where=x > 0, initial=1.0) / 2 for x in distances)
    return float(np.clip(low, *MARGINS)), 1 - float(np.clip(high, *MARGINS))


def log_odds(x: Term, low: float, high: float) -> Term:
    """Return ``log(x / (1 - x))`` of scores clipped to [low, high]."""
    clipped = x.clip(low, high)
    return clipped.log() - (1.0 - clipped).log()


def log_odds_of(scores: FloatArray, low: float, high: float) -> FloatArray:
    """Return `log_odds` of scores (n,)."""
    return Evaluation((log_odds(Score(), low, high),))(scores)[:, 0]


def standardise(x: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return the mean and the standard deviation of numbers (n,); of equal numbers x_0 and 1."""
    size = max(float(np.abs(x).max()) / 4, 1.0)  # squares of large numbers overflow
    first, x = float(x[0]), x / size
    mean = float(np.average(x - x[0], weights=weight))
    spread = float(np.sqrt(np.average(np.square(x - x[0] - mean), weights=weight)))
    return first + mean * size, spread * size or 1.0


# Distinct scores from which on near-equal ones are put together for smooth maps.
MAX_FITTED_SCORES = 16_384
MAX_GROUPED_LOG_ODDS = 40.0  # log-odds beyond which scores are put together


def group_scores(counts: ScoreCounts, n_cells: int = MAX_FITTED_SCORES) -> ScoreCounts:
    """Return counts of two classes, the scores of each of equally wide cells at their mean."""
    x, weights = counts.scores, counts.weights
    if len(x) <= n_cells:
        return counts
    z = x  # or the log-odds, where all scores are in [0, 1]
    if x[0] >= 0 and x[-1] <= 1:
        with np.errstate(divide="ignore"):
            z = np.clip(np.log(x) - np.log1p(-x), -MAX_GROUPED_LOG_ODDS, MAX_GROUPED_LOG_ODDS)
    with np.errstate(over="ignore"):
        width = float(z[-1]) - float(z[0])
    if not 0 < width < np.inf:
        return counts
    cell: IntArray = ((z - z[0]) / width * n_cells).astype(np.intp)
    start = np.append(0, np.flatnonzero(np.diff(cell)) + 1)
    sums = np.add.reduceat(weights, start, axis=0)
    mean = np.add.reduceat(x * weights.sum(axis=1), start) / sums.sum(axis=1)
    return ScoreCounts(counts.classes, np.clip(mean, x[0], x[-1]), sums, counts.error)


N_BLOCKS = 4_096  # blocks of neighbouring scores whose means tell where to begin
MAX_NEWTON_STEPS = 200  # Newton steps of a logistic regression; fewer than ten are usual
# Expected gain of a Newton step, relative to the loss at the start, that makes it the last, since
# the method converges quadratically; and that below which steps that gain no less are rounding.
LAST_GAIN, ROUNDING_GAIN = 1e-14, 1e-9


@np.errstate(under="ignore")
def fit_logistic(
    features: FloatArray,
    weights: FloatArray,
    start: FloatArray,
    bounded: NDArray[np.bool_],
    *,
    mean: FloatArray | float = 0.0,
    penalty: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the coefficients (d,) of a logistic regression, and the Hessian (d, d) of the loss.

    The loss is ``sum negative * log(1 + exp(f)) + positive * log(1 + exp(-f))`` with
    ``f = theta @ features``, features (d, n) in the order of the scores and weights (n, 2), plus
    ``(theta - mean) @ penalty @ (theta - mean) / 2``. Coefficients that are ``bounded`` (d,) are
    not below zero. Newton steps from ``start`` are halved until the loss, which is convex,
    decreases enough; where its minimum lies at infinity they end at finite values.
    """
    d, n = features.shape
    total = weights.sum(axis=1)
    if n > 2 * N_BLOCKS:  # neighbours together tell nearly where the minimum is
        block = np.arange(0, n, n // N_BLOCKS)
        means = np.add.reduceat(features * total, block, axis=1) / np.add.reduceat(total, block)
        sums = np.add.reduceat(weights, block, axis=0)
        start, _ = fit_logistic(means, sums, start, bounded, mean=mean, penalty=penalty)
    # Where next to nothing is counted, the penalty stays finite.
    mass = float(total.sum()) if penalty is None else max(float(total.sum()), 1.0)
    total, positive = total / mass, weights[:, 1] / mass
    penalty = np.zeros((d, d)) if penalty is None else penalty / mass

    def evaluate(theta: FloatArray) -> tuple[float, FloatArray]:
        f = theta @ features
        offset = theta - mean
        loss = total @ np.logaddexp(0, f) - positive @ f + offset @ penalty @ offset / 2
        return float(loss), expit(f)

    theta = start
    loss, p = evaluate(theta)
    size, decrease = loss, np.inf
    for _ in range(MAX_NEWTON_STEPS):
        gradient = features @ (total * p - positive) + penalty @ (theta - mean)
        hessian = (features * (total * p * (1 - p))) @ features.T + penalty
        step = _newton_step(hessian, gradient, theta, bounded)
        decrease, before = -float(gradient @ step), decrease
        # Near the minimum each gain is far below the last one, until only rounding is left.
        if decrease <= LAST_GAIN * size or before / 4 <= decrease <= ROUNDING_GAIN * size:
            theta = theta + step
            break
        length = 1.0
        new_loss, new_p = evaluate(theta + step)
        # Sums of this many terms agree to about 1e-14; less of a gain cannot be seen in them.
        while new_loss > loss * (1 + 1e-14) - 1e-4 * length * decrease and length > 1e-10:
            length /= 2
            new_loss, new_p = evaluate(theta + length * step)
        if length <= 1e-10:
            break
        theta, loss, p = theta + length * step, new_loss, new_p
    theta[bounded] = np.maximum(theta[bounded], 0.0)  # rounding
    return theta, hessian * mass


def _newton_step(
    hessian: FloatArray, gradient: FloatArray, theta: FloatArray, bounded: NDArray[np.bool_]
) -> FloatArray:
    """Return a step in which the loss decreases, and after which no bounded one is below zero."""
    # The minimum of the quadratic model with some coefficients held at zero: those that are zero
    # and would become negative, and those that a step without them held takes below zero.
    curvature = np.maximum(np.diag(hessian), float(np.finfo(np.float64).tiny))
    unit = 1 / np.sqrt(curvature)  # with a unit diagonal the solution keeps its digits
    is_free = ~bounded | (theta > 0) | (gradient < 0)
    while True:
        step = np.where(is_free, 0.0, -theta)
        right, scale = -(gradient + hessian @ step)[is_free], unit[is_free]
        scaled = hessian[np.ix_(is_free, is_free)] * scale * scale[:, None]
        step[is_free] = scale * np.linalg.lstsq(scaled, scale * right, rcond=None)[0]
        below = bounded & is_free & (theta + step < 0)
        if not below.any():
            break
        is_free &= ~below
    if gradient @ step > 0:  # too many are held: a step along the gradient always descends
        step = -gradient / curvature
        step[bounded] = np.maximum(step, -theta)[bounded]
    return step


def fit_sigmoid(
    features: FloatArray, weights: FloatArray, targets: Targets, n_bounded: int
) -> tuple[FloatArray, float]:
    """Return the coefficients (d,), the first ones not below 0, and the intercept of a sigmoid."""
    negative, positive = weights.T
    if targets == "smoothed":  # Niculescu-Mizil & Caruana (2005), eq. 4
        low, high = 1 / (negative.sum() + 2), 1 / (positive.sum() + 2)
        smoothed = negative * low + positive * (1 - high)
        negative, positive = negative * (1 - low) + positive * high, smoothed
    d, n = features.shape
    share = float(positive.sum() / (negative.sum() + positive.sum()))
    start = np.append(np.zeros(d), np.log((share + 1e-9) / (1 - share + 1e-9)))
    features, weights = np.vstack([features, np.ones(n)]), np.column_stack([negative, positive])
    theta, _ = fit_logistic(features, weights, start, np.arange(d + 1) < n_bounded)
    return theta[:-1], float(theta[-1])
