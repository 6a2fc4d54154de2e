"""The classifier: a source of calibration scores joined with a calibrator."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import _BaseComposition, available_if

from vennforest._messages import shown, warn
from vennforest._validation import (
    FloatArray,
    check_order,
    check_weights,
    count_rows,
    encode_labels,
    is_frame,
    require,
)
from vennforest.calibrators import Calibrator, PooledCalibration, make_calibrator
from vennforest.calibrators.bounded import has_bounds, no_bounds
from vennforest.calibrators.intervals import ConfidenceIntervals, IntervalMethod
from vennforest.calibrators.softmax import SoftmaxMap
from vennforest.classifier.blend import BlendedModel, blend_models
from vennforest.classifier.by_groups import ByGroups
from vennforest.classifier.folds import fit_folds
from vennforest.classifier.parameters import (
    ClassifierMerge,
    check_parameters,
    classes_of_frozen,
    named_estimators,
    route,
)
from vennforest.classifier.prediction import (
    FittedClassifier,
    fit_calibrators,
    method_has_bounds,
    predict_confidence,
    predict_rows,
)
from vennforest.classifier.training_rows import predict_training_rows
from vennforest.forest import Votes
from vennforest.multiprobability import Multiprobability
from vennforest.prior import PriorEstimate, ShiftedPrior, estimate_shares, with_step
from vennforest.sources import CalibrationExamples, Subforest, TrainingData
from vennforest.sources.checks import check_class_examples
from vennforest.sources.estimators import as_read, names_to_compare, trained_names
from vennforest.sources.row_hashes import count_equal_pairs, hash_rows, sketch_rows
from vennforest.sources.training_columns import TrainingColumns, columns_of_frame

PerFold = TypeVar("PerFold")

BLEND_POINT_RIDGE, BLEND_POINT_SHRINKAGE = 100.0, 0.001
"""Of the map from a blend of two classes to the probability: it is calibrated already, so that the
map stays near the identity. Of more classes a pool can mend what the members' maps cannot."""


def _check_bounds(model: CalibratedClassifier) -> bool:
    """Raise an AttributeError for a classifier without bounds, as fitted or as it will be."""
    method = model._fitted.overall.calibrators[0] if model.__sklearn_is_fitted__() else model.method
    if not method_has_bounds(method):
        raise AttributeError(no_bounds(method))
    return True


class CalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, _BaseComposition):
    """A classifier whose probabilities are calibrated, with bounds where the method gives them.

    By default a forest of 300 trees, whose sizes of leaves the rows out of bag choose, calibrated
    out of bag: all data trains, all data calibrates.
    ``docs/understanding.md`` says for each setting what is proven. A row's prediction depends on
    that row and ``random_state`` alone.

    Parameters
    ----------
    estimator : classifier or list of (str, classifier), default=None
        Any scikit-learn classifier with ``predict_proba`` or ``decision_function``; None:
        ``MixedForestClassifier(n_estimators=300)``. The data given to ``fit`` only calibrates a
        ``FrozenEstimator``, of which a copy is kept. A ``Pipeline`` that ends in a forest counts as
        that forest. A list of names and classifiers, as in ``StackingClassifier``, is blended into
        one score by weights that are fitted to their calibration scores: see ``blend_``. One that
        is ``"drop"`` is left out.
    method : str or calibrator, default="venn-abers"
        ``"venn-abers"``, ``"venn"``, ``"platt"``, ``"isotonic"``, ``"bostrom"``, ``"beta"``,
        ``"temperature"``, ``"vector"``, ``"spline"``, ``"none"``, or an instance from
        ``vennforest.calibrators``, such as ``PooledCalibration()``.
    calibrate_on : str or source, default="auto"
        The source of calibration scores.

        - ``"oob"``: the members of a bagged ensemble that did not see an example, nor another of
          its group, score it. With a ``FrozenEstimator`` the data must be those it was trained on.
        - ``"holdout"``: a part of the data that is not trained on.
        - ``"cv"``: folds.
        - ``"training"``: the training data itself, without any guarantee.
        - ``"auto"``: ``"oob"`` for bagged ensembles whose bags can be verified, unless groups or a
          splitter are given, a step before the ensemble sees labels or resamples, or fewer than a
          quarter of the rows (of 100 or more) are distinct; else ``"cv"``.
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
        score of all trees (`PooledCalibration`), or one map of a blend of two classes. The others:
        see `Multiprobability.merge`.
        ``"auto"``: that of the method, which is ``"pooled"`` for Venn–Abers and ``"midpoint"`` for
        Venn unless an instance names another.
    by : str, int or callable, default=None
        Calibrate within groups of objects, so the bounds are valid in each: a column by name or
        position, or a function of the rows that returns a label for each. Groups of fewer than
        50 examples in a fold, the new one counted, and new groups have the calibrator of all.
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
    array([[0.36, 0.64],
           [0.04, 0.96]])
    >>> m = model.predict_multiprobability(X[406:408])
    >>> m.lower[:, 1].round(2), m.upper[:, 1].round(2)
    (array([0.64, 0.91]), array([0.81, 0.96]))
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
        by: str | int | Callable[[Any], Any] | None = None,
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
            Passed to the estimator's ``fit``; of several estimators to that of each, or as
            ``name__key`` to that of one. With metadata routing, as they are requested.

        Raises
        ------
        ValueError
            If a parameter has an invalid value, there is only one class, or no example is left
            to calibrate on. ``docs/hazards.md`` lists warnings.
        """
        check_parameters(self)
        check_order(X, y=y, sample_weight=sample_weight, groups=groups)
        n, X = count_rows(X, low=1), indexable(X)[0]
        random_state = check_random_state(self.random_state)
        # Without a seed of the user's, splits are the same each time, as scikit-learn's folds are.
        split_state = np.random.RandomState(0) if self.random_state is None else random_state
        estimators = named_estimators(self.estimator, self.n_jobs)
        column_names = names_to_compare(estimators.values(), X)
        frozen_classes = classes_of_frozen(estimators)
        codes, classes = encode_labels(y, frozen_classes, n)
        weight = check_weights(sample_weight, len(codes))
        check_class_examples(codes, classes, weight, frozen_classes is not None)
        codes = codes.astype(np.min_scalar_type(len(classes) - 1))
        members = {}
        for name, estimator in estimators.items():
            routed = route(self, name, estimator, weight, groups, fit_params)
            members[name] = estimator, TrainingData(X, codes, classes, weight, *routed)
        data = next(iter(members.values()))[1]
        by_groups = by_codes = None
        if self.by is not None:
            by_groups, by_codes = ByGroups.fit(self.by, X, len(data))
        hashes = hash_rows(X)
        folds, source, reason = fit_folds(self, members, hashes, random_state, split_state)
        X = as_read(X, folds[0].model)
        fitted = FittedClassifier(
            classes,
            folds,
            source,
            reason,
            n_rows=len(data),
            n_equal_pairs=count_equal_pairs(hashes),
            row_sketch=sketch_rows(hash_rows(X)),
            row_groups=data.groups,
            by_groups=by_groups,
            by_codes=by_codes,
            columns=TrainingColumns.of(columns_of_frame(X), len(data)) if is_frame(X) else None,
            column_names=column_names,
        )
        return self._calibrate(fitted)

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
        calibrator, point = make_calibrator(self.method), None
        merge = getattr(calibrator, "merge", None) if self.merge == "auto" else self.merge
        if has_bounds(calibrator) and merge == "pooled":
            # The merge of the bounds is not used, and this one needs nothing fitted.
            merge, point = "log", PooledCalibration()
            if isinstance(fitted.folds[0].model, BlendedModel) and len(fitted.classes) == 2:
                point = SoftmaxMap(ridge=BLEND_POINT_RIDGE, shrinkage=BLEND_POINT_SHRINKAGE)
        if has_bounds(calibrator) and merge is not None:
            calibrator.set_params(merge=merge)
        self._fitted = fit_calibrators(fitted, fitted.folds, calibrator, point)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return calibrated probabilities (n, k), a column per class in the order of ``classes_``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the estimator takes them.
        """
        p = predict_rows(self._state, X, bounds=False).p
        self._warn_of_columns(X)
        return p

    def _warn_of_columns(self, X: Any) -> None:
        """Warn of the columns of a data frame that differ from those of training."""
        if self._state.columns is not None:
            for difference in self._state.column_differences(X):
                warn(difference.message)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba` (n, k), -inf for a probability of 0."""
        with np.errstate(divide="ignore"):
            log_p: FloatArray = np.log(self.predict_proba(X))
        return log_p

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,), the first of equals."""
        best = self.predict_proba(X).argmax(axis=1)  # refuses before fit
        return np.asarray(self.classes_[best])

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
        bounds = predict_rows(self._state, X).bounds
        assert bounds is not None
        self._warn_of_columns(X)
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
            the level if calibration scores are of examples kept apart from training (of a blend,
            whose weights they fit too, about); not with a model per fold, nor with weights that
            are not integers.

        Returns
        -------
        ConfidenceIntervals
            Ends of shape (n, k), widened where needed to contain what ``predict_proba`` returns.
        """
        intervals = predict_confidence(self._state, X, level, method, bounds=False)[1]
        self._warn_of_columns(X)
        return intervals

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

        Raises
        ------
        ValueError
            For labels that are no classes, and for shares outside (0, 1) or of another sum.
        """
        fitted = self._state
        shift = ShiftedPrior.of(shares, instead_of, fitted.prior, fitted.shift, fitted.classes)
        return self._with_shift(shift, "with_prior")

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
        shift = ShiftedPrior.of_means(means, p, fitted.shift, fitted.classes)
        return self._with_shift(shift, "with_mean")

    def _with_shift(self, shift: ShiftedPrior, step: str) -> Self:
        shifted = copy.copy(self)
        fitted = self._state
        record = with_step(fitted.record, step, fitted.classes, shift.shares)
        shifted._fitted = replace(fitted, shift=shift, record=record)
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
        return estimate_shares(predict_rows(plain, X, False).p, prior, classes)

    @property
    def record_(self) -> dict[str, Any]:
        """How the model came to be: data with their hash, date, command and later steps.

        ``vennforest fit`` notes them; they stay with ``with_prior``, ``with_mean`` and in files.
        """
        return self._state.record

    @property
    def _state(self) -> FittedClassifier:
        """The result of ``fit``."""
        if "_fitted" not in self.__dict__:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._fitted

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether ``fit`` has been called."""
        return "_fitted" in self.__dict__

    def _check_state(self) -> None:
        require(isinstance(self._fitted, FittedClassifier), "fitted must be the result of a fit")
        get_tags(self)  # which asks every estimator
        check_parameters(self)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; of a list of estimators also these, by name, and theirs."""
        is_list = isinstance(self.estimator, list)
        return dict(self._get_params("estimator", deep) if is_list else super().get_params(deep))

    def set_params(self, **params: Any) -> Self:
        """Set parameters; those of an estimator in a list by its name, as in a pipeline."""
        self._set_params("estimator", **params)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the metadata routing of the estimators' fit and the splitter's split."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fits = MethodMapping().add(caller="fit", callee="fit")
        estimators = named_estimators(self.estimator, self.n_jobs)
        router.add(method_mapping=fits, **estimators)
        return router.add(
            splitter=self.cv, method_mapping=MethodMapping().add(caller="fit", callee="split")
        )

    def __sklearn_tags__(self) -> Tags:
        """Return the tags, with the kinds of input that all estimators take."""
        tags = super().__sklearn_tags__()
        estimators = named_estimators(self.estimator, self.n_jobs).values()
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
        model = self._state.folds[0].model
        return int(model.n_features_in_ or len(model.feature_names_))  # 0: of a CatBoost in a file

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """The names of the features, where they have any."""
        names = trained_names(self._state.folds[0].model)
        if names is None:
            raise AttributeError("feature_names_in_: the columns given to fit had no names")
        return np.array(names, dtype=object)

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
        return _only("calibrator", self.calibrators_)

    @property
    def calibrators_(self) -> list[Calibrator]:
        """The fitted calibrators, one per fold."""
        return self._state.overall.calibrators

    @property
    def point_calibrator_(self) -> Calibrator:
        """With ``merge="pooled"``, what makes the probability of the score, for all folds."""
        if (point := self._state.overall.point) is None:
            raise AttributeError('merge must be "pooled" for point_calibrator_')
        return point

    @property
    def calibration_scores_(self) -> FloatArray:
        """The calibration scores, fold after fold: (n,) of the second of two classes, or (n, k)."""
        return CalibrationExamples.of(self._state.folds).scores

    @property
    def calibration_y_(self) -> NDArray[Any]:
        """The labels of the calibration examples, (n_calibration,), fold after fold."""
        return self.classes_[CalibrationExamples.of(self._state.folds).codes]

    @property
    def calibrate_on_(self) -> str:
        """The source of the calibration scores."""
        return self._state.calibrate_on

    @property
    def calibrate_on_reason_(self) -> str:
        """Why the scores that calibrate are from ``calibrate_on_``, in a clause."""
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
        rows calibrate that score; of a blend the maps and weights are fitted without it too. NaN
        for rows that calibrate nothing. Computed at each access.
        """
        return predict_training_rows(self._state)[1]

    @property
    def oob_multiprobability_(self) -> Multiprobability:
        """Bounds of the rows given to ``fit``, each without its own label: see the probability."""
        bounds = predict_training_rows(self._state)[0]
        if bounds is None:
            raise AttributeError(no_bounds(self._state.overall.calibrators[0]))
        return bounds

    @property
    def feature_importances_(self) -> FloatArray:
        """The estimator's own importance of each column, (d,); the mean over folds.

        An AttributeError of estimators without it, and of a blend.
        """
        return np.asarray(np.mean([m.feature_importances_ for m in self.estimators_], axis=0))


def _only(name: str, values: list[PerFold]) -> PerFold:
    """Return the only estimator or calibrator; raise an AttributeError where there are several."""
    if len(values) != 1:
        raise AttributeError(f"with one {name} per fold there is {name}s_, not {name}_")
    return values[0]


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
    blend: CalibratedClassifier = clone(first)
    return blend._calibrate(replace(state, folds=[fold]))
