"""Miscalibration, discrimination and uncertainty of a score, by isotonic recalibration (CORP)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression
from scipy.special import xlogy

from vennforest._validation import FloatArray
from vennforest.metrics._inputs import EventEstimates, check_estimates

Loss = Literal["brier", "log"]
"""(y − p)² of the positive class, or −ln of the probability of what happened."""


@dataclass(frozen=True)
class CorpDecomposition:
    """The CORP decomposition: ``score = miscalibration − discrimination + uncertainty``.

    Attributes
    ----------
    miscalibration : float
        MCB: how much better the recalibrated estimates score; not below 0, 0 is best.
    discrimination : float
        DSC: how much better those score than the overall share; not below 0.
    uncertainty : float
        UNC: the score of always estimating the overall share.
    score : float
        The mean loss. It and ``miscalibration`` are infinite for log loss where an event of
        estimated probability 0 happened.
    """

    miscalibration: float
    discrimination: float
    uncertainty: float
    score: float


class Recalibration(NamedTuple):
    """The isotonic fit of outcomes to estimates, at the m distinct estimates, each (m,).

    ``p`` increases strictly, ``weight`` counts observations, ``observed`` is the share of positives
    and ``fitted`` its isotonic regression.
    """

    p: FloatArray
    weight: FloatArray
    observed: FloatArray
    fitted: FloatArray


def recalibrate(problem: EventEstimates) -> Recalibration:
    """Return the isotonic regression of the outcomes on the estimates; equal ones form a point."""
    p, place = np.unique(problem.p, return_inverse=True)
    weight = np.bincount(place, weights=problem.weight).astype(np.float64)
    observed = np.bincount(place, weights=problem.weight * problem.outcome) / weight
    # Sums of weights may round the share of an event that always happened to just below 1.
    observed = np.clip(observed, 0.0, 1.0)
    fitted = np.clip(isotonic_regression(observed, weights=weight).x, 0.0, 1.0)
    return Recalibration(p, weight, observed, fitted)


def corp_decomposition(
    y: ArrayLike,
    p: ArrayLike,
    loss: Loss = "brier",
    *,
    sample_weight: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> CorpDecomposition:
    """Split a mean loss into miscalibration, discrimination and uncertainty, without bins.

    Parameters
    ----------
    y, p, sample_weight, classes
        As in ``brier_decomposition``.
    loss : {"brier", "log"}
        ``(y - p)**2`` of the positive class, or the negative natural logarithm of the probability
        of what happened.
    pos_label : label, optional
        The positive class; by default the second of two. With more than two classes and no
        ``pos_label``, every term is the sum over the classes, each against the rest, and ``score``
        is the Brier score over vectors.

    Raises
    ------
    ValueError
        As ``brier_decomposition``; or if ``loss`` is ``"log"`` for more than two classes without
        ``pos_label``: log loss is not a sum over classes, and classes recalibrated one by one do
        not form a distribution that it could score.

    Notes
    -----
    With S the mean loss, p̂ the isotonic regression of the outcomes on the estimates and ȳ the
    overall share: MCB = S(p) − S(p̂), DSC = S(ȳ) − S(p̂), UNC = S(ȳ) (Dimitriadis, Gneiting &
    Jordan 2021, doi:10.1073/pnas.2016191118). p̂ is the best increasing function of p
    in hindsight under either loss, so that MCB and DSC are never negative. It is fitted to the
    data it is judged on: of perfect estimates, too, a finite sample shows a small MCB.

    Examples
    --------
    >>> corp_decomposition([0, 0, 1, 1], [0.2, 0.2, 0.2, 0.8])
    CorpDecomposition(miscalibration=0.023..., discrimination=0.083..., uncertainty=0.25, ...)
    """
    if loss not in ("brier", "log"):
        raise ValueError(f"loss must be 'brier' or 'log', got {loss!r}")
    estimates = check_estimates(
        y, p, sample_weight=sample_weight, classes=classes, pos_label=pos_label
    )
    problems = estimates.additive()
    if loss == "log" and len(problems) > 1:
        raise ValueError(
            f"loss must be 'brier' for {len(problems)} classes, got 'log': "
            "or name one class with pos_label="
        )
    terms = [_decompose(problem, loss) for problem in problems]
    return CorpDecomposition(*(float(sum(term)) for term in zip(*terms, strict=True)))


def _decompose(problem: EventEstimates, loss: Loss) -> tuple[float, float, float, float]:
    fit = recalibrate(problem)
    share = fit.weight / fit.weight.sum()
    base = float(share @ fit.observed)
    score = _mean_loss(loss, share, fit.observed, fit.p)
    recalibrated = _mean_loss(loss, share, fit.observed, fit.fitted)
    uncertainty = _mean_loss(loss, share, fit.observed, np.full_like(fit.p, base))
    # Never below zero but by rounding.
    return (
        max(0.0, score - recalibrated),
        max(0.0, uncertainty - recalibrated),
        uncertainty,
        score,
    )


def _mean_loss(loss: Loss, share: FloatArray, observed: FloatArray, p: FloatArray) -> float:
    """Return the mean loss of estimates p (m,), each made for the given share of observations."""
    if loss == "brier":
        return float(share @ (observed * (1 - p) ** 2 + (1 - observed) * p**2))
    return -float((share * (xlogy(observed, p) + xlogy(1 - observed, 1 - p))).sum())
