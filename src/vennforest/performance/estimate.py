"""Expected measures of a model's predictions on rows without labels."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse, vstack
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from vennforest._class_columns import class_probabilities
from vennforest._messages import needed, shown, warn
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_inside,
    check_option,
    check_order,
    class_index,
    count_rows,
    encode_labels,
)
from vennforest.calibrators import Calibrator
from vennforest.calibrators.intervals import expected_scores
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.prediction import predict_rows
from vennforest.classifier.training_rows import predict_examples
from vennforest.decisions.costs import CostMatrix
from vennforest.decisions.thresholds import INDEPENDENT_SOURCES
from vennforest.monitoring.stream import are_training_rows, check_new_rows, hash_for_model
from vennforest.performance.measures import LabelledPredictions, Metric
from vennforest.performance.recalibration import Recalibration
from vennforest.prior import shift_probabilities
from vennforest.sources import CalibrationExamples, Fold
from vennforest.sources.estimators import first_model, without_frozen

if TYPE_CHECKING:
    import pandas as pd

Shift = Literal["covariate"]
"""Kinds of shift between calibration examples and new rows that can be corrected for."""

MIN_ROWS_TO_ESTIMATE = 30
"""Minimum number of rows, and of calibration examples, for an estimate."""

MAX_DRAWS, MIN_DRAWS, MAX_DRAWN_LABELS = 1000, 200, 200_000_000
"""Limits of the number of draws, and the number of labels in all draws that reduces it."""

MAX_DENSITY_RATIO = 50.0
"""Density ratios are clipped to this value and its reciprocal."""

REUSE_VARIANCE = 1.4
"""Factor of the variance of the calibration error if the examples also trained the models.

Residuals do not show how much the models of one training set differ from the average over training
sets. No formula is known (Bates, Hastie & Tibshirani 2024); the value is from simulations.
"""

OTHER_ORDER = (
    "reference must be the rows given to fit in the same order, or rows that the model was not "
    "trained on, got its training rows in another order"
)

MAX_SHARE_OUTSIDE, MAX_SHARE_OUTSIDE_SILENT = 0.9, 0.25
"""Maximum share of new rows outside the range of the examples, and maximum without a warning."""


@dataclass(frozen=True, eq=False)
class PerformanceEstimate:
    """Expected measures of predictions, with prediction intervals.

    Attributes
    ----------
    metrics : tuple of str
        "accuracy", "precision", "recall", "brier", "log_loss", "auc", and with costs "cost".
    estimate, lower, upper : ndarray of shape (len(metrics),)
        Estimates and interval ends; NaN if undefined, such as the AUC of a single class.
    level : float
        Probability with which each interval contains the measure.
    n_rows : int
        Number of rows without labels.
    n_examples : int
        Number of labelled examples; with ``shift="covariate"``, Kish's effective sample size.
    """

    metrics: tuple[Metric, ...]
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    n_rows: int
    n_examples: int

    def table(self) -> pd.DataFrame:
        """Return a data frame of estimates and intervals, with a row for each measure."""
        pandas = needed("pandas", "data frames")
        columns = {"estimate": self.estimate, "lower": self.lower, "upper": self.upper}
        index = pandas.Index(self.metrics, name="metric")
        frame: pd.DataFrame = pandas.DataFrame(columns, index)
        return frame

    def __getitem__(self, metric: str) -> tuple[float, float, float]:
        """Return estimate, lower and upper end of a measure."""
        j = self.metrics.index(metric)
        return float(self.estimate[j]), float(self.lower[j]), float(self.upper[j])


class Examples(NamedTuple):
    """Labelled examples with probabilities by models that were not trained on them.

    ``repeats`` (n,) are their weights, ``groups`` (n,) are codes of groups of dependent examples,
    and ``is_reused`` is whether the examples also trained the final models.
    """

    p: FloatArray
    codes: IntArray
    repeats: FloatArray | None = None
    groups: IntArray | None = None
    rows: Any = None
    is_reused: bool = False


def estimate_performance(
    model: Any,
    X: Any,
    *,
    threshold: float | None = None,
    positive: Any = None,
    costs: Any = None,
    level: float = 0.95,
    shift: Shift | None = None,
    reference: Any = None,
    random_state: int = 0,
) -> PerformanceEstimate:
    """Estimate measures of predictions from calibrated probabilities, without labels.

    With more than two classes precision, recall and AUC are means over the classes for which they
    are defined, each against the rest.

    A change of the labels given the rows (concept shift) cannot be seen without labels: the
    estimate is then wrong without any sign of it.

    Parameters
    ----------
    model : CalibratedClassifier, calibrator or classifier
        A fitted model; calibrators and other classifiers require a labelled ``reference``.
    X : array-like, sparse matrix or data frame of shape (m, d)
        At least 30 rows; for a calibrator, scores of shape (m,) or (m, k).
    threshold : float, optional
        Minimum probability to decide for the positive one of two classes; by default the most
        probable class is decided for.
    positive : label, optional
        The positive class of two; by default the second.
    costs : CostMatrix, array-like, dict, str or path, optional
        Costs of decisions; without a threshold, decisions have the least expected cost.
    level : float, default=0.95
        Probability, in (0, 1), with which each interval contains the measure.
    shift : {None, "covariate"}, default=None
        Assumed difference between new rows and calibration examples. None: only the frequencies of
        scores differ. ``"covariate"``: the distribution of the rows differs, within the range of
        the examples, and the distribution of the label given the row does not. If the shares of
        the classes differ, use ``model.with_prior``.
    reference : array-like or (array-like, array-like), optional
        For ``shift="covariate"``, the rows that were given to ``fit``, in the same order; or a pair
        of labelled rows that the model was not trained on, and their labels, which replace the
        calibration examples.
    random_state : int, default=0
        Seed of the drawn labels.

    Raises
    ------
    ValueError
        If there are fewer than 30 rows or examples, or the model keeps no calibration scores or
        was fitted to most of the rows.

    Warns
    -----
    UserWarning
        With ``shift="covariate"``, if many rows lie outside the range of the examples.

    Notes
    -----
    Each measure is estimated from the calibrated probabilities, corrected by a logistic map of
    their log-odds that is fitted to the calibration examples. For the interval, coefficients of
    that map are drawn from their approximate normal distribution, then a label for every row: it
    covers the errors of calibration and of sampling. Rows are assumed to be independent.

    With ``shift="covariate"``, examples are weighted by the density ratio of new to old rows, which
    is estimated by a calibrated classifier of the same kind (PAPE; Białek, Kuberski, Perrakis &
    Bifet 2024). The logarithm of the ratio is a feature of the map as well.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier, estimate_performance
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
    >>> performance = estimate_performance(model, X[400:])
    >>> [round(value, 2) for value in performance["accuracy"]]
    [0.95, 0.9, 0.98]
    >>> round(model.score(X[400:], y[400:]), 2)
    0.97
    """
    level = check_inside(level, "level")
    if shift is not None:
        check_option(shift, Shift, "shift")
    X = _as_table(X)
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"model must be a fitted classifier or calibrator, got {type(model).__name__}"
        )
    check_is_fitted(model, "classes_")
    examples = _reference_examples(model, reference)
    for name, n in (("X", count_rows(X)), ("the calibration examples", len(examples.codes))):
        if n < MIN_ROWS_TO_ESTIMATE:
            raise InputError(f"{name} must have {MIN_ROWS_TO_ESTIMATE} rows or more, got {n}")
    check_new_rows(model, hash_for_model(model, X))
    unshifted, prior = _predicted_probabilities(model, X)
    importance = log_ratio = new_log_ratio = None
    n_examples = float(len(examples.codes))
    if shift == "covariate":
        importance, new, n_examples = _shift_of_rows(model, examples.rows, X, random_state)
        log_ratio = np.log(importance)[:, None]
        # Clipped, because the map would extrapolate beyond the ratios of the examples.
        new_log_ratio = np.log(np.clip(new, importance.min(), importance.max()))[:, None]
    recalibration = Recalibration.fit(
        examples.p,
        examples.codes,
        repeats=examples.repeats,
        importance=importance,
        groups=examples.groups,
        covariates=log_ratio,
    )
    if examples.is_reused:
        root = recalibration.root * np.sqrt(REUSE_VARIANCE)
        recalibration = replace(recalibration, root=root)
    recalibrate = recalibration.at(unshifted, new_log_ratio)

    def for_prior(p: FloatArray) -> FloatArray:
        return p if prior is None else shift_probabilities(p, prior.factors)

    p = for_prior(unshifted)
    predictions = _decide(p, np.unique(model.classes_), threshold, positive, costs)
    names = tuple(name for name in get_args(Metric) if name != "cost" or costs is not None)
    expected = predictions.expected(for_prior(recalibrate(recalibration.theta)))
    estimate = np.array([expected[name] for name in names])
    rng = np.random.default_rng(random_state)
    n_draws = int(np.clip(MAX_DRAWN_LABELS // p.size, MIN_DRAWS, MAX_DRAWS))
    draws = []
    for theta in recalibration.draws(n_draws, rng):
        q = for_prior(recalibrate(theta))
        u = rng.random(len(q))
        labels = np.asarray((u[:, None] > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1))
        if q.shape[1] == 2:
            labels = (u < q[:, 1]).astype(np.intp)
        measures = predictions.of_labels(labels)
        draws.append([measures[name] for name in names])
    lower, upper = _central_interval(np.array(draws), level)
    lower[np.isnan(estimate)] = upper[np.isnan(estimate)] = np.nan
    estimate[np.isnan(lower)] = np.nan
    # Of few rows draws take few values, and the mean may lie beside the central ones.
    lower, upper = np.fmin(lower, estimate), np.fmax(upper, estimate)
    return PerformanceEstimate(names, estimate, lower, upper, level, len(p), round(n_examples))


def _central_interval(draws: FloatArray, level: float) -> FloatArray:
    """Return the ends (2, m) of the central part of draws (b, m), NaN where too few are defined."""
    ends = np.full((2, draws.shape[1]), np.nan)
    is_defined = (~np.isnan(draws)).mean(axis=0) >= level
    tails = (1 - level) / 2, (1 + level) / 2
    ends[:, is_defined] = np.nanquantile(draws[:, is_defined], tails, axis=0)
    return ends


def _predicted_probabilities(model: Any, X: Any) -> tuple[FloatArray, Any]:
    """Return the probabilities (m, k) before ``with_prior``, and the prior shift or None."""
    if isinstance(model, CalibratedClassifier):
        fitted = model._state
        return predict_rows(replace(fitted, shift=None), X, bounds=False).p, fitted.shift
    if isinstance(model, Calibrator):
        return model._predict_proba(model._check_new(X)), model.shift_
    return class_probabilities(model, X)[0], None


def _reference_examples(model: Any, reference: Any) -> Examples:
    """Return the examples that show how well the model is calibrated.

    ``reference`` is a pair of rows and labels, rows alone, or None. Rows that were given to ``fit``
    stand for the calibration examples of the model.
    """
    is_own = isinstance(model, CalibratedClassifier)
    if isinstance(reference, tuple) and len(reference) == 2:
        check_order(reference[0], **{"labels of reference": reference[1]})
        X = _as_table(reference[0])
        codes = encode_labels(reference[1], model.classes_, count_rows(X))[0]
        if not is_own or not are_of_fit(model, codes):
            if are_training_rows(model, X):
                raise InputError(OTHER_ORDER)
            return Examples(_predicted_probabilities(model, X)[0], codes, rows=X)
        reference = X
    if is_own:
        return _calibration_examples(model, reference)
    raise InputError(
        f"reference must be given with a {type(model).__name__}: labelled rows that it was not "
        "trained on, and their labels"
    )


def are_of_fit(model: CalibratedClassifier, codes: IntArray) -> bool:
    """Return whether class indices (n,) are those of the rows that the model was fitted to."""
    fitted = model._state
    if fitted.n_rows != len(codes) or any(fold.rows is None for fold in fitted.folds):
        return False
    return all(np.array_equal(codes[fold.rows], fold.codes) for fold in fitted.folds)


def _calibration_examples(model: CalibratedClassifier, X: Any) -> Examples:
    """Return the calibration examples of a model, with their rows of X if it is given."""
    fitted = model._state
    if model.calibrate_on_ == "training":
        raise InputError(
            'calibrate_on must not be "training", whose scores have seen their labels: give '
            "reference, labelled rows that the model was not trained on"
        )
    folds = [_scored_by_all(fold) for fold in fitted.folds]
    p = predict_examples(replace(fitted, shift=None), folds)[:, 0]
    is_predicted = ~np.isnan(p[:, 0])
    examples, p = CalibrationExamples.of(folds).select(is_predicted), p[is_predicted]
    groups = rows = None
    if examples.rows is not None:
        if (groups := fitted.groups_of(examples)) is not None:
            groups = np.unique(groups, return_inverse=True)[1]
        if X is not None:
            if (n := count_rows(X)) != fitted.n_rows:
                raise InputError(
                    f"reference must be the {fitted.n_rows} rows given to fit, got {n}"
                )
            rows = _safe_indexing(_as_table(X), examples.rows)
    is_reused = fitted.calibrate_on not in INDEPENDENT_SOURCES
    return Examples(p, examples.codes, examples.weight, groups, rows, is_reused)


def _scored_by_all(fold: Fold) -> Fold:
    """Return calibration examples with expected scores by all members, as for new rows."""
    if fold.noise is None:
        return fold
    columns = fold.scores.reshape(len(fold.scores), -1).T.copy()
    moved = [expected_scores(s, fold.noise * s * (1 - s)) for s in columns]
    scores = np.clip(np.column_stack(moved), 0, 1)
    if scores.shape[1] > 1:
        scores /= np.maximum(scores.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return replace(fold, scores=scores.reshape(fold.scores.shape))


def _decide(
    p: FloatArray, classes: NDArray[Any], threshold: float | None, positive: Any, costs: Any
) -> LabelledPredictions:
    """Return probabilities (m, k) with the decisions made by them, and their costs."""
    k = len(classes)
    if k != 2 and (positive is not None or threshold is not None):
        raise InputError(f"threshold and positive must be None for {k} classes")
    code = class_index(classes, positive, "positive") if k == 2 else k - 1
    decisions = p.argmax(axis=1)
    if threshold is not None:
        if not isinstance(threshold, Real) or not 0 <= float(threshold) <= 1:
            raise InputError(f"threshold must be a probability in [0, 1], got {shown(threshold)}")
        decisions = np.where(p[:, code] >= float(threshold), code, 1 - code)
    costs_of_rows = None
    if costs is not None:
        matrix = CostMatrix.read(costs, classes)
        columns = matrix.decide(p) if threshold is None else decisions
        if threshold is not None and matrix.decisions != tuple(map(str, classes)):
            raise InputError(
                "threshold must be None with costs of other decisions than the classes"
            )
        costs_of_rows = matrix.costs[:, columns].T
    return LabelledPredictions(p, decisions, [code] if k == 2 else range(k), costs_of_rows)


def _shift_of_rows(
    model: Any, old: Any, new: Any, seed: int
) -> tuple[FloatArray, FloatArray, float]:
    """Return density ratios at the rows of examples, ``old``, and of X, ``new``.

    The third value is the effective number of examples when these are weighted by their ratios.
    """
    if isinstance(model, Calibrator):
        raise InputError('shift must be None for a calibrator, got "covariate"')
    if old is None:
        raise InputError('reference must be given with shift="covariate": the rows given to fit')
    estimator = model.estimators_[0] if isinstance(model, CalibratedClassifier) else model
    old_ratios, new_ratios = density_ratios(first_model(estimator), old, new, seed)
    n_examples = float(old_ratios.sum() ** 2 / (old_ratios**2).sum())
    share_outside = float((new_ratios > np.quantile(old_ratios, 0.99)).mean())
    if n_examples < MIN_ROWS_TO_ESTIMATE or share_outside > MAX_SHARE_OUTSIDE:
        raise InputError(
            "X must lie in the range of the examples for shift='covariate', got "
            f"{share_outside:.0%} of the rows outside that of {len(old_ratios)} examples: label "
            "some of the new rows"
        )
    if share_outside > MAX_SHARE_OUTSIDE_SILENT:
        warn(
            f"{share_outside:.0%} of the new rows are like the outermost 1% of the examples: the "
            "estimated performance says little about them"
        )
    return old_ratios, new_ratios, n_examples


def density_ratios(
    estimator: Any, old: Any, new: Any, random_state: int
) -> tuple[FloatArray, FloatArray]:
    """Return the density of new rows divided by that of old ones, at old rows and at new ones.

    The ratios are out-of-bag odds of a classifier that separates new from old rows (Bickel et al.
    2009), with mean 1 at old rows.
    """
    n, m = old.shape[0], new.shape[0]
    is_new = np.repeat([0, 1], [n, m])
    if issparse(old) or issparse(new):
        rows = vstack([old, new], format="csr")
    elif hasattr(old, "iloc") and hasattr(new, "iloc"):
        rows = needed("pandas", "data frames").concat([old, new], ignore_index=True)
    else:
        rows = np.concatenate([np.asarray(old), np.asarray(new)])
    domain = CalibratedClassifier(
        clone(without_frozen(estimator)), random_state=random_state, merge="pooled"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are not about the user's model
        p = domain.fit(rows, is_new).oob_probability_
    odds = p[:, 1] / np.maximum(p[:, 0], np.finfo(float).tiny) * n / m
    odds[np.isnan(odds)] = 1.0  # rows in the bags of all trees of a small forest
    ratios: FloatArray = np.clip(odds, 1 / MAX_DENSITY_RATIO, MAX_DENSITY_RATIO)
    ratios /= ratios[:n].mean()
    return ratios[:n], ratios[n:]


def _as_table(X: Any) -> Any:
    """Return rows as a table or array, which lists become."""
    return X if hasattr(X, "shape") else np.asarray(X)
