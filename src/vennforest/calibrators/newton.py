"""Log-odds of scores, and logistic regressions and weights of blends by Newton's method."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.formula import Term, Value
from vennforest.counts import ScoreCounts
from vennforest.scores import MASKED

# Limits of the distance between 0 or 1 and the score at which log-odds are cut off.
MARGINS = float(np.finfo(np.float64).eps), 0.01
MIN_LIMIT = float(np.log(1 / MARGINS[1] - 1))  # the log-odds of the larger one
Targets = Literal["smoothed", "hard"]
"""The targets of a sigmoid's fit."""


def clip_limits(scores: FloatArray) -> tuple[float, float]:
    """Return where probabilities (n,) are clipped, halfway from 0 and 1 to the nearest inside."""
    # A forest gives exact zeros and ones, whose log-odds are infinite.
    distances = scores, 1 - scores
    low, high = (x.min(where=x > 0, initial=1.0) / 2 for x in distances)
    return float(np.clip(low, *MARGINS)), 1 - float(np.clip(high, *MARGINS))


def log_odds_limits(z: FloatArray) -> tuple[float, float]:
    """Return where log-odds (n,) are clipped so that masked classes do not bend a map.

    As `clip_limits` does, where there are masked ones; else there is no limit.
    """
    unmasked = z[(z > MASKED) & (z < -MASKED)]
    nearest = np.array([-unmasked.min(initial=0.0), unmasked.max(initial=0.0)])
    low, high = np.maximum(nearest + np.log(2), MIN_LIMIT).tolist()
    return -low if z.min() <= MASKED else MASKED, high if z.max() >= -MASKED else -MASKED


def log_odds(x: Term, low: Value, high: Value) -> Term:
    """Return ``log(x / (1 - x))`` of scores clipped to [low, high]."""
    clipped = x.clip(low, high)
    return clipped.log() - (1.0 - clipped).log()


def log_odds_of(scores: FloatArray, low: float, high: float) -> FloatArray:
    """Return `log_odds` of scores (n,), as its formula is computed."""
    clipped = np.minimum(np.maximum(scores, low), high)
    return np.asarray(np.log(clipped) - np.log(1.0 - clipped))


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


N_STARTING_BLOCKS = 4_096  # blocks of neighbouring scores whose means tell where to begin
MAX_NEWTON_STEPS = 200  # Newton steps of a logistic regression; fewer than ten are usual
# Expected gain of a Newton step, relative to the loss at the start, that makes it the last, since
# the method converges quadratically; and that below which steps that gain no less are rounding.
LAST_GAIN, ROUNDING_GAIN = 1e-11, 1e-9


def least_squares(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return the shortest solution of linear equations that may be singular."""
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0])


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
    not below zero. `minimise` begins at ``start``.
    """
    d, n = features.shape
    total = weights.sum(axis=1)
    if n > 2 * N_STARTING_BLOCKS:  # neighbours together tell nearly where the minimum is
        block = np.arange(0, n, n // N_STARTING_BLOCKS)
        means = np.add.reduceat(features * total, block, axis=1) / np.add.reduceat(total, block)
        sums = np.add.reduceat(weights, block, axis=0)
        start, _ = fit_logistic(means, sums, start, bounded, mean=mean, penalty=penalty)
    # A penalty makes the Hessian regular, and a plain solution takes a tenth of the time.
    solve: Any = least_squares if penalty is None else np.linalg.solve
    # Where next to nothing is counted, the penalty stays finite.
    mass = float(total.sum()) if penalty is None else max(float(total.sum()), 1.0)
    total, positive = total / mass, weights[:, 1] / mass
    penalty = np.zeros((d, d)) if penalty is None else penalty / mass

    def evaluate(theta: FloatArray) -> tuple[float, FloatArray]:
        f = theta @ features
        offset = theta - mean
        loss = total @ np.logaddexp(0, f) - positive @ f + offset @ penalty @ offset / 2
        return float(loss), expit(f)

    def derivatives(theta: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        gradient = features @ (total * p - positive) + penalty @ (theta - mean)
        return gradient, (features * (total * p * (1 - p))) @ features.T + penalty

    theta, hessian = minimise(evaluate, derivatives, start, bounded, solve)
    return theta, hessian * mass


def minimise(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    derivatives: Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]],
    theta: FloatArray,
    bounded: NDArray[np.bool_],
    solve: Callable[..., FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Return the parameters (d,) of the least loss, which is convex, and the Hessian (d, d).

    ``evaluate`` returns the loss and the estimates at parameters, of which ``derivatives`` returns
    the gradient and the Hessian. Parameters that are ``bounded`` (d,) are not below zero. Newton
    steps, see `newton_step`, are halved until the loss decreases enough; where its minimum lies at
    infinity they end at finite values.
    """
    loss, p = evaluate(theta)
    size, decrease = loss, np.inf
    for _ in range(MAX_NEWTON_STEPS):
        gradient, hessian = derivatives(theta, p)
        step = newton_step(hessian, gradient, theta, bounded, solve)
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
    return theta, hessian


def newton_step(
    hessian: FloatArray,
    gradient: FloatArray,
    theta: FloatArray,
    bounded: NDArray[np.bool_],
    solve: Callable[..., FloatArray],
) -> FloatArray:
    """Return a step in which the loss decreases, and after which no bounded one is below zero.

    ``solve`` solves linear equations with the Hessian, in units of its diagonal.
    """
    # The minimum of the quadratic model with some coefficients held at zero: those that are zero
    # and would become negative, and those that a step without them held takes below zero.
    curvature = np.maximum(hessian.diagonal(), float(np.finfo(np.float64).tiny))
    unit = 1 / np.sqrt(curvature)  # with a unit diagonal the solution keeps its digits
    scaled = hessian * unit * unit[:, None]
    is_free = ~bounded | (theta > 0) | (gradient < 0)
    while True:
        step = np.where(is_free, 0.0, -theta / unit)
        right = (-gradient * unit - scaled @ step)[is_free]
        step[is_free] = solve(scaled[is_free][:, is_free], right)
        step *= unit
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


BLEND_RIDGE = 10.0
"""Factor of the penalty of a blend, in units of rows."""

MAX_BLENDED_ROWS_TO_START = 4_096
"""Rows with which the search begins where there are more than twice as many."""


def fit_blend(
    logs: FloatArray, codes: IntArray, sample_weight: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the weights (M,), not below 0, and the intercept (k,) of a blend of M models.

    They minimise the log loss, summed over rows, of ``softmax(sum_m w_m log p_m + b)`` plus
    ``BLEND_RIDGE / 2`` times ``sum_m (w_m - 1 / M)**2 + sum_j b_j**2``. Models with the same
    probabilities count as one, whose weight they share.

    Parameters
    ----------
    logs : ndarray of shape (M, n, k)
        Logarithms of the probabilities of rows by models that did not see them.
    codes : ndarray of shape (n,)
        Index of each row's class.
    sample_weight : ndarray of shape (n,), optional
        Weights of the rows.
    """
    indices = [
        next(i for i, table in enumerate(logs) if np.array_equal(log, table)) for log in logs
    ]
    first, model, counts = np.unique(indices, return_inverse=True, return_counts=True)
    m, k = len(first), logs.shape[2]
    total = np.ones(logs.shape[1]) if sample_weight is None else sample_weight
    mean = np.concatenate([np.full(m, 1 / m), np.zeros(k)])
    theta = _fit_distinct(logs[first], codes, total, mean, mean)
    return (theta[:m] / counts)[model], theta[m:]


@np.errstate(under="ignore")
def _fit_distinct(
    logs: FloatArray, codes: IntArray, total: FloatArray, mean: FloatArray, start: FloatArray
) -> FloatArray:
    """Return the weights and the intercept, (m + k,), of the least penalised loss of m models.

    ``total`` (n,) are the weights of the rows, and ``mean`` (m + k,) has no penalty. The search
    begins at ``start``.
    """
    m, n, k = logs.shape
    if n > 2 * MAX_BLENDED_ROWS_TO_START:  # some rows tell nearly where the minimum is
        rows = slice(None, None, n // MAX_BLENDED_ROWS_TO_START)
        some = total[rows] * (total.sum() / max(total[rows].sum(), np.finfo(float).tiny))
        start = _fit_distinct(logs[:, rows], codes[rows], some, mean, start)
    of_label = np.arange(n), codes

    def evaluate(theta: FloatArray) -> tuple[float, FloatArray]:
        z = np.tensordot(theta[:m], logs, 1) + theta[m:]
        z -= z.max(axis=1, keepdims=True)
        of_labels, offset = float(total @ z[of_label]), theta - mean
        p = np.exp(z, out=z)
        divisor = p.sum(axis=1, keepdims=True)
        p /= divisor
        loss = float(total @ np.log(divisor[:, 0])) - of_labels
        return loss + BLEND_RIDGE / 2 * float(offset @ offset), p

    def derivatives(theta: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
        share = total[:, None] * p
        residual = share.copy()
        residual[of_label] -= total
        gradient = np.append(np.tensordot(logs, residual, 2), residual.sum(axis=0))
        gradient += BLEND_RIDGE * (theta - mean)
        centred = logs - np.einsum("mij,ij->mi", logs, p)[:, :, None]
        weighted = centred * share
        hessian = BLEND_RIDGE * np.eye(m + k)
        hessian[:m, :m] += np.tensordot(weighted, centred, ([1, 2], [1, 2]))
        hessian[:m, m:] = weighted.sum(axis=1)
        hessian[m:, :m] = hessian[:m, m:].T
        hessian[m:, m:] += np.diag(share.sum(axis=0)) - share.T @ p
        return gradient, hessian

    return minimise(evaluate, derivatives, start, np.arange(m + k) < m, np.linalg.solve)[0]
