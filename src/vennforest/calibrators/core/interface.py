"""What calibrators share: scores and labels in, probabilities and perhaps bounds out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self

import attrs
import numpy as np
from attrs.validators import instance_of, optional
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from vennforest._bounds_kernels import LEAST
from vennforest._messages import not_one_of
from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_array,
    check_option,
    check_scores,
    check_weights,
    columns,
    encode_labels,
    labels,
    number,
    require,
)
from vennforest.calibrators.core.formula import LOWEST, Computed, Term, Terms, no_formula, summed
from vennforest.calibrators.core.scores import (
    SMALLEST,
    Increasing,
    reversed_at,
    reversed_counts,
)
from vennforest.counts import ScoreCounts, ScoreGrid
from vennforest.multiprobability import Merge, Multiprobability, merge_formula, scale_into_bounds
from vennforest.prior import ShiftedPrior, shift_bounds, shift_probabilities

Dialect = Literal["duckdb", "spark", "postgres"]
"""Whose SQL."""


class CalibrationTable(NamedTuple):
    """Intervals of the score, ascending, and what a calibrator of two classes says in each.

    Row i applies to scores s with ``start[i] <= s < start[i + 1]``, the last one for all from
    ``start[-1]`` on. All arrays have shape (m,).
    """

    start: FloatArray
    """The first score of each interval; ``start[0]`` is the smallest score that is accepted."""
    p0: FloatArray | None
    """Lower probability of the second class, in [0, 1]; None without bounds."""
    p1: FloatArray | None
    """Upper probability of the second class, in [0, 1]; None without bounds."""
    p: FloatArray | None
    """Probability of the second class, in [0, 1]; None with ``merge="smooth"``: it moves within."""


def exports() -> Any:
    """Return ``vennforest.export``: imported late, since it knows every calibrator."""
    return import_module("vennforest.export")


def as_tuple(parts: Iterable[Any]) -> tuple[Any, ...]:
    """Return parts as a tuple, whatever contains them in a file."""
    return tuple(parts)


class Learnt:
    """Base of what a calibrator learns: subclasses are ``attrs.frozen`` and registered.

    See ``vennforest._state`` for the validators of their fields, and `Fitted` for what is common
    to all calibrators.
    """

    def check_classes(self, k: int) -> None:
        """Refuse to be of k classes where the fields are those of another number."""

    @property
    def n_examples(self) -> int | None:
        """How many calibration examples it knows one by one; None where it never knows any."""
        return None

    def written(self) -> Self:
        """Return what `Calibrator.to_json` writes: without single calibration examples."""
        return self


@stored("nothing-learnt")
@attrs.frozen(eq=False)
class Nothing(Learnt):
    """What a calibrator learns that has nothing to learn."""


@stored("fitted-calibrator")
@attrs.frozen(eq=False)
class Fitted:
    """The fitted state of a calibrator."""

    classes: NDArray[Any] = attrs.field(validator=labels)
    learnt: Learnt = attrs.field(validator=instance_of(Learnt))
    n_given: int = attrs.field(default=0, validator=number(0, integer=True))
    """How many examples ``fit`` was given; 0 where it was counts, or where they are forgotten."""
    row_of: IntArray | None = None
    """The row of each that reached ``_fit``, (n_given,), -1 of weight zero; None: its own."""
    grid: ScoreGrid | None = attrs.field(default=None, validator=optional(instance_of(ScoreGrid)))
    reversed_at: float | None = attrs.field(default=None, validator=optional(number()))
    """New scores s, on the grid if there is one, are replaced by ``reversed_at - s``."""
    shift: ShiftedPrior | None = attrs.field(
        default=None, validator=optional(instance_of(ShiftedPrior))
    )

    def __attrs_post_init__(self) -> None:
        """Refuse parts of other classes or of other examples."""
        require(
            self.reversed_at is None or len(self.classes) == 2,
            "reversed_at must be None with more than two classes",
        )
        require(
            self.shift is None or len(self.shift.shares) == len(self.classes),
            "shift must be of the same classes",
        )
        self.learnt.check_classes(len(self.classes))
        n, known, row_of = self.n_given, self.learnt.n_examples, self.row_of
        if row_of is not None:
            check_array(row_of, "row_of", (n,), "i", -1, n - 1)
            kept = row_of[row_of >= 0]
            require((kept == np.arange(len(kept))).all(), "row_of must number rows in their order")
        if known is not None and n:
            reached = n if row_of is None else len(kept)
            require(known == reached, f"n_given must be {known}, the number of examples")


class Calibrator(ClassifierMixin, BaseEstimator, ABC):
    """Base of all calibrators: from scores and labels to class probabilities.

    Before ``fit`` all that needs a fit raises ``NotFittedError``.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted; a column of probabilities each.
    """

    _learns: ClassVar[type[Learnt]] = Learnt
    """The class of what ``_fit`` returns."""
    _keeps_columns = False
    """Whether two columns of two classes reach ``_fit`` as they came."""
    _fitted: Fitted

    if not TYPE_CHECKING:

        @property
        def predict_multiprobability(self) -> Any:
            """Missing from calibrators without bounds: `BoundedCalibrator` has it."""
            raise AttributeError(f"{type(self).__name__} gives no bounds: use VennAbers")

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
            likely, as with credit scores; scores are then reversed, here and in predictions.
            ``"auto"``: as these examples show.

        Raises
        ------
        ValueError
            If scores are NaN or infinite, or no probabilities where a map needs them; shapes do
            not fit; there are fewer than two classes; a parameter has no such value; or the
            examples leave the direction in doubt.
        """
        scores = check_scores(scores)
        check_consistent_length(scores, y)
        if not len(scores):
            raise ValueError("scores must contain at least one example, got 0 sample(s)")
        codes, labels = encode_labels(y, classes)
        if len(labels) < 2:
            raise ValueError(
                "y must contain at least two classes (or name them with classes=), "
                f"got one class: {labels.tolist()[0]!r}"
            )
        weight = check_weights(sample_weight, len(scores))
        scores = self._columns(scores, len(labels))
        n_given, row_of = len(scores), None
        if weight is not None and (weight == 0).any():
            kept = weight > 0
            row_of = np.where(kept, np.cumsum(kept) - 1, -1)
            scores, codes, weight = scores[kept], codes[kept], weight[kept]
            weight = check_weights(weight, len(weight))
        at = None
        if increasing is not True:
            seen = ScoreCounts.from_scores(
                scores, codes, sample_weight=weight, classes=np.arange(len(labels))
            )
            at = reversed_at(seen, increasing)
            scores = scores if at is None else at - scores
        learnt = self._fit(scores, codes, weight, len(labels))
        self._fitted = Fitted(labels, learnt, n_given, row_of, reversed_at=at)
        return self

    def _fit_checked(
        self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> Self:
        """Fit to what another calibrator's ``_fit`` was given; classes are numbers from 0 to k - 1.

        Single examples are forgotten, as after ``fit_counts``.
        """
        if weight is not None and (weight == 1).all():
            weight = None
        self._fitted = Fitted(np.arange(k), self._fit(scores, codes, weight, k))
        return self

    def fit_counts(self, counts: ScoreCounts, *, increasing: Increasing = True) -> Self:
        """Learn the map from counts of the classes at scores, as from the examples themselves.

        Counts of parts of a data set add up, wherever the parts are. The fit is that of ``fit``
        to the examples they count, to rounding; it knows no single ones, so ``left_out`` must be
        None.

        Parameters
        ----------
        counts : ScoreCounts
            Of two classes, or of more: one against the rest for calibrators that fit a map to
            each class, else with score vectors (``vectors=True``). Counts on a grid put new
            scores on that grid.
        increasing : bool or "auto", default=True
            As of ``fit``.

        Raises
        ------
        ValueError
            If there is no example, or score vectors are needed and not kept; and what ``fit``
            raises.
        """
        if not isinstance(counts, ScoreCounts):
            raise InputError(
                "counts must be ScoreCounts (ScoreCounts.from_scores or .from_counts makes them), "
                f"got {type(counts).__name__}"
            )
        if not len(counts):
            raise ValueError("counts must contain at least one example, got none")
        at = reversed_at(counts, increasing)
        learnt = self._fit_counts(counts if at is None else reversed_counts(counts, at))
        self._fitted = Fitted(counts.classes, learnt, grid=counts.grid, reversed_at=at)
        return self

    def _fit_counts(self, counts: ScoreCounts) -> Learnt:
        """Fit to counts, as to weighted examples."""
        if len(counts.tables) > 1:
            raise ValueError(
                f"counts must keep the score vectors of {len(counts.classes)} classes for "
                f"{type(self).__name__}, which looks at all scores of an example together: "
                "use ScoreCounts.from_scores(..., vectors=True)"
            )
        return self._fit(*counts.examples(), len(counts.classes))

    @abstractmethod
    def _fit(
        self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> Learnt:
        """Return what scores (n,) (two classes) or (n, k) and codes of k classes teach.

        Weights are above zero.
        """

    @abstractmethod
    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n, k) for scores (n,) (two classes) or (n, k)."""

    def _formula(self, scores: Terms) -> Terms:
        """Return the probabilities as formulas of scores: what every export is written from.

        Both are of the second of two classes, or there is one a class.
        """
        raise no_formula("calibrator", self)

    def _formulas(self, scores: Terms) -> dict[str, Terms]:
        """Return the formulas of ``p``, and of ``p0`` and ``p1`` where there are bounds."""
        return {"p": self._formula(scores)}

    @property
    def _takes_probabilities(self) -> bool:
        """Whether scores must be probabilities."""
        return getattr(self, "on_", "logits") == "probabilities"

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted, of shape (k,)."""
        return self._fitted.classes

    @property
    def _learnt(self) -> Any:
        """What ``_fit`` returned."""
        return self._fitted.learnt

    def to_state(self) -> dict[str, Any]:
        """Return what a model file contains of the calibrator: the arguments of ``from_state``."""
        return {
            "parameters": self.get_params(deep=False),
            "fitted": self.__dict__.get("_fitted"),
        }

    @classmethod
    def from_state(cls, parameters: dict[str, Any], fitted: Fitted | None) -> Self:
        """Return the calibrator that ``to_state`` describes."""
        made = cls(**parameters)
        if fitted is not None:
            require(isinstance(fitted, Fitted), "fitted must be a Fitted")
            require(
                isinstance(fitted.learnt, cls._learns), f"learnt must be {cls._learns.__name__}"
            )
            made._fitted = fitted
            made._check_parameters()
        return made

    def _check_parameters(self) -> None:
        """Refuse parameters that predictions use and the fitted state has nothing for."""

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
            If scores are NaN or infinite, no probabilities where those of ``fit`` were, or have
            another number of columns.
        """
        p, shift = self._predict_proba(self._check_new(scores)), self._fitted.shift
        return p if shift is None else shift_probabilities(p, shift.factors)

    def _class_shares(self) -> FloatArray | None:
        """Return the share of each class among the examples, (k,), None where it is not kept."""
        return None

    def with_prior(
        self, shares: Mapping[Any, float], *, instead_of: Mapping[Any, float] | None = None
    ) -> Self:
        """Return this calibrator for a population with other shares of the classes.

        As `CalibratedClassifier.with_prior`. This calibrator stays as it is.

        Parameters
        ----------
        shares : mapping of label to float
            The share of each class there; classes that are not named share the rest.
        instead_of : mapping of label to float, optional
            The shares that calibration examples were drawn from. By default those of the examples,
            which only `VennAbers` keeps.

        Raises
        ------
        ValueError
            If a label is unknown, shares do not fit, or the present ones are not known.
        """
        check_is_fitted(self, "classes_")
        fitted = self._fitted
        known = self._class_shares() if fitted.shift is None else fitted.shift.shares
        if known is None:
            k = len(fitted.classes)
            if instead_of is None or len(instead_of) < k - 1:
                raise InputError(
                    f"instead_of must be given for {k - 1} classes or all with a "
                    f"{type(self).__name__}, which has not kept the shares of the classes that it "
                    f"was calibrated on, got {instead_of}"
                )
            known = np.full(k, 1 / k)  # of no account where one class at most is left
        shift = ShiftedPrior.of(shares, instead_of, known, fitted.shift, fitted.classes)
        made = copy.copy(self)
        made._fitted = attrs.evolve(fitted, shift=shift)
        return made

    def predict(self, scores: ArrayLike) -> NDArray[Any]:
        """Return the most probable label of each new score, shape (n,), the first of equals."""
        best = self.predict_proba(scores).argmax(axis=1)  # refuses before fit
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def to_table(self) -> CalibrationTable:
        """Return the map of two classes as a table, where it is constant on intervals.

        Venn–Abers, isotonic calibration (``"step"`` and ``"nearest"``), and Venn with a taxonomy
        that has a name. The table is equal to what the calibrator answers to the last bit;
        ``pandas.DataFrame(table._asdict())`` is a data frame.

        Raises
        ------
        ValueError
            If there are more than two classes, or nothing is constant on intervals.
        """
        check_is_fitted(self, "classes_")
        table: CalibrationTable = exports().table_of(self)
        return table

    def to_json(self, *, confidence: bool = False) -> str:
        """Return the fitted calibrator as JSON, which any program can read.

        The schema is in ``docs/calibrator-json.md``. Single calibration examples are not written,
        as after ``fit_counts``.

        Parameters
        ----------
        confidence : bool, default=False
            Whether other programs are to find the ends of the confidence intervals of level .95
            too, ``low95`` and ``high95``.

        Raises
        ------
        ValueError
            If it contains something else than numbers and text, such as a user's function.
        """
        check_is_fitted(self, "classes_")
        document: str = exports().to_json(self, confidence)
        return document

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the calibrator that ``to_json`` has written; called on a class, only one of it.

        It answers what the written one answered, to the last bit on a machine with the same
        library. Nothing in the document ``text`` is executed, and every part is checked.

        Raises
        ------
        InputError
            If ``to_json`` could not have written it, or it is of another class.
        """
        calibrator = exports().from_json(text)
        if not isinstance(calibrator, cls):
            raise InputError(
                f"the calibrator must be a {cls.__name__}, got {type(calibrator).__name__}"
            )
        return calibrator

    def to_sql(
        self,
        dialect: Dialect = "duckdb",
        *,
        table: str = "scores",
        score: str | Sequence[str] = "score",
        steps: str | None = None,
        confidence: bool = False,
    ) -> str:
        """Return a query that adds the answers to the columns of a table.

        Parameters
        ----------
        dialect : {"duckdb", "spark", "postgres"}, default="duckdb"
            Whose SQL. Spark from 3.4, PostgreSQL from 9.5 on.
        table : str, default="scores"
            What stands after FROM, as the system wants it: a name, or such as
            ``read_parquet('scores.parquet')``.
        score : str or sequence of str, default="score"
            The name of the column of scores of the second class; of more than two classes the
            names of their columns, in sorted order of the labels.
        steps : str, optional
            A table that contains what ``to_table`` gives, for large ones; None: it is written into
            the query.
        confidence : bool, default=False
            Whether to add the ends of the confidence intervals of level .95.

        Returns
        -------
        str
            A SELECT of all columns and ``p0``, ``p1`` (with bounds), ``p``, and if asked for
            ``low95`` and ``high95``, which are NULL where the score is NULL, NaN, infinite, or
            refused by ``predict_proba``; of more than two classes each with ``_`` and a label.

        Raises
        ------
        ValueError
            If the dialect is none of these, or the calibrator contains a function of the user's.

        Notes
        -----
        What ``to_table`` has is looked up, and equal to the last bit. Everything else is a
        formula, for which the system's own LN and EXP differ from Python's in the last digits:
        by 1e-13 at most in ``p``.
        """
        check_is_fitted(self, "classes_")
        query: str = exports().to_sql(self, dialect, table, score, steps, confidence)
        return query

    @property
    def n_given(self) -> int:
        """How many examples ``fit`` was given; 0 where it was counts."""
        return self._fitted.n_given

    @property
    def row_of(self) -> IntArray | None:
        """The row of each example that reached ``_fit``: see `Fitted`."""
        return self._fitted.row_of

    @property
    def from_counts(self) -> bool:
        """Whether it was fitted to counts, and knows no single examples."""
        return self.n_given == 0

    def _columns(self, scores: FloatArray, k: int) -> FloatArray:
        """Return scores as (n,) for two classes, unless both are to be kept, else as (n, k)."""
        both = self._keeps_columns and k == 2 and scores.ndim == 2 and scores.shape[1] == 2
        return scores if both else columns(scores, k)

    def _check_new(self, scores: ArrayLike) -> FloatArray:
        if "_fitted" not in self.__dict__:  # scikit-learn's check alone takes longer than the rest
            check_is_fitted(self, "classes_")
        checked, k, grid = check_scores(scores), len(self.classes_), self._fitted.grid
        checked = self._columns(checked, k) if grid is None else grid(columns(checked, k))
        at = self._fitted.reversed_at
        return checked if at is None else at - checked

    def __sklearn_tags__(self) -> Tags:
        """Describe to scikit-learn an estimator whose input is one column of scores."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


Column = tuple[FloatArray, FloatArray, FloatArray | None]
"""Scores (n,) of one class, labels (n,) in {0.0, 1.0}, and weights (n,) above zero, if any."""


def against_rest(counts: ScoreCounts) -> Iterator[Column]:
    """Yield the weighted examples of each table of counts."""
    for table in range(len(counts.tables)):
        scores, codes, weight = counts.examples(table)
        yield scores, codes.astype(np.float64), weight


class BinaryMap(Protocol):
    """A fitted map from the scores of one class to its probability."""

    def __call__(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n,) for scores (n,)."""

    def formula(self, x: Term) -> Term:
        """Return the probability as a formula of the score."""


@stored("maps")
@attrs.frozen(eq=False)
class Maps(Learnt):
    """The map of the second class's score (two classes), or one map a class."""

    maps: tuple[Any, ...] = attrs.field(converter=as_tuple)

    def __attrs_post_init__(self) -> None:
        """Refuse what is no map."""
        sound = (callable(one) and not isinstance(one, type) for one in self.maps)
        require(all(sound), "maps must contain maps")

    def check_classes(self, k: int) -> None:
        """Refuse another number of maps than there are columns of scores."""
        require(
            len(self.maps) == (1 if k == 2 else k), "maps must be one for each column of scores"
        )

    def read(self, scores: FloatArray) -> FloatArray:
        """Return probabilities (n, 2) for scores (n,), or each map's (n, k) of scores (n, k)."""
        if scores.ndim == 1:
            p = self.maps[0](scores)
            return np.column_stack([1 - p, p])
        columns = map(np.ascontiguousarray, scores.T)
        return np.column_stack([one(x) for one, x in zip(self.maps, columns, strict=True)])

    def formulas(self, scores: Terms) -> Terms:
        """Return the probabilities, normalised, as formulas."""
        p = tuple(one.formula(x) for one, x in zip(self.maps, scores, strict=True))
        return p if len(p) == 1 else normalised_formula(p, scores)


class OneVsRestCalibrator(Calibrator):
    """A calibrator for two classes; for more, one map per class against the rest, normalised.

    The scores are those of the one many-class model: no further models are trained (Boström 2008,
    section 2.2.3). Where every class gets probability 0 the row falls back to its raw scores.
    """

    _learns: ClassVar[type[Maps]] = Maps
    _learnt: Maps
    _map_type: ClassVar[type | tuple[type, ...]] = object
    """The class of its maps."""

    @property
    def maps_(self) -> tuple[Any, ...]:
        """The fitted maps: one of the second class's score (two classes), else one a class."""
        return self._learnt.maps

    def _check_parameters(self) -> None:
        kind = self._map_type
        sound = all(isinstance(one, kind) for one in self._learnt.maps)
        require(sound, f"maps must be of {kind}")

    @abstractmethod
    def _fit_map(
        self, scores: FloatArray, positive: FloatArray, weight: FloatArray | None
    ) -> BinaryMap:
        """Fit to scores (n,), labels (n,) in {0.0, 1.0}, and weights (n,) above zero."""

    def _fit(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int) -> Maps:
        if scores.ndim == 1:
            return self._fit_columns([(scores, codes.astype(np.float64), weight)])
        return self._fit_columns(
            (np.ascontiguousarray(scores[:, j]), (codes == j).astype(np.float64), weight)
            for j in range(k)
        )

    def _fit_counts(self, counts: ScoreCounts) -> Learnt:
        if counts.vectors:
            return super()._fit_counts(counts)
        return self._fit_columns(against_rest(counts))

    def _fit_columns(self, columns: Iterable[Column]) -> Maps:
        """Fit the map of each column: scores, labels and weights."""
        return Maps([self._fit_map(*column) for column in columns])

    def _formula(self, scores: Terms) -> Terms:
        return self._learnt.formulas(scores)

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        p = self._learnt.read(scores)
        return p if scores.ndim == 1 else normalise(p, scores)


NUMBERS = 1 << 13
"""Numbers in a block: a few arrays of so many fit into the cache of one core."""


def blocks(n: int, columns: int = 1) -> Iterator[slice]:
    """Yield consecutive slices of n rows of so many numbers each."""
    rows = max(1, NUMBERS // columns)
    for start in range(0, n, rows):
        yield slice(start, min(start + rows, n))


def normalised_formula(p: Terms, raw: Terms) -> Terms:
    """Return the formulas of `normalise`."""
    whole, fallback = summed(p), summed(raw)
    least = reduce(Term.min, raw)
    shares = []
    for one, score in zip(p, raw, strict=True):
        equal = 1 / len(p)
        usable = fallback.unless_above(0.0, equal, score / fallback)
        unusable = least.unless_above(-SMALLEST, equal, usable)
        shares.append(whole.unless_above(0.0, unusable, one / whole))
    return tuple(shares)


def normalise(p: FloatArray, raw: FloatArray) -> FloatArray:
    """Divide each row of p (n, k) by its sum; a row of zeros becomes its raw scores, normalised.

    Raw scores (n, k) that are not probabilities either (a negative one, or all zero) give equal
    shares.
    """
    total = p.sum(axis=1, keepdims=True)
    empty = total[:, 0] <= 0
    if empty.any():
        fallback = raw[empty]
        usable = (fallback >= 0).all(axis=1) & (fallback.sum(axis=1) > 0)
        p, total = p.copy(), total.copy()
        p[empty] = np.where(usable[:, None], fallback, 1.0)
        total[empty] = p[empty].sum(axis=1, keepdims=True)
    shares: FloatArray = p / total
    return shares


def normalised_bounds(p0: FloatArray, p1: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds of each class's probability that are right before and after normalisation.

    From lower and upper probabilities (n, k) of each class against the rest, in [0, 1]. Every row
    of ``lower`` sums to at most 1 and every row of ``upper`` to at least 1, so probabilities lie
    between them.

    Notes
    -----
    The guarantee of Venn prediction is that of the one-vs-rest interval [p0_j, p1_j] of each class.
    Probabilities are points of the box of all k intervals divided by their sums, and these lie
    between ``p0_j / (p0_j + sum of the other p1)`` and ``p1_j / (p1_j + sum of the other p0)``.
    The hull of the two intervals keeps both. Where 0 is divided by 0, the lower bound is 0 and the
    upper bound 1.
    """
    lower, upper = np.empty(p0.shape), np.empty(p0.shape)
    for block in blocks(*p0.shape):
        # In C order, since that of columns decides in which order a row is summed.
        rows = np.ascontiguousarray(p0[block]), np.ascontiguousarray(p1[block])
        lower[block], upper[block] = _normalised_bounds(*rows)
    return lower, upper


def normalised_bounds_formulas(p0: Terms, p1: Terms) -> tuple[Terms, Terms]:
    """Return the formulas of `normalised_bounds`."""
    all_p0, all_p1 = summed(p0), summed(p1)
    lower, upper = [], []
    for low, up in zip(p0, p1, strict=True):
        least, most = low + (all_p1 - up).max(0.0), up + (all_p0 - low).max(0.0)
        lower.append(low.min(least.unless_above(0.0, 0.0, low / least)))
        upper.append(up.max(most.unless_above(0.0, 1.0, up / most)).min(1.0))
    return tuple(lower), tuple(upper)


def _normalised_bounds(p0: FloatArray, p1: FloatArray) -> tuple[FloatArray, FloatArray]:
    least = p0 + np.maximum(p1.sum(axis=1, keepdims=True) - p1, 0)
    most = p1 + np.maximum(p0.sum(axis=1, keepdims=True) - p0, 0)
    zeros, ones = np.zeros_like(p0), np.ones_like(p1)
    lower = np.minimum(p0, np.divide(p0, least, out=zeros, where=least > 0))
    upper = np.maximum(p1, np.divide(p1, most, out=ones, where=most > 0))
    return lower, np.minimum(upper, 1.0)


class LeftOut(NamedTuple):
    """Which calibration examples are absent for each of m new scores."""

    rows: IntArray  # (m,) a row given to ``_fit``, or where there are groups a group; -1: none
    groups: IntArray | None  # (n,) the group, from 0, of each row given to ``_fit``


def _group_numbers(groups: ArrayLike, n: int) -> IntArray:
    """Return a number, 0 to n - 1, for each of n group labels."""
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(
            f"groups must have shape ({n},), one for each calibration example, got {labels.shape}"
        )
    if labels.dtype.kind in "iu" and labels.min() >= 0 and labels.max() < n:
        return labels.astype(np.intp, copy=False)
    if labels.dtype.kind == "f" and np.isnan(labels).any():
        raise ValueError("groups must name a group for every example, got NaN")
    try:
        numbers: IntArray = np.unique(labels, return_inverse=True)[1].reshape(n)
    except TypeError:
        raise ValueError("groups must contain labels that can be sorted, all of one kind") from None
    return numbers


class BoundedCalibrator(Calibrator):
    """Base of calibrators with bounds: Venn predictors, and a user's own.

    A subclass gives ``_fit``, ``_multiprobability`` and, for ``merge="smooth"``, ``_smooth``.

    Parameters
    ----------
    merge : {"log", "brier", "midpoint", "smooth"}
        How ``predict_proba`` makes one probability of the bounds: see `Multiprobability.merge`.
    """

    merge: Merge

    @abstractmethod
    def _multiprobability(
        self, scores: FloatArray, absent: LeftOut | None = None
    ) -> Multiprobability:
        """Return the bounds for checked scores, each without what is ``absent`` for it."""

    def _smooth(self, scores: FloatArray) -> FloatArray:
        """Return the smooth estimates for checked scores."""
        raise ValueError(f'merge must not be "smooth": {type(self).__name__} has no such estimates')

    def predict_multiprobability(
        self,
        scores: ArrayLike,
        left_out: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Multiprobability:
        """Return lower and upper probabilities of every class.

        Parameters
        ----------
        scores : array-like of shape (m,) or (m, k)
            New scores, of the kind given to ``fit``.
        left_out : array-like of int of shape (m,), optional
            For each new score the calibration example, numbered as given to ``fit``, that leaves
            the calibration set for it; -1: none. `VennAbers` answers exactly as if fitted without
            it; `Venn` takes its weight from the counts, with the categories as they are.
        groups : array-like of shape (n,), optional
            The group of every calibration example, as given to ``fit``, in labels of one kind:
            with the left-out example its whole group is left out.

        Returns
        -------
        Multiprobability
            Bounds of shape (m, k), in [0, 1]. For two classes ``p0`` and ``p1``.

        Raises
        ------
        ValueError
            If scores are NaN or infinite or have another number of columns than in ``fit``, or
            ``left_out`` does not have m numbers from -1 to n - 1, or ``groups`` n labels.
        """
        new = self._check_new(scores)
        bounds = self._multiprobability(new, self._left_out(left_out, groups, len(new)))
        shift = self._fitted.shift
        return bounds if shift is None else shift_bounds(bounds, shift.factors)

    def _left_out(
        self, left_out: ArrayLike | None, groups: ArrayLike | None, m: int
    ) -> LeftOut | None:
        """Return which rows given to ``_fit`` each of m new scores leaves out; None stays None.

        ``left_out`` and ``groups`` count the examples as given to ``fit``; those of weight zero
        never reached ``_fit``, so leaving one out is leaving out none, or the rest of its group.
        """
        if left_out is None:
            if groups is not None:
                raise ValueError("left_out must be given with groups, got None")
            return None
        if self.from_counts:
            raise ValueError(
                "left_out must be None after fit_counts, which knows no single examples"
            )
        rows, n, row_of = np.asarray(left_out), self.n_given, self.row_of
        if rows.shape != (m,):
            raise ValueError(f"left_out must have shape ({m},), got {rows.shape}")
        if rows.dtype.kind not in "iu" and m:
            raise ValueError(f"left_out must contain integers, got {rows.dtype}")
        wrong = (rows < -1) | (rows >= n)
        if wrong.any():
            raise ValueError(
                f"left_out must lie between -1 (none) and {n - 1} "
                f"(the last calibration example), got {rows[wrong][0]}"
            )
        rows = rows.astype(np.intp)
        if groups is not None:
            codes = _group_numbers(groups, n)
            kept = codes if row_of is None else codes[row_of >= 0]
            return LeftOut(np.where(rows < 0, -1, codes[rows]), kept)
        return LeftOut(rows if row_of is None else np.where(rows < 0, -1, row_of[rows]), None)

    def predict_smooth(self, scores: ArrayLike) -> FloatArray:
        """Return the smooth estimates (m, k) that ``merge="smooth"`` clips into the bounds.

        Raises
        ------
        ValueError
            If ``merge`` was not ``"smooth"`` at ``fit``.
        """
        return self._smooth(self._check_new(scores))

    def _check_parameters(self) -> None:
        check_option(self.merge, Merge, "merge")

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        smooth = self._smooth(scores) if self.merge == "smooth" else None
        return self._multiprobability(scores).merge(self.merge, smooth)

    def _formula(self, scores: Terms) -> Terms:
        return self._formulas(scores)["p"]

    def _formulas(self, scores: Terms) -> dict[str, Terms]:
        """Return ``p0``, ``p1`` and ``p``, of the second of two classes or of each of more."""
        if len(scores) > 1:
            found = self._formulas_of_many(scores)
            if "p" not in found:
                low, up = found["p0"], found["p1"]
                smooth = self._smooth_formulas(scores) if self.merge == "smooth" else low
                p = tuple(map(partial(merge_formula, self.merge), low, up, smooth))
                found["p"] = scaled_formulas(p, low, up)
            return found
        start = self._starts()
        rows = np.append(LOWEST, start)
        bounds = self._multiprobability(rows)
        columns = {"p0": bounds.p0, "p1": bounds.p1}
        if self.merge != "smooth":
            columns["p"] = self._predict_proba(rows)[:, 1]
        looked_up = scores[0].look_up(start, columns)
        if self.merge == "smooth":
            smooth = self._smooth_formulas(scores)
            looked_up["p"] = smooth[0].clip(looked_up["p0"], looked_up["p1"])
        return {name: (one,) for name, one in looked_up.items()}

    def _formulas_of_many(self, scores: Terms) -> dict[str, Terms]:
        """Return ``p0`` and ``p1`` of each of several classes, and ``p`` if that is looked up."""
        raise no_formula("calibrator", self)

    def _starts(self) -> FloatArray:
        """Return where bounds for two classes may change, increasing."""
        raise no_formula("calibrator", self)

    def _smooth_formulas(self, scores: Terms) -> Terms:
        """Return the smooth estimates, of the second of two classes or of each of more."""
        raise no_formula("calibrator", self)


def scaled_formulas(p: Terms, lower: Terms, upper: Terms) -> Terms:
    """Return the formulas of `scale_into_bounds`.

    The sum of a row clipped into its bounds rises with the factor, in straight lines between the
    bends at which an entry meets a bound. So it is 1 on the line from the last bend at which it is
    at most 1 to the first at which it is at least 1.
    """
    q = [one.max(LEAST) for one in p]

    def clipped(factor: Term) -> list[Term]:
        return [(x * factor).clip(low, up) for x, low, up in zip(q, lower, upper, strict=True)]

    bends = [bound / x for bounds in (lower, upper) for bound, x in zip(bounds, q, strict=True)]
    sums = [summed(clipped(bend)) for bend in bends]
    least, farthest, most = summed(lower), reduce(Term.max, bends), reduce(Term.max, sums)
    # Where no bend is so low, or so high: the factor 0, or the last bend.
    pairs = list(zip(bends, sums, strict=True))
    begin = reduce(Term.max, [whole.unless_above(1.0, at, 0.0) for at, whole in pairs])
    end = reduce(Term.min, [_from_one(whole, at, farthest) for at, whole in pairs])
    low = reduce(Term.max, [whole.unless_above(1.0, whole, least) for whole in sums])
    high = reduce(Term.min, [_from_one(whole, whole, most) for whole in sums])
    between = begin + (1.0 - low) * ((end - begin) / (high - low))
    scaled = clipped(high.unless_above(low, begin, between))
    total = summed(scaled)
    # clipped once more, since the division rounds
    return tuple(
        (one / total).clip(low, up) for one, low, up in zip(scaled, lower, upper, strict=True)
    )


def _from_one(x: Term, here: Term, below: Term) -> Term:
    """Return ``here`` where x is at least 1, else ``below``."""
    return Computed("if <=", (1.0, x, here, below))


def has_bounds(calibrator: Any) -> bool:
    """Tell whether a calibrator, a class of calibrators, or a model gives bounds."""
    kind = calibrator if isinstance(calibrator, type) else type(calibrator)
    if issubclass(kind, Calibrator):
        return issubclass(kind, BoundedCalibrator)
    return callable(getattr(calibrator, "predict_multiprobability", None))


def no_bounds(calibrator: Any) -> str:
    """Return the sentence for who asks a calibrator, or the name of a method, for bounds."""
    name = calibrator if isinstance(calibrator, str) else type(calibrator).__name__
    instead = "venn-abers" if isinstance(calibrator, str) else "VennAbers"
    return f"{name} gives no bounds: use {instead}"


def merged(calibrator: Any, bounds: Multiprobability, scores: FloatArray) -> FloatArray:
    """Return the probabilities (m, k) that a calibrator makes of its bounds for given scores.

    One that is no `BoundedCalibrator` answers by its ``predict_proba``, moved into the bounds.
    """
    if not isinstance(calibrator, BoundedCalibrator):
        p = np.clip(calibrator.predict_proba(scores), bounds.lower, bounds.upper)
        return scale_into_bounds(p, bounds.lower, bounds.upper)
    if calibrator._fitted.shift is not None:
        return calibrator.predict_proba(scores)
    smooth = calibrator.predict_smooth(scores) if calibrator.merge == "smooth" else None
    return bounds.merge(calibrator.merge, smooth)


@dataclass(frozen=True)
class Method:
    """A calibrator that goes by a name: see `register_calibrator`."""

    name: str
    title: str
    calibrator: type[Calibrator]
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def bounds(self) -> bool:
        """Whether it has ``predict_multiprobability``."""
        return has_bounds(self.calibrator)

    def make(self) -> Calibrator:
        """Return an unfitted calibrator."""
        return self.calibrator(**self.parameters)


METHODS: dict[str, Method] = {}
"""Every calibrator by name, in the order in which reports list them."""


def register_calibrator(
    name: str, title: str, calibrator: type[Calibrator], **parameters: Any
) -> None:
    """Let a calibrator go by a name, wherever names of calibrators are taken or listed.

    In `CalibratedClassifier`, on the command line, in its help and in reports. For model files
    the class, and what it learns, are registered with `vennforest.contributing.stored`.

    Parameters
    ----------
    name : str
        The value of ``method``, such as ``"venn-abers"``.
    title : str
        What a reader of reports and plots sees.
    calibrator : type
        A subclass of `Calibrator`, whose parameters have defaults.
    **parameters
        Those that the name stands for, where they are not the defaults.

    Raises
    ------
    InputError, TypeError
        If another calibrator has the name, or the class is none.
    """
    if not (isinstance(calibrator, type) and issubclass(calibrator, Calibrator)):
        raise TypeError(f"calibrator must be a subclass of Calibrator, got {calibrator!r}")
    known = METHODS.get(name)
    if known is not None and known.calibrator.__qualname__ != calibrator.__qualname__:
        other = known.calibrator.__name__
        raise InputError(f"name must be new, got {name!r}, which {other} has")
    METHODS[name] = Method(name, title, calibrator, parameters)


def check_method(method: object, name: str = "method") -> Method:
    """Return the calibrator of a name."""
    if not isinstance(method, str) or method not in METHODS:
        other = " or a calibrator instance" if name == "method" else ""
        raise not_one_of(name, METHODS, method, other)
    return METHODS[method]


def make_calibrator(method: str | Calibrator) -> Calibrator:
    """Return an unfitted calibrator for a name, or a clone of an instance."""
    if isinstance(method, Calibrator):
        copy: Calibrator = clone(method)
        return copy
    return check_method(method).make()
