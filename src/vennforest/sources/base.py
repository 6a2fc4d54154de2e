"""What a fit is given and what sources make of it: data, folds, scorers; steps of pipelines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self, TypedDict, Unpack

import attrs
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_consistent_length, column_or_1d

from vennforest._state import stored
from vennforest._validation import (
    CodeArray,
    FloatArray,
    InputError,
    IntArray,
    array,
    check_array,
    check_number,
    labels,
    require,
)
from vennforest.forest import leaves_rows_out


class SampledScores(NamedTuple):
    """Scores of new objects by one subforest each, or by several.

    ``scores`` has shape (samples * m,) or (samples * m, k), all objects of one sample side by side;
    ``left_out`` of shape (samples * m,) is the calibration example that each score leaves out, None
    where none does.
    """

    scores: FloatArray
    left_out: IntArray | None
    samples: int


class Scorer(Protocol):
    """Gives scores of the kind the calibrator was fitted to.

    Where ``partial`` is true, the scores are by sampled subforests, and ``whole(X)`` returns the
    scores (m,) or (m, k) by all members. Where ``small_ensemble`` is true, ``point_scores(X)``
    returns a list of scores by subforests: the probability is the geometric mean of what the point
    calibrator maps them to.
    """

    def sampled_scores(self, X: Any) -> Iterator[SampledScores]:
        """Yield the scores of the rows of X; every sample has the same weight."""
        ...


@stored("fold")
@attrs.frozen(eq=False)
class Fold:
    """A fitted model and the calibration set that goes with it.

    Attributes
    ----------
    estimator : classifier
        Fitted.
    scores : ndarray of shape (n,) or (n, k)
        Calibration scores: of the second of two classes, or a column per class.
    codes : ndarray of shape (n,)
        Index of each calibration example's class.
    weight : ndarray of shape (n,) or None
        Their weights; None where all are 1.
    scorer : Scorer
        Scores new objects.
    groups : ndarray of shape (n,) or None
        The group of each calibration example, where whole groups are left out for a new object.
    rows : ndarray of shape (n,) or None
        Which rows given to ``fit`` the calibration examples are, where their scores are by a model
        that did not see them; None: not known, or the model did.
    by : ndarray of shape (n,) or None
        The group that each calibration example is calibrated in, where there are such.
    noise : ndarray of shape (n,) or None
        Variance of each calibration score s around that by all members, as a share of s (1 - s);
        None: there is none, or it is not known.
    member_noise : float or None
        Variance of the score of a new object between ensembles with other seeds, likewise.
    """

    estimator: Any = attrs.field()
    scores: FloatArray = attrs.field()
    codes: CodeArray = attrs.field(validator=array(None, kinds="iu", low=0))
    weight: FloatArray | None = attrs.field()
    scorer: Scorer = attrs.field()
    groups: IntArray | None = attrs.field(default=None)
    rows: CodeArray | None = attrs.field(default=None)
    by: IntArray | None = attrs.field(default=None)
    noise: FloatArray | None = attrs.field(default=None)
    member_noise: float | None = attrs.field(default=None)

    def __attrs_post_init__(self) -> None:
        require(hasattr(self.estimator, "fit"), "estimator must be a classifier")
        require(hasattr(self.scorer, "sampled_scores"), "scorer must give scores")
        n = len(self.codes)
        check_array(self.scores, "scores", (n, None)[: np.ndim(self.scores)])
        if self.weight is not None:
            check_array(self.weight, "weight", (n,), low=0)
            require((self.weight > 0).all(), "weight must be above zero")
        for name in ("groups", "rows", "by"):
            if getattr(self, name) is not None:
                check_array(getattr(self, name), name, (n,), "i", 0)
        if self.noise is not None:
            check_array(self.noise, "noise", (n,), low=0)
        if self.member_noise is not None:
            check_number(self.member_noise, "member_noise", 0)

    def check_classes(self, k: int) -> None:
        """Refuse scores or codes of other than k classes, or of no example."""
        require(len(self.codes), "codes must be of one example or more")
        check_array(self.codes, "codes", self.codes.shape, "iu", 0, k - 1)
        columns = 1 if self.scores.ndim == 1 else self.scores.shape[1]
        require(columns in ((1, 2) if k == 2 else (k,)), f"scores must be of {k} classes")


def whole_scores(part: Fold, X: Any) -> FloatArray:
    """Return the scores (m,) or (m, k) of the rows of X by the whole model of a part."""
    if getattr(part.scorer, "partial", False):
        scores: FloatArray = part.scorer.whole(X)  # type: ignore[attr-defined]
        return scores
    return next(iter(part.scorer.sampled_scores(X))).scores


@dataclass(frozen=True, eq=False)
class CalibrationExamples:
    """The calibration examples of several folds, one after another; no weight where all are 1."""

    scores: FloatArray
    codes: IntArray
    weight: FloatArray | None

    @classmethod
    def of(cls, folds: Sequence[Fold]) -> Self:
        """Return the examples of some folds."""
        ones = [np.ones(len(f.codes)) if f.weight is None else f.weight for f in folds]
        weighted = any(fold.weight is not None for fold in folds)
        return cls(
            np.concatenate([fold.scores for fold in folds]),
            np.concatenate([fold.codes for fold in folds]).astype(np.intp),
            np.concatenate(ones) if weighted else None,
        )


class Drawn(TypedDict):
    """What `Source.folds` takes by name."""

    seed: int
    random_state: np.random.RandomState
    n_jobs: int | None


class Source(Protocol):
    """Where calibration scores come from: data in, fitted models with calibration scores out.

    The value of ``calibrate_on`` in `CalibratedClassifier`. A source of one's own is an object
    with this one method; bounds are valid only where no score has seen its own label.

    Examples
    --------
    A model trained on the first half of the rows and calibrated on the second, for data in order
    of time:

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> from vennforest.sources import ModelScorer, Fold, model_scores
    >>> @dataclass(frozen=True)
    ... class FirstHalf:
    ...     def folds(self, estimator, data, *, seed, random_state, n_jobs):
    ...         order = np.arange(len(data))
    ...         past, recent = np.array_split(order, 2)
    ...         model = data.rows(past).fit(estimator)
    ...         held = data.rows(recent)
    ...         scores = model_scores(model, held.X, data.classes)
    ...         scorer = ModelScorer(model, data.classes)
    ...         return [Fold(model, scores, held.codes, held.weight, scorer)]
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from vennforest import CalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(GaussianNB(), calibrate_on=FirstHalf()).fit(X, y)
    >>> len(model.calibration_scores_)
    284
    """

    def folds(self, estimator: Any, data: TrainingData, **given: Unpack[Drawn]) -> Sequence[Fold]:
        """Fit models and score calibration examples; a ValueError says what cannot calibrate.

        Parameters
        ----------
        estimator : classifier
            Not fitted, its unset seeds drawn; to be cloned, not fitted itself.
        data : TrainingData
            What ``fit`` was given, rows of weight zero included.
        seed : int
            Of what is drawn for new objects later.
        random_state : RandomState
            Of what is drawn now, such as a split.
        n_jobs : int or None
            Threads, or models fitted at once.
        """
        ...


NONE = ("None", "nan", "NaT", "<NA>")
"""What Python prints of cells that are missing."""


@attrs.frozen(eq=False)
class TrainingData:
    """What ``fit`` was given, checked.

    Attributes
    ----------
    X : array-like of shape (n, d)
        As it came.
    y : ndarray of shape (n,)
        Labels as they came: the model learns them, not their codes.
    codes : ndarray of shape (n,)
        Index of each label in ``classes``.
    classes : ndarray of shape (k,)
        The labels, sorted.
    weight : ndarray of shape (n,) or None
        Weights; None where all are 1.
    fit_params : mapping
        What else the model's ``fit`` is given; entries of length n go with the rows.
    weight_param : str or None
        The name under which the model's ``fit`` takes weights; None: it does not.
    split_params : mapping
        What a splitter is given besides X and y, such as ``groups``; of all rows.
    chosen : ndarray of shape (n,) or None
        Which of the rows given to ``fit`` these are; None: all of them, in their order.
    by : ndarray of shape (n,) or None
        The group that each row is calibrated in; a source hands it on in its folds.
    """

    X: Any
    y: NDArray[Any]
    codes: CodeArray
    classes: NDArray[Any]
    weight: FloatArray | None = None
    fit_params: Mapping[str, Any] = attrs.field(factory=dict)
    weight_param: str | None = None
    split_params: Mapping[str, Any] = attrs.field(factory=dict)
    chosen: CodeArray | None = None
    by: IntArray | None = None

    def __attrs_post_init__(self) -> None:
        """Refuse arrays of other numbers of rows."""
        n = len(self.codes)
        for name in ("y", "weight", "chosen", "by"):
            value = getattr(self, name)
            require(value is None or len(value) == n, f"{name} must be of {n} rows")

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def numbers(self) -> CodeArray:
        """Which of the rows given to ``fit`` these are, (n,)."""
        if self.chosen is not None:
            return self.chosen
        return np.arange(len(self), dtype=np.int32 if len(self) < 1 << 31 else np.int64)

    @property
    def groups(self) -> IntArray | None:
        """Each row's group, numbered from 0; None where no groups were given."""
        given = self.split_params.get("groups")
        if given is None:
            return None
        groups = column_or_1d(given)
        check_consistent_length(self.codes, groups)
        if groups.dtype.kind in "fmMO":
            cells = groups.astype(object).tolist()
            missing = sum(not isinstance(one, str) and str(one) in NONE for one in cells)
            if missing:
                raise InputError(
                    f"groups must name a group for every row, got {missing} that are missing: give "
                    "these rows a group each"
                )
        if groups.dtype.kind == "O":
            groups = groups.astype(str)
        numbers: IntArray = np.unique(groups, return_inverse=True)[1]
        return numbers

    def rows(self, index: IntArray) -> TrainingData:
        """Return the chosen rows."""

        def chosen(params: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: _safe_indexing(value, index) if _has_rows(value, len(self)) else value
                for name, value in params.items()
            }

        weight = None if self.weight is None else self.weight[index]
        if weight is not None and (weight == 1).all():
            weight = None
        return TrainingData(
            _safe_indexing(self.X, index),
            self.y[index],
            self.codes[index],
            self.classes,
            weight,
            chosen(self.fit_params),
            self.weight_param,
            chosen(self.split_params),
            # The very array where it can be: a scorer may keep it too.
            index if self.chosen is None else self.chosen[index],
            None if self.by is None else self.by[index],
        )

    def present(self) -> TrainingData:
        """Return the rows that count: a weight of zero is the example's absence."""
        if self.weight is None or (self.weight > 0).all():
            return self
        return self.rows(np.flatnonzero(self.weight > 0))

    def fold(self, model: Any, scores: FloatArray, scorer: Scorer, **more: Any) -> Fold:
        """Return a fold that these rows calibrate; ``more`` are further fields of `Fold`."""
        codes, weight = self.codes, self.weight
        return Fold(model, scores, codes, weight, scorer, rows=self.numbers, by=self.by, **more)

    def fit(self, estimator: Any) -> Any:
        """Fit a clone of the estimator and return it."""
        model = clone(estimator)
        model.fit(self.X, self.y, **self.all_fit_params())
        return model

    def all_fit_params(self) -> dict[str, Any]:
        """Return the keyword arguments of the model's ``fit``, weights included."""
        params = dict(self.fit_params)
        if self.weight is not None and self.weight_param is not None:
            params[self.weight_param] = self.weight
        return params


def _has_rows(value: Any, n: int) -> bool:
    shape = getattr(value, "shape", None)
    if shape is not None:
        return len(shape) > 0 and shape[0] == n
    return isinstance(value, list | tuple) and len(value) == n


@stored("model-scorer")
@attrs.frozen(eq=False)
class ModelScorer:
    """Scores new objects with the whole fitted model."""

    model: Any = attrs.field()
    classes: NDArray[Any] = attrs.field(validator=labels)

    def __attrs_post_init__(self) -> None:
        require(hasattr(self.model, "fit"), "model must be a classifier")

    def sampled_scores(self, X: Any) -> Iterator[SampledScores]:
        """Yield the scores by the whole model, which leave no example out."""
        yield SampledScores(model_scores(self.model, X, self.classes), None, 1)


def model_scores(model: Any, X: Any, classes: NDArray[Any]) -> FloatArray:
    """Return a fitted classifier's probabilities or decision values of the rows of X (n, d).

    Of two ``classes`` (k,), all labels, sorted, those of the second, (n,), else a column per class,
    (n, k). A class that the model does not know has probability 0, or a decision value equal to the
    smallest of its row.

    Raises
    ------
    TypeError
        If the model has neither ``predict_proba`` nor ``decision_function``.
    ValueError
        If its scores are not one per class, or of other labels.
    """
    known = np.asarray(model.classes_) if hasattr(model, "classes_") else classes
    if hasattr(model, "predict_proba"):
        scores = np.asarray(model.predict_proba(X), dtype=np.float64)
        missing = np.zeros(len(scores))
    elif hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        if scores.ndim == 1:
            scores = np.column_stack([-scores, scores])[:, -len(known) :]
        elif getattr(model, "decision_function_shape", "ovr") == "ovo" and len(known) > 2:
            raise ValueError(
                "estimator must have one decision value per class, got one for each pair: "
                'use decision_function_shape="ovr"'
            )
        missing = scores.min(axis=1)
    else:
        raise TypeError(
            f"estimator must have predict_proba or decision_function, got {type(model).__name__}"
        )
    rows = _num_samples(X)
    if scores.shape != (rows, len(known)):
        raise InputError(
            f"estimator must give scores of shape ({rows}, {len(known)}), a column for each of "
            f"classes_, got {scores.shape}"
        )
    if not np.array_equal(known, classes):
        column = {label: j for j, label in enumerate(known.tolist())}
        if strange := [label for label in known.tolist() if label not in classes.tolist()]:
            raise InputError(
                f"estimator must keep the labels of y in classes_, got {strange[0]!r}, which is "
                "none: return scores of the labels given to fit"
            )
        scores = np.column_stack(
            [scores[:, column[c]] if c in column else missing for c in classes.tolist()]
        )
    return np.ascontiguousarray(scores[:, 1] if len(classes) == 2 else scores)


def with_seed(estimator: Any, random_state: np.random.RandomState) -> Any:
    """Return a clone whose unset ``random_state`` parameters, nested ones too, are drawn.

    The user's own are kept.
    """
    model = clone(estimator)
    if isinstance(model, FrozenEstimator) or not isinstance(model, BaseEstimator):
        return model
    unset = [
        name
        for name, value in sorted(model.get_params(deep=True).items())
        if (name == "random_state" or name.endswith("__random_state")) and value is None
    ]
    return model.set_params(**{name: int(random_state.randint(2**31 - 1)) for name in unset})


def _steps_of(estimator: Any) -> tuple[list[tuple[str, Any]], Any]:
    """Return the named steps before the last, however deep the pipelines at the end, and the last.

    That is the estimator itself where it is no pipeline.
    """
    steps: list[tuple[str, Any]] = []
    while isinstance(estimator, Pipeline) and estimator.steps:
        steps += estimator.steps[:-1]
        estimator = estimator.steps[-1][1]
    return steps, estimator


def last_step(estimator: Any) -> Any:
    """Return the classifier at the end of a pipeline, or the estimator itself."""
    return _steps_of(estimator)[1]


def is_bagged(estimator: Any) -> bool:
    """Tell whether examples will be out of bag for some members of the estimator's ensemble."""
    return leaves_rows_out(last_step(estimator))


def feature_importances(estimator: Any) -> FloatArray:
    """Return a fitted estimator's importance of each of its columns, shape (d,).

    Where a step before the last tells which column each of its outputs comes from (``sources_``,
    as `vennforest.tables.TableEncoder` does) those of the outputs are summed.
    """
    last = last_step(estimator)
    found = getattr(last, "feature_importances_", None)
    if found is None:
        raise AttributeError(
            f"{type(last).__name__} has no feature_importances_: "
            "sklearn.inspection.permutation_importance works with every classifier"
        )
    importances: FloatArray = np.asarray(found, dtype=np.float64)
    before = transformers_of(estimator)
    if not before:
        return importances
    sources, names = (getattr(before[-1], name, None) for name in ("sources_", "feature_names_in_"))
    own = getattr(estimator, "feature_names_in_", None)
    if sources is None or own is None or names is None or list(names) != list(own):
        raise AttributeError(
            "the importances of a pipeline's last step are of the features that its steps make: "
            "see estimator_[-1].feature_importances_, or use "
            "sklearn.inspection.permutation_importance"
        )
    column = {name: j for j, name in enumerate(own.tolist())}
    summed: FloatArray = np.zeros(len(own))
    np.add.at(summed, [column[name] for name in sources], importances)
    return summed


def taken_apart(model: Any) -> tuple[Pipeline | None, Any]:
    """Return a fitted model's transformers as one pipeline, None without any, and its last step."""
    steps, last = _steps_of(model)
    named = [(f"{i}-{name}", step) for i, (name, step) in enumerate(steps)]
    return Pipeline(named) if named else None, last


def transform_rows(transformers: Pipeline | None, X: Any) -> Any:
    """Return the rows of X behind fitted transformers, one after another.

    ``Pipeline.transform`` refuses a pipeline that ends in a transformer without fitted attributes.
    """
    for _, step in () if transformers is None else transformers.steps:
        if step not in (None, "passthrough"):
            X = step.transform(X)
    return X


def transformers_of(estimator: Any) -> list[Any]:
    """Return the steps before the last, those of nested pipelines at the end included."""
    return [step for _, step in _steps_of(estimator)[0] if step not in (None, "passthrough")]


def parts_of(estimator: Any) -> Iterator[Any]:
    """Yield an estimator and every estimator among its parameters, at any depth."""
    seen: set[int] = set()
    todo = [estimator]
    while todo:
        part = todo.pop()
        if id(part) in seen or isinstance(part, type):
            continue
        seen.add(id(part))
        if isinstance(part, list | tuple):
            todo.extend(part)
        elif isinstance(part, Mapping):
            todo.extend(part.values())
        elif hasattr(part, "get_params"):
            yield part
            todo.extend(part.get_params(deep=False).values())
