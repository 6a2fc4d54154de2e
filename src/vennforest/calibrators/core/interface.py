"""What every calibrator shares: checked scores and labels in, class probabilities out."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from vennforest._state import check_array, labels, number, require, stored
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_scores,
    check_weights,
    encode_labels,
)
from vennforest.calibrators.core.direction import (
    HigherIs,
    direction_of,
    reversed_at,
    reversed_counts,
)
from vennforest.calibrators.core.formula import Terms
from vennforest.counts import ScoreCounts, ScoreGrid
from vennforest.prior import ShiftedPrior, shift_probabilities

Dialect = Literal["duckdb", "spark", "postgres"]
"""Whose SQL."""


class CalibrationTable(NamedTuple):
    """Intervals of the score, ascending, and what a calibrator of two classes says in each.

    Row i holds for scores s with ``start[i] <= s < start[i + 1]``, the last one for all from
    ``start[-1]`` on. Arrays of shape (m,), or None where the calibrator has no such column.
    """

    start: FloatArray
    """The first score of each interval; ``start[0]`` is the smallest score that is accepted."""
    p0: FloatArray | None
    """Lower probability of the second class, in [0, 1]; None without bounds."""
    p1: FloatArray | None
    """Upper probability of the second class, in [0, 1]; None without bounds."""
    p: FloatArray | None
    """Probability of the second class, in [0, 1]; None where it moves within intervals."""


class Exports(Protocol):
    """What calibrators ask of the package ``vennforest.export``."""

    def to_json(self, calibrator: Any) -> str:
        """Return `Calibrator.to_json`."""
        ...

    def from_json(self, text: str | bytes) -> Any:
        """Return `Calibrator.from_json`, of whatever class."""
        ...

    def to_sql(
        self,
        calibrator: Any,
        dialect: Dialect,
        table: str,
        score: str | Sequence[str],
        steps: str | None,
    ) -> str:
        """Return `Calibrator.to_sql`."""
        ...

    def table_of(self, calibrator: Any) -> CalibrationTable:
        """Return `Calibrator.to_table`."""
        ...


def exports() -> Exports:
    """Return the package that writes calibrators, ``vennforest.export``.

    It knows them all and none of them knows it, so it is imported when it is first asked for.
    """
    package: Exports = import_module("vennforest.export")
    return package


def as_tuple(parts: Iterable[Any]) -> tuple[Any, ...]:
    """Return parts as a tuple, whatever holds them in a file."""
    return tuple(parts)


class Learnt:
    """Base of what a calibrator learns: subclasses are ``attrs.frozen`` and registered.

    See ``vennforest._state`` for the validators of their fields, and `Fitted` for what is common
    to all calibrators.
    """

    def check_classes(self, k: int) -> None:
        """Refuse to be of k classes where the fields are those of another number.

        Raises
        ------
        ValueError
            Saying which field is not of so many classes.
        """

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
    """The fitted state of a calibrator.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        The labels, sorted.
    learnt : Learnt
        What ``_fit`` returned.
    n_given : int
        How many examples ``fit`` was given; 0 where it was counts, or where they are forgotten.
    row_of : ndarray of shape (n_given,) or None
        The row of each example that reached ``_fit``, -1 for one of weight zero; None: its own.
    grid : ScoreGrid or None
        The grid that new scores are put on.
    reversed_at : float or None
        New scores s, on the grid if there is one, are replaced by ``reversed_at - s``, where high
        ones mean that the second class is less likely.
    shift : ShiftedPrior or None
        Class frequencies in the place of those calibrated on.
    """

    classes: NDArray[Any] = attrs.field(validator=labels)
    learnt: Learnt = attrs.field(validator=attrs.validators.instance_of(Learnt))
    n_given: int = attrs.field(default=0, validator=number(0, integer=True))
    row_of: IntArray | None = None
    grid: ScoreGrid | None = attrs.field(
        default=None, validator=attrs.validators.optional(attrs.validators.instance_of(ScoreGrid))
    )

    reversed_at: float | None = attrs.field(
        default=None, validator=attrs.validators.optional(number())
    )
    shift: ShiftedPrior | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(attrs.validators.instance_of(ShiftedPrior)),
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
        higher_is: HigherIs = "likelier",
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
        higher_is : {"likelier", "safer", "auto"}, default="likelier"
            What a higher score says of the second of two classes. ``"safer"``: that it is less
            likely, as of credit scores; then all scores are reversed, here and in predictions.
            ``"auto"``: what these examples show.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If scores are NaN or infinite, shapes do not fit, there are fewer than two classes, or
            the examples leave the direction in doubt.
        """
        scores = check_scores(scores)
        check_consistent_length(scores, y)
        if not len(scores):
            raise ValueError("scores must hold at least one example, got 0 sample(s)")
        codes, labels = encode_labels(y, classes)
        if len(labels) < 2:
            raise ValueError(
                "y must hold at least two classes (or name them with classes=), "
                f"got one class: {labels.tolist()[0]!r}"
            )
        weight = check_weights(sample_weight, len(scores))
        scores = _columns(scores, len(labels), self._keeps_columns)
        n_given, row_of = len(scores), None
        if weight is not None and (weight == 0).any():
            kept = weight > 0
            row_of = np.where(kept, np.cumsum(kept) - 1, -1)
            scores, codes, weight = scores[kept], codes[kept], weight[kept]
            weight = check_weights(weight, len(weight))
        at = None
        if higher_is != "likelier":
            at = direction_of(scores, codes, weight, len(labels), higher_is)
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

    def fit_counts(self, counts: ScoreCounts, *, higher_is: HigherIs = "likelier") -> Self:
        """Learn the map from counts of the classes at scores, as from the examples themselves.

        Counts of parts of a data set add up, wherever the parts are. The fit is that of ``fit``
        to the examples they count, to rounding.

        Parameters
        ----------
        counts : ScoreCounts
            Of two classes, or of more: one against the rest for calibrators that fit a map to
            each class, else with score vectors (``vectors=True``). Counts on a grid put new
            scores on that grid.
        higher_is : {"likelier", "safer", "auto"}, default="likelier"
            As of ``fit``.

        Returns
        -------
        self
            Which knows no single examples, so that ``left_out`` must be None.

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
            raise ValueError("counts must hold at least one example, got none")
        at = reversed_at(counts, higher_is)
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

        Parameters
        ----------
        scores : tuple of Term
            The score of the second class (two classes), or one a class.

        Returns
        -------
        tuple of Term
            The probability of the second class (two classes), or one a class.

        Raises
        ------
        ValueError
            If it has none.
        """
        raise ValueError(f"a formula must be of a calibrator that has one, got {self}")

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
        """Return what a model file holds of the calibrator: the arguments of ``from_state``."""
        return {
            "parameters": self.get_params(deep=False),
            "fitted": self.__dict__.get("_fitted"),
        }

    @classmethod
    def from_state(cls, parameters: dict[str, Any], fitted: Fitted | None) -> Self:
        """Return the calibrator that ``to_state`` describes.

        Parameters
        ----------
        parameters : dict
            The arguments of the constructor.
        fitted : Fitted or None
            None for one that is not fitted.

        Raises
        ------
        ValueError
            If the fitted state is that of another kind of calibrator, or does not fit the
            parameters.
        """
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
        NotFittedError
            Before ``fit``.
        ValueError
            If scores are NaN or infinite, or have another number of columns than in ``fit``.
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

        As `CalibratedClassifier.with_prior`: objects of each class stay as they are, and the odds
        of every probability and bound are multiplied. This calibrator stays as it is.

        Parameters
        ----------
        shares : mapping of label to float
            The share of each class there, in (0, 1), with sum 1; classes that are not named share
            the rest in their present proportions.
        instead_of : mapping of label to float, optional
            The shares of the population that calibration examples were drawn from; by default
            those of the examples, which only `VennAbers` keeps.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If a label is unknown, a share is not between 0 and 1, they do not sum to 1, or the
            present shares are not known.

        Examples
        --------
        >>> from vennforest.calibrators import VennAbers
        >>> calibrator = VennAbers().fit([0.1, 0.4, 0.4, 0.8] * 20, [0, 0, 1, 1] * 20)
        >>> calibrator.predict_proba([0.4]).round(2)
        array([[0.5, 0.5]])
        >>> calibrator.with_prior({1: 0.1}).predict_proba([0.4]).round(2)
        array([[0.9, 0.1]])
        """
        check_is_fitted(self, "classes_")
        fitted = self._fitted
        known = self._class_shares() if fitted.shift is None else fitted.shift.shares
        if known is None and instead_of is None:
            raise InputError(
                f"instead_of must be given with a {type(self).__name__}, which has not kept the "
                "shares of the classes that it was calibrated on"
            )
        if known is None:
            known = np.full(len(fitted.classes), 1 / len(fitted.classes))
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
        that has a name.

        Returns
        -------
        CalibrationTable
            ``start``, ``p0``, ``p1`` and ``p``, arrays of shape (m,): what holds for scores from
            each start up to the next, equal to what the calibrator answers to the last bit. p0
            and p1 are None without bounds, and p with ``merge="smooth"``, which moves within the
            intervals. ``pandas.DataFrame(table._asdict())`` is a data frame.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If there are more than two classes, or nothing is constant on intervals.
        """
        check_is_fitted(self, "classes_")
        return exports().table_of(self)

    def to_json(self) -> str:
        """Return the fitted calibrator as JSON, which any program can read.

        Returns
        -------
        str
            A document of the schema in ``docs/calibrator-json.md``: what was learnt, and its
            formulas and tables, for programs that only apply it.
            Single calibration examples are not in it, as after ``fit_counts``.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If it holds something else than numbers and text, such as a user's function.
        """
        check_is_fitted(self, "classes_")
        return exports().to_json(self)

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Return the calibrator that ``to_json`` has written.

        It answers what the written one answered, to the last bit on a machine with the same
        library. Nothing in a document is executed, and every part is checked.

        Parameters
        ----------
        text : str or bytes
            The document.

        Returns
        -------
        Calibrator
            Of the class it was written from; called on a class, only of that one.

        Raises
        ------
        InputError
            A ``ValueError``: the document is none that ``to_json`` could have written, or of a
            calibrator of another class.
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
            A table that holds what ``to_table`` gives, for large ones; None: it is written into
            the query.

        Returns
        -------
        str
            A SELECT of all columns and ``p0``, ``p1`` (with bounds) and ``p``, which are NULL
            where the score is NULL, NaN, infinite, or refused by ``predict_proba``; of more than
            two classes ``p_`` and the label, for each. Rows come in no order.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If the dialect is none of these, bounds are of more than two classes, or the
            calibrator holds a function of the user's.

        Notes
        -----
        What ``to_table`` has is looked up, and equal to the last bit. Everything else is a
        formula, for which the system's own LN and EXP differ from Python's in the last digits:
        by 1e-13 at most in ``p``.
        """
        check_is_fitted(self, "classes_")
        return exports().to_sql(self, dialect, table, score, steps)

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

    def _check_new(self, scores: ArrayLike) -> FloatArray:
        if "_fitted" not in self.__dict__:  # scikit-learn's check alone takes longer than the rest
            check_is_fitted(self, "classes_")
        if (grid := self._fitted.grid) is None:
            checked = _columns(check_scores(scores), len(self.classes_), self._keeps_columns)
        else:
            checked = grid(_columns(check_scores(scores), len(self.classes_), False))
        at = self._fitted.reversed_at
        return checked if at is None else at - checked

    def __sklearn_tags__(self) -> Tags:
        """Describe to scikit-learn an estimator whose input is one column of scores."""
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


def _columns(scores: FloatArray, k: int, keep: bool) -> FloatArray:
    """Return scores as (n,) for two classes (unless both are to be kept), as (n, k) for more."""
    if k == 2:
        if scores.ndim == 1 or (keep and scores.shape[1] == 2):
            return scores
        if scores.shape[1] in (1, 2):
            return np.ascontiguousarray(scores[:, -1])
    elif scores.ndim == 2 and scores.shape[1] == k:
        return scores
    raise ValueError(f"scores must have a column for each of {k} classes, got {scores.shape}")
