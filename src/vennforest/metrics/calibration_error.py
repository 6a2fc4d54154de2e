"""Calibration errors in bins, and overconfidence."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from vennforest._validation import check_option
from vennforest.metrics._inputs import Bins, EventEstimates, Strategy, binned, check_estimates

Kind = Literal["expected", "maximum", "root-mean-square", "confidence", "classwise"]
"""Summaries of the differences between mean estimates and observed shares of bins."""


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
    """Return the calibration error over bins of the estimates.

    Parameters
    ----------
    y, p, bins, strategy, sample_weight, classes, pos_label
        As in ``brier_decomposition``; ``"quantile"`` makes it the adaptive error.
    kind : str
        With r_k the mean estimate, φ_k the observed share and n_k the count of bin k:

        - ``"expected"`` (ECE): Σ n_k |r_k − φ_k| / N;
        - ``"maximum"``: max |r_k − φ_k|;
        - ``"root-mean-square"``: √(Σ n_k (r_k − φ_k)² / N);
        - ``"confidence"``: ECE of the confidence in the predicted label (Guo et al. 2017);
        - ``"classwise"``: mean over the classes of the ECE of each against the rest (Kull et al.
          2019).

        The first three look at the positive class; with more than two classes and no
        ``pos_label``, at the confidence in the predicted label.

    Returns
    -------
    float
        In [0, 1]; 0 is best. Biased upwards, as the reliability of ``brier_decomposition``.

    Examples
    --------
    >>> calibration_error([0, 0, 1, 1], [0.25, 0.25, 0.75, 0.75])
    0.25
    """
    check_option(kind, Kind, "kind")
    estimates = check_estimates(y, p, sample_weight, classes, pos_label)
    if kind == "classwise":
        problems = estimates.one_vs_rest()
        return float(np.mean([_error(p, "expected", bins, strategy) for p in problems]))
    problem = estimates.of_predicted() if kind == "confidence" else estimates.main()
    return _error(problem, kind, bins, strategy)


def _error(problem: EventEstimates, kind: Kind, bins: Bins, strategy: Strategy) -> float:
    """Return the error of one problem over its bins."""
    n_k, r_k, phi_k = binned(problem, bins, strategy)
    share, gap = n_k / n_k.sum(), np.abs(r_k - phi_k)
    if kind == "maximum":
        return float(gap.max())
    return float(np.sqrt(share @ gap**2) if kind == "root-mean-square" else share @ gap)


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
    """
    problem = check_estimates(y, p, sample_weight, classes, pos_label).of_predicted()
    return float(np.average(problem.p - problem.outcome, weights=problem.weight))
