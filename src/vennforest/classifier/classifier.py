"""The front door: a source of calibration scores joined with a calibrator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state, indexable
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from vennforest._available import available_unless
from vennforest._loaded import expect, expect_labels, same_labels
from vennforest._validation import (
    FloatArray,
    check_weights,
    encode_labels,
    refuse_text,
)
from vennforest.calibrators import Calibrator
from vennforest.calibrators.confidence import ConfidenceIntervals
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.classifier.prediction import (
    Prediction,
    confidence_of_parts,
    predict_parts,
    put_together,
)
from vennforest.classifier.settings import (
    CalibrateOn,
    ClassifierMerge,
    Settings,
    bounds_unavailable_reason,
)
from vennforest.forest.packed import Votes
from vennforest.groups import Grouping, Groups
from vennforest.multiprobability import Multiprobability
from vennforest.sources import (
    Fold,
    Source,
    Subforest,
    TrainingData,
    route,
    with_seed,
)
from vennforest.sources.choice import choose
from vennforest.sources.hazards import check_training_data
from vennforest.sources.out_of_bag import StepsError
from vennforest.sources.verification import BagsError


class CalibratedClassifier(MetaEstimatorMixin, ClassifierMixin, Settings):
    """A classifier whose probabilities are calibrated, with bounds where the method gives them.

    By default a random forest of 300 trees, calibrated out of bag: all data trains, all data
    calibrates. The probability is a pool of smooth maps of the score of all trees; the bounds are
    Venn–Abers, which is valid whatever the distribution where calibration scores are of examples
    kept apart from training (``"holdout"``, ``"cv"`` a fold, a frozen model), and is measured to
    be nearly so out of bag. Where they would not hold the probability they are widened, to the
    cautious side (not with ``merge="log"``): ``docs/guarantee.md`` says of every setting what is
    proven.

    Parameters
    ----------
    estimator : classifier, default=None
        Any scikit-learn classifier with ``predict_proba`` or ``decision_function``; None:
        ``RandomForestClassifier(n_estimators=300)``. A ``FrozenEstimator`` is never refitted: the
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
        ``"cv-forest"``: folds at the price of one forest, K of them with T / K trees each (best
        with ``cv=2`` or 3), whose mean bounds are exactly unbiased on average;
        ``"training"``: the training data itself, which has no guarantee (Vovk & Petej 2014,
        Proposition 2: the bounds may miss even on average). ``"auto"``: ``"oob"`` for bagged
        ensembles whose bags can be verified, unless groups or a splitter that knows of groups or
        time are given, or a step before the ensemble sees labels or resamples; else ``"cv"``. With
        a ``FrozenEstimator`` ``"oob"`` calibrates a fitted forest on its own training data. An
        object with the method of `vennforest.sources.Source` is a source of one's own.
    subforest : {"all", "exchangeable", "random", "joined"}, default="all"
        With ``"oob"``, which trees score a new object for its bounds: every tree; the out-of-bag
        trees of a random calibration example, which then leaves the calibration set (Johansson et
        al. 2018); or as many trees picked at random. ``"all"`` draws nothing, so that bounds are
        the same for every seed; with fewer than 100 trees they are too cautious, by .09 with 10
        trees and .02 with 100 (``docs/validity.md``). ``"joined"``, for forests with Venn or
        Venn–Abers: bags are drawn for the object as for any example; once for each label it might
        have it joins the leaves of the trees whose bags hold it, which changes scores of
        calibration examples, and the other trees score it (``docs/joined.md``).
    votes : {"soft", "hard"}, default="soft"
        With ``"oob"``: the mean of the trees' class distributions, or the share of their votes.
    holdout_size : float or int, default=1/3
        With ``"holdout"``: share or number of the examples held out, drawn at random (for a
        stratified part, which gives up exactness: ``calibrate_on=Holdout(size, stratify=True)``
        from ``vennforest.sources``).
    cv : int, splitter or iterable, default=5
        With ``"cv"``: so many folds drawn at random, or as everywhere in scikit-learn
        (``StratifiedKFold`` gives up exactness).
    ensemble : bool, default=True
        With ``"cv"``. True: one model and one calibrator per fold, whose bounds are averaged (cross
        Venn–Abers); one pool of maps serves the probabilities of all. False: the pooled scores of
        all folds calibrate one model that is trained on all the data.
    merge : {"auto", "pooled", "log", "brier", "midpoint", "smooth"}, default="auto"
        Where the probability comes from. ``"pooled"``: a weighted pool of smooth maps of the score
        of all trees (`PooledCalibration`), which no draw moves; the bounds are widened where
        needed to hold it. With fewer than 20 trees it is averaged over subforests of out-of-bag
        size. It need not rise with the score everywhere: for a monotone model take ``"log"``. The
        others merge the bounds, see `Multiprobability.merge`. ``"auto"``: ``"pooled"`` for
        Venn–Abers, ``"midpoint"`` for Venn, its own for a calibrator instance.
    n_draws : int or "all", default=1
        With ``subforest="exchangeable"``: over how many left-out examples bounds are averaged;
        ``"all"``: over every one, without randomness; with ``"joined"``: over how many draws of the
        object's bags (``"all"`` counts as 1). A mean of several draws is unbiased on
        average as each draw is, steadier, and more cautious than the single draw that the theorem
        speaks of.
    by : str, int, callable or Groups, default=None
        Calibrate within groups of objects, so that the bounds hold in each: a column by name or
        position, or a function of the rows that returns a label for each; missing labels are a
        group of their own. `vennforest.groups.Groups` has small groups calibrated together. The
        column stays a feature. Objects of groups that were not seen get bounds 0 and 1 and a
        warning.
    n_jobs : int, default=None
        Threads of the forest walk, and folds fitted at once.
    random_state : int, RandomState or None, default=None
        Seeds the draws of calibration examples, the split or the folds (the same each time where
        it is None), and every ``random_state`` of the estimator that is None.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    estimator_ : classifier
        The fitted model; with several (``"cv"`` and ``ensemble=True``) there is ``estimators_``.
    calibrator_ : Calibrator
        The fitted calibrator; with several there is ``calibrators_``. With ``merge="pooled"`` it
        has the bounds before they are widened to hold the probability, which is not its own.
    calibration_scores_ : ndarray of shape (n_calibration,) or (n_calibration, k)
        The calibration scores: of the second of two classes, or a column per class.
    calibration_y_ : ndarray of shape (n_calibration,)
        Their labels.
    calibrate_on_ : str
        Where the calibration scores came from.
    calibrate_on_reason_ : str
        Why, in a clause.
    point_calibrator_ : PooledCalibration
        With ``merge="pooled"``, what makes the probability of the score; one for all models.
    oob_probability_ : ndarray of shape (n, k)
        What the rows given to ``fit`` are predicted to be by models that did not see them, without
        their own labels; NaN for rows that no such model scored.
    oob_multiprobability_ : Multiprobability
        The bounds that go with it.
    feature_importances_ : ndarray of shape (d,)
        The estimator's, where it has them; the mean over several models.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn, where the estimator has them.

    Notes
    -----
    A row's prediction depends on that row and ``random_state`` alone: the calibration example
    whose trees score it is drawn from a hash of the row and the seed (Johansson et al. 2018,
    section 3.2, draws it anew each time).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
    >>> model.predict_proba(X[406:408]).round(2)
    array([[0.57, 0.43],
           [0.02, 0.98]])
    >>> m = model.predict_multiprobability(X[406:408])
    >>> m.lower[:, 1].round(2), m.upper[:, 1].round(2)
    (array([0.43, 0.93]), array([0.56, 1.  ]))
    """

    by: Any = None  # models saved before there were groups have none

    def __init__(
        self,
        estimator: Any = None,
        *,
        method: str | Calibrator = "venn-abers",
        calibrate_on: CalibrateOn | Source = "auto",
        subforest: Subforest = "all",
        votes: Votes = "soft",
        holdout_size: float | int = 1 / 3,
        cv: Any = 5,
        ensemble: bool = True,
        merge: ClassifierMerge = "auto",
        n_draws: int | Literal["all"] = 1,
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
        self.n_draws = n_draws
        self.by = by
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
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
        **fit_params
            Passed to the estimator's ``fit``, and ``groups`` to the splitter; with metadata
            routing, to whoever requests them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter has no such value, there is one class only, or no example is left
            to calibrate on.
        """
        self._check_parameters()
        X, y = indexable(X, y)
        check_consistent_length(X, y)
        random_state = check_random_state(self.random_state)
        estimator = self._get_estimator()
        known = None
        if isinstance(estimator, FrozenEstimator):
            check_is_fitted(estimator)
            known = estimator.classes_
        codes, classes = encode_labels(y, known)
        if not len(codes):
            raise ValueError("X must hold at least one example, got 0 sample(s)")
        if len(classes) < 2:
            raise ValueError(
                f"y must hold at least two classes, got one class: {classes.tolist()[0]!r}"
            )
        weight = check_weights(sample_weight, len(codes))
        to_fit, weight_param, to_split = route(self, estimator, weight, fit_params)
        small = codes.astype(np.min_scalar_type(len(classes) - 1))
        labels = classes[codes]
        grouping, by = None, None
        if self.by is not None:
            grouping, by = Grouping.fit(self.by, X, len(codes))
        data = TrainingData(
            X, labels, small, classes, weight, to_fit, weight_param, to_split, by=by
        )
        self.classes_ = classes
        self._prior = self._factors = None
        self._n_rows, self._row_groups = len(data), data.groups
        self._grouping = grouping
        try:
            self._parts = self._score(estimator, data, random_state)
        except (TypeError, ValueError) as error:
            refuse_text(X, estimator, error)
            raise
        self._warn_of_no_effect(self.calibrate_on_, self.calibrate_on_reason_)
        self._calibrate()
        return self

    def recalibrate(
        self,
        method: str | Calibrator = "venn-abers",
        *,
        merge: ClassifierMerge = "auto",
    ) -> Self:
        """Return a fitted classifier with the same models and another calibrator.

        Nothing is trained again: the calibration scores of this one are used, so that methods can
        be compared at the price of one forest.

        Parameters
        ----------
        method, merge
            As for the constructor.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If a parameter has no such value, or the scores are none the method takes.
        """
        check_is_fitted(self, "classes_")
        other = clone(self).set_params(method=method, merge=merge)
        other._check_parameters()
        other.classes_, other._parts = self.classes_, self._parts
        for name in ("_n_rows", "_row_groups"):  # older files do not hold them
            if name in self.__dict__:
                setattr(other, name, getattr(self, name))
        other.calibrate_on_ = self.calibrate_on_
        other.calibrate_on_reason_ = self.calibrate_on_reason_
        other._prior, other._factors = self._prior, self._factors
        other._grouping = self._grouping
        other._calibrate()
        return cast("Self", other)

    def _take(self, classes: NDArray[Any], parts: list[Fold], name: str, why: str) -> Self:
        """Take fitted models with calibration scores from elsewhere, and calibrate."""
        self.classes_, self._parts = classes, parts
        self.calibrate_on_, self.calibrate_on_reason_ = name, why
        self._calibrate()
        return self

    def _calibrate(self) -> None:
        """Fit a calibrator to each part, and take over what its model knows of the features."""
        self._check_calibrator()
        self._calibrators = [self._fit_calibrator(part) for part in self._parts]
        self._points = [self._fit_point() if self._is_pooled() else None] * len(self._parts)
        self._fit_groups()
        first = self._parts[0].estimator
        for name in ("n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)  # an earlier fit's
            if hasattr(first, name):
                setattr(self, name, getattr(first, name))

    def _fit_calibrator(self, part: Fold) -> Calibrator:
        return self._get_calibrator(part.estimator).fit(
            part.scores,
            self.classes_[part.codes],
            sample_weight=part.weight,
            classes=self.classes_,
        )

    def _fit_point(self) -> PooledCalibration:
        """Fit one pool to the scores of all parts, which beats one a fold (docs/defaults.md)."""
        parts = self._parts
        # What scores are is known here, and not guessed from those at hand.
        proba = all(hasattr(part.estimator, "predict_proba") for part in parts)
        weighted = any(part.weight is not None for part in parts)
        ones = [np.ones(len(part.codes)) if part.weight is None else part.weight for part in parts]
        return PooledCalibration(on="probabilities" if proba else "logits").fit(
            np.concatenate([part.scores for part in parts]),
            self.classes_[np.concatenate([part.codes for part in parts])],
            sample_weight=np.concatenate(ones) if weighted else None,
            classes=self.classes_,
        )

    def _score(
        self,
        estimator: Any,
        data: TrainingData,
        random_state: np.random.RandomState,
    ) -> list[Fold]:
        """Fit the models and score the calibration examples."""
        estimator = with_seed(estimator, random_state)
        seed = int(random_state.randint(2**31 - 1))
        name, why = choose(self.calibrate_on, estimator, data, self.cv, self.subforest)
        self.calibrate_on_, self.calibrate_on_reason_ = name, why
        check_training_data(estimator, data, name)

        # Without a seed of the user's, splits are the same each time, as scikit-learn's folds are.
        splits = np.random.RandomState(0) if self.random_state is None else random_state

        def folds(source: Source) -> list[Fold]:
            return list(
                source.folds(estimator, data, seed=seed, random_state=splits, n_jobs=self.n_jobs)
            )

        if self.calibrate_on != "auto" or name != "oob":
            return folds(self._source(name))
        try:
            return folds(self._source("oob"))
        except (BagsError, StepsError) as error:
            # Found out by looking at what was fitted, so that a fit is lost; never a guarantee.
            self.calibrate_on_, self.calibrate_on_reason_ = "cv", error.reason
            return folds(self._source("cv"))

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

        Raises
        ------
        NotFittedError
            Before ``fit``.
        """
        return self._predict(X, bounds=False)[1]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each row, shape (n,), the first of equals."""
        best = self.predict_proba(X).argmax(axis=1)  # refuses before fit
        labels: NDArray[Any] = self.classes_[best]
        return labels

    @available_unless(bounds_unavailable_reason)
    def predict_multiprobability(self, X: Any) -> Multiprobability:
        """Return lower and upper probabilities; for ``"venn-abers"`` and ``"venn"``.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the estimator takes them.

        Returns
        -------
        Multiprobability
            Bounds of shape (n, k). Where several draws or folds are merged they are the means of
            theirs. With ``merge="pooled"``, and over folds, they are widened where needed to hold
            what ``predict_proba`` returns; ``widened`` says in which rows.

        Raises
        ------
        NotFittedError
            Before ``fit``.
        """
        bounds, _ = self._predict(X)
        assert bounds is not None
        return bounds

    def predict_confidence(
        self, X: Any, level: float = 0.95, *, simultaneous: bool = False
    ) -> ConfidenceIntervals:
        """Return confidence intervals for the share of every class among objects with such a score.

        Not the bounds of ``predict_multiprobability``, which say how far one more label would move
        the probability: these hold the share of the class with the given probability, assuming
        only that it rises with the score (see `confidence_intervals`). Exact where calibration
        scores are of examples kept apart from training; out of bag new objects are scored by all
        trees, which is not proved and hardly matters from 100 trees on.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n, d)
            Rows as the estimator takes them.
        level : float, default=0.95
            Probability, in (0, 1), with which an interval holds the share.
        simultaneous : bool, default=False
            False: each interval for itself. True: all together, wider.

        Returns
        -------
        ConfidenceIntervals
            Ends of shape (n, k), in [0, 1].

        Raises
        ------
        NotFittedError
            Before ``fit``.
        ValueError
            If there is a model per fold, whose scores do not compare, or examples have weights.
        """
        check_is_fitted(self, "classes_")
        made = [
            (
                sub.rows,
                confidence_of_parts(
                    sub.parts, self.classes_, sub.of(X), level, simultaneous, self._factors
                ),
            )
            for sub in self._sub_models(X)
        ]
        found = made[0][1]
        if made[0][0] is None:
            return found
        back = np.argsort(np.concatenate([rows for rows, _ in made if rows is not None]))
        lower, upper = (
            np.concatenate([getattr(one, end) for _, one in made])[back]
            for end in ("lower", "upper")
        )
        return replace(found, lower=lower, upper=upper)

    def _predict(self, X: Any, bounds: bool = True) -> Prediction:
        """Return bounds, where the method has them and they are wanted, and probabilities."""
        if "classes_" not in self.__dict__:  # the check itself takes as long as scoring a row
            check_is_fitted(self, "classes_")
        classes, factors = self.classes_, self._factors
        return put_together(
            [
                (sub.rows, predict_parts(*sub[1:], classes, sub.of(X), bounds, factors))
                for sub in self._sub_models(X)
            ]
        )

    def check_loaded(self) -> None:
        """Refuse models, calibration examples and calibrators that do not belong together.

        Raises
        ------
        ValueError
            If labels, features or examples are not the same in every part.
        """
        self._check_parameters()
        expect_labels(self.classes_)
        parts, calibrators = self._parts, self._calibrators
        expect(isinstance(parts, list | tuple) and parts, "_parts must be a list of one or more")
        expect(all(isinstance(part, Fold) for part in parts), "_parts must be Folds")
        expect(isinstance(calibrators, list), "_calibrators must be a list")
        expect(len(parts) == len(calibrators), "_calibrators must be as many as _parts")
        for part, calibrator in zip(parts, calibrators, strict=True):
            expect(isinstance(calibrator, Calibrator), "_calibrators must be Calibrators")
            expect(same_labels(calibrator.classes_, self.classes_), "classes_ must be the same")
            part.check_classes(len(self.classes_))
            n = len(part.codes)
            expect(calibrator._n_given == n, f"_n_given must be {n}, the number of examples")
            drawn = getattr(part.scorer, "n_examples", n)
            expect(drawn == n, f"a scorer must leave out one of {n} examples")
            labels = getattr(part.scorer, "classes", self.classes_)
            expect(same_labels(labels, self.classes_), "classes must be the same")
        self._check_prior()
        self._check_groups()
        expect(len(self._points) == len(parts), "_points must be as many as _parts")
        for point in self._points:
            expect(point is None or isinstance(point, PooledCalibration), "_points must be pools")
            expect(point is None or same_labels(point.classes_, self.classes_), "of these classes")
        self._check_loaded_rows()
        known = getattr(self, "n_features_in_", None)
        for part in parts:
            own = getattr(part.estimator, "n_features_in_", None)
            expect(own == known, f"n_features_in_ must be {known} in every part")
