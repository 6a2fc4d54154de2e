"""Confidence intervals for the frequency of a class at a score, which rises with the score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv, betaincinv
from sklearn.utils.validation import check_consistent_length

from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_option,
    check_scores,
    check_weights,
    columns,
    encode_labels,
)
from vennforest.calibrators.likelihood_ratio import IntervalTable, design_effect, interval_table

Method = Literal["likelihood-ratio", "exact"]
"""How an interval is made."""

SHORTEST = 4
"""Examples of the shortest stretch: fewer bound nothing at the usual levels."""

OVERLAP = 4
"""Stretches of the simultaneous band begin so many times in each one's length."""

ROUNDING = 0.02
"""Counts are rounded outwards by so many times the root of the length, to save evaluations."""


@dataclass(frozen=True, eq=False)
class ConfidenceIntervals:
    """Confidence intervals for the share of every class among objects with the given scores."""

    lower: FloatArray
    """Lower ends of shape (n, k), in [0, 1]."""
    upper: FloatArray
    """Upper ends of shape (n, k), in [0, 1]."""
    classes: NDArray[Any]
    """The label of each column, of shape (k,)."""
    level: float
    """The probability, in (0, 1), with which each interval contains the share."""
    widened: NDArray[np.bool_] | None = None
    """Whether each of n rows was widened to contain the probability; None: not looked at."""

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def width(self) -> FloatArray:
        """Upper minus lower, shape (n, k), in [0, 1]."""
        return self.upper - self.lower

    def widen(self, p: FloatArray) -> ConfidenceIntervals:
        """Return intervals that contain the probabilities (n, k) too."""
        outside = np.asarray(((p < self.lower) | (p > self.upper)).any(axis=1))
        known = outside if self.widened is None else outside | self.widened
        return replace(
            self,
            lower=np.minimum(self.lower, p),
            upper=np.maximum(self.upper, p),
            widened=known,
        )


@dataclass(frozen=True, eq=False)
class ScoreConfidence:
    """Exact intervals for the curve of a probability over scores, from examples of two classes.

    Let f(s) be the share of the positive class among objects with score s, and assume that f does
    not decrease. Given the scores, labels are independent with P(y_i = 1) = f(s_i). The positives
    S of any stretch of m consecutive examples from score a to score b lie in stochastic order
    between Binomial(m, f(a)) and Binomial(m, f(b)). So the exact upper binomial bound (Clopper &
    Pearson 1934) of S, at level 1 - alpha, is at least f(a) with probability 1 - alpha or more,
    and with it f(s) for every s <= a; the lower bound of S likewise is at most f(s) for s >= b.
    Which stretches are looked at follows from the scores alone, so alpha may be divided among them
    and the best taken (Yang & Barber 2019; Dimitriadis, Duembgen, Henzi, Puke & Ziegel 2023).
    Stretches are of 4, 8, 16, ... examples, or the first number from there on at which a score
    ends, since examples of equal score have no order; hence n log n.

    Notes
    -----
    *Pointwise* intervals look at the stretches that begin with the first calibration score from s
    on, and at those that end with the last one up to s: one of each length. With D lengths each
    has the error (1 - level) / (2 D), and the interval of any one score s, chosen without a look at
    the labels, contains f(s) with the level's probability or more, whatever n and f are.

    *The simultaneous band* contains the whole curve. Each length has the same share of the error,
    divided among its stretches, which begin four times in each length.

    Where the two ends cross, the examples refute at the level that f does not decrease; there the
    interval reaches from one to the other.
    """

    x: FloatArray  # (m,) distinct calibration scores, increasing
    total: IntArray  # (m + 1,) cumulative numbers of examples, from 0
    positive: IntArray  # (m + 1,) and of positive ones

    @classmethod
    def from_counts(cls, x: FloatArray, total: ArrayLike, positive: ArrayLike) -> Self:
        """Cumulate whole numbers of examples, and of positive ones, at increasing scores (m,)."""
        sums = []
        for given in (total, positive):
            counts = np.asarray(given, np.float64)
            if (counts != np.rint(counts)).any():
                raise ValueError(
                    "counts must be integers for confidence intervals, got "
                    f"{counts[counts != np.rint(counts)][0]}: weights are not independent examples"
                )
            sums.append(np.append(0, np.cumsum(counts)).astype(np.intp))
        return cls(x, *sums)

    def pointwise(self, scores: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return for scores (n,) the ends of intervals that contain f at each with the level."""
        lengths = self._lengths()
        error = check_level(level) / max(1, 2 * len(lengths))
        # A stretch that begins at number i bounds scores up to x[i], one that ends before number i
        # those from x[i - 1] on.
        begin, to_begin = np.unique(np.searchsorted(self.x, scores, "left"), return_inverse=True)
        end, to_end = np.unique(np.searchsorted(self.x, scores, "right"), return_inverse=True)
        lower, upper = np.zeros(len(self.x) + 1), np.ones(len(self.x) + 1)
        for length in lengths:
            starts, ends = self._stretches(begin, length)
            upper[starts] = np.minimum(upper[starts], self._bound(starts, ends, error, True))
            starts, ends = self._stretches_back(end, length)
            lower[ends] = np.maximum(lower[ends], self._bound(starts, ends, error, False))
        low, up = lower[end][to_end], upper[begin][to_begin]
        return np.minimum(low, up), np.maximum(low, up)

    def simultaneous(
        self, scores: FloatArray, level: float = 0.95
    ) -> tuple[FloatArray, FloatArray]:
        """Return for scores (n,) the ends of the band that contains f everywhere with the level.

        Both ends do not decrease in the score.
        """
        lengths = self._lengths()
        error = check_level(level) / max(1, 2 * len(lengths))
        m = len(self.x)
        lower, upper = np.zeros(m + 1), np.ones(m + 1)
        for length in lengths:
            step = max(1, length // OVERLAP)
            places = np.arange(0, self.total[-1], step)
            begin = np.unique(np.searchsorted(self.total, places))
            starts, ends = self._stretches(begin, length)
            each = error / max(1, len(starts))
            np.minimum.at(upper, starts, self._bound(starts, ends, each, True))
            np.maximum.at(lower, ends, self._bound(starts, ends, each, False))
        upper = np.minimum.accumulate(upper[::-1])[::-1]
        lower = np.maximum.accumulate(lower)
        low = lower[np.searchsorted(self.x, scores, "right")]
        up = upper[np.searchsorted(self.x, scores, "left")]
        return np.minimum(low, up), np.maximum(low, up)

    def _lengths(self) -> list[int]:
        n = int(self.total[-1])
        return [SHORTEST << d for d in range(max(0, (n // SHORTEST).bit_length()))]

    def _stretches(self, begin: IntArray, length: int) -> tuple[IntArray, IntArray]:
        """Return starts and ends of the stretches of this length or a little more, where whole."""
        ends = np.searchsorted(self.total, self.total[begin] + length)
        whole = ends < len(self.total)
        return begin[whole], ends[whole].astype(np.intp)

    def _stretches_back(self, end: IntArray, length: int) -> tuple[IntArray, IntArray]:
        starts = np.searchsorted(self.total, self.total[end] - length, "right") - 1
        whole = starts >= 0
        return starts[whole].astype(np.intp), end[whole]

    def _bound(self, starts: IntArray, ends: IntArray, error: float, upper: bool) -> FloatArray:
        """Return the exact binomial bound of each stretch, with this probability of an error."""
        m = self.total[ends] - self.total[starts]
        s = self.positive[ends] - self.positive[starts]
        if not len(m):
            return np.empty(0)
        step = max(1, int(ROUNDING * np.sqrt(m.min())))
        s = np.minimum(-(-s // step) * step, m) if upper else s // step * step
        # as many evaluations as there are different pairs of s and m
        pairs, back = np.unique(s * (m.max() + 1) + m, return_inverse=True)
        s, m = pairs // (m.max() + 1), pairs % (m.max() + 1)
        inner = s < m if upper else s > 0
        bound = np.ones(len(s)) if upper else np.zeros(len(s))
        s, m = s[inner].astype(np.float64), m[inner].astype(np.float64)
        bound[inner] = (
            betainccinv(s + 1, m - s, error) if upper else betaincinv(s, m - s + 1, error)
        )
        return bound[back]


class ClassExamples(NamedTuple):
    """Counted examples of one class and the rest, by score."""

    x: FloatArray
    """(m,) scores, increasing."""
    total: FloatArray
    """(m,) weight of the examples at each."""
    positive: FloatArray
    """(m,) weight of those of the class."""

    @classmethod
    def of(
        cls,
        scores: FloatArray,
        positive: NDArray[np.bool_],
        weight: FloatArray | None = None,
        groups: IntArray | None = None,
    ) -> Self:
        """Count examples (n,), as so many fewer as those of one group depend on each other."""
        x, number = np.unique(scores, return_inverse=True)
        w, m = np.ones(len(scores)) if weight is None else weight, len(x)
        effect = 1.0 if groups is None else design_effect(scores, positive, weight, groups)
        # Of no examples at all bincount returns integers.
        total = np.bincount(number, w, m).astype(np.float64)
        share = np.bincount(number, w * positive, m).astype(np.float64)
        return cls(x, total / effect, share / effect)


def confidence_intervals(
    scores: ArrayLike,
    y: ArrayLike,
    new_scores: ArrayLike,
    *,
    level: float = 0.95,
    method: Method = "likelihood-ratio",
    classes: ArrayLike | None = None,
    simultaneous: bool = False,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> ConfidenceIntervals:
    """Return confidence intervals for the share of every class among objects with new scores.

    They assume independent examples, and that the share of a class does not decrease with its
    score. Venn–Abers bounds are something else: how far one more label would move the estimate.
    More than two classes: one against the rest, each class at the level.

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, k)
        Scores of calibration examples that the model was not trained on: of the second of two
        classes, or a column per class in sorted order of the labels.
    y : array-like of shape (n,)
        Their labels.
    new_scores : array-like of shape (m,) or (m, k)
        Where intervals are wanted.
    level : float, default=0.95
        Probability, in (0, 1), with which an interval contains the share.
    method : {"likelihood-ratio", "exact"}, default="likelihood-ratio"
        ``"likelihood-ratio"``: see `LikelihoodRatio`; its coverage is that of the limit of many
        examples, corrected by simulation for few of them (measured in ``docs/measured.md``).
        ``"exact"``: never less than the level, for any number of examples, and about twice as
        wide: see `ScoreConfidence`.
    classes : array-like of shape (k,), optional
        Every class, when some may be missing from ``y``.
    simultaneous : bool, default=False
        False: each interval for itself. True: all together, wider, with ``method="exact"`` only.
    sample_weight : array-like of shape (n,), optional
        A weight of 2 is the observation twice. Not with ``method="exact"``.
    groups : array-like of shape (n,), optional
        Examples of one group are not independent: the examples then count as many fewer as the
        sums of residuals over groups vary more than those of independent ones (Rao & Scott 1981).
        Not with ``method="exact"``.

    Returns
    -------
    ConfidenceIntervals
        Ends of shape (m, k).

    Raises
    ------
    ValueError
        If scores are not finite, shapes do not fit, there are fewer than two classes, the level
        does not lie between 0 and 1, or the method does not take what is given.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.linspace(0, 1, 200)
    >>> y = scores + np.tile([0.3, -0.3], 100) > 0.5
    >>> intervals = confidence_intervals(scores, y, [0.1, 0.9])
    >>> intervals.lower[:, 1].round(2), intervals.upper[:, 1].round(2)
    (array([0.  , 0.86]), array([0.14, 1.  ]))
    """
    score, new = check_scores(scores), check_scores(new_scores, "new_scores")
    check_consistent_length(score, y)
    codes, labels = encode_labels(y, classes)
    k = len(labels)
    if k < 2:
        raise ValueError(
            f"y must contain at least two classes, got one class: {labels.tolist()[0]!r}"
        )
    weight = check_weights(sample_weight, len(score))
    if groups is not None:
        check_consistent_length(score, groups)
        groups = np.unique(np.asarray(groups), return_inverse=True)[1]
    # A column of the second of two classes, or one a class.
    score, new = columns(score, k), columns(new, k, "new_scores")
    score, new = (one[:, None] if one.ndim == 1 else one for one in (score, new))
    if weight is not None:
        kept = weight > 0
        codes, weight = codes[kept], weight[kept]
        score = score[kept]
        groups = None if groups is None else groups[kept]
    weighted = weight is not None and bool((weight != 1).any())
    if method == "exact" and (weighted or groups is not None):
        raise InputError(
            "sample_weight and groups must be None with method='exact', which counts independent "
            "examples: use method='likelihood-ratio'"
        )
    per_class = [
        ClassExamples.of(score[:, j], codes == (j if k > 2 else 1), weight, groups)
        for j in range(score.shape[1])
    ]
    return intervals_of(per_class, new, labels, level, method, simultaneous)


def intervals_of(
    per_class: Sequence[ClassExamples],
    new: FloatArray,
    labels: NDArray[Any],
    level: float,
    method: Method = "likelihood-ratio",
    simultaneous: bool = False,
) -> ConfidenceIntervals:
    """Return the intervals at new scores (m, 1) of the second of two classes, or (m, k)."""
    check_level(level)
    check_option(method, Method, "method")
    if simultaneous and method != "exact":
        raise InputError(
            "simultaneous must be False with method='likelihood-ratio', which knows single scores "
            "alone: use method='exact'"
        )
    ends = []
    for j, one in enumerate(per_class):
        column = np.ascontiguousarray(new[:, j])
        if method == "exact":
            exact = ScoreConfidence.from_counts(*one)
            ends.append((exact.simultaneous if simultaneous else exact.pointwise)(column, level))
        else:
            ends.append(interval_table(*one, float(level)).read(column))
    if len(labels) == 2:
        ((low, up),) = ends
        ends = [(1 - up, 1 - low), (low, up)]
    lower, upper = (np.column_stack([end[side] for end in ends]) for side in (0, 1))
    return ConfidenceIntervals(lower, upper, labels, float(level))


def tables_of(per_class: Sequence[ClassExamples], level: float) -> list[IntervalTable]:
    """Return the likelihood-ratio intervals as tables, one a class or for the second of two."""
    return [interval_table(*one, float(level)) for one in per_class]


def check_level(level: float) -> float:
    """Return the probability of an error, 1 minus a level in (0, 1)."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0 < float(level) < 1:
        raise InputError(f"level must lie between 0 and 1, got {level!r}")
    return 1 - float(level)
