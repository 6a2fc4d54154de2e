"""Grouping loss: how much cases with the same probability differ among themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri
from sklearn.ensemble import RandomForestRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.utils import check_array
from sklearn.utils.validation import check_consistent_length

from vennforest._validation import FloatArray, IntArray, check_inside
from vennforest.metrics._inputs import positive_problem

SMALLEST_LEAF = 20
"""Cases in a leaf of the trees that look for differences, and at a level of p."""

LEVELS = 15
"""Levels of p, of equally many cases, within which cases are compared, where there are enough."""

FOLDS = 5
"""Differences are found in the first folds, and measured in the next; not in the first."""

TREES = 100
"""Trees that look for differences."""

MIXTURES = 5
"""Levels of p at which halves are compared."""

NOTHING = 1e-24
"""Mean squared difference that is rounding."""


@dataclass(frozen=True, eq=False)
class GroupingLoss:
    """A lower bound of the grouping loss, with a confidence interval for the bound.

    Attributes
    ----------
    loss : float
        Estimate of the part of E[(E[y | x] - E[y | p])^2] that was found; 0 or above.
    lower, upper : float
        Ends of the interval for that part; ``lower`` above 0 means that cases with the same
        probability were shown to differ. The whole grouping loss may lie above ``upper``.
    level : float
        The interval's level.
    mixtures : ndarray of shape (m, 3)
        At up to 5 levels of p, of equally many cases: the mean p, and the observed frequency in the
        half that the trees place lower and in the other half.
    """

    loss: float
    lower: float
    upper: float
    level: float
    mixtures: FloatArray

    @property
    def spread(self) -> float:
        """Root of ``loss``: how far cases with the same probability are from it, at least."""
        return float(np.sqrt(self.loss))


def grouping_loss(
    X: ArrayLike,
    y: ArrayLike,
    p: ArrayLike,
    *,
    level: float = 0.95,
    random_state: int | None = 0,
    classes: ArrayLike | None = None,
    pos_label: Any = None,
) -> GroupingLoss:
    """Estimate how much the true probabilities of cases with the same estimate differ, at least.

    Calibration cannot see it: a model that gives every case the base rate is calibrated. Data can
    show a part of it, the differences that a forest finds.

    Parameters
    ----------
    X : array-like of shape (n, d)
        Numbers that describe the cases, which the model was not trained on; NaN is allowed.
    y, p, classes, pos_label
        As in ``brier_decomposition``.
    level : float, default=0.95
        Level of the interval, in (0, 1).
    random_state : int or None, default=0
        Who is in which fold, and the seed of the trees.

    Raises
    ------
    ValueError
        If shapes do not fit, p lies outside [0, 1], or there are fewer than 100 cases.

    Notes
    -----
    After Perez-Lebel, Le Morvan & Varoquaux (ICLR 2023). A forest of small trees, grown on X and p
    in one part of the data, learns the residuals r = y - c(p), c the isotonic calibration curve of
    that part; h is what it predicts of the other part. Both are centred within levels of p there.
    By the Cauchy-Schwarz inequality E[r h]^2 / E[h^2] is at most the grouping loss, whatever h is,
    and equal to it where h finds all differences. The root E[r h] / E[h^2]^(1/2) is asymptotically
    normal; its variance is that of its influence function, and is subtracted from its square in
    ``loss``.

    Each fold is measured with what earlier folds show, so the sum of r h is a martingale. With
    all other folds two rows would each take part in the prediction of the other, and the variance
    would be up to twice as large as that of independent terms.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 2, (4000, 1))
    >>> truth = np.where(X[:, 0] == 1, 0.45, 0.15)
    >>> y = rng.random(4000) < truth
    >>> found = grouping_loss(X, y, np.full(4000, 0.3))  # calibrated, and .15 off everywhere
    >>> round(found.spread, 2), found.lower > 0
    (0.15, True)
    """
    check_inside(level, "level")
    table = check_array(X, dtype=np.float64, ensure_all_finite="allow-nan")
    check_consistent_length(table, y)
    given = positive_problem(y, p, None, classes, pos_label)
    observed, estimate = given.outcome, given.p
    n = len(observed)
    if n < FOLDS * SMALLEST_LEAF:
        raise ValueError(
            f"y must be of {FOLDS * SMALLEST_LEAF} cases or more for {FOLDS} folds, got {n}"
        )
    levels = min(LEVELS, n // (FOLDS * SMALLEST_LEAF))
    fold = np.random.default_rng(random_state).permutation(n) % FOLDS
    ranks = np.argsort(np.argsort(estimate, kind="stable"), kind="stable")
    group = np.unique(estimate, return_inverse=True)[1]
    # Equal estimates are at one level: that of their first rank.
    first = np.full(group.max() + 1, n)
    np.minimum.at(first, group, ranks)
    bin_of = first[group] * levels // n
    residual, found = np.zeros(n), np.zeros(n)
    for number in range(1, FOLDS):
        train, test = fold < number, fold == number
        trees = RandomForestRegressor(
            TREES, min_samples_leaf=SMALLEST_LEAF, max_features=0.5, random_state=random_state
        )
        r, h = _differences(trees, table, observed, estimate, bin_of, train, test)
        residual[test], found[test] = r, h
    measured = fold > 0
    bound = _bound(residual[measured], found[measured], level)
    mixtures = _mixtures(estimate[measured], observed[measured], found[measured])
    return GroupingLoss(*bound, float(level), mixtures)


def _differences(
    trees: Any,
    X: FloatArray,
    y: FloatArray,
    p: FloatArray,
    bin_of: IntArray,
    train: Any,
    test: Any,
) -> tuple[FloatArray, FloatArray]:
    """Return residuals and found differences of one fold, both centred within levels of p."""
    curve = IsotonicRegression(out_of_bounds="clip").fit(p[train], y[train])
    residual = y - curve.predict(p)
    known = np.column_stack([X, p])
    found = trees.fit(known[train], residual[train]).predict(known[test])
    number = np.unique(bin_of[test], return_inverse=True)[1]
    size = np.bincount(number)
    centred = [
        values - (np.bincount(number, values) / size)[number] for values in (residual[test], found)
    ]
    return centred[0], centred[1]


def _mixtures(p: FloatArray, y: FloatArray, found: FloatArray) -> FloatArray:
    """Return mean p and the frequencies of both halves by found differences, level by level."""
    parts = np.array_split(np.argsort(p, kind="stable"), MIXTURES)
    halves = [np.array_split(part[np.argsort(found[part], kind="stable")], 2) for part in parts]
    return np.array(
        [
            [p[part].mean(), y[low].mean(), y[high].mean()]
            for part, (low, high) in zip(parts, halves, strict=True)
        ]
    )


def _bound(residual: FloatArray, found: FloatArray, level: float) -> tuple[float, float, float]:
    """Return the loss and the ends of its interval from residuals and differences of all cases."""
    square = float((found**2).mean())
    if square < NOTHING:
        return 0.0, 0.0, 0.0
    root = float((residual * found).mean()) / np.sqrt(square)
    # of the ratio E[r h] / E[h^2]^(1/2), by the delta method
    influence = residual * found / np.sqrt(square) - root * found**2 / (2 * square)
    error = float(influence.std(ddof=1) / np.sqrt(len(found)))
    z = float(ndtri((1 + level) / 2)) * error
    low, high = max(root - z, 0.0), max(root + z, 0.0)
    loss = float(np.clip(max(root, 0.0) ** 2 - error**2, low**2, high**2))
    return loss, float(low**2), float(high**2)
