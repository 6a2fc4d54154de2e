"""Several models as one: their calibrated scores, blended by fitted weights."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils import _safe_indexing

from vennforest._messages import warn
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_array,
    check_labels,
    require,
)
from vennforest.calibrators import Calibrator
from vennforest.calibrators.newton import fit_blend
from vennforest.calibrators.softmax import SoftmaxMap
from vennforest.classifier.prediction import fit_to_examples, parts_of
from vennforest.linear import LinearClassifier, mean_model, softmax_of_rows
from vennforest.scores import round_scores
from vennforest.sources import CalibrationExamples, Fold, TrainingData
from vennforest.sources.data import score_by_folds
from vennforest.sources.estimators import share_steps
from vennforest.sources.row_hashes import hash_rows

MEMBER_MAP = SoftmaxMap(ridge=1.0, shrinkage=0.01)
"""Of a model's scores to probabilities, with few parameters."""

MAX_CONSTANT_SCORES = 20
"""Distinct calibration scores up to which a model may turn out to be a constant."""


@dataclass(frozen=True, eq=False)
class BlendMember:
    """One model of a blend: its folds, and the map of its scores to probabilities."""

    name: str
    folds: list[Fold]
    calibrator: Calibrator
    is_constant: bool = False
    """Whether every row has the same score, so that the weight is 0."""

    @cached_property
    def linear(self) -> LinearClassifier | None:
        """The mean of the models of all folds; None unless they are linear ones of all classes."""
        models = [fold.model for fold in self.folds]
        if not all(type(model) is LinearClassifier for model in models):
            return None
        is_of_all = all(len(m.classes_) == len(self.calibrator.classes_) for m in models)
        return mean_model(models) if is_of_all else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without ``linear``, which can be made anew of the folds."""
        return {name: value for name, value in vars(self).items() if name != "linear"}

    def log_probabilities(self, scores: Sequence[FloatArray]) -> FloatArray:
        """Return logarithms of the mean probabilities at the scores by each fold.

        Of two classes the log-odds (m,) of the second one, else those of each class, (m, k).
        """
        p = self.calibrator._evaluation(scores[0] if len(scores) == 1 else np.concatenate(scores))
        if len(scores) > 1:
            p = p.reshape(len(scores), -1, *p.shape[1:]).mean(axis=0)
        return log_of(p) if p.ndim == 2 else log_of(p) - log_of(1 - p)

    def _check_state(self) -> None:
        require(isinstance(self.name, str) and len(self.folds) > 0, "members must have folds")
        require(isinstance(self.calibrator, Calibrator), "members must have a calibrator")


@dataclass(frozen=True, eq=False, repr=False)
class BlendedModel:
    """A fitted blend ``softmax(sum_m w_m log p_m + b)`` of several models.

    ``p_m`` are a model's scores, mapped to probabilities by a `SoftmaxMap`; of a model with several
    folds the mean over these.

    Attributes
    ----------
    members : list of BlendMember
        The models, in the order of the names given.
    weights : ndarray of shape (M,)
        The w of each model, not below 0. Models with weight 0 are not evaluated.
    intercept : ndarray of shape (k,)
        b.
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    """

    members: list[BlendMember]
    weights: FloatArray
    intercept: FloatArray
    classes_: NDArray[Any]

    def __repr__(self) -> str:
        """Return the names and weights of the models."""
        pairs = zip(self.members, self.weights.tolist(), strict=True)
        return "Blend of " + ", ".join(f"{m.name} ({w:.2f})" for m, w in pairs)

    @property
    def first_model(self) -> Any:
        """The first of the fitted models, which has the names of the features."""
        return self.members[0].folds[0].model

    @property
    def n_features_in_(self) -> int:
        """Number of features given to ``fit``."""
        return int(self.first_model.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the features, where they have any."""
        return np.asarray(self.first_model.feature_names_in_)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the blended probabilities (m, k) of the rows of X."""
        scores = self.scores(X)
        return scores if scores.ndim == 2 else np.column_stack([1 - scores, scores])

    def scores(self, X: Any) -> FloatArray:
        """Return the blended scores of the rows of X: (m,) for two classes or (m, k)."""
        return self.blend(self.member_scores(X))

    def member_scores(self, X: Any) -> list[list[FloatArray]]:
        """Return the scores of the rows of X by the folds of each model, (m,) or (m, k) each.

        Of linear models by their mean, and of models with weight 0 none.
        """
        used = [m for m, w in zip(self.members, self.weights, strict=True) if w > 0]
        folds = [fold for member in used if member.linear is None for fold in member.folds]
        of_folds = iter(score_by_folds(folds, X))
        scores: list[list[FloatArray]] = []
        for member in self.members:
            if member not in used:
                scores.append([])
            elif member.linear is not None:
                scores.append([member.linear.scores(X)])
            else:
                scores.append([next(of_folds) for _ in member.folds])
        return scores

    def blend(self, scores: Sequence[Sequence[FloatArray]]) -> FloatArray:
        """Return the scores, (m,) or (m, k), of rows scored by the folds of each model."""
        of_two = len(self.classes_) == 2
        z: Any = self.intercept[1] - self.intercept[0] if of_two else self.intercept
        weights = self.weights.tolist()
        for member, weight, of_member in zip(self.members, weights, scores, strict=True):
            if weight > 0:
                z = z + weight * member.log_probabilities(of_member)
        return round_scores(expit(z) if of_two else softmax_of_rows(z))

    @np.errstate(under="ignore")
    def held_out_scores(self, parts: IntArray, left_out: int = -1) -> FloatArray:
        """Return the scores, (m,) or (m, k), of examples by maps and weights fitted without them.

        Each part of the n calibration examples is scored by a blend fitted without it; the models
        are those of this blend.

        Parameters
        ----------
        parts : ndarray of shape (n,)
            The part of each example, numbered from 0.
        left_out : int, optional
            A part that nothing is fitted to, and that is not scored: the m other examples are,
            of a single part by a blend fitted to it.
        """
        examples = common_examples({member.name: member.folds for member in self.members})
        if left_out >= 0:
            examples = {name: e.select(parts != left_out) for name, e in examples.items()}
            parts = parts[parts != left_out]
        k = len(self.classes_)
        scores = np.empty(len(parts) if k == 2 else (len(parts), k))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were issued when all examples were fitted
            for part in np.unique(parts):
                is_of_part = parts == part
                fitted_rows = ~is_of_part if is_of_part.sum() < len(parts) else is_of_part
                blend = self.fit_to({name: e.select(fitted_rows) for name, e in examples.items()})
                of_members = [[e.scores[is_of_part]] for e in examples.values()]
                scores[is_of_part] = blend.blend(of_members)
        return scores

    def fit_to(self, examples: Mapping[str, CalibrationExamples]) -> BlendedModel:
        """Return a blend of the same models with maps and weights fitted to some examples.

        ``examples`` are the same rows by each model's name.
        """
        members, logs = [], []
        for member in self.members:
            of_name = examples[member.name]
            kind = member.folds[0].kind
            calibrator = fit_to_examples(MEMBER_MAP, of_name, kind, self.classes_)
            members.append(replace(member, calibrator=calibrator))
            logs.append(log_of(calibrator.predict_proba(of_name.scores)))
        first = examples[self.members[0].name]
        used = [i for i, member in enumerate(members) if not member.is_constant]
        weights = np.zeros(len(members))
        weights[used], intercept = fit_blend(np.array(logs)[used], first.codes, first.weight)
        return BlendedModel(members, weights, intercept, self.classes_)

    def _check_state(self) -> None:
        check_labels(self.classes_, "classes")
        check_array(self.weights, "weights", (len(self.members),), low=0)
        check_array(self.intercept, "intercept", (len(self.classes_),))
        require(self.weights.max() > 0, "weights must not all be 0")
        for member in self.members:
            is_of_classes = np.array_equal(member.calibrator.classes_, self.classes_)
            require(is_of_classes, "members must be of the classes")
            for fold in member.folds:
                fold.check_classes(len(self.classes_))


@dataclass(frozen=True, eq=False)
class BlendFold(Fold):
    """A blend and the examples that calibrate it."""

    model: BlendedModel

    def score(self, X: Any) -> FloatArray:
        """Return the scores of the rows of X, (m,) or (m, k)."""
        return self.model.scores(X)


TINY = float(np.finfo(np.float64).tiny)


def log_of(p: FloatArray) -> FloatArray:
    """Return logarithms of probabilities, finite for those that are 0."""
    logs: FloatArray = np.log(np.maximum(p, TINY))
    return logs


def blend_models(named_folds: dict[str, list[Fold]], data: TrainingData) -> Fold:
    """Return one fold of the blend of several models, which are given by their folds.

    The maps of scores to probabilities and the weights are fitted to all calibration examples.
    Calibration scores are of blends of which no model, map or weight has seen the example, nor
    another of its group; no map or weight has seen a copy of its row.
    """
    share_steps(fold.model for folds in named_folds.values() for fold in folds)
    examples = common_examples(named_folds)
    first = next(iter(examples.values()))
    constant = _constant_models(named_folds, data)
    unfitted = [
        BlendMember(name, folds, MEMBER_MAP, name in constant)
        for name, folds in named_folds.items()
    ]
    model = BlendedModel(unfitted, np.empty(0), np.empty(0), data.classes).fit_to(examples)
    assert first.rows is not None
    units = hash_rows(data.X) if data.groups is None else data.groups
    parts = parts_of(units[first.rows])
    if data.groups is None and not parts.any():  # of copies of one row
        parts = parts_of(first.rows)
    if not parts.any():
        raise InputError(
            "groups must be two or more with several estimators, got one: no part of the rows can "
            "be kept apart from the weights"
        )
    scores = model.held_out_scores(parts)
    return BlendFold(model, scores, first.codes, first.weight, first.rows, data.classes)


def common_examples(named_folds: Mapping[str, list[Fold]]) -> dict[str, CalibrationExamples]:
    """Return the calibration examples that all models have, in the order of the rows."""
    examples = {name: CalibrationExamples.of(folds) for name, folds in named_folds.items()}
    rows: Any = [of_name.rows for of_name in examples.values()]
    if any(len(np.unique(of_name)) < len(of_name) for of_name in rows):
        raise InputError(
            "cv must leave each example out at most once with several estimators, got some "
            "twice: leave out repetitions"
        )
    common = reduce(np.intersect1d, rows)  # sorted
    if not len(common):
        raise InputError("estimators must be calibrated on common rows, got none")
    return {
        name: of_name.select(np.intersect1d(common, of_rows, return_indices=True)[2])
        for (name, of_name), of_rows in zip(examples.items(), rows, strict=True)
    }


def _constant_models(named_folds: Mapping[str, list[Fold]], data: TrainingData) -> list[str]:
    """Return the names of models that are constant, and warn; none where all are."""
    constant = []
    for name, folds in named_folds.items():
        examples = CalibrationExamples.of(folds)
        if len(np.unique(examples.scores, axis=0)) > MAX_CONSTANT_SCORES:
            continue
        rows = _safe_indexing(data.X, examples.rows)
        if all(np.ptp(fold.score(rows), axis=0).max() == 0 for fold in folds):
            constant.append(name)
    if len(constant) == len(named_folds):
        return []
    for name in constant:
        warn(f"estimator {name!r} gives every row the same score: its weight in the blend is 0")
    return constant
