"""The classifier: a source of calibration scores joined with a calibrator."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Mapping
from types import FrameType, MethodType
from typing import Any, Self, TypeVar, cast

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import Tags, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from vennforest._messages import warn
from vennforest._state import stored
from vennforest._validation import (
    FloatArray,
    InputError,
    check_weights,
    encode_labels,
    refuse_text,
    require,
)
from vennforest.calibrators import Calibrator, PooledCalibration
from vennforest.calibrators.base import has_bounds, no_bounds
from vennforest.calibrators.intervals import ConfidenceIntervals, Method
from vennforest.classifier.fitted import (
    FittedClassifier,
    Prediction,
    predict,
    predict_training_rows,
)
from vennforest.classifier.intervals import predict_all, predict_confidence
from vennforest.classifier.settings import (
    ClassifierMerge,
    Settings,
    method_has_bounds,
    resolve_estimator,
)
from vennforest.forest.packed import Votes
from vennforest.groups import Grouping, Groups
from vennforest.multiprobability import Multiprobability
from vennforest.prior import PriorEstimate, ShiftedPrior, estimate_shares
from vennforest.sources import Source, Subforest, TrainingData
from vennforest.sources.base import feature_importances
from vennforest.sources.checks import check_order
from vennforest.sources.row_hashes import KnownRows

Bound = TypeVar("Bound", bound=Callable[..., Any])


def route(
    owner: Any,
    estimator: Any,
    weight: FloatArray | None,
    groups: Any,
    fit_params: dict[str, Any],
) -> tuple[dict[str, Any], str | None, dict[str, Any]]:
    """Return what the model's ``fit`` gets, the name of its weights, and what the splitter gets.

    With metadata routing that is what they request. ``groups`` is the classifier's own, and
    the splitter's. Without routing everything else goes to the model, and weights to the last step
    of a pipeline, with a warning where that takes none.
    """
    split = {} if groups is None else {"groups": groups}
    if get_config()["enable_metadata_routing"]:
        named = {"sample_weight": weight, "groups": groups}
        known = {name: value for name, value in named.items() if value is not None}
        routed = process_routing(owner, "fit", **known, **fit_params)
        given = {key: v for key, v in routed.estimator.fit.items() if v is not None}
        return given, None, {**routed.splitter.split, **split}
    params = dict(fit_params)
    path, last = [], estimator
    while isinstance(last, Pipeline):
        step, last = last.steps[-1]
        path.append(step)
    name = "__".join([*path, "sample_weight"])
    takes = has_fit_parameter(last, "sample_weight")
    if weight is not None and not takes and not isinstance(estimator, FrozenEstimator):
        warn(
            f"{type(last).__name__} takes no sample_weight: "
            "the weights are used for calibration alone"
        )
    return params, name if takes else None, split


def warn_of_groups_around() -> None:
    """Warn where a search or a cross-validation of scikit-learn has groups and hands on none.

    Seen where its frame is on the stack: not from another process (``n_jobs``).
    """
    if get_config()["enable_metadata_routing"]:  # which refuses groups that were not requested
        return
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").startswith("sklearn.model_selection._"):
            around = frame.f_locals
            params = around.get("params")
            given = params.get("groups") if isinstance(params, dict) else None
            if around.get("groups") is not None or given is not None:
                warn(
                    "the rows are split by groups, and the model inside gets none, so its "
                    "calibration puts rows of one group on both sides. Hand them on: "
                    "sklearn.set_config(enable_metadata_routing=True), and "
                    "set_fit_request(groups=True) of the CalibratedClassifier"
                )
                return
        frame = frame.f_back


def _bounds_unavailable_reason(model: CalibratedClassifier) -> str | None:
    """Return why there are no bounds, None if there are: as fitted, or as ``method`` will fit."""
    method: Any = model.method
    if model.__sklearn_is_fitted__():
        calibrator = model._state.calibrators[0]
        if has_bounds(calibrator):
            return None
        method = calibrator if method_has_bounds(method) else method
    return None if method_has_bounds(method) else no_bounds(method)


class _WithBounds:
    """A method that a classifier without bounds lacks, and that says why.

    As scikit-learn's ``available_if``, whose ``AttributeError`` names the method alone.
    """

    def __init__(self, method: Any) -> None:
        self._method, self.__doc__ = method, method.__doc__

    def __get__(self, model: CalibratedClassifier | None, owner: type | None = None) -> Any:
        if model is None:
            return self._method
        why = _bounds_unavailable_reason(model)
        if why is not None:
            raise AttributeError(why)
        return MethodType(self._method, model)


def _if_bounds(method: Bound) -> Bound:
    return cast("Bound", _WithBounds(method))


@stored("calibrated-classifier")
class CalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are calibrated, with bounds where the method gives them.

    By default a forest of 300 trees, calibrated out of bag: all data trains, all data
    calibrates. The probability is a pool of smooth maps of the score of all trees; the bounds are
    Venn–Abers, which is valid whatever the distribution where calibration scores are of examples
    kept apart from training (``"holdout"``, ``"cv"`` a fold, a frozen model), and is measured to
    be nearly so out of bag. Where they would not contain the probability they are widened, to the
    cautious side (not with ``merge="log"``): ``docs/guarantee.md`` says of every setting what is
    proven.

    Parameters
    ----------
    estimator : classifier, default=None
        Any scikit-learn classifier with ``predict_proba`` or ``decision_function``; None:
        ``MixedForestClassifier(n_estimators=300)``. A ``FrozenEstimator`` is never refitted: the
        data given to ``fit`` only calibrates. A ``Pipeline`` that ends in a forest counts as that
        forest behind its transformers.
    method : str or calibrator, default="venn-abers"
        ``"venn-abers"``, ``"venn"``, ``"platt"``, ``"isotonic"``, ``"bostrom"``, ``"beta"``,
        ``"temperature"``, ``"matrix"``, ``"quadratic"``, ``"spline"``, ``"pooled"``, ``"none"``,
        or an instance from ``vennforest.calibrators``.
    calibrate_on : str or Source, default="auto"
        Where calibration scores come from. ``"oob"``: each training example is scored by the
        members of the bagged ensemble that did not see it, nor, where ``groups`` are given, anyone
        of its group; ``"holdout"``: a part of the data that is not trained on; ``"cv"``: folds;
        ``"training"``: the training data itself, which has no guarantee (Vovk & Petej 2014,
        Proposition 2: the bounds may miss even on average). ``"auto"``: ``"oob"`` for bagged
        ensembles whose bags can be verified, unless groups or a splitter that knows of groups or
        time are given, or a step before the ensemble declares that it sees labels or resamples;
        else ``"cv"``. With a ``FrozenEstimator`` ``"oob"`` calibrates a fitted forest on its own
        training data. An object with the method of `vennforest.sources.Source` is a source of
        one's own. The estimator is trained once with ``"oob"``, ``"holdout"`` and ``"training"``,
        once a fold with ``"cv"`` (and once more with ``ensemble=False``), never when frozen; with
        ``"auto"`` once and then in folds where trees turn out to have seen other rows than they
        say.
    subforest : {"all", "exchangeable"}, default="all"
        With ``"oob"``, which trees score a new object for its bounds: every tree, or the out-of-bag
        trees of a random calibration example, which then leaves the calibration set (Johansson et
        al. 2018). ``"all"`` draws nothing, so bounds are
        the same for every seed; with fewer than 100 trees they are too cautious, by .09 with 10
        trees and .02 with 100 (``docs/measured.md``).
    votes : {"soft", "hard"}, default="soft"
        With ``"oob"``: the mean of the trees' class distributions, or the share of their votes.
    holdout_size : float or int, default=1/3
        With ``"holdout"``: share or number of the examples held out, drawn at random; see also
        `vennforest.sources.Holdout`.
    cv : int, splitter or iterable, default=5
        With ``"cv"``: so many folds drawn at random, or as everywhere in scikit-learn
        (``StratifiedKFold`` gives up exactness).
    ensemble : bool, default=True
        With ``"cv"``. True: one model and one calibrator per fold, whose bounds are averaged (cross
        Venn–Abers); probabilities are the geometric mean of one pool of maps. False: the pooled
        scores of all folds calibrate one model that is trained on all the data.
    merge : {"auto", "pooled", "log", "brier", "midpoint", "smooth"}, default="auto"
        Where the probability comes from. ``"pooled"``: a weighted pool of smooth maps of the score
        of all trees (`PooledCalibration`), which no draw moves; the bounds are widened where
        needed to contain it. With fewer than 20 trees it is averaged over subforests of out-of-bag
        size. It need not rise with the score everywhere: for a monotone model take ``"log"``. The
        others merge the bounds, see `Multiprobability.merge`. ``"auto"``: ``"pooled"`` for
        Venn–Abers, ``"midpoint"`` for Venn, its own for a calibrator instance.
    by : str, int, callable or Groups, default=None
        Calibrate within groups of objects, so the bounds are valid in each: a column by name or
        position, or a function of the rows that returns a label for each; missing labels are a
        group of their own. `vennforest.groups.Groups` has small groups calibrated together. The
        column stays a feature. Objects of groups that were not seen get bounds 0 and 1 and a
        warning.
    n_jobs : int, default=None
        Threads of the forest walk, and folds fitted at once.
    random_state : int, RandomState or None, default=None
        Seeds the draws of calibration examples, the split or the folds (the same each time where
        it is None), and every ``random_state`` of the estimator that is None.

    Notes
    -----
    A row's prediction depends on that row and ``random_state`` alone: the calibration example
    whose trees score it is drawn from a hash of the row and the seed (Johansson et al. 2018,
    section 3.2, draws it again each time).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
    >>> model.predict_proba(X[406:408]).round(2)
    array([[0.43, 0.57],
           [0.03, 0.97]])
    >>> m = model.predict_multiprobability(X[406:408])
    >>> m.lower[:, 1].round(2), m.upper[:, 1].round(2)
    (array([0.57, 0.91]), array([0.75, 0.97]))
    """

    _fitted: FittedClassifier
    """All that ``fit`` has made; not there before."""

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str | Calibrator = "venn-abers",
        calibrate_on: str | Source = "auto",
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
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Train and calibrate.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            What the estimator takes.
        y : array-like of shape (n,)
            Labels of any dtype.
        sample_weight : array-like of shape (n,), optional
            For the estimator and the calibrator; a weight of 2 is the observation twice.
        groups : array-like of shape (n,), optional
            Rows that belong together, such as those of one patient: no row is scored by a model
            that saw another of its group. Within a search or a cross-validation the splitter's
            groups come here with metadata routing and ``set_fit_request(groups=True)``.
        **fit_params
            Passed to the estimator's ``fit``; with metadata routing, to whoever requests them.

        Raises
        ------
        ValueError
            If a parameter has no such value, there is one class only, or no example is left
            to calibrate on.

        Warns
        -----
        UserWarning
            If a search or cross-validation around it has groups and gives it none.
        """
        settings = Settings.of(self)
        if _has_several_columns(y):
            raise InputError(
                "y must have one column, got several: use "
                "sklearn.multioutput.MultiOutputClassifier(CalibratedClassifier())"
            )
        check_order(X, y=y, sample_weight=sample_weight, groups=groups)
        X, y = indexable(X, y)
        random_state = check_random_state(self.random_state)
        estimator = resolve_estimator(self.estimator, self.n_jobs)
        # Without a seed of the user's, splits are the same each time, as scikit-learn's folds are.
        splits = np.random.RandomState(0) if self.random_state is None else random_state
        known = None
        if isinstance(estimator, FrozenEstimator):
            check_is_fitted(estimator)
            known = estimator.classes_
        elif groups is None:
            warn_of_groups_around()
        codes, classes = encode_labels(y, known)
        if not len(codes):
            raise ValueError("X must contain at least one example, got 0 sample(s)")
        if len(classes) < 2:
            raise ValueError(
                f"y must contain at least two classes, got one class: {classes.tolist()[0]!r}"
            )
        weight = check_weights(sample_weight, len(codes))
        if known is None and weight is not None and len(np.unique(codes[weight > 0])) < 2:
            raise ValueError(
                "y must contain at least two classes with a weight above zero, got one"
            )
        to_fit, weight_param, to_split = route(self, estimator, weight, groups, fit_params)
        small = codes.astype(np.min_scalar_type(len(classes) - 1))
        labels = classes[codes]
        grouping, by = None, None
        if self.by is not None:
            grouping, by = Grouping.fit(self.by, X, len(codes))
        data = TrainingData(
            X, labels, small, classes, weight, to_fit, weight_param, to_split, by=by
        )
        row_groups = data.groups
        try:
            folds, source, reason = settings.score(estimator, data, random_state, splits)
        except (TypeError, ValueError) as error:
            refuse_text(X, estimator, error)
            raise
        settings.warn_of_no_effect(source, reason)
        return self._calibrate(
            classes,
            folds,
            source,
            reason,
            grouping=grouping,
            n_rows=len(data),
            row_groups=row_groups,
            known_rows=KnownRows.of(X),
        )

    def recalibrate(
        self,
        method: str | Calibrator = "venn-abers",
        *,
        merge: ClassifierMerge = "auto",
    ) -> Self:
        """Return a fitted classifier with the same models and another calibrator.

        Nothing is trained again: the calibration scores of this one are used, so methods can
        be compared at the price of one forest. Parameters are as for the constructor.

        Raises
        ------
        ValueError
            If a parameter has no such value, or the scores are none the method takes.
        """
        fitted = self._state
        other: Self = clone(self).set_params(method=method, merge=merge)
        return other._calibrate(
            fitted.classes,
            fitted.folds,
            fitted.calibrate_on,
            fitted.calibrate_on_reason,
            grouping=None if fitted.by is None else fitted.by.grouping,
            n_rows=fitted.n_rows,
            row_groups=fitted.row_groups,
            shift=fitted.shift,
            known_rows=fitted.known_rows,
        )

    def _calibrate(self, *fitted: Any, **known: Any) -> Self:
        """Fit calibrators to models with calibration sets: see `FittedClassifier.calibrate`."""
        self._fitted = FittedClassifier.calibrate(Settings.of(self), *fitted, **known)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the estimator takes them.

        Returns
        -------
        ndarray of shape (n, k)
            In [0, 1], a column per class in the order of ``classes_``; rows sum to 1.
        """
        return self._answers(X, bounds=False)[1]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,), the first of equals."""
        best = self.predict_proba(X).argmax(axis=1)  # refuses before fit
        labels: NDArray[Any] = self.classes_[best]
        return labels

    @_if_bounds
    def predict_multiprobability(self, X: Any) -> Multiprobability:
        """Return lower and upper probabilities; for ``"venn-abers"`` and ``"venn"``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the estimator takes them.

        Returns
        -------
        Multiprobability
            Bounds of shape (n, k), in [0, 1]. Where several draws or folds are merged they are the
            means of theirs. With ``merge="pooled"``, and over folds, they are widened where needed
            to contain what ``predict_proba`` returns; ``widened`` says in which rows.
        """
        bounds: Multiprobability = self._answers(X)[0]
        return bounds

    def predict_confidence(
        self,
        X: Any,
        level: float = 0.95,
        method: Method = "likelihood-ratio",
    ) -> ConfidenceIntervals:
        """Return confidence intervals for the frequency of each class among cases with such scores.

        They say how well a probability is known: the frequency of the class among cases to which
        this model gives such a score lies inside with the given probability. The bounds of
        ``predict_multiprobability`` are something else, and much narrower: how far one more label
        would move the probability.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
        level : float, default=0.95
            Probability, in (0, 1), with which an interval contains the frequency.
        method : {"likelihood-ratio", "exact"}, default="likelihood-ratio"
            ``"likelihood-ratio"``: sharp, by a limit theorem with simulated corrections; what it
            covers is measured in ``docs/measured.md``. ``"exact"``: about twice as wide, and never
            below the level if calibration scores are of examples kept apart from training.

        Returns
        -------
        ConfidenceIntervals
            Ends of shape (n, k), in [0, 1], around what ``predict_proba`` returns; ``widened`` says
            in which rows they were widened to contain it.

        Raises
        ------
        ValueError
            If the level does not lie in (0, 1), the method is unknown, or ``"exact"`` is asked of
            a model per fold or of weighted examples.
        """
        return predict_confidence(self._state, X, level, method)

    def with_prior(
        self, shares: Mapping[Any, float], *, instead_of: Mapping[Any, float] | None = None
    ) -> Self:
        """Return this classifier for a population with other shares of the classes.

        For a model whose calibration examples were resampled or weighted, or that moves to where
        classes are more or less frequent, while objects of each class stay as they are: the odds
        of every probability and bound are multiplied by what that makes of the odds of the classes
        (see `vennforest.prior.shift_bounds`). Nothing is trained again.

        Parameters
        ----------
        shares : mapping of label to float
            The share of each class there, in (0, 1), with sum 1; classes that are not named share
            the rest in their present proportions. ``docs/guarantee.md`` says what bounds then
            promise.
        instead_of : mapping of label to float, optional
            The shares of the population that calibration examples were drawn from, where they are
            known; by default ``prior_``, the shares counted among the calibration examples.

        Raises
        ------
        ValueError
            If a label is unknown, shares do not fit, or a class has no calibration examples.

        Examples
        --------
        >>> from sklearn.datasets import load_breast_cancer
        >>> from vennforest import CalibratedClassifier
        >>> X, y = load_breast_cancer(return_X_y=True)
        >>> model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
        >>> model.prior_.round(3)
        array([0.432, 0.568])
        >>> screening = model.with_prior({0: 0.01})
        >>> model.predict_proba(X[406:407]).round(2), screening.predict_proba(X[406:407]).round(2)
        (array([[0.43, 0.57]]), array([[0.01, 0.99]]))
        """
        fitted = self._state
        shift = ShiftedPrior.of(shares, instead_of, fitted.prior, fitted.shift, fitted.classes)
        return self._with(attrs.evolve(fitted, shift=shift))

    def estimate_prior(self, X: Any) -> PriorEstimate:
        """Estimate the shares of the classes among objects without labels.

        For objects from a population where classes have other shares, while objects of each class
        are as those calibrated on: ``model.with_prior(model.estimate_prior(X).shares)``. Where
        objects of a class themselves have changed, the estimate is of no use, and nothing in the
        scores tells.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (m, d)
            Rows as the estimator takes them: a random sample of that population.

        Raises
        ------
        ValueError
            If there are no rows, or the calibration examples lack a class.

        Warns
        -----
        UserWarning
            If the scores do not tell all classes apart.
        """
        plain = attrs.evolve(self._state, shift=None)
        prior, classes = plain.prior, plain.classes
        if (prior == 0).any():
            raise ValueError(
                "calibration examples must be of every class to estimate shares, got none of "
                f"{classes[prior == 0].tolist()}"
            )
        return estimate_shares(predict(plain, X, False)[1], prior, classes)

    def _with(self, fitted: FittedClassifier) -> Self:
        """Return this classifier around another fitted value."""
        other = copy.copy(self)
        other._fitted = fitted
        return other

    def _answers(self, X: Any, bounds: bool = True) -> tuple[Any, FloatArray]:
        """Return bounds, where the method has them, and probabilities, of classes or labels."""
        fitted = self._state
        return predict(fitted, X, bounds)

    def _training_rows(self) -> tuple[Any, FloatArray]:
        """Return the same of the rows given to ``fit``."""
        return predict_training_rows(self._state)

    def _predict(self, X: Any) -> Prediction:
        """Return bounds, where the method has them, and probabilities."""
        return predict(self._state, X)

    def _predict_all(self, X: Any, level: float) -> tuple[Prediction, ConfidenceIntervals]:
        """Return the same with the confidence intervals, every row scored once."""
        return predict_all(self._state, X, level)

    @property
    def _state(self) -> FittedClassifier:
        """The models, calibrators and calibration sets."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet: call fit first")
        return self._fitted

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether ``fit`` has been called."""
        return "_fitted" in self.__dict__

    def to_state(self) -> dict[str, Any]:
        """Return the parameters and what fitting made of them, None before ``fit``."""
        return {
            "parameters": self.get_params(deep=False),
            "fitted": self._fitted if self.__sklearn_is_fitted__() else None,
        }

    @classmethod
    def from_state(cls, *, parameters: dict[str, Any], fitted: FittedClassifier | None) -> Self:
        """Return the classifier of a state, refused where a parameter has no such value."""
        model = cls(**parameters)
        if fitted is not None:
            own = isinstance(fitted, FittedClassifier)
            require(own, "fitted must be what fit has made")
            named = model.estimator is None or hasattr(model.estimator, "fit")
            require(named, "estimator must be a classifier")
            Settings.of(model)
            model._fitted = fitted
        return model

    def get_metadata_routing(self) -> MetadataRouter:
        """Return who may be given which metadata: the estimator's fit, the splitter's split."""
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=resolve_estimator(self.estimator, self.n_jobs),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
            .add(
                splitter=self.cv,
                method_mapping=MethodMapping().add(caller="fit", callee="split"),
            )
        )

    def __sklearn_tags__(self) -> Tags:
        """Take what the estimator takes."""
        tags = super().__sklearn_tags__()
        own = get_tags(resolve_estimator(self.estimator, self.n_jobs)).input_tags
        for name in ("sparse", "allow_nan", "categorical", "string"):
            setattr(tags.input_tags, name, getattr(own, name))
        return tags

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels, sorted."""
        return self._state.classes

    @property
    def n_features_in_(self) -> int:
        """How many features the estimator was given."""
        return int(self._state.folds[0].estimator.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Their names, where they had some."""
        names: NDArray[Any] = self._state.folds[0].estimator.feature_names_in_
        return names

    @property
    def estimator_(self) -> Any:
        """The fitted model; with several (``"cv"`` and ``ensemble=True``): ``estimators_``."""
        return _only("estimator", self.estimators_)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted models, one a fold."""
        return [fold.estimator for fold in self._state.folds]

    @property
    def calibrator_(self) -> Calibrator:
        """The fitted calibrator; with several there is ``calibrators_``.

        With ``merge="pooled"`` it has the bounds before they are widened to contain the
        probability, which is not its own.
        """
        return cast("Calibrator", _only("calibrator", self.calibrators_))

    @property
    def calibrators_(self) -> list[Calibrator]:
        """The fitted calibrators, one a fold."""
        return list(self._state.calibrators)

    @property
    def point_calibrator_(self) -> PooledCalibration:
        """With ``merge="pooled"``, what makes the probability of the score, for all folds."""
        if (point := self._state.point_calibrator) is None:
            raise AttributeError(
                'a CalibratedClassifier has a point calibrator with merge="pooled"'
            )
        return point

    @property
    def calibration_scores_(self) -> FloatArray:
        """The calibration scores, fold after fold: (n,) of the second of two classes, or (n, k)."""
        folds = self._state.folds
        return folds[0].scores if len(folds) == 1 else np.concatenate([f.scores for f in folds])

    @property
    def calibration_y_(self) -> NDArray[Any]:
        """The labels of the calibration examples, (n_calibration,), fold after fold."""
        labels: NDArray[Any] = self.classes_[np.concatenate([f.codes for f in self._state.folds])]
        return labels

    @property
    def calibrate_on_(self) -> str:
        """Where the calibration scores came from."""
        return self._state.calibrate_on

    @property
    def calibrate_on_reason_(self) -> str:
        """Why, in a clause."""
        return self._state.calibrate_on_reason

    @property
    def grouping_(self) -> Grouping:
        """The groups that were seen at ``fit``."""
        if self._state.by is None:
            raise AttributeError("a CalibratedClassifier has groups with by=")
        return self._state.by.grouping

    @property
    def prior_(self) -> FloatArray:
        """The shares of the classes that probabilities are right for, shape (k,), sum 1.

        Those among the calibration examples, by weight, unless ``with_prior`` set others. What
        was done to training examples alone, such as ``class_weight`` or a resampler within a
        pipeline, does not change them.
        """
        return self._state.prior

    @property
    def oob_probability_(self) -> FloatArray:
        """Probabilities of the rows given to ``fit``, each without its own label, (n, k).

        Each row is scored by models that did not see it, NaN where there are none. The calibrator
        answers without the row's label, and without its group (Venn and Venn–Abers leave it out
        exactly, others are fitted again five times). Computed at each access.
        """
        return self._training_rows()[1]

    @property
    def oob_multiprobability_(self) -> Multiprobability:
        """Bounds of the rows given to ``fit``, each without its own label: see the probability."""
        bounds: Multiprobability | None = self._training_rows()[0]
        if bounds is None:
            raise AttributeError(no_bounds(self._state.calibrators[0]))
        return bounds

    @property
    def feature_importances_(self) -> FloatArray:
        """The estimator's own importance of each column, (d,); the mean over several models."""
        each = [feature_importances(model) for model in self.estimators_]
        mean: FloatArray = np.mean(each, axis=0)
        return mean


def _only(name: str, things: list[Any]) -> Any:
    if len(things) != 1:
        raise AttributeError(f"with one {name} a fold there is {name}s_, not {name}_")
    return things[0]


def _has_several_columns(y: Any) -> bool:
    """Return whether y is a table of two columns or more."""
    try:
        # numpy's shape() asks the container for more than its values
        shape = y.shape if getattr(y, "shape", None) is not None else np.asarray(y).shape
    except ValueError:  # rows of different lengths
        return False
    return len(shape) == 2 and shape[1] > 1
