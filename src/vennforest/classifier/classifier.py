"""The classifier: a source of calibration scores joined with a calibrator."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.random import RandomState
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import _BaseComposition, available_if
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from vennforest._messages import shown, warn
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_option,
    check_order,
    check_weights,
    encode_labels,
    refuse_text,
    require,
)
from vennforest.calibrators import METHODS, Calibrator, PooledCalibration
from vennforest.calibrators.bounded import has_bounds, no_bounds
from vennforest.calibrators.intervals import ConfidenceIntervals, IntervalMethod
from vennforest.calibrators.softmax import SoftmaxMap
from vennforest.classifier.blend import BlendedModel, blend_models
from vennforest.classifier.fitting import draw_parts, fit_to_examples
from vennforest.classifier.prediction import (
    FittedClassifier,
    Prediction,
    RowScores,
    predict_confidence,
    predict_rows,
    predict_scores,
)
from vennforest.counts import check_ratio
from vennforest.forest import (
    BagsError,
    MixedForestClassifier,
    Votes,
    bags_can_be_verified,
    leaves_rows_out,
)
from vennforest.groups import Groups, PerGroup, check_by, codes_of
from vennforest.multiprobability import Multiprobability
from vennforest.prior import PriorEstimate, ShiftedPrior, estimate_shares
from vennforest.scores import round_scores
from vennforest.sources import CalibrationExamples, Fold, Subforest, TrainingData, with_seed
from vennforest.sources.checks import check_training_data, steps_obstacle
from vennforest.sources.data import own_model, split_pipeline, with_types
from vennforest.sources.out_of_bag import out_of_bag_fold
from vennforest.sources.row_hashes import HashArray, count_equal_pairs, hash_rows, sketch_rows
from vennforest.sources.splits import cross_validation_folds, held_out_fold

ClassifierMerge = Literal["auto", "pooled", "log", "brier", "midpoint"]

SOURCE_NAMES = ["auto", "oob", "holdout", "cv", "training"]

SOURCE_PARAMETERS = {
    "subforest": "oob",
    "votes": "oob",
    "holdout_size": "holdout",
    "cv": "cv",
    "ensemble": "cv",
}
"""The parameters of sources, and which source takes each."""

N_REFITS = 5
"""Parts of the training rows, each of which calibrators are fitted again without."""

BLEND_POINT_RIDGE, BLEND_POINT_SHRINKAGE = 100.0, 0.001
"""Of the map from a blend to the probability: it is calibrated already, so that the map stays near
the identity. A pool takes nearly separable scores of few rows to zeros and ones."""

MODEL_IS_FROZEN = "the model is frozen: the data given to fit calibrates it"


def _check_bounds(model: CalibratedClassifier) -> bool:
    """Raise an AttributeError for a classifier without bounds, as fitted or as it will be."""
    method = model._fitted.calibrators[0] if model.__sklearn_is_fitted__() else model.method
    if not method_has_bounds(method):
        raise AttributeError(no_bounds(method))
    return True


class CalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, _BaseComposition):
    """A classifier whose probabilities are calibrated, with bounds where the method gives them.

    By default a forest of 300 trees, calibrated out of bag: all data trains, all data calibrates.
    ``docs/understanding.md`` says for each setting what is proven. A row's prediction depends on
    that row and ``random_state`` alone.

    Parameters
    ----------
    estimator : classifier or list of (str, classifier), default=None
        Any scikit-learn classifier with ``predict_proba`` or ``decision_function``; None:
        ``MixedForestClassifier(n_estimators=300)``. The data given to ``fit`` only calibrates a
        ``FrozenEstimator``, of which a copy is kept. A ``Pipeline`` that ends in a forest counts as
        that forest. A list of names and classifiers, as in ``StackingClassifier``, is blended into
        one score by weights that are fitted to their calibration scores: see ``blend_``.
    method : str or calibrator, default="venn-abers"
        ``"venn-abers"``, ``"venn"``, ``"platt"``, ``"isotonic"``, ``"bostrom"``, ``"beta"``,
        ``"temperature"``, ``"matrix"``, ``"spline"``, ``"none"``, or an instance from
        ``vennforest.calibrators``, such as ``PooledCalibration()``.
    calibrate_on : str or source, default="auto"
        The source of calibration scores.

        - ``"oob"``: the members of a bagged ensemble that did not see an example, nor another of
          its group, score it. With a ``FrozenEstimator`` the data must be those it was trained on.
        - ``"holdout"``: a part of the data that is not trained on.
        - ``"cv"``: folds.
        - ``"training"``: the training data itself, without any guarantee.
        - ``"auto"``: ``"oob"`` for bagged ensembles whose bags can be verified, unless groups or a
          splitter are given, or a step before the ensemble sees labels or resamples; else ``"cv"``.
        - an object with a method ``folds``: see `vennforest.sources`.

        The estimator is trained once with ``"oob"``, ``"holdout"`` and ``"training"``, once a fold
        with ``"cv"`` (and once more with ``ensemble=False``), never when frozen. ``"auto"`` trains
        once more, in folds, where trees turn out to have seen other rows than they say.
    subforest : {"all", "exchangeable"}, default="all"
        With ``"oob"``, the trees that score a new object for its bounds: all, or the out-of-bag
        trees of a random calibration example, which then leaves the calibration set (Johansson et
        al. 2018; not with ``groups``).
    votes : {"soft", "hard"}, default="soft"
        With ``"oob"``: the mean of the trees' class distributions, or the share of their votes.
    holdout_size : float or int, default=1/3
        With ``"holdout"``: share or number of the examples held out, drawn at random.
    cv : int, splitter or iterable, default=5
        With ``"cv"``: the number of folds, drawn at random, or as everywhere in scikit-learn.
    ensemble : bool, default=True
        With ``"cv"``. True: one model and one calibrator per fold, whose probabilities and bounds
        are averaged (cross Venn–Abers); a prediction takes as long as that of all models, though
        transformers in the same state run once. False: the scores of all folds calibrate one model
        of all the data.
    merge : {"auto", "pooled", "log", "brier", "midpoint"}, default="auto"
        How bounds become one probability. ``"pooled"``: by a weighted pool of smooth maps of the
        score of all trees (`PooledCalibration`). The others: see `Multiprobability.merge`.
        ``"auto"``: that of the method, which is ``"pooled"`` for Venn–Abers and ``"midpoint"`` for
        Venn unless an instance names another.
    by : str, int or callable, default=None
        Calibrate within groups of objects, so the bounds are valid in each: a column by name or
        position, or a function of the rows that returns a label for each. Groups with fewer than
        50 calibration examples in a fold, and new ones, have the calibrator of all examples.
    n_jobs : int, default=None
        Number of threads of the forest walk, and of folds fitted at once.
    random_state : int, RandomState or None, default=None
        Seeds the draws of calibration examples, the split or the folds (the same each time where
        it is None), and every ``random_state`` of the estimator that is None.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
    >>> model.predict_proba(X[406:408]).round(2)
    array([[0.42, 0.58],
           [0.03, 0.97]])
    >>> m = model.predict_multiprobability(X[406:408])
    >>> m.lower[:, 1].round(2), m.upper[:, 1].round(2)
    (array([0.58, 0.91]), array([0.75, 0.97]))
    """

    _fitted: FittedClassifier

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str | Calibrator = "venn-abers",
        calibrate_on: Any = "auto",
        subforest: Subforest = "all",
        votes: Votes = "soft",
        holdout_size: float | int = 1 / 3,
        cv: Any = 5,
        ensemble: bool = True,
        merge: ClassifierMerge = "auto",
        by: str | int | Callable[[Any], Any] | Groups | None = None,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.calibrate_on = calibrate_on
        self.subforest = subforest
        self.votes = votes
        self.holdout_size = holdout_size
        self.cv = cv
        self.ensemble = ensemble
        self.merge = merge
        self.by = by
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Train and calibrate.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the estimator takes them.
        y : array-like of shape (n,)
            Labels of any dtype.
        sample_weight : array-like of shape (n,), optional
            For the estimator and the calibrator; a weight of 2 is the observation twice, in
            bounds and intervals too. Scale weights that are no counts by their sum over the sum of
            their squares, so that they sum to Kish's effective number of rows.
        groups : array-like of shape (n,), optional
            Rows that belong together, such as those of one patient: no row is scored by a model
            that saw another of its group.
        **fit_params
            Passed to the estimator's ``fit``; with metadata routing, as they are requested.

        Raises
        ------
        ValueError
            If a parameter has an invalid value, there is only one class, or no example is left
            to calibrate on. ``docs/hazards.md`` lists warnings.
        """
        check_parameters(self)
        check_order(X, y=y, sample_weight=sample_weight, groups=groups)
        X, y = indexable(X, y)
        random_state = check_random_state(self.random_state)
        # Without a seed of the user's, splits are the same each time, as scikit-learn's folds are.
        split_state = np.random.RandomState(0) if self.random_state is None else random_state
        estimators = named_estimators(resolve_estimator(self.estimator, self.n_jobs))
        frozen_classes = _frozen_classes(estimators)
        codes, classes = encode_labels(y, frozen_classes)
        weight = check_weights(sample_weight, len(codes))
        if weight is not None:
            check_ratio(weight)
        _check_classes(codes, classes, weight, frozen_classes is not None)
        codes = codes.astype(np.min_scalar_type(len(classes) - 1))
        members = {}
        for name, estimator in estimators.items():
            routed = route(self, name, estimator, weight, groups, fit_params)
            members[name] = estimator, TrainingData(X, codes, classes, weight, *routed)
        data = next(iter(members.values()))[1]
        groups_by = group_codes = None
        if self.by is not None:
            groups_by, group_codes = Groups.fit(self.by, X, len(data))
        hashes = hash_rows(X)
        folds, source, reason = fit_folds(self, members, hashes, random_state, split_state)
        return self._calibrate(
            FittedClassifier(
                classes,
                folds,
                source,
                reason,
                n_rows=len(data),
                n_equal_pairs=count_equal_pairs(hashes),
                row_sketch=sketch_rows(hashes),
                row_groups=data.groups,
                groups=groups_by,
                group_codes=group_codes,
            )
        )

    def recalibrate(
        self, method: str | Calibrator = "venn-abers", *, merge: ClassifierMerge = "auto"
    ) -> Self:
        """Return a fitted classifier with the same models and another calibrator.

        Parameters are as for the constructor. No model is trained again.
        """
        fitted = self._state
        recalibrated: Self = clone(self).set_params(method=method, merge=merge)
        check_parameters(recalibrated)
        return recalibrated._calibrate(fitted)

    def _calibrate(self, fitted: FittedClassifier) -> Self:
        """Fit calibrators to the folds of a state, which becomes that of this classifier."""
        for fold in fitted.folds:
            fold.check_classes(len(fitted.classes))
        if fitted.groups is not None and any(fold.rows is None for fold in fitted.folds):
            raise TypeError(
                "calibrate_on must be a source that says which rows calibrate (Fold.rows) for by, "
                "got another"
            )
        calibrator, point = unfitted_calibrators(self)
        if point is not None and isinstance(fitted.folds[0].model, BlendedModel):
            point = SoftmaxMap(ridge=BLEND_POINT_RIDGE, shrinkage=BLEND_POINT_SHRINKAGE)
        self._fitted = fit_calibrators(fitted, fitted.folds, calibrator, point)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return calibrated probabilities (n, k), a column per class in the order of ``classes_``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the estimator takes them.
        """
        return predict_rows(self._state, X, bounds=False)[1]

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba` (n, k), -inf for a probability of 0."""
        with np.errstate(divide="ignore"):
            log_p: FloatArray = np.log(self.predict_proba(X))
        return log_p

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,), the first of equals."""
        best = self.predict_proba(X).argmax(axis=1)  # refuses before fit
        labels: NDArray[Any] = self.classes_[best]
        return labels

    @available_if(_check_bounds)
    def predict_multiprobability(self, X: Any) -> Multiprobability:
        """Return lower and upper probabilities; for ``"venn-abers"`` and ``"venn"``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the estimator takes them.

        Returns
        -------
        Multiprobability
            Bounds of shape (n, k), over folds the means of theirs. With ``merge="pooled"``, and
            over folds, they are widened where needed to contain the probability.
        """
        bounds = predict_rows(self._state, X)[0]
        assert bounds is not None
        return bounds

    def predict_confidence(
        self, X: Any, level: float = 0.95, method: IntervalMethod = "likelihood-ratio"
    ) -> ConfidenceIntervals:
        """Return confidence intervals for the frequency of each class among cases with such scores.

        They contain it with probability ``level``. The much narrower bounds of
        ``predict_multiprobability`` say how far one more label would move the probability.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the estimator takes them.
        level : float, default=0.95
            In (0, 1).
        method : {"likelihood-ratio", "exact"}, default="likelihood-ratio"
            ``"likelihood-ratio"``: by a limit theorem with simulated corrections; what it covers
            is measured in ``docs/measured.md``. ``"exact"``: about twice as wide, and never below
            the level if calibration scores are of examples kept apart from training; not with a
            model per fold, nor with weights that are not integers.

        Returns
        -------
        ConfidenceIntervals
            Ends of shape (n, k), widened where needed to contain what ``predict_proba`` returns.
        """
        return predict_confidence(self._state, X, level, method, bounds=False)[1]

    def with_prior(
        self, shares: Mapping[Any, float], *, instead_of: Mapping[Any, float] | None = None
    ) -> Self:
        """Return this classifier for a population with other shares of the classes.

        For a model that moves to where classes are more or less frequent, while objects of each
        class stay as they are: ``model.with_prior({"ill": 0.01})``. The odds of every probability
        and bound are multiplied by the ratio of the new odds of the classes to the old ones.

        Parameters
        ----------
        shares : mapping of label to float
            The share of each class, in (0, 1), with sum 1; classes that are not named share the
            rest in their present proportions.
        instead_of : mapping of label to float, optional
            The shares in the population of the calibration examples, where they are known; by
            default ``prior_``, the shares counted among these examples.
        """
        fitted = self._state
        shift = ShiftedPrior.of(shares, instead_of, fitted.prior, fitted.shift, fitted.classes)
        return self._with_shift(shift)

    def with_mean(self, means: Mapping[Any, float], X: Any) -> Self:
        """Return this classifier after the shift of the log-odds that gives rows a mean.

        For a portfolio whose mean probability is given: ``model.with_mean({"default": 0.04}, X)``.
        The mean probabilities of the rows of X are then exactly the given ones.

        Parameters
        ----------
        means : mapping of label to float
            Mean probability of each class, in (0, 1); classes that are not named share the rest in
            proportion to their mean probabilities.
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows of the portfolio.
        """
        return self._with_mean_of(means, self.predict_proba(X))

    def _with_mean_of(self, means: Mapping[Any, float], p: FloatArray) -> Self:
        """Return `with_mean` of rows whose probabilities (m, k) are known."""
        fitted = self._state
        return self._with_shift(ShiftedPrior.of_means(means, p, fitted.shift, fitted.classes))

    def _with_shift(self, shift: ShiftedPrior) -> Self:
        shifted = copy.copy(self)
        shifted._fitted = replace(self._state, shift=shift)
        return shifted

    def estimate_prior(self, X: Any) -> PriorEstimate:
        """Estimate the shares of the classes in another population, for ``with_prior``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, d)
            A random sample of that population, whose objects of each class are as those
            calibrated on.
        """
        plain = replace(self._state, shift=None)
        prior, classes = plain.prior, plain.classes
        if (prior == 0).any():
            raise ValueError(
                "calibration examples must be of every class to estimate shares, got none of "
                f"{shown(classes[prior == 0].tolist())}"
            )
        return estimate_shares(predict_rows(plain, X, False)[1], prior, classes)

    @property
    def _state(self) -> FittedClassifier:
        """The result of ``fit``."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._fitted

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether ``fit`` has been called."""
        return "_fitted" in self.__dict__

    def _check_state(self) -> None:
        require(isinstance(self._fitted, FittedClassifier), "fitted must be the result of a fit")
        resolve_estimator(self.estimator, self.n_jobs)
        check_parameters(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; of a list of estimators also these, by name, and theirs."""
        is_list = isinstance(self.estimator, list | tuple)
        return dict(self._get_params("estimator", deep) if is_list else super().get_params(deep))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of an estimator in a list by its name, as in a pipeline."""
        self._set_params("estimator", **params)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing of the estimators' fit and the splitter's split."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fits = MethodMapping().add(caller="fit", callee="fit")
        estimators = named_estimators(resolve_estimator(self.estimator, self.n_jobs))
        router.add(method_mapping=fits, **estimators)
        return router.add(
            splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split")
        )

    def __sklearn_tags__(self) -> Tags:
        """Return the tags, with the kinds of input that all estimators take."""
        tags = super().__sklearn_tags__()
        estimators = named_estimators(resolve_estimator(self.estimator, self.n_jobs)).values()
        inputs = [get_tags(estimator).input_tags for estimator in estimators]
        for name in ("sparse", "allow_nan", "categorical", "string"):
            setattr(tags.input_tags, name, all(getattr(of, name) for of in inputs))
        return tags

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        return self._state.classes

    @property
    def n_features_in_(self) -> int:
        """Number of features given to ``fit``."""
        return int(self._state.folds[0].model.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the features, where they have any."""
        names: NDArray[Any] = self._state.folds[0].model.feature_names_in_
        return names

    @property
    def estimator_(self) -> Any:
        """The fitted model; with several there is ``estimators_``."""
        return _only("estimator", self.estimators_)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted models, one per fold."""
        return [fold.model for fold in self._state.folds]

    @property
    def blend_(self) -> dict[str, float]:
        """The weight of each of several estimators, by name, not below 0."""
        model = self._state.folds[0].model
        if not isinstance(model, BlendedModel):
            raise AttributeError("estimator must be a list of several for blend_, got one")
        names = [member.name for member in model.members]
        return dict(zip(names, model.weights.tolist(), strict=True))

    @property
    def calibrator_(self) -> Calibrator:
        """The fitted calibrator; with several there is ``calibrators_``."""
        calibrator: Calibrator = _only("calibrator", self.calibrators_)
        return calibrator

    @property
    def calibrators_(self) -> list[Calibrator]:
        """The fitted calibrators, one per fold."""
        return self._state.calibrators

    @property
    def point_calibrator_(self) -> Calibrator:
        """With ``merge="pooled"``, what makes the probability of the score, for all folds."""
        if (point := self._state.point_calibrator) is None:
            raise AttributeError('merge must be "pooled" for point_calibrator_')
        return point

    @property
    def calibration_scores_(self) -> FloatArray:
        """The calibration scores, fold after fold: (n,) of the second of two classes, or (n, k)."""
        return CalibrationExamples.of(self._state.folds).scores

    @property
    def calibration_y_(self) -> NDArray[Any]:
        """The labels of the calibration examples, (n_calibration,), fold after fold."""
        labels: NDArray[Any] = self.classes_[CalibrationExamples.of(self._state.folds).codes]
        return labels

    @property
    def calibrate_on_(self) -> str:
        """The source of the calibration scores."""
        return self._state.calibrate_on

    @property
    def calibrate_on_reason_(self) -> str:
        """The reason for that source, in a clause."""
        return self._state.calibrate_on_reason

    @property
    def prior_(self) -> FloatArray:
        """The shares of the classes that probabilities are right for, shape (k,), sum 1.

        Those among the calibration examples, by weight, unless ``with_prior`` set others.
        """
        return self._state.prior

    @property
    def oob_probability_(self) -> FloatArray:
        """Probabilities of the rows given to ``fit``, each without its own label, (n, k).

        Models that did not see a row score it, and calibrators fitted without its fifth of the
        rows calibrate that score. NaN where there are none. Computed at each access.
        """
        return predict_training_rows(self._state)[1]

    @property
    def oob_multiprobability_(self) -> Multiprobability:
        """Bounds of the rows given to ``fit``, each without its own label: see the probability."""
        bounds = predict_training_rows(self._state)[0]
        if bounds is None:
            raise AttributeError(no_bounds(self._state.calibrators[0]))
        return bounds

    @property
    def feature_importances_(self) -> FloatArray:
        """The estimator's own importance of each column, (d,); the mean over several models."""
        mean: FloatArray = np.mean([m.feature_importances_ for m in self.estimators_], axis=0)
        return mean


def _check_classes(
    codes: NDArray[Any], classes: NDArray[Any], weight: FloatArray | None, is_frozen: bool
) -> None:
    """Refuse labels of one class or none; warn of those of a frozen model without an example."""
    counts = np.bincount(codes if weight is None else codes[weight > 0], minlength=len(classes))
    missing = classes[counts == 0].tolist()
    if len(codes) and is_frozen and missing:
        warn(
            f"y has no example of {missing}, which the frozen model knows: nothing says how often "
            "they happen, so their probability is not calibrated. Calibrate on rows of every class"
        )
    elif len(classes) - len(missing) < 2:
        raise ValueError(
            "y must contain at least two classes with a weight above zero, got one class: "
            f"{shown(classes[counts > 0].tolist())}"
        )


def _only(name: str, values: list[Any]) -> Any:
    if len(values) != 1:
        raise AttributeError(f"with one {name} per fold there is {name}s_, not {name}_")
    return values[0]


def resolve_estimator(estimator: Any, n_jobs: int | None) -> Any:
    """Return the estimator or estimators to be trained, the default forest for None."""
    if estimator is None:
        return MixedForestClassifier(n_estimators=300, n_jobs=n_jobs)
    is_list = isinstance(estimator, list | tuple)
    pairs = estimator if is_list else [("estimator", estimator)]
    for pair in pairs:
        is_named = isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)
        if not is_named or isinstance(pair[1], type) or not hasattr(pair[1], "fit"):
            raise TypeError(
                "estimator must be a classifier (an instance, not fitted) or a list of (name, "
                f"classifier), got {shown(estimator)}"
            )
    if is_list and len(pairs) < 2:
        raise InputError(
            f"estimator must be a classifier or a list of two or more, got {len(pairs)}: give one "
            "classifier by itself"
        )
    return estimator


def named_estimators(estimator: Any) -> dict[str, Any]:
    """Return the estimators by name; one by itself has the name of the parameter."""
    return dict(estimator) if isinstance(estimator, list | tuple) else {"estimator": estimator}


def _frozen_classes(estimators: Mapping[str, Any]) -> NDArray[Any] | None:
    """Return the labels of the frozen models, which must have the same; None if none is frozen."""
    classes = None
    for name, estimator in estimators.items():
        if not isinstance(estimator, FrozenEstimator):
            continue
        check_is_fitted(estimator)
        if classes is not None and not np.array_equal(classes, estimator.classes_):
            raise InputError(
                f"frozen estimators must have the same classes, got {np.asarray(classes).tolist()} "
                f"and {np.asarray(estimator.classes_).tolist()} of {name!r}"
            )
        classes = estimator.classes_
    return classes


def check_parameters(model: Any) -> None:
    """Refuse values that the parameters of a classifier cannot have."""
    if not isinstance(model.method, Calibrator):
        if model.method == "sigmoid":  # scikit-learn's name
            raise InputError('method must be "platt" for a sigmoid, got "sigmoid"')
        check_option(model.method, METHODS, "method", " or a calibrator instance")
    if isinstance(model.cv, str) and model.cv == "prefit":  # scikit-learn's former way
        raise InputError(
            'cv must be a number of folds or a splitter, got "prefit": use '
            "CalibratedClassifier(FrozenEstimator(model))"
        )
    source = model.calibrate_on
    is_source = not isinstance(source, type) and callable(getattr(source, "folds", None))
    if not is_source:
        check_option(source, SOURCE_NAMES, "calibrate_on", " or an object with a method folds")
    check_option(model.subforest, Subforest, "subforest")
    check_option(model.votes, Votes, "votes")
    check_option(model.merge, ClassifierMerge, "merge")
    check_numbers(model)
    if model.merge != "auto" and not method_has_bounds(model.method):
        name = model.method if isinstance(model.method, str) else type(model.method).__name__
        warn(f"merge={shown(model.merge)} has no effect with {name}, which gives no bounds")
    if model.by is not None:
        check_by(model.by)
    if isinstance(model.estimator, list | tuple):
        resolve_estimator(model.estimator, model.n_jobs)
        names = [name for name, _ in model.estimator]
        model._validate_names(names)
        if "splitter" in names:  # so metadata routing calls cv
            raise InputError("estimator must have other names than 'splitter', got that")
        if model.subforest == "exchangeable":
            raise InputError(
                'subforest must be "all" with several estimators, got "exchangeable": give one '
                "forest"
            )


def check_numbers(model: Any) -> None:
    """Refuse values of ``holdout_size``, ``cv``, ``ensemble`` and ``n_jobs`` that mean nothing."""
    size, cv = model.holdout_size, model.cv
    is_number = isinstance(size, Real) and not isinstance(size, bool | np.bool_)
    if not is_number or not (
        0 < float(size) < 1 or (isinstance(size, Integral) and int(size) >= 1)
    ):
        raise InputError(
            f"holdout_size must be a share in (0, 1) or a number of examples, got {shown(size)}"
        )
    if isinstance(cv, Integral):
        check_count(cv, "cv", 2)
    if not isinstance(model.ensemble, bool | np.bool_):
        raise InputError(f"ensemble must be True or False, got {shown(model.ensemble)}")
    if model.n_jobs is not None and (
        isinstance(model.n_jobs, bool) or not isinstance(model.n_jobs, Integral) or not model.n_jobs
    ):
        raise InputError(
            f"n_jobs must be None or an integer other than 0, got {shown(model.n_jobs)}"
        )


def route(
    model: Any,
    name: str,
    estimator: Any,
    weight: FloatArray | None,
    groups: Any,
    fit_params: dict[str, Any],
) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
    """Return the arguments of the estimator's fit, the name of its weights, and the splitter's."""
    split_params = {} if groups is None else {"groups": groups}
    if get_config()["enable_metadata_routing"]:
        metadata = {"sample_weight": weight, "groups": groups}
        present = {name: value for name, value in metadata.items() if value is not None}
        routed = process_routing(model, "fit", **present, **fit_params)
        params = {key: v for key, v in routed[name].fit.items() if v is not None}
        return params, None, {**routed.splitter.split, **split_params}
    path, last = [], estimator
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        path.append(step)
    takes_weight = has_fit_parameter(last, "sample_weight")
    if weight is not None and not takes_weight and not isinstance(estimator, FrozenEstimator):
        warn(
            f"{type(last).__name__} takes no sample_weight: "
            "the weights are used for calibration alone"
        )
    return fit_params, "__".join([*path, "sample_weight"]) if takes_weight else None, split_params


# --- scores --------------------------------------------------------------------------------------


def fit_folds(
    model: Any,
    members: Mapping[str, tuple[Any, TrainingData]],
    hashes: HashArray,
    random_state: RandomState,
    split_state: RandomState,
) -> tuple[list[Fold], str, str]:
    """Return the folds of fitted models, the name of their source, and why it was chosen.

    ``members`` are the estimators by name, each with the data that it takes; the folds of several
    are those of their blend.
    """
    members = {
        name: (own_model(with_seed(e, random_state)), data) for name, (e, data) in members.items()
    }
    seed = int(random_state.randint(2**31 - 1))
    sources = {name: choose_source(model, *member) for name, member in members.items()}
    data = next(iter(members.values()))[1]
    estimators = [estimator for estimator, _ in members.values()]
    check_training_data(estimators, data, hashes, [name for name, _ in sources.values()])
    if len(members) > 1:
        return _blended_folds(model, members, sources, seed, split_state)
    ((name, member),) = members.items()
    folds, source, reason = _member_folds(model, *member, *sources[name], seed, split_state)
    _warn_of_no_effect(model, [source], reason)
    return folds, source, reason


def _blended_folds(
    model: Any,
    members: Mapping[str, tuple[Any, TrainingData]],
    sources: Mapping[str, tuple[str, str]],
    seed: int,
    split_state: RandomState,
) -> tuple[list[Fold], str, str]:
    """Return the one fold of the blend of several estimators, their sources and the reasons."""
    if not (model.cv is None or isinstance(model.cv, Integral) or hasattr(model.cv, "split")):
        model = clone(model).set_params(cv=list(model.cv))  # a generator ends
    split_seed = split_state.randint(2**31 - 1)  # of the folds that all members share
    folds: dict[str, list[Fold]] = {}
    used: dict[str, str] = {}
    for name, member in members.items():
        try:
            folds[name], source, reason = _member_folds(
                model, *member, *sources[name], seed, RandomState(split_seed)
            )
        except Exception as error:
            raise InputError(
                f"estimator {name!r} must fit the data, got {type(error).__name__}: {error}"
            ) from error
        used[source] = reason
    reasons = "; ".join(dict.fromkeys(used.values()))
    _warn_of_no_effect(model, list(used), reasons)
    return [blend_models(folds, member[1])], " and ".join(used), reasons


def blend_classifiers(
    models: Mapping[str, CalibratedClassifier], X: Any, y: NDArray[Any]
) -> CalibratedClassifier:
    """Return the blend of classifiers, by name, that were fitted to the same rows and labels.

    No model is trained again.
    """
    first = next(iter(models.values()))
    state = first._state
    codes = np.searchsorted(state.classes, y).astype(np.intp)
    groups = {} if state.row_groups is None else {"groups": state.row_groups}
    data = TrainingData(X, codes, state.classes, split_params=groups)
    fold = blend_models({name: model._state.folds for name, model in models.items()}, data)
    return clone(first)._calibrate(replace(state, folds=[fold]))


def _member_folds(
    model: Any,
    estimator: Any,
    data: TrainingData,
    name: str,
    reason: str,
    seed: int,
    split_state: RandomState,
) -> tuple[list[Fold], str, str]:
    """Return the folds of one estimator, their source and its reason, in folds if bags are wrong.

    What is wrong with bags shows in the fitted ensemble: a fit is lost, never a guarantee.
    """
    try:
        try:
            return _folds_of(name, model, estimator, data, seed, split_state), name, reason
        except BagsError as error:
            if not isinstance(model.calibrate_on, str) or model.calibrate_on != "auto":
                raise
            is_frozen = isinstance(estimator, FrozenEstimator)
            name, reason = ("frozen", MODEL_IS_FROZEN) if is_frozen else ("cv", error.reason)
        return _folds_of(name, model, estimator, data, seed, split_state), name, reason
    except (TypeError, ValueError) as error:
        refuse_text(data.X, estimator, error)
        raise


def _folds_of(
    name: str, model: Any, estimator: Any, data: TrainingData, seed: int, split_state: RandomState
) -> list[Fold]:
    """Return the folds of a source by its name, or of the user's."""
    if name not in ("oob", "training", "frozen"):
        estimator = with_types(estimator, data.X)
    if not isinstance(model.calibrate_on, str):
        settings = {"seed": seed, "random_state": split_state, "n_jobs": model.n_jobs}
        folds = model.calibrate_on.folds(estimator, data, **settings)
        return [replace(fold, scores=round_scores(fold.scores)) for fold in folds]
    if name == "oob":
        return out_of_bag_fold(estimator, data, model.subforest, model.votes, seed, model.n_jobs)
    if name == "cv":
        return cross_validation_folds(
            estimator, data, model.cv, bool(model.ensemble), split_state, model.n_jobs
        )
    if name == "holdout":
        return held_out_fold(estimator, data, model.holdout_size, split_state)
    if name == "training":
        # The simplified Venn-Abers predictor and the direct method (Vovk & Petej 2014, sections 3
        # and 5): scores are better than those of new rows, so no guarantee is valid.
        data = data.with_positive_weight()
        return [data.fold(data.fit(estimator))]
    groups = data.groups
    if groups is not None and len(np.unique(groups)) < len(groups):
        warn(
            "groups has no effect with a frozen model, and bounds may be too narrow: calibrate on "
            "one row of each group"
        )
    return [data.with_positive_weight().fold(estimator)]


def choose_source(model: Any, estimator: Any, data: TrainingData) -> tuple[str, str]:
    """Return the name of the source that ``calibrate_on`` stands for, and why, in a clause."""
    source = model.calibrate_on
    if not isinstance(source, str):
        return type(source).__name__, "it was given"
    has_splitter = not (model.cv is None or isinstance(model.cv, Integral))
    if isinstance(estimator, FrozenEstimator):
        if source not in ("auto", "oob"):
            raise ValueError(
                f'calibrate_on must be "auto" or "oob" with a FrozenEstimator, got '
                f'{shown(source)}: the data given to fit calibrates; with "oob" the model was '
                "trained on it"
            )
        ensemble = split_pipeline(estimator.estimator)[1]
        # Members that are trees show whether the rows are those of their training.
        is_verifiable = leaves_rows_out(ensemble) and bags_can_be_verified(ensemble)
        if source == "auto" and not is_verifiable:
            return "frozen", MODEL_IS_FROZEN
        return "oob", "the rows are those that the frozen ensemble was trained on"
    if source in ("oob", "holdout") and has_splitter:
        raise ValueError(
            f"cv must be left out with calibrate_on={shown(source)}, which does not split by it, "
            f'got {type(model.cv).__name__}: use calibrate_on="cv"'
        )
    if source == "training" and data.groups is not None:
        raise ValueError('groups must be left out with calibrate_on="training", got some')
    if source != "auto":
        return source, "it was asked for"
    if not leaves_rows_out(split_pipeline(estimator)[1]):
        return "cv", "the estimator is not a bagged ensemble whose members can score one by one"
    if data.groups is not None:
        return "cv", "groups were given, and folds keep each of them together"
    if has_splitter:
        return "cv", f"cv is a {type(model.cv).__name__}, which separates rows as bags do not"
    if (reason := steps_obstacle(estimator)) is not None:
        return "cv", reason
    return "oob", "the members of the ensemble leave examples out of bag"


def _warn_of_no_effect(model: Any, sources: Sequence[str], reason: str) -> None:
    """Warn of parameters that no source takes; searches over parameters set such pairs."""
    values, defaults = model.get_params(deep=False), type(model)().get_params(deep=False)
    unused = [
        f"{name}={shown(values[name])}"
        for name, source_of_parameter in SOURCE_PARAMETERS.items()
        if source_of_parameter not in sources
        and repr(values[name]) not in ("None", repr(defaults[name]))
    ]
    if unused:
        verb, pronoun = ("has", "it") if len(unused) == 1 else ("have", "them")
        setting, chosen = f"calibrate_on={model.calibrate_on!r}", " and ".join(map(repr, sources))
        if setting == "calibrate_on='auto'":
            setting += f", which is {chosen} here: {reason}"
        warn(f"{' and '.join(unused)} {verb} no effect with {setting}. Leave {pronoun} out")


# --- calibrators ---------------------------------------------------------------------------------


def method_has_bounds(method: Any) -> bool:
    """Tell whether a method, by name or as a calibrator, gives bounds."""
    return has_bounds(METHODS.get(method) if isinstance(method, str) else method)


def unfitted_calibrators(model: Any) -> tuple[Calibrator, Calibrator | None]:
    """Return the calibrator of each fold of a classifier, and the point calibrator if any."""
    method, merge = model.method, model.merge
    calibrator: Any = METHODS[method]() if isinstance(method, str) else clone(method)
    if merge == "auto":
        merge = getattr(calibrator, "merge", None)
    if not has_bounds(calibrator) or merge is None:
        return calibrator, None
    if merge == "pooled":
        # The merge of the bounds is not used, and this one needs nothing fitted.
        return calibrator.set_params(merge="log"), PooledCalibration()
    return calibrator.set_params(merge=merge), None


def fit_calibrators(
    fitted: FittedClassifier,
    folds: Sequence[Fold | CalibrationExamples],
    calibrator: Calibrator,
    point: Calibrator | None,
) -> FittedClassifier:
    """Fit clones of a calibrator to each fold's examples, and of a point calibrator to all."""
    kind = fitted.folds[0].kind

    def fit(unfitted: Calibrator, examples: CalibrationExamples) -> PerGroup[Calibrator]:
        def fit_some(index: IntArray | None) -> Calibrator:
            some = examples if index is None else examples.select(index)
            return fit_to_examples(unfitted, some, kind, fitted.classes)

        return PerGroup.fit(fit_some, codes_of(examples.rows, fitted.group_codes))

    return replace(
        fitted,
        fold_calibrators=[fit(calibrator, CalibrationExamples.of([fold])) for fold in folds],
        # One pool for the scores of all folds is better than one per fold (docs/measured.md).
        point_calibrators=None if point is None else fit(point, CalibrationExamples.of(folds)),
    )


def predict_training_rows(fitted: FittedClassifier) -> Prediction:
    """Return bounds and probabilities of the n rows given to ``fit``, each without its own label.

    Calibrators are fitted again without each of five parts of the rows, and calibrate the rows of
    that part at their calibration scores. NaN for rows that calibrate nothing.
    """
    if fitted.calibrate_on == "training":
        raise AttributeError(
            'calibrate_on must be "oob" or "cv" for probabilities of training rows, got "training"'
        )
    examples = [CalibrationExamples.of([fold]) for fold in fitted.folds]
    all_rows = CalibrationExamples.of(examples).rows
    if fitted.n_rows is None or all_rows is None:
        raise AttributeError(
            "calibrate_on must be a source that says which rows calibrate (Fold.rows), got another"
        )
    # Groups stay whole, and the part of a row depends on no label.
    units = all_rows if fitted.row_groups is None else fitted.row_groups[all_rows]
    part_of_example = draw_parts(units, N_REFITS)
    parts = np.split(part_of_example, np.cumsum([len(fold.codes) for fold in examples])[:-1])
    total = np.zeros((fitted.n_rows, 3, len(fitted.classes)))
    count = np.zeros(fitted.n_rows)
    for part in range(part_of_example.max() + 1):
        remaining = [fold.select(of != part) for fold, of in zip(examples, parts, strict=True)]
        if not all(len(fold.codes) for fold in remaining):
            continue
        refitted = fit_calibrators(
            fitted, remaining, fitted.calibrators[0], fitted.point_calibrator
        )
        for fold, of, calibrators in zip(examples, parts, refitted.fold_calibrators, strict=True):
            some = fold.select(of == part)
            scores = RowScores(some.scores, None, some.scores)
            bounds, p = predict_scores(
                replace(refitted, folds=fitted.folds[:1], fold_calibrators=[calibrators]),
                [scores],
                codes_of(some.rows, fitted.group_codes),
            )
            values = [p, p, p] if bounds is None else [p, bounds.lower, bounds.upper]
            rows = np.asarray(some.rows)  # a splitter may score a row several times
            np.add.at(total, rows, np.stack(values, axis=1))
            np.add.at(count, rows, 1)
    with np.errstate(invalid="ignore"):
        p, lower, upper = np.moveaxis(total / count[:, None, None], 1, 0)
    if not has_bounds(fitted.calibrators[0]):
        return None, p
    return Multiprobability(lower, upper, fitted.classes), p
