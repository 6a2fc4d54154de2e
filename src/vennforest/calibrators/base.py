"""The base classes of calibrators: scores and labels in, probabilities and perhaps bounds out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from vennforest._messages import shown
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_array,
    check_labels,
    check_number,
    check_order,
    check_scores,
    columns,
    require,
)
from vennforest.calibrators.direction import (
    Increasing,
    check_range,
    expected_range,
    reversal_center,
)
from vennforest.calibrators.formula import (
    Evaluation,
    Score,
    Term,
    Terms,
    divided_by_sum,
    no_formula,
    summed,
)
from vennforest.counts import ScoreCounts, count_examples, read_examples
from vennforest.prior import ShiftedPrior, shift_probabilities

SUM_TOLERANCE = 1e-5  # how far from 1 a row may sum: single-precision probabilities of many classes
MAPS_OF_ANY_SCORES = '"venn-abers", "venn", "platt", "isotonic" and "temperature" take any scores'

N_TRIED_SCORES = 101  # scores at which a map that is read from a file is tried


class Calibrator(ClassifierMixin, BaseEstimator, ABC):
    """Base of all calibrators: from scores and labels to class probabilities.

    A subclass implements ``_fit``, which sets attributes with a trailing underscore from a
    `ScoreCounts`, and ``_formula`` or ``_predict_proba``.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted; a column of probabilities each.
    class_shares_ : ndarray of shape (k,)
        The share of each class among the calibration examples.
    score_range_ : ndarray of shape (2,), or None
        Between which scores new ones are expected; None: anywhere.
    reversed_at_ : float or None
        New scores s are replaced by ``reversed_at_ - s``; None: they stay.
    shift_ : ShiftedPrior or None
        What ``with_prior`` has set.
    """

    title: ClassVar[str] = ""
    """The name that readers of reports and plots see."""
    _rows_sum_to_one: ClassVar[bool] = True
    """Whether probabilities of more than two classes must sum to 1 in every row."""
    _is_monotone: ClassVar[bool] = True
    """Whether the probability of the second of two classes rises with its score."""
    classes_: NDArray[Any]
    class_shares_: FloatArray
    score_range_: FloatArray | None
    reversed_at_: float | None
    shift_: ShiftedPrior | None

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
            Calibration scores: of the second class (two classes; from two columns the second is
            taken), or one column per class in sorted order of the labels.
        y : array-like of shape (n,)
            Their labels, of any dtype.
        sample_weight : array-like of shape (n,), optional
            Non-negative; a weight of 2 is the observation twice, of 0 its absence.
        classes : array-like of shape (k,), optional
            Every class, when some may be missing from ``y``.
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
        checked = check_scores(scores)
        if not len(checked):
            raise ValueError("scores must contain at least one example, got 0 sample(s)")
        codes, labels, weight = read_examples(checked, y, sample_weight, classes)
        x = self._columns(checked, len(labels), False)
        # Sorting score vectors would take longer than most fits.
        sort = x.ndim == 1 and (self._is_monotone or increasing is not True)
        self.fit_counts(count_examples(labels, x, codes, weight, sort=sort), increasing=increasing)
        self._remember(self._reversed(x), codes, weight)
        return self

    def fit_counts(self, counts: ScoreCounts, *, increasing: Increasing = True) -> Self:
        """Learn the map from class counts at distinct scores; ``increasing`` as in ``fit``."""
        if not counts.total > 0:
            raise ValueError("counts must contain at least one example, got none")
        if increasing is True and not self._is_monotone:
            return self._fit_checked(counts)
        return self._fit_checked(counts, reversal_center(counts, increasing))

    def _fit_checked(self, counts: ScoreCounts, center: float | None = None) -> Self:
        """Fit to counts, with ``center - s`` in the place of each score s, without warnings."""
        # Nothing of the last fit stays, neither what it learnt nor its caches.
        state = self.__getstate__().items()
        self.__dict__ = {name: value for name, value in state if not name.endswith("_")}
        self.classes_, self.class_shares_ = counts.classes, counts.class_totals / counts.total
        self.score_range_, self.reversed_at_, self.shift_ = expected_range(counts), center, None
        self._fit(counts if center is None else counts.reversed_at(center))
        return self

    @abstractmethod
    def _fit(self, counts: ScoreCounts) -> None:
        """Set the attributes that predictions need."""

    def _remember(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> None:
        """Keep what leaving out calibration examples needs; nothing without bounds."""

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
            If scores are not of the kind given to ``fit``, or most lie far outside its range.
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
        return p if len(self.classes_) > 2 else np.column_stack([1 - p, p])

    @cached_property
    def _evaluation(self) -> Evaluation:
        return Evaluation(self._formula(self._score_terms()))

    def _score_terms(self) -> Terms:
        """Return a term for each column of scores."""
        return tuple(map(Score, range(self._n_columns())))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached properties; the next use computes them again."""
        return {
            name: value
            for name, value in vars(self).items()
            if not isinstance(getattr(type(self), name, None), cached_property)
        }

    def _formula(self, scores: Terms) -> Terms:
        """Return the probability of the second of two classes, or of each, as formulas."""
        raise no_formula("calibrator", self)

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
        shifted = copy.copy(self)
        shifted.shift_ = ShiftedPrior.of(shares, instead_of, present, self.shift_, self.classes_)
        return shifted

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
        p = self.predict_proba(scores)
        shifted = copy.copy(self)
        shifted.shift_ = ShiftedPrior.of_means(means, p, self.shift_, self.classes_)
        return shifted

    def score_for(self, probability: ArrayLike) -> FloatArray:
        """Return the scores at which the second of two classes reaches given probabilities.

        It is the smallest score with at least this probability, or the largest if the probability
        falls with the score, found by bisection between the ends of the calibration scores.

        Parameters
        ----------
        probability : float or array-like of shape (m,)
            Probabilities in (0, 1), such as the limits of grades.

        Returns
        -------
        ndarray of the shape of ``probability``
            Scores; NaN where no score of the range has the probability.
        """
        check_is_fitted(self, "classes_")
        p = np.asarray(probability, np.float64)
        if len(self.classes_) != 2 or not self._is_monotone:
            raise InputError("score_for must be used with two classes and a map that is monotone")
        if not ((p > 0) & (p < 1)).all():
            raise InputError(f"probability must lie between 0 and 1, both excluded, got {shown(p)}")
        is_bounded = self._takes_probabilities or self.score_range_ is None
        ends = (0.0, 1.0) if is_bounded else self.score_range_.tolist()  # type: ignore[union-attr]
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

    def _columns(self, scores: FloatArray, k: int, is_fitted: bool) -> FloatArray:
        """Return scores (n,) of the second of two classes, else (n, k)."""
        return columns(scores, k)

    def _check_new(self, scores: ArrayLike) -> FloatArray:
        """Return new scores as ``_fit`` has seen those of calibration examples; refuse others."""
        if "classes_" not in self.__dict__:  # scikit-learn's check alone takes longer than the rest
            check_is_fitted(self, "classes_")
        x = self._columns(check_scores(scores), len(self.classes_), True)
        if self._takes_probabilities:
            self._check_probabilities(x)
        elif self.score_range_ is not None:
            check_range(x, *self.score_range_.tolist())
        return self._reversed(x)

    def _reversed(self, scores: FloatArray) -> FloatArray:
        return scores if self.reversed_at_ is None else self.reversed_at_ - scores

    @property
    def _takes_probabilities(self) -> bool:
        """Whether scores must be in [0, 1]."""
        return False

    def _check_probabilities(self, scores: FloatArray) -> None:
        """Refuse scores outside [0, 1], and rows that must sum to 1 and do not."""
        is_outside = (scores < 0) | (scores > 1)
        if is_outside.any():
            raise InputError(
                f"scores must be in [0, 1] for {self}, got {scores[is_outside][0]}: "
                f"{MAPS_OF_ANY_SCORES}"
            )
        if scores.ndim == 2 and self._rows_sum_to_one:
            total = scores.sum(axis=1)
            wrong = np.abs(total - 1) > SUM_TOLERANCE
            if wrong.any():
                raise InputError(
                    f"scores must sum to 1 in every row for {self}, got {total[wrong][0]}: divide "
                    f"each row by its sum, or {MAPS_OF_ANY_SCORES}"
                )

    def _check_state(self) -> None:
        """Refuse attributes, read from a file, with which a kernel or a formula would fail."""
        check_labels(self.classes_)
        k = len(self.classes_)
        check_array(self.class_shares_, "class_shares_", (k,), low=0, high=1)
        if self.score_range_ is not None:
            check_array(self.score_range_, "score_range_", (2,))
        if self.reversed_at_ is not None:
            check_number(self.reversed_at_, "reversed_at_")
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
        if self.score_range_ is not None and not self._takes_probabilities:
            low, high = self.score_range_.tolist()
        part, k = np.linspace(0, 1, N_TRIED_SCORES), len(self.classes_)
        x = (1 - part) * low + part * high  # the difference may overflow
        scores = x if k == 2 else np.column_stack([x, *[(1 - x) / (k - 1)] * (k - 1)])
        p = self._predict_proba(self._reversed(scores))
        require(((p >= 0) & (p <= 1)).all(), f"{type(self).__name__} must give probabilities")

    def _n_columns(self) -> int:
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
    _takes_probabilities = True

    def _fit(self, counts: ScoreCounts) -> None:
        self._check_probabilities(counts.scores)

    def _formula(self, scores: Terms) -> Terms:
        return scores if len(scores) == 1 else divided_by_sum(scores)


class OneVsRestCalibrator(Calibrator):
    """A calibrator for two classes; for more, one map per class against the rest, normalised."""

    _rows_sum_to_one = False

    def _fit(self, counts: ScoreCounts) -> None:
        self._fit_columns(counts.columns())

    @abstractmethod
    def _fit_columns(self, columns: list[ScoreCounts]) -> None:
        """Set one entry of each attribute for each column of scores, against the rest."""

    @abstractmethod
    def _column_formula(self, score: Term, j: int) -> Term:
        """Return the probability, before normalisation, that column j gives a score."""

    def _formula(self, scores: Terms) -> Terms:
        p = tuple(self._column_formula(score, j) for j, score in enumerate(scores))
        return normalised_formula(p, scores)


def normalised_formula(p: Terms, raw: Terms) -> Terms:
    """Return p over their sum; where that is 0 raw scores above 0 likewise, or equal shares.

    The single one of two classes stays as it is.
    """
    if len(p) == 1:
        return p
    positive = [score.max(0.0) for score in raw]
    total, fallback = summed(p), summed(positive)
    shares = []
    for probability, score in zip(p, positive, strict=True):
        share = fallback.unless_above(0.0, 1 / len(p), score / fallback)
        shares.append(total.unless_above(0.0, share, probability / total))
    return tuple(shares)
