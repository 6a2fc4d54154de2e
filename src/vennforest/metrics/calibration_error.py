"""Calibration errors in bins and smoothed, and intervals for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import ceil
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import dct, idct
from scipy.optimize import brentq

from vennforest._messages import not_one_of
from vennforest._validation import FloatArray
from vennforest.metrics._inputs import (
    Binner,
    Bins,
    ClassEstimates,
    EventEstimates,
    Strategy,
    cells,
    check_estimates,
    check_level,
)

GRIDS = tuple(2**power for power in range(12, 21, 2))
POINTS_A_BANDWIDTH = 128


def smooth_error(outcome: FloatArray, p: FloatArray, weight: FloatArray) -> float:
    """Return the smooth expected calibration error, in [0, 1].

    Of outcomes (n,) in {0.0, 1.0}, estimates (n,) in [0, 1] and weights (n,) not below zero.

    Notes
    -----
    smECE_σ = ∫ |Σ w_i (y_i − p_i) K_σ(t, p_i) / Σ w_i| dt over [0, 1], with K_σ the Gaussian kernel
    of width σ reflected at 0 and 1; it does not increase with σ, and smECE is the σ with
    smECE_σ = σ (Błasiok & Nakkiran 2023, arXiv:2309.12236).

    The reflected Gaussian kernel is the heat kernel of [0, 1] with insulated ends, so smoothing
    multiplies the k-th cosine coefficient by exp(−(π k σ)² / 2). Residuals are shared out between
    the two next points of a grid that is refined until a bandwidth spans 128 of its steps: a
    relative error below 2e-5 from σ = 3e-5 upwards, below that an absolute one of 3e-7.
    """
    residual = weight * (outcome - p) / weight.sum()
    bandwidth = 0.0
    if not residual.any():
        return bandwidth
    for size in GRIDS:
        spectrum = _spectrum(p, residual, size)
        bandwidth = _fixed_point(spectrum, bandwidth, 1e-2)
        if bandwidth * size >= POINTS_A_BANDWIDTH:
            break
    return _fixed_point(spectrum, bandwidth, 1e-9)


def _spectrum(p: FloatArray, residual: FloatArray, size: int) -> FloatArray:
    """Return cosine coefficients (size + 1,) of the density of the residuals (n,) at p (n,)."""
    place = p * size
    left = np.minimum(place.astype(np.intp), size - 1)
    part = place - left
    mass = np.bincount(left, weights=residual * (1 - part), minlength=size + 1)
    mass += np.bincount(left + 1, weights=residual * part, minlength=size + 1)
    mass[[0, -1]] *= 2  # an end of the interval meets its own mirror image
    spectrum: FloatArray = dct(mass * size, type=1)
    return spectrum


def _fixed_point(spectrum: FloatArray, guess: float, precision: float) -> float:
    """Return the bandwidth that equals the error smoothed with it, from a guess (0: none)."""
    frequency = (np.pi * np.arange(len(spectrum))) ** 2 / 2

    def excess(bandwidth: float) -> float:
        smoothed = np.abs(idct(spectrum * np.exp(-frequency * bandwidth**2), type=1))
        mean = (smoothed.sum() - (smoothed[0] + smoothed[-1]) / 2) / (len(spectrum) - 1)
        return float(mean) - bandwidth

    low, high = guess * 0.97, guess * 1.03
    if not (guess and excess(low) > 0 > excess(high)):
        unsmoothed = excess(0.0)
        if unsmoothed <= 1e-15:
            return 0.0
        # Smoothing only lowers the error: the fixed point lies at or below the unsmoothed one.
        low, high = 0.0, min(1.0, unsmoothed * (1 + 1e-9))
        if excess(high) >= 0:
            return high
    return float(brentq(excess, low, high, xtol=max(1e-12, precision * high / 4), rtol=precision))


Kind = Literal[
    "expected",
    "maximum",
    "root-mean-square",
    "confidence",
    "classwise",
    "top-label",
    "smooth",
]
"""How the gaps between estimates and observed shares become one number."""

Statistic = Callable[[FloatArray], float]

MAX_REPEATED = 10_000_000
"""Up to this sum, whole weights are written out as repeated observations for resampling."""


class ErrorInterval(NamedTuple):
    """A calibration error and the ends of its bootstrap interval, all in [0, 1]."""

    estimate: float
    low: float
    high: float


def calibration_error(
    y: ArrayLike,
    p: ArrayLike,
    *,
    kind: Kind = "expected",
    bins: Bins = 15,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return how far estimated probabilities lie from observed shares.

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``.
    kind : str
        With r_k the mean estimate, φ_k the observed share and n_k the count of bin k:

        - ``"expected"`` (ECE): Σ n_k |r_k − φ_k| / N;
        - ``"maximum"``: max |r_k − φ_k|;
        - ``"root-mean-square"``: √(Σ n_k (r_k − φ_k)² / N);
        - ``"confidence"``: ECE of the confidence in the predicted label (Guo et al. 2017);
        - ``"top-label"``: the same within the objects of each predicted label, averaged by their
          number (Gupta & Ramdas 2022);
        - ``"classwise"``: mean over the classes of the ECE of each against the rest (Kull et al.
          2019);
        - ``"smooth"``: smooth ECE, which has no bins (Błasiok & Nakkiran 2023).

        The first three and ``"smooth"`` look at the positive class; with more than two classes and
        no ``pos_label``, at the confidence in the predicted label.
    bins : int, array-like of edges, or "distinct"
        As in ``brier_decomposition``; of no account for ``"smooth"``.
    strategy : {"uniform", "quantile"}
        Bins of equal width, or of equal count (the adaptive error).

    Returns
    -------
    float
        In [0, 1]; 0 is best.

    Notes
    -----
    A binned error is biased upwards: of perfect estimates, too, the shares in finite bins differ
    from the estimates, the more so the more bins. Compare numbers with the same bins and n only.

    Examples
    --------
    >>> calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75])
    0.25
    """
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    return _statistic(estimates, kind, bins, strategy)(estimates.weight)


def calibration_error_interval(
    y: ArrayLike,
    p: ArrayLike,
    *,
    kind: Kind = "expected",
    bins: Bins = 15,
    strategy: Strategy = "uniform",
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    random_state: int | np.random.Generator | None = None,
) -> ErrorInterval:
    """Return a calibration error with a bootstrap confidence interval.

    Parameters
    ----------
    y, p, kind, bins, strategy, sample_weight, classes, pos_label
        As in ``calibration_error``. Whole weights count as repeated observations; otherwise as
        many are drawn as the weights sum to (rounded, at least 1), so don't let them sum to 1.
    confidence_level : float
        In (0, 1).
    n_resamples : int
        How many bootstrap samples are drawn; for the lower end up to as many calibrated ones, but
        no more than 10 in each tail (400 for 95%).
    random_state : int, Generator or None
        The seed of the draws.

    Returns
    -------
    ErrorInterval
        ``(estimate, low, high)`` in [0, 1].

    Notes
    -----
    With T the error, q the quantiles of the resampled errors and b their mean: [2 T − q₁₋ₐ,
    T + b − qₐ], cut to [0, 1]. The errors of samples are biased upwards and those of resamples
    once more, so plain quantiles may miss the truth altogether. The lower end takes the
    resamples' bias off twice, as the basic bootstrap does, the upper end once, to be on the safe
    side; and the lower end is 0 where labels drawn with the estimates as their probabilities give
    an error as large as T in a share of a or more (the data do not contradict calibration).

    In simulations (``"expected"`` over 10 bins, true errors of 0, 0.024, 0.066 and 0.167, samples
    of 200, 500 and 2,000) 95% intervals covered the true error in 91 to 100% of 200 draws.
    """
    check_level(confidence_level, "confidence_level")
    if n_resamples < 1:
        raise ValueError(f"n_resamples must be at least 1, got {n_resamples}")
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    estimates = _repeated(estimates)
    statistic = _statistic(estimates, kind, bins, strategy)
    estimate = statistic(estimates.weight)
    rng = np.random.default_rng(random_state)
    drawn = [statistic(counts) for counts in _bootstrap(estimates.weight, n_resamples, rng)]
    tail = (1 - confidence_level) / 2
    least, most = np.quantile(drawn, [tail, 1 - tail])
    low = max(0.0, float(2 * estimate - most))
    high = min(1.0, float(estimate + np.mean(drawn) - least))
    if low > 0:
        n_draws = min(n_resamples, ceil(10 / tail))
        as_large = 0
        for fair in _calibrated(estimates, n_draws, rng):
            as_large += _statistic(fair, kind, bins, strategy)(fair.weight) >= estimate
            if as_large >= tail * n_draws:
                low = 0.0
                break
    return ErrorInterval(estimate, min(low, estimate), max(high, estimate))


def _repeated(estimates: ClassEstimates) -> ClassEstimates:
    """Return every observation as often as its weight says, where that is a reasonable number."""
    weight = estimates.weight
    if (weight != np.rint(weight)).any() or weight.sum() > MAX_REPEATED:
        return estimates
    rows = np.repeat(np.arange(len(weight)), weight.astype(np.intp))
    return estimates._replace(
        codes=estimates.codes[rows], p=estimates.p[rows], weight=np.ones(len(rows))
    )


def _bootstrap(
    weight: FloatArray, n_resamples: int, rng: np.random.Generator
) -> Iterator[FloatArray]:
    """Yield how often each observation (n,) is drawn, for each resample."""
    n = len(weight)
    if (weight == 1).all():
        for _ in range(n_resamples):
            yield np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)
        return
    size = max(1, round(float(weight.sum())))
    share = weight / weight.sum()
    for _ in range(n_resamples):
        yield rng.multinomial(size, share).astype(np.float64)


def _calibrated(
    estimates: ClassEstimates, n_resamples: int, rng: np.random.Generator
) -> Iterator[ClassEstimates]:
    """Yield the same estimates with labels drawn from them."""
    reached = np.cumsum(estimates.p, axis=1)
    for _ in range(n_resamples):
        place = rng.random((len(reached), 1)) * reached[:, -1:]
        yield estimates._replace(codes=(reached <= place).sum(axis=1))


def _statistic(estimates: ClassEstimates, kind: Kind, bins: Bins, strategy: Strategy) -> Statistic:
    """Return the error as a function of the observations' weights (n,)."""
    if kind == "smooth":
        main = estimates.main()
        return lambda weight: smooth_error(main.outcome, main.p, weight)
    if kind == "confidence":
        return _binned(estimates.of_predicted(), bins, strategy, _mean_gap)
    if kind == "top-label":
        return _top_label(estimates, bins, strategy)
    if kind == "classwise":
        each = [_binned(one, bins, strategy, _mean_gap) for one in estimates.one_vs_rest()]
        return lambda weight: float(np.mean([one(weight) for one in each]))
    if kind == "expected":
        return _binned(estimates.main(), bins, strategy, _mean_gap)
    if kind == "maximum":
        return _binned(estimates.main(), bins, strategy, lambda share, gap: float(gap.max()))
    if kind == "root-mean-square":
        return _binned(
            estimates.main(), bins, strategy, lambda share, gap: float(np.sqrt(share @ gap**2))
        )
    raise not_one_of("kind", get_args(Kind), kind)


def _mean_gap(share: FloatArray, gap: FloatArray) -> float:
    return float(share @ gap)


def _binned(
    problem: EventEstimates,
    bins: Bins,
    strategy: Strategy,
    summary: Callable[[FloatArray, FloatArray], float],
) -> Statistic:
    """Return ``summary(shares, gaps)`` over the bins, as a function of the weights."""
    binner = Binner(problem.p, bins, strategy)

    def statistic(weight: FloatArray) -> float:
        n_k, r_k, phi_k = cells(binner(weight), problem, weight)
        return summary(n_k / n_k.sum(), np.abs(r_k - phi_k))

    return statistic


def _top_label(estimates: ClassEstimates, bins: Bins, strategy: Strategy) -> Statistic:
    predicted = estimates.predicted()
    problem = estimates.of_predicted()
    groups = [predicted == label for label in np.unique(predicted)]
    each = [
        _binned(EventEstimates(*(part[rows] for part in problem)), bins, strategy, _mean_gap)
        for rows in groups
    ]

    def statistic(weight: FloatArray) -> float:
        parts = [(weight[rows], one) for rows, one in zip(groups, each, strict=True)]
        total = sum(w.sum() * one(w) for w, one in parts if w.any())
        return float(total / weight.sum())

    return statistic


def confidence_minus_accuracy(
    y: ArrayLike,
    p: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Return the mean confidence in the predicted label minus the accuracy.

    Above 0 the estimates are too optimistic, below 0 too pessimistic (Johansson et al. 2018,
    Table 1).

    Parameters
    ----------
    y, p, sample_weight, classes, pos_label
        As in ``brier_decomposition``.

    Returns
    -------
    float
        In [-1, 1].

    Examples
    --------
    >>> round(confidence_minus_accuracy([0, 0, 1, 1], [0.1, 0.6, 0.8, 0.9]), 3)
    0.05
    """
    problem = check_estimates(y, p, sample_weight, classes, pos_label).of_predicted()
    return float(np.average(problem.p - problem.outcome, weights=problem.weight))
