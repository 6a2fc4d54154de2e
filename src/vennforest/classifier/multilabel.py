"""Several labels at once: one training, and a calibrator of two classes for each label."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import attrs
import numpy as np
from attrs.validators import instance_of
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.tree._tree import Tree

from vennforest._messages import warn
from vennforest._state import stored
from vennforest._validation import FloatArray, InputError, IntArray, number, require, same_labels
from vennforest.calibrators.confidence import ConfidenceIntervals
from vennforest.classifier.fitted import (
    FittedClassifier,
    Once,
    Prediction,
    predict,
    predict_training_rows,
)
from vennforest.classifier.intervals import Asked, predict_confidence
from vennforest.classifier.settings import Settings
from vennforest.forest import BagsError
from vennforest.forest.packed import FORESTS
from vennforest.multiprobability import Multiprobability
from vennforest.sources import Fold, ModelScorer, Source, TrainingData, with_seed
from vennforest.sources.base import last_step
from vennforest.sources.checks import check_training_data
from vennforest.sources.registry import choose
from vennforest.sources.row_hashes import KnownRows

TWO = np.array([0, 1])
"""The classes of every label."""

ONE_EACH = "fit one CalibratedClassifier for each label"


class SeveralLabelsError(InputError, AttributeError):
    """Something that a classifier of several labels has for each of them alone."""


@dataclass(frozen=True, eq=False)
class LabelBounds:
    """Lower and upper probabilities (n, q), in [0, 1], of every label for n objects.

    Unlike a `Multiprobability`, whose columns are classes of which one is true, each column is a
    question of its own: whether the object has that label. ``classes`` (q,) are their numbers.
    """

    lower: FloatArray
    upper: FloatArray
    classes: NDArray[Any]

    def __len__(self) -> int:
        return len(self.lower)


@stored("one-label")
@attrs.frozen(eq=False)
class OneLabel:
    """A model fitted to ``n_labels`` labels, as a classifier of one of them."""

    model: Any = attrs.field()
    label: int = attrs.field(validator=number(0, integer=True))
    n_labels: int = attrs.field(validator=number(2, integer=True))

    def __attrs_post_init__(self) -> None:
        require(hasattr(self.model, "predict_proba"), "model must have predict_proba")
        require(self.label < self.n_labels, f"label must be one of {self.n_labels}")

    @property
    def classes_(self) -> NDArray[Any]:
        """Whether an object has the label: 0 and 1."""
        return TWO

    @property
    def n_features_in_(self) -> int:
        """How many features the model was given."""
        n: int = self.model.n_features_in_
        return n

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Their names, where they had some."""
        names: NDArray[Any] = self.model.feature_names_in_
        return names

    def fit(self, X: Any, y: Any) -> OneLabel:
        """Refuse: the model is trained on all labels together."""
        raise InputError(f"a model of several labels is not fitted to one of them: {ONE_EACH}")

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the model's probabilities (n, 2) that a row lacks and that it has the label."""
        own = slice(self.label, self.label + 1)
        p = label_scores(self.model, X, self.n_labels, own)
        return np.hstack([1 - p, p])


@stored("fitted-labels")
@attrs.frozen(eq=False)
class FittedLabels:
    """A fitted classifier of two classes for each of q labels, trained together."""

    labels: tuple[FittedClassifier, ...] = attrs.field(validator=instance_of(tuple))

    def __attrs_post_init__(self) -> None:
        require(len(self.labels) >= 2, "labels must be two or more")
        first: Any = self.labels[0]
        for one in self.labels:
            require(isinstance(one, FittedClassifier), "labels must be fitted classifiers")
            require(same_labels(one.classes, TWO), "labels must be zeros and ones")
            for name in ("n_rows", "calibrate_on", "calibrate_on_reason"):
                same = getattr(one, name) == getattr(first, name)
                require(same, f"{name} must be the same for every label")
            require(
                one.folds[0].estimator.n_features_in_ == first.folds[0].estimator.n_features_in_,
                "n_features_in_ must be the same for every label",
            )

    @property
    def classes(self) -> NDArray[Any]:
        """The numbers of the labels, (q,)."""
        return np.arange(len(self.labels))


def check_label_table(y: Any) -> IntArray:
    """Return a table of labels (n, q), zeros and ones in every column, as integers."""
    if issparse(y):
        raise InputError("y must be dense, got a sparse array: use its toarray()")
    table = np.asarray(y)
    if not len(table):
        raise InputError("X must contain at least one example, got 0 sample(s)")
    rule = "y must be zeros and ones, a column for each label, to have several columns"
    try:
        numbers = table.astype(np.float64)
    except (TypeError, ValueError):
        numbers = None
    if numbers is None or table.dtype.kind in "SU":
        raise InputError(f"{rule}, got {table.dtype}")
    wrong = numbers[(numbers != 0) & (numbers != 1)]
    if len(wrong):
        raise InputError(f"{rule}, got {wrong[0]:g}: fit one CalibratedClassifier for each column")
    made = numbers.astype(np.intp)
    if (made.sum(axis=1) == 1).all():
        warn(
            "every row of y has exactly one label, as classes in one column each have: the "
            "probabilities of a row will not sum to 1. If these are classes, give their numbers, "
            "y.argmax(axis=1)"
        )
    for j in np.flatnonzero((made == made[0]).all(axis=0)):
        raise InputError(
            f"y must contain zeros and ones in every column, got {made[0, j]} alone in column {j}: "
            "leave that label out"
        )
    return made


def label_scores(model: Any, X: Any, q: int, some: slice = slice(None)) -> FloatArray:
    """Return a fitted model's probabilities (n, q) that rows have each of q labels, or some."""
    found = model.predict_proba(X)
    if not isinstance(found, list):
        p = np.asarray(found, dtype=np.float64)
        if p.ndim == 2 and p.shape[1] == q:
            return p[:, some]
        got = f"an array of shape {p.shape}"
    elif len(found) == q:
        known = model.classes_
        return np.column_stack(
            [_of_one(p, one) for p, one in zip(found[some], known[some], strict=True)]
        )
    else:
        got = f"a list of {len(found)}"
    raise InputError(
        f"estimator must return probabilities of {q} labels for a y of {q} columns, got {got} from "
        f"{type(model).__name__}: {ONE_EACH}"
    )


def _of_one(p: Any, known: Any) -> FloatArray:
    """Return the column of ones; a fold's model may have seen zeros alone, or ones alone."""
    ones = np.flatnonzero(np.asarray(known) == 1)
    column: FloatArray = np.asarray(p, np.float64)[:, ones[0]] if len(ones) else np.zeros(len(p))
    return column


class _Together(ClassifierMixin, BaseEstimator):
    """An estimator of several labels, for sources: the column of scores of each label.

    A column of zeros follows: sources keep one column alone where there are two classes.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: IntArray) -> _Together:
        """Fit a clone to all labels."""
        self.n_labels_ = y.shape[1]
        self.classes_ = np.arange(self.n_labels_ + 1)
        self.model_ = clone(self.estimator).fit(X, y)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the scores of the labels, and zeros, (n, q + 1)."""
        p = label_scores(self.model_, X, self.n_labels_)
        return np.column_stack([p, np.zeros(len(p))])


def fit_labels(
    settings: Settings,
    by: Any,
    estimator: Any,
    X: Any,
    y: Any,
    random_state: np.random.RandomState,
    splits: np.random.RandomState,
) -> FittedLabels:
    """Train on all labels together, and calibrate each.

    A forest out of bag is trained once: its bags are those of every label. Read for one label its
    trees are those of a forest of two classes, whose bags are verified like any other's. The seeds
    are those of `Settings.score`.
    """
    table = check_label_table(y)
    _check_parameters(settings, by, estimator)
    estimator = with_seed(estimator, random_state)
    seed = int(random_state.randint(2**31 - 1))
    # How labels are spread over folds is looked at for the rarest: it is the first to be missing.
    counts = table.sum(axis=0)
    rarest = int(np.minimum(counts, len(table) - counts).argmin())
    codes = table.astype(np.int8)
    n, q = table.shape
    data = TrainingData(X, table, codes[:, rarest], np.arange(q + 1))
    name, reason = _choose(settings, estimator, data)
    check_training_data(estimator, attrs.evolve(data, classes=TWO), name)
    given: dict[str, Any] = {"seed": seed, "random_state": splits, "n_jobs": settings.n_jobs}
    every: list[list[Fold]] = []
    if name == "oob":
        try:
            every = _out_of_bag(settings.source("oob"), estimator, data, codes, given)
        except BagsError as error:
            if settings.calibrate_on == "oob":
                raise
            name, reason = "cv", error.reason
    if name != "oob":
        together = settings.source(name).folds(_Together(estimator), data, **given)
        every = [[_of_label(fold, j, codes) for fold in together] for j in range(q)]
    settings.warn_of_no_effect(name, reason)
    known = KnownRows.of(X)
    return FittedLabels(
        tuple(
            FittedClassifier.calibrate(
                settings, TWO, folds, name, reason, n_rows=n, known_rows=known
            )
            for folds in every
        )
    )


def _check_parameters(settings: Settings, by: Any, estimator: Any) -> None:
    """Refuse what is not known to be right for several labels."""
    sources = "auto", "oob", "cv", "holdout"
    for name, value, allowed in (
        ("by", by, (None,)),
        ("subforest", settings.given.subforest, ("all",)),
        ("calibrate_on", settings.calibrate_on, sources),
    ):
        if value not in allowed:
            shown = " or ".join(map(repr, allowed))
            raise InputError(
                f"{name} must be {shown} for a y of several columns, got {value!r}: {ONE_EACH}"
            )
    if isinstance(estimator, FrozenEstimator) or not hasattr(estimator, "predict_proba"):
        raise InputError(
            "estimator must have predict_proba, and not be frozen, for a y of several columns, got "
            f"{type(estimator).__name__}: {ONE_EACH}"
        )


def _choose(settings: Settings, estimator: Any, data: TrainingData) -> tuple[str, str]:
    """Return the name of the source, and why, in a clause."""
    name, reason = choose(settings.calibrate_on, estimator, data, settings.given.cv, "all")
    if not (isinstance(estimator, FORESTS) and estimator.bootstrap):
        why = "the estimator is not a forest of scikit-learn's with bootstrap=True"
    elif estimator.class_weight is not None:
        why = "class_weight weighs a row by all its labels together"
    else:
        return name, reason
    if name == settings.calibrate_on == "oob":
        raise InputError(
            f'calibrate_on must be "cv" or "holdout" for several labels here, got "oob": {why}'
        )
    return ("cv", why) if name == "oob" else (name, reason)


def _out_of_bag(
    source: Source,
    estimator: Any,
    data: TrainingData,
    codes: NDArray[np.int8],
    given: dict[str, Any],
) -> list[list[Fold]]:
    """Return the fold of each label, all of one forest."""
    forest = clone(estimator).fit(data.X, data.y)
    every = []
    for j in range(codes.shape[1]):
        view = forest_of_label(forest, j)
        own = TrainingData(data.X, data.y[:, j], codes[:, j].copy(), TWO)
        try:
            folds = source.folds(FrozenEstimator(view), own, **given)
        except BagsError as error:
            raise BagsError(
                "estimator must be a forest whose bags can be verified for every label, got a "
                f'{type(forest).__name__} without: use calibrate_on="cv"',
                "the bags of the forest cannot be verified for every label",
            ) from error
        every.append([attrs.evolve(fold, estimator=view) for fold in folds])
    return every


def forest_of_label(forest: Any, label: int) -> Any:
    """Return a fitted forest of several labels as a forest of one of them.

    Its trees have the same nodes, and the leaves the frequencies of that label alone. Bags follow
    from the seeds of the trees, and stay.
    """
    view = copy.copy(forest)
    view.estimators_ = [_tree_of_label(tree, label) for tree in forest.estimators_]
    view.classes_, view.n_classes_, view.n_outputs_ = forest.classes_[label], 2, 1
    # The forest's own out-of-bag answers, if it was asked for them, are of all labels.
    for name in ("oob_score_", "oob_decision_function_"):
        view.__dict__.pop(name, None)
    return view


def _tree_of_label(member: Any, label: int) -> Any:
    view = copy.copy(member)
    state = dict(member.tree_.__getstate__())
    state["values"] = np.ascontiguousarray(state["values"][:, label : label + 1])
    made = Tree(int(member.n_features_in_), np.array([2], dtype=np.intp), 1)
    made.__setstate__(state)
    view.tree_ = made
    view.classes_, view.n_classes_, view.n_outputs_ = member.classes_[label], 2, 1
    return view


def _of_label(fold: Fold, label: int, codes: NDArray[np.int8]) -> Fold:
    """Return the fold of one label from that of all."""
    rows = fold.rows
    assert rows is not None  # folds and held-out parts know theirs
    view = _view(fold.estimator.model_, label, codes.shape[1])
    scores = np.ascontiguousarray(fold.scores[:, label])
    return Fold(view, scores, codes[rows, label], None, ModelScorer(view, TWO), rows=rows)


def _view(model: Any, label: int, q: int) -> Any:
    """Return a fitted model of q labels as a classifier of one of them."""
    forest = last_step(model)
    if not (isinstance(forest, FORESTS) and len(forest.classes_[label]) == 2):
        return OneLabel(model, label, q)
    # A forest of two classes, since what the library does with forests it does with these.
    if model is forest:
        return forest_of_label(forest, label)
    view = copy.copy(model)
    name = view.steps[-1][0]
    view.steps = [*view.steps[:-1], (name, _view(view.steps[-1][1], label, q))]
    return view


def _scored_once(fitted: FittedLabels) -> Iterator[FittedClassifier]:
    """Yield the classifier of each label; a model of all labels scores the rows once."""
    models: dict[int, Once] = {}
    for one in fitted.labels:
        folds = list(one.folds)
        for i, fold in enumerate(folds):
            view = fold.estimator
            if isinstance(view, OneLabel):
                model = models.setdefault(id(view.model), Once(view.model))
                scorer = ModelScorer(attrs.evolve(view, model=model), TWO)
                folds[i] = attrs.evolve(fold, scorer=scorer)
        yield attrs.evolve(one, folds=tuple(folds))


def predict_labels(
    fitted: FittedLabels, X: Any, bounds: bool = True
) -> tuple[LabelBounds | None, FloatArray]:
    """Return the bounds, where the method has them, and the probabilities (n, q) of rows."""
    return _joined([predict(one, X, bounds) for one in _scored_once(fitted)], fitted.classes)


def predict_label_training_rows(fitted: FittedLabels) -> tuple[LabelBounds | None, FloatArray]:
    """Return the same of the rows given to ``fit``, each without its own labels."""
    return _joined([predict_training_rows(one) for one in fitted.labels], fitted.classes)


def _joined(
    every: Sequence[Prediction], classes: NDArray[Any]
) -> tuple[LabelBounds | None, FloatArray]:
    p = np.column_stack([one[:, 1] for _, one in every])
    known: list[Multiprobability] = [found for found, _ in every if found is not None]
    if not known:
        return None, p
    lower = np.column_stack([found.lower[:, 1] for found in known])
    upper = np.column_stack([found.upper[:, 1] for found in known])
    return LabelBounds(lower, upper, classes), p


def predict_label_confidence(fitted: FittedLabels, X: Any, asked: Asked) -> ConfidenceIntervals:
    """Return confidence intervals (n, q) for the frequency of each label."""
    if asked.simultaneous:
        raise InputError(f"simultaneous must be False for several labels, got True: {ONE_EACH}")
    every = [predict_confidence(one, X, asked) for one in _scored_once(fitted)]
    widened = [one.widened for one in every if one.widened is not None]
    return ConfidenceIntervals(
        np.column_stack([one.lower[:, 1] for one in every]),
        np.column_stack([one.upper[:, 1] for one in every]),
        fitted.classes,
        asked.level,
        np.any(widened, axis=0) if widened else None,
    )
