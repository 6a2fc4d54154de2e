"""The base classes of calibrators: scores and labels in, probabilities and perhaps bounds out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from vennforest._class_columns import column_codes, in_class_order
from vennforest._messages import listed, shown, warn
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_array,
    check_labels,
    check_number,
    check_option,
    check_order,
    require,
)
from vennforest.calibrators import direction
from vennforest.calibrators.direction import Increasing, NewScores
from vennforest.calibrators.formula import (
    MAX_LOG_ODDS,
    FormulaFunction,
    NoFormulaError,
    Score,
    Term,
    log_odds_of_classes,
    logistic_of_masked,
    softmax,
)
from vennforest.counts import ScoreCounts, count_examples, read_examples
from vennforest.prior import ShiftedPrior, shift_probabilities, with_step
from vennforest.scores import (
    MIN_MASK_DISTANCE,
    On,
    ScoreKind,
    Scores,
    are_masked,
    as_numbers,
    far_side,
    is_outside,
    read_scores,
    warn_of_percentages,
)

Reads = Literal["order", "log-odds", "probability", "logits"]
"""What maps are of: scores in their order, scores or log-odds, probabilities, or softmax inputs."""

MAPS_OF_ANY_SCORES = '"venn-abers", "venn", "platt", "isotonic" and "temperature" take any scores'

MIN_CHANGE_BY_FAR_SCORES = 0.01  # mean change of other examples' probabilities worth a warning
N_TRIED_SCORES = 101  # scores at which a map that is read from a file is tried


class Calibrator(ClassifierMixin, BaseEstimator, ABC):
    """Base of all calibrators: from scores and labels to class probabilities.

    A subclass implements ``_fit``, which sets attributes with a trailing underscore from a
    `ScoreCounts`, and ``_formula`` or ``_predict_proba``.

    Attributes
    ----------
    on_ : {"probability", "logit", "score"}
        What the calibration scores were; new ones are read as the same.
    classes_ : ndarray of shape (k,)
        The labels, sorted; a column of probabilities each.
    class_shares_ : ndarray of shape (k,)
        The share of each class among the calibration examples.
    score_ends_ : ndarray of shape (2,)
        The smallest and the largest calibration score.
    score_range_ : ndarray of shape (2,), or None
        Between which scores new ones are expected; None: anywhere.
    mask_distance_ : float or None
        Of logits, how far below the largest of their row those of masked classes are.
    column_codes_ : ndarray of shape (k,), or None
        The class, by number, of each column of an array of scores; None: they are sorted.
    reversed_at_ : 0.0, 1.0 or None
        New scores s are replaced by ``reversed_at_ - s``; None: they stay.
    shift_ : ShiftedPrior or None
        What ``with_prior`` has set.
    record_ : dict
        How the calibrator came to be: data with their hash, date, command, choices and later steps,
        as ``vennforest calibrate`` notes them. It stays with ``with_prior``, ``with_mean`` and in
        files.
    """

    title: ClassVar[str] = ""
    """The name that readers of reports and plots see."""
    _takes_independent_scores: ClassVar[bool] = False
    """Whether a map of probabilities takes scores of several classes whose rows do not sum to 1."""
    _is_monotone: ClassVar[bool] = True
    """Whether the probability of the second of two classes rises with its score."""
    _warns_of_new: bool = True
    on: On = "auto"
    on_: ScoreKind
    classes_: NDArray[Any]
    class_shares_: FloatArray
    score_ends_: FloatArray
    score_range_: FloatArray | None
    mask_distance_: float | None = None
    column_codes_: IntArray | None = None
    reversed_at_: float | None
    shift_: ShiftedPrior | None
    record_: dict[str, Any] = {}  # noqa: RUF012 - never changed in place

    def __init__(self, on: On = "auto") -> None:
        self.on = on

    @property
    def _reads(self) -> Reads:
        """What the map is of, as `Reads` lists."""
        return "probability"

    def fit(
        self,
        scores: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        increasing: Increasing = True,
    ) -> Self:
        """Learn the map from scores to probabilities.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, k)
            Calibration scores: one column, of the second of two classes, or one per class in the
            order of ``classes``, by default sorted; those of a data frame, or a series, that are
            called like the labels or ``p(label)`` are of these classes. ``vennforest.scores`` says
            what each is read as.
        y : array-like of shape (n,)
            Their labels, of any dtype.
        sample_weight : array-like of shape (n,), optional
            Non-negative; a weight of 2 is the observation twice, of 0 its absence, in bounds and
            intervals too. Scale weights that are no counts by their sum over the sum of their
            squares, so that they sum to Kish's effective number of observations.
        classes : array-like of shape (k,), optional
            Every class in the order of the columns, when it is not the sorted one or some may be
            missing from ``y``. New scores have the same order; ``classes_`` and the columns of
            probabilities are sorted.
        increasing : bool or "auto", default=True
            Whether the second of two classes becomes more likely as the score rises. False: less
            likely, as with credit scores. ``"auto"``: as these examples show.

        Raises
        ------
        ValueError
            If scores are NaN or infinite, or no probabilities where a map needs them; there are
            fewer than two classes; or the examples leave the direction in doubt.
        """
        check_order(scores, y=y, sample_weight=sample_weight)
        array = as_numbers(scores)
        if not len(array):
            raise ValueError("scores must contain at least one example, got 0 sample(s)")
        codes, labels, weight = read_examples(array, y, sample_weight, classes)
        array = as_numbers(in_class_order(scores, labels, self.on, named=classes))
        return self._fit_examples(array, codes, labels, weight, column_codes(classes), increasing)

    def _fit_examples(
        self,
        scores: FloatArray,
        codes: IntArray,
        classes: NDArray[Any],
        weight: FloatArray | None,
        columns: IntArray | None = None,
        increasing: Increasing = True,
    ) -> Self:
        """Fit to examples with class indices (n,) and scores in the order of the classes (k,).

        ``columns`` (k,) are the classes of the columns of new scores; None: they are sorted.
        """
        checked = self._read_scores(scores, len(classes), self.on)
        NewScores(self.on).add(scores, checked.values).warn()
        x = self._as_read(checked)
        # Sorting score vectors would take longer than most fits.
        sort = x.ndim == 1 and (self._is_monotone or increasing is not True)
        counts = count_examples(classes, x, codes, weight, sort=sort)
        self._fit_read(replace(counts, column_codes=columns), checked, increasing)
        self._remember(self._reversed(x), codes, weight)
        return self

    def fit_counts(self, counts: ScoreCounts, *, increasing: Increasing = True) -> Self:
        """Learn the map from class counts at distinct scores; ``increasing`` as in ``fit``."""
        counts = counts.check()
        if not counts.total > 0:
            raise ValueError("counts must contain at least one example, got none")
        checked = self._read_scores(counts.scores, len(counts.classes), self.on)
        NewScores(self.on).add(counts.scores, checked.values).warn()
        return self._fit_read(counts.moved_to(self._as_read(checked)), checked, increasing)

    def _fit_read(self, counts: ScoreCounts, checked: Scores, increasing: Increasing) -> Self:
        """Fit to counts whose scores are as `_as_read` returns them, reversed where they must be.

        ``checked`` are the scores before `_as_read`.
        """
        center, kind = None, checked.kind
        if self._is_monotone or increasing is not True:
            is_unit = self._reads != "order" and "probability" in (kind, self._reads)
            x = counts.scores
            is_unit |= not self._is_monotone and x.min() >= 0 and x.max() <= 1
            center = direction.reversal_center(counts, increasing, is_unit)
        self._fit_checked(counts, center, kind=kind)
        self.mask_distance_, self.column_codes_ = checked.mask_distance, counts.column_codes
        if counts.scores.ndim == 1:
            direction.warn_of_confidence(counts)
        else:
            is_of_logits = kind == "logit" and self._reads == "logits"
            to_probabilities = FormulaFunction(softmax(Score()))
            x = to_probabilities(counts.scores) if is_of_logits else counts.scores
            direction.warn_of_other_columns(replace(counts, scores=x))
        self._warn_of_fit(counts)
        if kind != "probability":
            self._warn_of_far_scores(counts)
        return self

    def _warn_of_fit(self, counts: ScoreCounts) -> None:
        """Warn if the map, fitted to these counts, is wrong about them."""

    def _warn_of_far_scores(self, counts: ScoreCounts) -> None:
        """Warn of scores far from all others that change what the map says about these."""
        # A product: sums over two numbers of a row take several times as long.
        x, total = (
            counts.scores.reshape(len(counts), -1),
            counts.weights @ np.ones(len(self.classes_)),
        )
        far, is_masked = np.zeros(len(x), bool), are_masked(x, self.on_)
        has_masked = is_masked.any()
        for column, is_unmasked in zip(x.T, ~is_masked.T, strict=True):
            rows: Any = is_unmasked if has_masked else slice(None)
            far[rows] |= far_side(column[rows], total[rows]) != 0
        if not far.any() or far.all():
            return
        near = ScoreCounts(counts.classes, counts.scores[~far], counts.weights[~far])
        refitted = copy.copy(self)._fit_checked(near, self.reversed_at_, kind=self.on_)
        scores = self._reversed(near.scores)
        change = np.abs(self._predict_proba(scores) - refitted._predict_proba(scores)).max(axis=1)
        mean_change = float(np.average(change, weights=total[~far]))
        hides_kind = self.on == "auto" and self._reads != "order" and x.shape[1] == 1
        hides_kind &= not is_outside(near.scores).any()
        if mean_change < MIN_CHANGE_BY_FAR_SCORES and not hides_kind:
            return
        x = np.where(is_masked, np.nan, x)
        values = np.unique(x[far, np.nanargmax(np.abs(x[far]), axis=1)]).tolist()
        effect = f"whose probabilities they change by {mean_change:.2g} on average"
        way_out = (
            "leave out these examples if such numbers stand for missing values, else limit their "
            "scores"
        )
        warn(
            f"{total[far].sum():,.6g} of {counts.total:,.6g} examples have scores of "
            f"{listed(values, 3, '{:g}'.format)}, far from all others ({np.nanmin(x[~far]):g} to "
            f"{np.nanmax(x[~far]):g}), "
            f"{'which alone are read as probabilities' if hides_kind else effect}: {way_out}"
        )

    def _fit_checked(
        self, counts: ScoreCounts, center: float | None = None, *, kind: ScoreKind = "probability"
    ) -> Self:
        """Fit to counts, with ``center - s`` in the place of each score s, without warnings."""
        # Nothing of the last fit stays, neither what it learnt nor its caches.
        state = self.__getstate__().items()
        self.__dict__ = {name: value for name, value in state if not name.endswith("_")}
        self.on_ = kind
        self.classes_, self.class_shares_ = counts.classes, counts.class_totals / counts.total
        x = counts.scores if kind != "logit" else counts.scores[~are_masked(counts.scores, kind)]
        self.score_ends_ = np.array([x.min(), x.max()]) if x.size else np.zeros(2)
        self.score_range_ = direction.expected_range(self.score_ends_, counts.total)
        self.reversed_at_, self.shift_ = center, None
        self._fit(counts if center is None else counts.moved_to(center - counts.scores))
        return self

    @abstractmethod
    def _fit(self, counts: ScoreCounts) -> None:
        """Set the attributes that predictions need."""

    def _remember(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> None:
        """Store the scores, codes and weights of n examples, if bounds can leave one out."""

    def _by_class(self) -> Self:
        """Return a copy that takes arrays of scores whose columns are in the order of classes."""
        calibrator = copy.copy(self)
        calibrator.column_codes_ = None
        return calibrator

    def _without_examples(self) -> Self:
        """Return a copy with the same predictions that forgets the calibration examples."""
        return copy.copy(self)

    def predict_proba(self, scores: ArrayLike) -> FloatArray:
        """Return calibrated probabilities of every class.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, k)
            New scores, of the kind given to ``fit``.

        Returns
        -------
        ndarray of shape (n, k)
            Probabilities in [0, 1]; each row sums to 1.

        Raises
        ------
        ValueError
            If a score is impossible for the kind of those given to ``fit``.
        """
        p = self._predict_proba(self._check_new(scores))
        return p if self.shift_ is None else shift_probabilities(p, self.shift_.factors)

    def predict(self, scores: ArrayLike) -> NDArray[Any]:
        """Return the most probable label of each new score, shape (n,), the first of equals."""
        best = self.predict_proba(scores).argmax(axis=1)  # refuses before fit
        return np.asarray(self.classes_[best])

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n, k) for scores (n,) (two classes) or (n, k)."""
        p = self._evaluation(scores)
        return p if p.ndim == 2 else np.column_stack([1 - p, p])

    @cached_property
    def _evaluation(self) -> FormulaFunction:
        return FormulaFunction(self._formula(Score()))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached properties; the next use computes them again."""
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    def _formula(self, scores: Term) -> Term:
        """Return the probability of the second of two classes, or those of all, as a formula."""
        raise NoFormulaError("calibrator", self)

    def with_prior(
        self, shares: Mapping[Any, float], *, instead_of: Mapping[Any, float] | None = None
    ) -> Self:
        """Return this calibrator for a population with other shares of the classes.

        See `CalibratedClassifier.with_prior`. This calibrator is not changed.

        Parameters
        ----------
        shares : mapping of label to float
            The share of each class there; classes that are not named share the rest.
        instead_of : mapping of label to float, optional
            The shares that calibration examples were drawn from; by default those of the examples.
        """
        check_is_fitted(self, "classes_")
        present = self.class_shares_ if self.shift_ is None else self.shift_.shares
        shift = ShiftedPrior.of(shares, instead_of, present, self.shift_, self.classes_)
        return self._with_shift(shift, "with_prior")

    def with_mean(self, means: Mapping[Any, float], scores: ArrayLike) -> Self:
        """Return this calibrator after the shift of the log-odds that gives scores a mean.

        For a portfolio whose mean probability is given, as a central tendency:
        ``calibrator.with_mean({"default": 0.04}, scores)``. One number is added to the log-odds of
        each class, so that the mean probabilities of these scores are exactly the given ones. In
        contrast to ``with_prior``, the shift depends on the scores.

        Parameters
        ----------
        means : mapping of label to float
            Mean probability of each class, in (0, 1); classes that are not named share the rest in
            proportion to their mean probabilities.
        scores : array-like of shape (n,) or (n, k)
            Scores of the portfolio.
        """
        return self._with_mean_of(means, self.predict_proba(scores))

    def _with_mean_of(
        self, means: Mapping[Any, float], p: FloatArray, weight: FloatArray | None = None
    ) -> Self:
        """Return `with_mean` of scores whose probabilities (n, k) and weights (n,) are known."""
        shift = ShiftedPrior.of_means(means, p, self.shift_, self.classes_, weight)
        return self._with_shift(shift, "with_mean")

    def _with_shift(self, shift: ShiftedPrior, step: str) -> Self:
        """Return a copy with another shift, and the step in its record."""
        shifted = copy.copy(self)
        shifted.shift_ = shift
        shifted.record_ = with_step(self.record_, step, self.classes_, shift.shares)
        return shifted

    def score_for(self, probability: ArrayLike) -> FloatArray:
        """Return the scores at which the second of two classes reaches given probabilities.

        Each is the smallest score with at least this probability, or the largest if the probability
        falls with the score; the map of a pool can do both, and then it is one of several. It
        is found by bisection: in [0, 1] for probabilities, between log-odds of -700 and 700 for
        maps that read log-odds as probabilities, and else between the ends of the calibration
        scores.

        Parameters
        ----------
        probability : float or array-like of shape (m,)
            Probabilities in (0, 1), such as the limits of grades.

        Returns
        -------
        ndarray of the shape of ``probability``
            Scores; NaN where every score of the range has a smaller probability.

        Raises
        ------
        ValueError
            With more than two classes, for a map that is not monotone, such as `Venn`, and for
            probabilities outside (0, 1).
        """
        check_is_fitted(self, "classes_")
        p = np.asarray(probability, np.float64)
        if len(self.classes_) != 2 or not self._is_monotone:
            raise InputError("score_for must be used with two classes and a map that is monotone")
        if not ((p > 0) & (p < 1)).all():
            raise InputError(f"probability must lie between 0 and 1, both excluded, got {shown(p)}")
        ends = 0.0, 1.0
        if self.on_ == "logit" and self._reads == "probability":
            ends = -MAX_LOG_ODDS, MAX_LOG_ODDS
        elif self.on_ != "probability":
            ends = tuple(self.score_ends_.tolist())
        low, high = np.full(p.shape, ends[0]), np.full(p.shape, ends[1])

        def of_scores(scores: FloatArray) -> FloatArray:
            return np.asarray(self.predict_proba(scores.ravel())[:, 1].reshape(p.shape))

        at_low, at_high = of_scores(low), of_scores(high)
        if at_low.size and (at_low > at_high).all():
            low, high, at_low, at_high = high, low, at_high, at_low
        result = np.where(at_low >= p, low, np.nan)
        is_inside = (at_low < p) & (at_high >= p)
        while True:
            middle = low + (high - low) / 2
            moves = is_inside & (middle != low) & (middle != high)
            if not moves.any():
                return np.asarray(np.where(is_inside, high, result))
            reaches = of_scores(middle) >= p
            high = np.where(moves & reaches, middle, high)
            low = np.where(moves & ~reaches, middle, low)

    def _read_scores(
        self, scores: ArrayLike, k: int, on: On, mask_distance: float | None = None
    ) -> Scores:
        """Return checked scores and their kind; refuse those that this map is not of."""
        on_log_odds = self._reads != "order"
        checked = read_scores(scores, k, on, on_log_odds=on_log_odds, mask_distance=mask_distance)
        if self._reads == "probability" and checked.kind == "score":
            impossible = checked.values[is_outside(checked.values)]
            if len(impossible) or (k > 2 and not self._takes_independent_scores):
                value = impossible[0] if len(impossible) else "independent scores"
                raise InputError(
                    f'scores must lie in [0, 1] for {self}, got {value}: give on="logit" if they '
                    f"are log-odds; {MAPS_OF_ANY_SCORES}"
                )
        elif on == "auto" and checked.kind == "score" and self._reads != "order":
            warn_of_percentages(checked.values)
        return checked

    def _as_read(self, checked: Scores) -> FloatArray:
        """Return scores (n,) or (n, k) as the map takes them, before any reversal."""
        term = self._reading_term(checked.kind, checked.values.ndim == 2, Score())
        return checked.values if isinstance(term, Score) else FormulaFunction(term)(checked.values)

    def _reading_term(self, kind: ScoreKind, is_of_classes: bool, score: Term) -> Term:
        """Return the term that the map takes, computed from a score that was read as this kind.

        ``is_of_classes`` tells scores (n, k) of all classes from scores (n,) of the second of two.
        """
        if kind != "logit" or self._reads == "logits":
            return score
        if not is_of_classes:
            return logistic_of_masked(score) if self._reads == "probability" else score
        return softmax(score) if self._reads == "probability" else log_odds_of_classes(score)

    def _check_new(self, scores: ArrayLike) -> FloatArray:
        """Return new scores as ``_fit`` has seen those of calibration examples; refuse others."""
        if "classes_" not in self.__dict__:  # scikit-learn's check alone takes longer than the rest
            check_is_fitted(self, "classes_")
        if (
            type(scores) is np.ndarray
            and scores.ndim == 1
            and scores.dtype.char == "d"
            and scores.flags.carray
            and self.on_ == "probability"
            and self.column_codes_ is None
            and len(self.classes_) == 2
            and 0 <= scores.min(initial=0) <= scores.max(initial=1) <= 1
        ):  # they are what reading would return, and of a single score it takes most of the time
            return self._reversed(scores)
        array, x = self._read_new(scores)
        if self._warns_of_new:
            NewScores(self.on_, self.score_range_).add(array, x).warn()
        return self._reversed(x)

    def _read_new(self, scores: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Return new scores in the order of the classes, and as the map takes them."""
        named = None if self.column_codes_ is None else self.classes_[self.column_codes_]
        array = as_numbers(in_class_order(scores, self.classes_, self.on_, named=named))
        checked = self._read_scores(array, len(self.classes_), self.on_, self.mask_distance_)
        return array, self._as_read(checked)

    def _reversed(self, scores: FloatArray) -> FloatArray:
        return scores if self.reversed_at_ is None else self.reversed_at_ - scores

    def _check_state(self) -> None:
        """Refuse attributes, read from a file, with which a kernel or a formula would fail."""
        check_option(self.on, On, "on")
        check_option(self.on_, get_args(ScoreKind), "on_")
        check_labels(self.classes_)
        k = len(self.classes_)
        check_array(self.class_shares_, "class_shares_", (k,), low=0, high=1)
        check_array(self.score_ends_, "score_ends_", (2,))
        if self.score_range_ is not None:
            check_array(self.score_range_, "score_range_", (2,))
        if self.mask_distance_ is not None:
            check_number(self.mask_distance_, "mask_distance_", MIN_MASK_DISTANCE)
        if self.column_codes_ is not None:
            check_array(self.column_codes_, "column_codes_", (k,), "i")
            is_order = np.array_equal(np.sort(self.column_codes_), np.arange(k))
            require(is_order, "column_codes_ must have each class once")
        if self.reversed_at_ is not None:
            centers = (1.0,) if self.on_ == "probability" else (0.0, 1.0)
            require(self.reversed_at_ in centers, f"reversed_at_ must be one of {centers}, or None")
            require(k == 2, "reversed_at_ must be None with more than two classes")
        if self.shift_ is not None:
            is_shift = isinstance(self.shift_, ShiftedPrior) and len(self.shift_.shares) == k
            require(is_shift, f"shift_ must be a ShiftedPrior of {k} classes")
        self._check_map()

    def _check_map(self) -> None:
        """Refuse learnt numbers that are not finite, or that give no probabilities."""
        for name, value in vars(self).items():
            for array in value if isinstance(value, list) else [value]:
                if isinstance(array, np.ndarray) and array.dtype.kind == "f":
                    check_array(array, name, (None,) * array.ndim)
        low, high = 0.0, 1.0
        takes_unit = "probability" in (self.on_, self._reads)
        if not takes_unit:
            low, high = self.score_ends_.tolist()
        part, k = np.linspace(0, 1, N_TRIED_SCORES), len(self.classes_)
        x = (1 - part) * low + part * high  # the difference may overflow
        scores = x if k == 2 else np.column_stack([x, *[(1 - x) / (k - 1)] * (k - 1)])
        p = self._predict_proba(self._reversed(scores))
        require(((p >= 0) & (p <= 1)).all(), f"{type(self).__name__} must give probabilities")

    def _n_columns(self) -> int:
        """Return the number of maps: 1 for two classes, else one per class."""
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def __sklearn_tags__(self) -> Tags:
        """Describe to scikit-learn an estimator whose input is one column of scores."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


class Uncalibrated(Calibrator):
    """The raw scores as probabilities, for comparison with calibrated ones."""

    title = "Uncalibrated"

    def _fit(self, counts: ScoreCounts) -> None:
        """Learn nothing."""

    def _formula(self, scores: Term) -> Term:
        return scores


def normalised_formula(p: Term, raw: Term, n_columns: int) -> Term:
    """Return p over their sum; where that is 0 raw scores above 0 likewise, or equal shares.

    The single one of two classes stays as it is.
    """
    if n_columns == 1:
        return p
    positive = raw.max(0.0)
    total, fallback = p.sum(), positive.sum()
    share = fallback.unless_above(0.0, 1 / n_columns, positive / fallback)
    return total.unless_above(0.0, share, p / total)
