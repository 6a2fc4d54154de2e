"""Venn–Abers predictors: two isotonic fits, one for each label the new object might have."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._numerics import row_blocks
from vennforest._validation import (
    FloatArray,
    IntArray,
    check_array,
    check_increasing,
    check_inside,
    check_option,
    require,
)
from vennforest.calibrators import venn_abers_kernels as kernels
from vennforest.calibrators.base import Reads
from vennforest.calibrators.bounded import BoundedCalibrator, normalised_bounds
from vennforest.calibrators.formula import FormulaFunction, Score, Term, log_logistic
from vennforest.calibrators.intervals import (
    ConfidenceIntervals,
    IntervalMethod,
    ScoreIntervals,
    intervals_at_scores,
)
from vennforest.calibrators.pool import PooledCalibration
from vennforest.counts import ScoreCounts
from vennforest.multiprobability import Multiprobability, TopLabels
from vennforest.prior import shift_bounds, shift_ends, shift_probabilities
from vennforest.scores import On

MAX_WEIGHT = 1e15  # sum of weights up to which the new object's weight of 1 is not lost beside it
# Distinct scores up to which tables have all. Of more, they have what the steps need, so many that
# are spread over all ranks, and so many at either end, where single labels decide on an interval.
MAX_TABLE_SCORES, N_SPREAD_SCORES, N_END_SCORES = 1 << 16, 1 << 14, 1 << 8
# Binary digits, after the first, of a bound that steps at every score: of its distance from 0 or 1.
N_DIGITS = 10
Int32Array = NDArray[np.int32]

VennAbersMerge = Literal["pooled", "log", "brier", "midpoint"]


class StepFunction(NamedTuple):
    """The isotonic fit of a new observation of one label as a function of its place.

    The n runs of equal ``fits`` begin at ``places``. The fit of a run is the slope of the line from
    point number a of the cumulative sums (weight, positive weight) of the calibration examples to
    point number b, moved by the new observation.
    """

    fits: FloatArray
    places: Int32Array
    a: Int32Array
    b: Int32Array


class StepTable:
    """Both isotonic fits of every possible new score, from examples counted at scores x (m,).

    p0 of a score s depends on how many calibration scores are <= s, p1 on how many are < s, so
    each is a short table of steps (the fits of Algorithm 2 of Vovk & Petej 2014).
    """

    def __init__(self, x: FloatArray, weights: FloatArray) -> None:
        self.x, self.weights = x, weights
        # Large arrays of numpy, unlike those of kernels, get large pages of memory.
        self.W, self.Y = np.empty((2, len(x) + 1))
        kernels.cumulative_points(*map(np.ascontiguousarray, weights.T), self.W, self.Y)
        following, queue, places, a, b = np.empty((5, len(self.W)), np.int32)
        fits = np.empty(len(self.W))
        kernels.suffix_hulls(self.W, self.Y, following)
        self.steps: list[StepFunction] = []
        for label in (0, 1):
            n = kernels.step_function(self.W, self.Y, following, label, queue, places, fits, a, b)
            lines = places[:n].copy(), a[:n].copy(), b[:n].copy()
            self.steps.append(StepFunction(fits[:n].copy(), *lines))

    @cached_property
    def ends(self) -> list[FloatArray]:
        """The scores between the runs of p0 and of p1, increasing."""
        return [self.x[steps.places[1:] - 1] for steps in self.steps]

    @cached_property
    def _grids(self) -> list[tuple[NDArray[np.uint32], float, float]]:
        """Cells of equal width with the first end in each, which shorten the search in the ends."""
        return [kernels.grid_of(ends) for ends in self.ends]

    def look_up(self, scores: FloatArray, out: FloatArray) -> None:
        """Write p0 and p1 of contiguous scores (n,) to ``out`` (2, n)."""
        parts = zip(self.ends, self.steps, self._grids, strict=True)
        tables = [(ends, steps.fits, *grid) for ends, steps, grid in parts]
        kernels.read_steps(scores, *tables, out)

    @cached_property
    def points_and_hulls(self) -> tuple[tuple[FloatArray, ...], tuple[Int32Array, Int32Array]]:
        """The cumulative sums, the heights and slopes of their lower hull, and hulls of blocks."""
        corners, sizes = kernels.hull_tree(self.W, self.Y)
        hull = corners[-1, : sizes[-1, 0]]
        slopes = np.diff(self.Y[hull]) / np.diff(self.W[hull])
        heights = np.interp(self.W, self.W[hull], self.Y[hull])
        return (self.W, self.Y, heights, np.repeat(slopes, np.diff(hull))), (corners, sizes)

    def starts(self) -> FloatArray:
        """Return where p0 or p1 may change, increasing."""
        return np.unique(np.concatenate([self.ends[0], np.nextafter(self.ends[1], np.inf)]))

    def condensed(self) -> StepTable:
        """Return a table with the same steps, of far fewer scores if there are many.

        Scores are put together at the largest of them between two points of the cumulative sums.
        Points between which the slope of a step is taken, and those at which a step ends, stay: a
        fit is the largest, over points at or before the score, of the smallest slopes to points
        after it, and without the other points it is the same.

        Among examples of one label alone a bound may step at every score. Between the first and the
        last of the steps with the same `N_DIGITS` scores are put together so that the bound is that
        of the last one: where all are negative, at the smallest score, so that p1 is
        too high, and where all are positive at the largest, so that p0 is too low. The other bound
        is the same.
        """
        m = len(self.x)
        if m <= MAX_TABLE_SCORES:
            return self
        is_kept, is_rounded = np.zeros((2, m + 1), bool)
        is_kept[:N_END_SCORES] = is_kept[-N_END_SCORES:] = True
        is_kept[np.searchsorted(self.W, np.linspace(0, self.W[-1], N_SPREAD_SCORES))] = True
        for label, steps in enumerate(self.steps):
            distance = steps.fits if label else 1 - steps.fits
            digits = distance.view(np.int64) >> (np.finfo(float).nmant - N_DIGITS)  # and exponent
            n_of_label = np.cumsum(self.weights[:, label] > 0, dtype=np.int32)
            passed = np.append(0, n_of_label[steps.places[1:] - 1])
            is_first = np.append(True, (np.diff(digits) != 0) | (np.diff(passed) != 0))
            stays = is_first | np.append(is_first[1:], True)
            is_kept[np.concatenate([steps.a[stays], steps.b[stays], steps.places[stays]])] = True
            is_rounded[steps.places[~stays]] = label
        if is_kept.all():
            return self
        points = np.flatnonzero(is_kept)
        is_rounded[points] = False
        last = np.where(np.add.reduceat(is_rounded, points[:-1]), points[:-1], points[1:] - 1)
        weights = np.add.reduceat(self.weights, points[:-1], axis=0)
        # Again, until nothing changes: a table that is read from a file is condensed as well.
        return StepTable(self.x[last], weights).condensed()


class VennAbers(BoundedCalibrator):
    """Inductive Venn–Abers predictor: probabilities with bounds that carry a validity guarantee.

    For a new score s, p0 is the isotonic fit to the calibration pairs plus (s, 0), read at s, and
    p1 the same with (s, 1); always p0 < p1 (Vovk & Petej 2014, section 3; Johansson et al. 2018,
    eqs. 7-9). ``fit`` computes both for every possible s, so a new score is a look-up.

    Parameters
    ----------
    merge : {"pooled", "log", "brier", "midpoint"}, default="pooled"
        How ``predict_proba`` makes one probability. ``"pooled"``: that of a `PooledCalibration` of
        the same examples; bounds are widened where needed to contain it. The others use the bounds
        alone: see `Multiprobability.merge`. ``"log"``, that of the theory, lies near the upper
        bound of a rare class: its mean is 1.37 times the rate with 30 events, 1.18 times with 90
        and 1.07 times with 360.

    Attributes
    ----------
    scores_ : list of ndarray of shape (m,)
        The distinct calibration scores, increasing: those of the second of two classes, or one
        array per class.
    weights_ : list of ndarray of shape (m, 2)
        The weight of the other classes, and of the class, at each of these scores.
    pool_ : PooledCalibration
        With ``merge="pooled"``, the map from scores to probabilities.

    Notes
    -----
    *Validity*: where calibration and new examples are exchangeable, one of p0 and p1 (that of the
    true label) is perfectly calibrated (Vovk & Petej 2014, Theorem 1). The single probability
    lies between the two and has no guarantee of its own.

    *More than two classes*: one class against the rest; probabilities and bounds are normalised.

    *Weights* count as so many observations, the new object as one. Their sum is at most 1e15.

    *More than 65,536 scores*: where neither bound changes, neighbouring scores are put together,
    with at most 1/16,384 of the weight. The bounds stay the same, save among hundreds of examples
    of one label without another, where they are up to 0.1% of themselves wider; confidence
    intervals are those of the scores put together, on average 1 to 2% narrower than those of single
    scores where this was measured. `to_json` writes these scores.

    Examples
    --------
    >>> import numpy as np
    >>> scores, y = np.array([0.1, 0.3, 0.4, 0.8, 0.9]), np.array([0, 0, 1, 0, 1])
    >>> m = VennAbers("log").fit(scores, y).predict_multiprobability([0.2, 0.85])
    >>> m.p0.round(3), m.p1.round(3)
    (array([0.   , 0.333]), array([0.5, 1. ]))
    """

    title = "Venn–Abers"
    _merges: ClassVar[Any] = VennAbersMerge
    pool_: PooledCalibration
    scores_: list[FloatArray]
    weights_: list[FloatArray]

    def __init__(self, merge: VennAbersMerge = "pooled", on: On = "auto") -> None:
        self.merge = merge
        self.on = on

    def _fit(self, counts: ScoreCounts) -> None:
        check_option(self.merge, VennAbersMerge, "merge")
        if counts.total > MAX_WEIGHT:
            raise ValueError(
                f"sample_weight must sum to at most {MAX_WEIGHT:g}, got {counts.total:g}: divide "
                "all weights by one number"
            )
        columns = counts.columns()
        self.scores_ = [column.scores for column in columns]
        self.weights_ = [column.weights for column in columns]
        if self.merge == "pooled":
            # Classes by number: labels are those of this calibrator.
            x = self._scores_of_pool(counts.scores)
            numbered = ScoreCounts(np.arange(len(counts.classes)), x, counts.weights)
            self.pool_ = PooledCalibration()._fit_checked(numbered, kind=self.on_)

    def _without_examples(self) -> Self:
        calibrator = super()._without_examples()
        calibrator.scores_ = [table.x for table in self._tables]
        calibrator.weights_ = [table.weights for table in self._tables]
        return calibrator

    def _check_state(self) -> None:
        super()._check_state()
        n, sizes = self._n_columns(), {len(self.scores_), len(self.weights_)}
        require(sizes == {n}, f"scores_ and weights_ must have {n} arrays")
        for x, weights in zip(self.scores_, self.weights_, strict=True):
            check_array(x, "scores_", (None,))
            check_increasing(x, "scores_")
            check_array(weights, "weights_", (len(x), 2), low=0, high=MAX_WEIGHT)
            require(len(x) and weights.any(axis=1).all(), "weights_ must be positive at each score")
        if self.merge == "pooled":
            is_pool = isinstance(self.pool_, PooledCalibration)
            require(is_pool and len(self.pool_.classes_) == len(self.classes_), "pool_ must be one")

    @property
    def _reads(self) -> Reads:
        """The pool is of probabilities or logits, the bounds of the order alone."""
        return "log-odds" if self.merge == "pooled" else "order"

    def _pool_term(self, scores: Term) -> Term:
        """Return what the pool takes, from what this map takes."""
        # Logits of many classes were read as the log-odds of each.
        is_log_odds = self.on_ == "logit" and len(self.classes_) > 2
        return log_logistic(scores) if is_log_odds else scores

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        if self.merge == "pooled":
            return self.pool_._predict_proba(self._scores_of_pool(scores))
        return super()._predict_proba(scores)

    def _scores_of_pool(self, scores: FloatArray) -> FloatArray:
        """Return `_pool_term` of scores (n,) or (n, k)."""
        term = self._pool_term(Score())
        return scores if isinstance(term, Score) else FormulaFunction(term)(scores)

    @cached_property
    def _tables(self) -> list[StepTable]:
        """The table of each column of scores, from which all is read unless one is left out."""
        pairs = zip(self.scores_, self.weights_, strict=True)
        return [StepTable(x, weights).condensed() for x, weights in pairs]

    @cached_property
    def _tables_of_examples(self) -> list[StepTable]:
        """The same with all scores."""
        return [
            table if len(table.x) == len(x) else StepTable(x, weights)
            for table, x, weights in zip(self._tables, self.scores_, self.weights_, strict=True)
        ]

    @cached_property
    def _examples(self) -> list[tuple[Int32Array, NDArray[np.bool_], FloatArray]]:
        """Of each column and example the number of the score, if it is of the class, the weight."""
        scores, codes, weights = self.example_scores_, self.example_codes_, self.example_weights_
        assert scores is not None and codes is not None
        weights = np.ones(len(codes)) if weights is None else weights
        columns = scores.reshape(len(scores), -1).T
        classes = [1] if len(columns) == 1 else range(len(columns))
        return [
            (np.searchsorted(x, column).astype(np.int32), codes == j, weights)
            for x, column, j in zip(self.scores_, columns, classes, strict=True)
        ]

    def _multiprobability(
        self, scores: FloatArray, left_out: IntArray | None = None
    ) -> Multiprobability:
        p = self.pool_._evaluation(self._scores_of_pool(scores)) if self.merge == "pooled" else None
        return self._bounds(scores, p, left_out)

    def _bounds(
        self, scores: FloatArray, p: FloatArray | None, left_out: IntArray | None = None
    ) -> Multiprobability:
        """Return the bounds of the isotonic fits, widened to contain pooled p (n,) or (n, k)."""
        sides = np.empty((2, len(self.classes_), len(scores)))
        if scores.ndim == 1:
            p0, p1 = ends = sides[:, 1]
            self._look_up(0, scores, left_out, ends)
            is_widened = None
            if p is not None:  # as `widen` does, in a third of the time
                is_widened = (p < p0) | (p > p1)
                np.minimum(p0, p, out=p0)
                np.maximum(p1, p, out=p1)
            np.subtract(1, sides[::-1, 1], out=sides[:, 0])
            return Multiprobability(sides[0].T, sides[1].T, self.classes_, widened=is_widened)
        for j, column in enumerate(scores.T):
            self._look_up(j, np.ascontiguousarray(column), left_out, sides[:, j])
        # Row by row, so that the sum of a row does not depend on the number of rows.
        lower, upper = normalised_bounds(*np.ascontiguousarray(sides.transpose(0, 2, 1)))
        bounds = Multiprobability(lower, upper, self.classes_)
        return bounds if p is None else bounds.widen(p)

    def _look_up(
        self, j: int, scores: FloatArray, left_out: IntArray | None, out: FloatArray
    ) -> None:
        """Write p0 and p1 of scores (n,) in column j to ``out`` (2, n)."""
        if left_out is None:
            self._tables[j].look_up(scores, out)
            return
        table = self._tables_of_examples[j]
        parts = zip(table.ends, table.steps, strict=True)
        steps = [(ends, steps.a, steps.b) for ends, steps in parts]
        tables = self._examples[j], table.x, *table.points_and_hulls, *steps
        kernels.read_left_out(scores, left_out, *tables, out)

    def predict_confidence(
        self, scores: ArrayLike, level: float = 0.95, method: IntervalMethod = "likelihood-ratio"
    ) -> ConfidenceIntervals:
        """Return confidence intervals for the frequency of every class at new scores.

        They assume independent examples, and that the frequency of a class does not decrease with
        its score. Bounds are something else: how far one more label would move the probability.

        Parameters
        ----------
        scores : array-like of shape (m,) or (m, k)
            New scores, of the kind given to ``fit``.
        level : float, default=0.95
            Probability, in (0, 1), with which an interval contains the frequency.
        method : {"likelihood-ratio", "exact"}, default="likelihood-ratio"
            ``"likelihood-ratio"``: sharp, by a limit theorem with simulated corrections.
            ``"exact"``: never below the level for any number of examples, and about twice as wide.

        Returns
        -------
        ConfidenceIntervals
            Ends of shape (m, k), in [0, 1], widened where needed to contain ``predict_proba``.

        Raises
        ------
        ValueError
            If the method is ``"exact"``, which counts examples, and weights are not integers.
        """
        new = self._check_new(scores)
        p = self._predict_proba(new)
        if self.shift_ is not None:
            p = shift_probabilities(p, self.shift_.factors)
        ends = [self._interval_ends(j, new, level, method) for j in range(len(self.classes_))]
        lower, upper = np.stack(ends, axis=2)
        return ConfidenceIntervals(lower, upper, self.classes_, float(level)).widen(p)

    def _interval_ends(
        self, j: int, scores: FloatArray, level: float, method: IntervalMethod = "likelihood-ratio"
    ) -> FloatArray:
        """Return the ends (2, m) for class j at checked scores, which may leave out p."""
        is_first = scores.ndim == 1 and j == 0  # whose ends are 1 minus those of the second
        j = j + is_first
        column, x = (j, scores[:, j]) if scores.ndim == 2 else (0, scores)
        ends = np.array(self._interval_curve(column, level, method).at(x))
        if self.shift_ is not None:
            ends = shift_ends(ends[0], ends[1], self.shift_.factors, j)
        return 1 - ends[::-1] if is_first else ends

    def predict_top_label(self, scores: ArrayLike, level: float = 0.95) -> TopLabels:
        """Return the most probable label of each new score, with its bounds and interval.

        They are those of ``predict``, ``predict_proba``, ``predict_multiprobability`` and
        ``predict_confidence`` for that label, in blocks of rows without tables of all classes.
        Intervals are computed for those classes alone that are the most probable of a row.

        Parameters
        ----------
        scores : array-like of shape (m,) or (m, k)
            New scores, of the kind given to ``fit``.
        level : float, default=0.95
            Probability, in (0, 1), with which an interval contains the frequency.

        Returns
        -------
        TopLabels
            ``labels``, ``p``, ``lower``, ``upper``, ``low`` and ``high``, each of shape (m,).
        """
        new = self._check_new(scores)
        top, n_rows = np.empty(len(new), np.intp), len(new)
        p, lower, upper, low, high = np.empty((5, n_rows))
        for block in row_blocks(n_rows, len(self.classes_)):
            if self.merge == "pooled":
                merged = self._predict_proba(new[block])
                bounds = self._bounds(new[block], merged if new.ndim == 2 else merged[:, 1])
            else:
                bounds = self._bounds(new[block], None)
                merged = bounds.merge(self.merge)
            if self.shift_ is not None:
                merged = shift_probabilities(merged, self.shift_.factors)
                bounds = shift_bounds(bounds, self.shift_.factors)
            best = merged.argmax(axis=1)
            rows = np.arange(len(best)), best
            top[block], p[block] = best, merged[rows]
            lower[block], upper[block] = bounds.lower[rows], bounds.upper[rows]
        for j in np.unique(top):
            is_top = top == j
            low[is_top], high[is_top] = self._interval_ends(int(j), new[is_top], level)
        ends = np.minimum(low, p), np.maximum(high, p)
        return TopLabels(self.classes_[top], p, lower, upper, *ends)

    def _interval_curve(
        self, j: int, level: float, method: IntervalMethod = "likelihood-ratio"
    ) -> ScoreIntervals:
        """Return the curve of a column, computed once for a level and method."""
        level = check_inside(level, "level")
        if (j, level, method) not in self._curves:
            x, weights = self._tables[j].x, self._tables[j].weights
            curve = intervals_at_scores(x, weights.sum(axis=1), weights[:, 1], level, method)
            self._curves[j, level, method] = curve
        return self._curves[j, level, method]

    @cached_property
    def _curves(self) -> dict[tuple[int, float, str], ScoreIntervals]:
        return {}
