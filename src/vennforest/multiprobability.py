"""Lower and upper probabilities of every class, and their merging into one probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._jit import kernel
from vennforest._messages import needed, shown
from vennforest._shown import columns_of
from vennforest._validation import FloatArray, InputError, check_option

if TYPE_CHECKING:
    import pandas as pd

Merge = Literal["log", "brier", "midpoint"]
"""Rules that merge a lower and an upper probability into one."""

SMALLEST_PROBABILITY = 1e-100
"""Value that replaces zeros, so that scaling can raise them to their lower bound."""


@dataclass(frozen=True, eq=False)
class BoundsOfClasses:
    """What lower and upper probabilities and confidence intervals of n objects have in common."""

    lower: FloatArray
    upper: FloatArray
    classes: NDArray[Any]
    widened: NDArray[np.bool_] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, rows: Any) -> Self:
        """Return the selected rows; an integer selects a single one."""
        if isinstance(rows, int | np.integer):
            rows = [rows]
        widened = None if self.widened is None else self.widened[rows]
        return replace(self, lower=self.lower[rows], upper=self.upper[rows], widened=widened)

    @property
    def width(self) -> FloatArray:
        """Upper minus lower, shape (n, k), in [0, 1]."""
        return self.upper - self.lower

    def to_frame(self, p: ArrayLike | None = None, index: Any = None) -> pd.DataFrame:
        """Return a pandas data frame with the columns of ``vennforest predict``.

        Those are ``lower(c)`` and ``upper(c)`` of bounds, such as ``low95(c)`` and ``high95(c)`` of
        intervals, for each class c, after ``p(c)`` if the probabilities ``p`` (n, k) are given.
        ``index`` (n,) labels the rows.

        Raises
        ------
        ValueError
            If ``p`` has another shape than the bounds.
        ImportError
            If pandas is not installed.
        """
        pandas = needed("pandas", "data frames")
        level: float | None = getattr(self, "level", None)
        tables = [self.lower, self.upper]
        if p is not None:
            tables.insert(0, np.asarray(p))
            if tables[0].shape != self.lower.shape:
                raise ValueError(f"p must have shape {self.lower.shape}, got {tables[0].shape}")
        kinds = [*(["p"] if p is not None else []), "bounds" if level is None else "confidence"]
        names = [n for c in self.classes.tolist() for n in columns_of(c, kinds, level or 0.95)]
        cells = np.stack(tables, axis=2).reshape(len(self), len(names))
        frame: pd.DataFrame = pandas.DataFrame(cells, index=index, columns=names)
        return frame

    def widen(self, p: FloatArray) -> Self:
        """Return bounds or intervals widened where necessary to contain probabilities p (n, k).

        Wider bounds are still unbiased on average: the share of the class lies between the mean of
        the lower bounds and that of the upper ones. But they are not those of a Venn predictor.
        """
        widened = np.asarray(((p < self.lower) | (p > self.upper)).any(axis=1))
        if self.widened is not None:
            widened |= self.widened
        lower, upper = np.minimum(self.lower, p), np.maximum(self.upper, p)
        return replace(self, lower=lower, upper=upper, widened=widened)


@dataclass(frozen=True, eq=False)
class Multiprobability(BoundsOfClasses):
    """Lower and upper probabilities of every class for n objects.

    Parameters
    ----------
    lower, upper : ndarray of shape (n, k)
        Bounds of each class's probability, in [0, 1] and with ``lower <= upper``. For two classes
        ``lower[:, 1]`` is p0 and ``upper[:, 1]`` is p1 of Vovk & Petej (2014).
    classes : ndarray of shape (k,)
        The label of each column.
    widened : ndarray of shape (n,), bool, optional
        Where bounds were widened to contain the model's probability; None if nowhere.
    distributions : bool
        Whether the bounds stem from k distributions, one for each possible label y: ``p_y = lower +
        (upper_y - lower_y) e_y``, with the unit vector e_y, as in a Venn predictor. Otherwise they
        are separate intervals, one for each class.

    Examples
    --------
    >>> import numpy as np
    >>> labels = np.array(["no", "yes"])
    >>> m = Multiprobability(np.array([[0.1, 0.7]]), np.array([[0.3, 0.9]]), labels)
    >>> m.labels()
    array(['yes'], dtype='<U3')
    >>> m.merge("log").round(3)
    array([[0.25, 0.75]])
    >>> m.to_frame()
       lower(no)  upper(no)  lower(yes)  upper(yes)
    0        0.1        0.3         0.7         0.9
    """

    distributions: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        """Raise an error if bounds and classes do not fit together."""
        for name in ("lower", "upper", "classes"):
            array = getattr(self, name)
            if not isinstance(array, np.ndarray) or (name != "classes" and array.dtype.kind != "f"):
                kind = "labels" if name == "classes" else "floats"
                raise InputError(f"{name} must be a numpy array of {kind}, got {shown(array)}")
        if self.lower.ndim != 2 or self.lower.shape != self.upper.shape:
            raise ValueError(
                "lower and upper must have one shape (n, k), "
                f"got {self.lower.shape} and {self.upper.shape}"
            )
        if self.lower.shape[1] != len(self.classes):
            raise ValueError(
                f"classes must name the {self.lower.shape[1]} columns, got {len(self.classes)}"
            )
        low, high, rounding = self.lower, self.upper, 1e-9
        is_bound = (low >= -rounding) & (low <= high + rounding) & (high <= 1 + rounding)
        if is_bound.all():
            return
        is_bound |= np.isnan(low) & np.isnan(high)  # rows without a score
        if not is_bound.all():
            row = int((~is_bound.all(axis=1)).argmax())
            raise ValueError(
                "lower and upper must lie in [0, 1], lower at most upper, got "
                f"{low[row].tolist()[:5]} and {high[row].tolist()[:5]} in row {row}"
            )

    def widen(self, p: FloatArray) -> Self:
        """Return bounds widened to contain p (n, k), which are no longer of k distributions."""
        return replace(super().widen(p), distributions=False)

    @property
    def p0(self) -> FloatArray:
        """Lower probability of the second of two classes, shape (n,)."""
        return self._second(self.lower)

    @property
    def p1(self) -> FloatArray:
        """Upper probability of the second of two classes, shape (n,)."""
        return self._second(self.upper)

    def _second(self, bounds: FloatArray) -> FloatArray:
        if len(self.classes) != 2:
            raise ValueError(
                f"p0 and p1 must be of two classes, got {len(self.classes)}: use lower and upper"
            )
        return bounds[:, 1]

    def labels(self) -> NDArray[Any]:
        """Return the label with the largest lower bound, shape (n,); the first one of a tie.

        Johansson et al. (2018), eq. 5.
        """
        return np.asarray(self.classes[self.lower.argmax(axis=1)])

    def of_label(self) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper probability (n,) of the label with the largest lower bound.

        Johansson et al. (2018), eq. 6. The label may differ from the most probable one after
        `merge`.
        """
        rows, best = np.arange(len(self)), self.lower.argmax(axis=1)
        return self.lower[rows, best], self.upper[rows, best]

    def merge(self, how: Merge = "log") -> FloatArray:
        """Return one probability per class, shape (n, k), within the bounds; rows sum to 1.

        Parameters
        ----------
        how : {"log", "brier", "midpoint"}
            ``"log"`` is ``u / (1 - l + u)``, minimax for log loss (Vovk & Petej 2014, eq. 10);
            ``"brier"`` is ``u + l**2 / 2 - u**2 / 2``, minimax for square loss (eq. 11);
            ``"midpoint"`` is ``(l + u) / 2`` (Johansson et al. 2018, section 4).

        Raises
        ------
        ValueError
            If ``how`` is none of these.

        Notes
        -----
        For two classes the values of every formula sum to 1. For more, they are multiplied by
        the factor for which a row sums to 1 after it is clipped to the bounds.
        """
        check_option(how, Merge, "merge")
        if len(self.classes) > 2:
            p = merge_formula(how, self.lower, self.upper)
            return scale_into_bounds(p, self.lower, self.upper)
        # Every formula gives 1 - p for the first class; one subtraction makes sums exact.
        p = np.empty(self.lower.shape)
        p[:, 1] = merge_formula(how, self.lower[:, 1], self.upper[:, 1])
        np.subtract(1, p[:, 1], out=p[:, 0])
        return p


class TopLabels(NamedTuple):
    """The most probable label of each of n objects: its label, and five arrays of shape (n,).

    ``p`` is its probability, ``lower`` and ``upper`` are its bounds, ``low`` and ``high`` the ends
    of its confidence interval.
    """

    labels: NDArray[Any]
    p: FloatArray
    lower: FloatArray
    upper: FloatArray
    low: FloatArray
    high: FloatArray


def concatenated(parts: Sequence[Multiprobability]) -> Multiprobability:
    """Return the bounds of several sets of objects, one after another."""
    arrays: dict[str, Any] = {}
    for name in ("lower", "upper", "widened"):
        of_parts = [getattr(part, name) for part in parts]
        arrays[name] = None if any(a is None for a in of_parts) else np.concatenate(of_parts)
    return replace(parts[0], **arrays)


def merge_formula(rule: Merge, low: Any, up: Any) -> Any:
    """Return the merged value, not normalised, of bounds that are arrays or formulas."""
    if rule == "log":
        return up / (1.0 - low + up)
    if rule == "brier":
        return up + (low * low - up * up) / 2.0
    return (low + up) / 2.0


def merge_folds(folds: list[Multiprobability], rule: Merge, merged: list[FloatArray]) -> FloatArray:
    """Return one probability per class, (n, k), from the bounds of every fold's predictor.

    With ``"log"`` it is ``GM(p1) / (GM(1 - p0) + GM(p1))``, GM the geometric mean over folds; with
    other rules the mean of ``merged`` over folds (Vovk, Petej & Fedorova 2015, section 4).
    """
    if rule != "log" or len(folds) == 1:
        return np.asarray(np.mean(merged, axis=0))
    with np.errstate(divide="ignore"):
        up = np.exp(np.mean([np.log(fold.upper) for fold in folds], axis=0))
        complement = np.exp(np.mean([np.log1p(-fold.lower) for fold in folds], axis=0))
    p = up / (complement + up)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def scale_into_bounds(p: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Return ``clip(c * p, lower, upper)``, where the factor c makes each row sum to 1.

    All arrays have shape (n, k), and p is not negative. If no point within a row's bounds sums to
    1, the nearer bound is returned, normalised.
    """
    out: FloatArray = np.empty(p.shape)
    scale_rows(*map(np.ascontiguousarray, (p, lower, upper)), out)
    return out


@kernel
def clipped_sum(factor: float, p: FloatArray, low: FloatArray, up: FloatArray) -> float:
    """Return the sum of ``clip(factor * p, low, up)`` over a row (k,)."""
    total = 0.0
    for j in range(len(p)):
        total += min(max(factor * p[j], low[j]), up[j])
    return total


@kernel
def scale_rows(p: FloatArray, lower: FloatArray, upper: FloatArray, out: FloatArray) -> None:
    """Write ``clip(c * p, lower, upper)`` to ``out``, with the c for which each row sums to 1.

    All arrays are (n, k). The sum of a clipped row is a non-decreasing function of c, straight
    between the c at which entries reach a bound: the two of these around 1 are found by bisection.
    """
    n, k = p.shape
    q, bends = np.empty(k), np.empty(2 * k)
    for row in range(n):
        low, up, scaled = lower[row], upper[row], out[row]
        total = 0.0
        for j in range(k):
            q[j] = max(p[row, j], SMALLEST_PROBABILITY)
            total += q[j]
        is_outside = False  # nor is a row of NaN
        for j in range(k):
            scaled[j] = q[j] / total
            is_outside |= (scaled[j] < low[j]) | (scaled[j] > up[j])
            bends[j], bends[k + j] = low[j] / q[j], up[j] / q[j]
        if not is_outside:
            continue
        bends.sort()
        first, last = 0, 2 * k - 1
        while last - first > 1:
            middle = (first + last) // 2
            if clipped_sum(bends[middle], q, low, up) < 1:
                first = middle
            else:
                last = middle
        below = clipped_sum(bends[first], q, low, up)
        rise = clipped_sum(bends[last], q, low, up) - below
        share = min(max((1 - below) / rise, 0.0), 1.0) if rise > 0 else 0.0
        factor = bends[first] + share * (bends[last] - bends[first])
        total = clipped_sum(factor, q, low, up)
        for j in range(k):
            # Clipped once more, since the division rounds.
            clipped = min(max(factor * q[j], low[j]), up[j])
            scaled[j] = min(max(clipped / total, low[j]), up[j])
