"""What measures of a model's predictions are expected to be on rows without labels."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse, vstack
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from vennforest._messages import warn
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_inside,
    check_option,
    check_scores,
    encode_labels,
    is_frame,
)
from vennforest.calibrators import Calibrator, VennAbers
from vennforest.calibrators.intervals import expected_scores
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.fitted import calibration_probabilities, predict
from vennforest.decisions.costs import CostMatrix
from vennforest.decisions.thresholds import KEPT_APART
from vennforest.performance.measures import Metric, Predictions
from vennforest.performance.recalibration import Recalibration
from vennforest.prior import ShiftedPrior, shift_probabilities
from vennforest.sources import CalibrationExamples, Fold
from vennforest.sources.row_hashes import hash_rows

if TYPE_CHECKING:
    import pandas as pd

Shift = Literal["covariate"]
"""What may have changed."""

FEWEST = 30
"""Rows that a measure is estimated of, and examples that it is estimated from."""

DRAWS = 1000
"""Drawn maps and labels, where there are few rows."""

MOST_DRAWN = 200_000_000
"""Labels that are drawn at most, but for `LEAST_DRAWS`."""

LEAST_DRAWS = 200

MOST_RATIO = 50.0
"""Density ratios are at most this, and at least one divided by it."""

SAME_ROWS = 1.4
"""Variance of the calibration error where the examples trained the models too, against apart.

Scores out of bag and over folds are as good as those of the models on average; how far the models
of one training set depart from that average is not among the residuals, which depend on each other
through the models as well. With more and more rows a stable learner needs no factor (Austern & Zhou
2020); for so many rows as there are it depends on the learner and has no formula (Bates, Hastie &
Tibshirani 2024). Chosen by simulation: ``benchmarks/estimated_performance.py factor``.
"""

NO_OVERLAP = 0.9
"""Share of new rows of kinds that hardly any example is of, above which nothing is estimated."""

MOST_BEYOND = 0.25
"""Share of new rows of kinds that make up a hundredth of the examples, above which it is warned."""


UNDEFINED = {
    "precision": "precision is not defined: no row is decided to be of the positive class",
    "recall": "recall is not defined: probably no row is of the positive class",
    "auc": "the AUC is not defined: probably all rows are of one class",
}
"""Why a measure cannot be estimated."""

OTHER_ORDER = (
    "reference must be the rows given to fit in the same order, or rows that the model was not "
    "trained on, got its training rows in another order"
)


@dataclass(frozen=True, eq=False)
class PerformanceEstimate:
    """Expected measures of predictions, with prediction intervals.

    Attributes
    ----------
    metrics : tuple of str
    estimate, lower, upper : ndarray of shape (len(metrics),)
        NaN where a measure cannot be estimated.
    level : float
        Probability with which each interval contains what the measure turns out to be.
    n_rows : int
        Rows without labels.
    n_examples : int
        Labelled examples that it is estimated from; with ``shift="covariate"`` as many as their
        weights leave (Kish's effective number).
    reasons : dict of str to str
        Why a measure cannot be estimated.
    """

    metrics: tuple[Metric, ...]
    estimate: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    n_rows: int
    n_examples: int
    reasons: dict[str, str]

    def table(self) -> pd.DataFrame:
        """Return the figures as a data frame: a row per measure."""
        import pandas as pd

        columns = {"estimate": self.estimate, "lower": self.lower, "upper": self.upper}
        return pd.DataFrame(columns, index=pd.Index(self.metrics, name="metric"))

    def __getitem__(self, metric: str) -> tuple[float, float, float]:
        """Return estimate, lower and upper end of a measure."""
        at = self.metrics.index(metric)
        return float(self.estimate[at]), float(self.lower[at]), float(self.upper[at])


class Examples(NamedTuple):
    """Labelled examples, and what they were predicted without knowing their labels."""

    p: FloatArray
    codes: IntArray
    repeats: FloatArray | None
    groups: IntArray | None
    rows: Any
    """As the model takes them; None: not at hand."""
    trained: bool = False
    """Whether they trained the models as well, though not those that scored them."""


def estimate_performance(
    model: Any,
    X: Any,
    metrics: Sequence[Metric] | None = None,
    *,
    threshold: float | None = None,
    positive: Any = None,
    costs: Any = None,
    level: float = 0.95,
    shift: Shift | None = None,
    reference: Any = None,
    random_state: int = 0,
) -> PerformanceEstimate:
    """Estimate from calibrated probabilities how good predictions are, without labels.

    A change of the labels given the rows (concept shift) cannot be seen without labels: the
    estimate then is wrong, and nothing in it says so.

    Parameters
    ----------
    model : CalibratedClassifier, calibrator or classifier
        Fitted. A calibrator that has kept its calibration scores (`VennAbers` of two classes), or
        anything with ``predict_proba`` and a ``reference``.
    X : array-like, sparse matrix or data frame of shape (m, d)
        Rows as the model takes them, 30 or more; scores of shape (m,) or (m, k) for a calibrator.
    metrics : sequence of str, optional
        Among ``"accuracy"``, ``"precision"``, ``"recall"``, ``"brier"``, ``"log_loss"``, ``"auc"``
        and ``"cost"``; by default all, the last one where costs are given. With more than two
        classes precision and recall are means over the classes, and the AUC is the mean of each
        class against the rest, over the classes for which they are defined.
    threshold : float, optional
        Of two classes the positive one is decided for from this probability on, in [0, 1]; by
        default the most probable class is.
    positive : label, optional
        The positive class of two; by default the second.
    costs : CostMatrix, array-like, dict, str or path, optional
        What decisions cost, see ``CostMatrix.read``. Without a threshold the decision of least
        expected cost is taken.
    level : float, default=0.95
        Probability, in (0, 1), with which each interval contains the measure.
    shift : {None, "covariate"}, default=None
        What may differ between the rows and the calibration examples, beside chance. None: no
        more than how frequent each score is. ``"covariate"``: how frequent each kind of row is,
        while labels of a kind of row stay as they are; every kind of new row is there among the
        examples. For other shares of the classes: ``model.with_prior``.
    reference : array-like or (array-like, array-like), optional
        Rows that were given to the model's ``fit``, in the same order, for
        ``shift="covariate"``. Or a pair of labelled rows that the model was not trained on and
        their labels, which take the place of calibration examples.
    random_state : int, default=0
        Of the drawn labels.

    Returns
    -------
    PerformanceEstimate
        With a ``table()``.

    Raises
    ------
    InputError
        A ``ValueError``: an argument has no such value, there are fewer than 30 rows or examples,
        the model has kept no calibration scores, or it refuses the rows.

    Warns
    -----
    UserWarning
        With ``shift="covariate"``, if many rows are of kinds that hardly any example is of.

    Notes
    -----
    Each measure is estimated under probabilities q of the rows' labels (expectations of numerators
    and denominators): the calibrated ones, corrected by a small logistic map of their log-odds that
    is fitted to the calibration examples (it hardly differs where they are calibrated). For the
    interval coefficients of that map are drawn from their normal law with a robust covariance, then
    a label for every row: it contains the error of the calibration and that of sampling. Rows count
    as independent of each other.

    With ``shift="covariate"`` examples weigh as much as the density ratio of new rows to theirs,
    estimated by a calibrated classifier of the same kind (Białek, Kuberski, Perrakis & Bifet 2024,
    PAPE), and its logarithm enters the map as well, which is right even where weights are not.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier, estimate_performance
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
    >>> found = estimate_performance(model, X[400:])
    >>> [round(value, 2) for value in found["accuracy"]]
    [0.94, 0.9, 0.97]
    >>> round(model.score(X[400:], y[400:]), 2)
    0.96
    """
    level = check_inside(level, "level")
    X = X if hasattr(X, "shape") else np.asarray(X)
    if shift is not None:
        check_option(shift, Shift, "shift")
    if (n := _num_samples(X)) < FEWEST:
        raise InputError(f"X must have {FEWEST} rows or more to estimate a performance, got {n}")
    asked = _metrics(metrics, costs)
    classes = _classes(model)
    examples = _examples(model, classes, reference)
    if len(examples.codes) < FEWEST:
        raise InputError(
            f"the calibration examples must be {FEWEST} or more to estimate a performance, got "
            f"{len(examples.codes)}"
        )
    unshifted, prior = _predicted(model, X, classes)
    p = unshifted if prior is None else shift_probabilities(unshifted, prior.factors)
    importance = extra_old = extra_new = None
    n_examples = float(len(examples.codes))
    if shift == "covariate":
        if examples.rows is None:
            raise InputError(
                'reference must be given with shift="covariate": the rows given to fit, in the '
                "same order, or labelled rows and their labels"
            )
        old, new = density_ratios(_estimator(model), examples.rows, X, random_state)
        # Beyond the ratios of the examples the map would be extrapolated.
        within = np.clip(new, old.min(), old.max())
        importance, extra_old, extra_new = old, np.log(old)[:, None], np.log(within)[:, None]
        n_examples = old.sum() ** 2 / (old**2).sum()
        _check_overlap(old, new, n_examples)
    fitted = Recalibration.fit(
        examples.p,
        examples.codes,
        repeats=examples.repeats,
        importance=importance,
        groups=examples.groups,
        covariates=extra_old,
    )
    if examples.trained:
        fitted = replace(fitted, root=fitted.root * np.sqrt(SAME_ROWS))
    at = fitted.at(unshifted, extra_new)

    def truth(theta: FloatArray) -> FloatArray:
        q = at(theta)
        return q if prior is None else shift_probabilities(q, prior.factors)

    given = _decided(p, classes, threshold, positive, costs, asked)
    return _estimate(given, truth, fitted, asked, level, round(n_examples), random_state)


def _estimate(
    given: Predictions,
    truth: Any,
    fitted: Recalibration,
    asked: tuple[Metric, ...],
    level: float,
    n_examples: int,
    random_state: int,
) -> PerformanceEstimate:
    """Return expected measures, and the quantiles of drawn ones."""
    rng = np.random.default_rng(random_state)
    q = truth(fitted.theta)
    expected = given.expected(q)
    number = int(np.clip(MOST_DRAWN // q.size, LEAST_DRAWS, DRAWS))
    drawn = np.empty((number, len(asked)))
    for b, theta in enumerate(fitted.draws(number, rng)):
        measures = given.drawn(_labels(truth(theta), rng))
        drawn[b] = [measures[metric] for metric in asked]
    estimate = np.array([expected[metric] for metric in asked])
    lower, upper = np.full((2, len(asked)), np.nan)
    reasons: dict[str, str] = {}
    for j, metric in enumerate(asked):
        there = ~np.isnan(drawn[:, j])
        if np.isnan(estimate[j]) or there.mean() < level:
            reasons[metric] = UNDEFINED[metric]
            estimate[j] = np.nan
        else:
            tails = (1 - level) / 2, (1 + level) / 2
            lower[j], upper[j] = np.quantile(drawn[there, j], tails)
    return PerformanceEstimate(asked, estimate, lower, upper, level, given.n, n_examples, reasons)


def _check_overlap(old: FloatArray, new: FloatArray, n_examples: float) -> None:
    """Refuse new rows that hardly any example is like, and warn of many such rows."""
    beyond = float((new > np.quantile(old, 0.99)).mean())
    if n_examples < FEWEST or beyond > NO_OVERLAP:
        raise InputError(
            "X must contain rows of kinds that are among the examples for shift='covariate', got "
            f"{beyond:.0%} of kinds that hardly any of {len(old)} examples is of: label some of "
            "the new rows"
        )
    if beyond > MOST_BEYOND:
        warn(
            f"{beyond:.0%} of the new rows are of kinds that make up 1% of the examples: the "
            "estimated performance says little about them"
        )


def _labels(q: FloatArray, rng: np.random.Generator) -> IntArray:
    """Return a label (m,) for each row, drawn with probabilities q (m, k)."""
    u = rng.random(len(q))
    if q.shape[1] == 2:
        return (u < q[:, 1]).astype(np.intp)
    codes: IntArray = (u[:, None] > np.cumsum(q, axis=1)[:, :-1]).sum(axis=1)
    return codes


def _metrics(metrics: Sequence[Metric] | None, costs: Any) -> tuple[Metric, ...]:
    if metrics is None:
        return tuple(name for name in get_args(Metric) if name != "cost" or costs is not None)
    asked = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    if not asked:
        raise InputError("metrics must name one measure at least, got none")
    for name in asked:
        check_option(name, Metric, "metrics")
    if "cost" in asked and costs is None:
        raise InputError('costs must be given to estimate the metric "cost", got None')
    return asked  # type: ignore[return-value]


def _classes(model: Any) -> NDArray[Any]:
    if not hasattr(model, "predict_proba"):
        raise InputError(
            f"model must be a fitted classifier or calibrator, got {type(model).__name__}"
        )
    check_is_fitted(model, "classes_")
    return np.asarray(model.classes_)


def _estimator(model: Any) -> Any:
    if isinstance(model, Calibrator):
        raise InputError(
            'shift must be None for a calibrator, which sees scores and no rows, got "covariate"'
        )
    return model.estimators_[0] if isinstance(model, CalibratedClassifier) else model


def _predicted(model: Any, X: Any, classes: NDArray[Any]) -> tuple[FloatArray, Any]:
    """Return probabilities (m, k) for the shares that were calibrated on, and others set since."""
    if isinstance(model, CalibratedClassifier):
        fitted = model._state
        shift: ShiftedPrior | None = fitted.shift
        return predict(attrs.evolve(fitted, shift=None), X, bounds=False)[1], shift
    if isinstance(model, Calibrator):
        return model._predict_proba(model._check_new(X)), model.shift_
    p = check_scores(model.predict_proba(X), "what predict_proba returns")
    if p.ndim != 2 or p.shape[1] != len(classes):
        raise InputError(f"predict_proba must return {len(classes)} columns, got shape {p.shape}")
    return p, None


def _examples(model: Any, classes: NDArray[Any], reference: Any) -> Examples:
    """Return the examples that say how well the model is calibrated."""
    own = isinstance(model, CalibratedClassifier)
    if isinstance(reference, tuple) and len(reference) == 2:
        X, codes = reference[0], _codes(reference[1], classes)
        if not own or not are_of_fit(model, codes):
            trained = model._state.known_rows if own and model.calibrate_on_ != "frozen" else None
            if trained is not None and trained.knows(hash_rows(X)):
                raise InputError(OTHER_ORDER)
            p, _ = _predicted(model, X, classes)
            if len(p) != len(codes):
                raise InputError(
                    f"reference must have a label for each of {len(p)} rows, got {len(codes)}"
                )
            return Examples(p, codes, None, None, X if hasattr(X, "shape") else np.asarray(X))
        reference = X
    if own:
        return _of_classifier(model, reference)
    if isinstance(model, VennAbers) and len(model.scores_) == 1 and reference is None:
        scores = np.tile(model.scores_[0], 2)
        repeats = model.weights_[0].T.ravel()
        codes = np.repeat([0, 1], len(model.scores_[0]))
        there = repeats > 0
        p = model._predict_proba(scores[there])
        return Examples(p, codes[there], repeats[there], None, None)
    raise InputError(
        f"reference must be given with a {type(model).__name__}, which has kept no calibration "
        "scores: labelled rows that it was not trained on, and their labels"
    )


def _codes(y: ArrayLike, classes: NDArray[Any]) -> IntArray:
    try:
        return encode_labels(y, classes)[0]
    except ValueError as error:
        raise InputError(f"reference: {error}") from error


def are_of_fit(model: CalibratedClassifier, codes: IntArray) -> bool:
    """Tell whether labels are those of the rows that the model was fitted to."""
    fitted = model._state
    if fitted.n_rows != len(codes) or any(fold.rows is None for fold in fitted.folds):
        return False
    return all(np.array_equal(codes[fold.rows], fold.codes) for fold in fitted.folds)


def _of_classifier(model: CalibratedClassifier, X: Any) -> Examples:
    fitted = model._state
    if model.calibrate_on_ == "training":
        raise InputError(
            'calibrate_on must not be "training" to estimate a performance, since its scores have '
            "seen their labels: give reference, labelled rows that the model was not trained on"
        )
    folds = tuple(_scored_by_all(fold) for fold in fitted.folds)
    examples = CalibrationExamples.of(folds)
    groups = rows = None
    if all(fold.rows is not None for fold in folds):
        numbers = np.concatenate([np.asarray(fold.rows) for fold in folds])
        if fitted.row_groups is not None:
            groups = np.unique(fitted.row_groups[numbers], return_inverse=True)[1]
        if X is not None:
            if (n := _num_samples(X)) != fitted.n_rows:
                raise InputError(
                    f"reference must be the {fitted.n_rows} rows given to fit, got {n}: or give "
                    "labelled rows and their labels, as a pair"
                )
            rows = _safe_indexing(X if hasattr(X, "shape") else np.asarray(X), numbers)
    p = calibration_probabilities(attrs.evolve(fitted, folds=folds))
    trained = fitted.calibrate_on not in KEPT_APART
    return Examples(p, examples.codes, examples.weight, groups, rows, trained)


def _scored_by_all(fold: Fold) -> Fold:
    """Return calibration examples with the scores that all members are expected to give them.

    An out-of-bag score is the mean over some of the members, and tells less of the label than
    that by all, which new rows get.
    """
    # The few members of a small ensemble answer by subforests of out-of-bag size.
    if fold.noise is None or getattr(fold.scorer, "small_ensemble", False):
        return fold
    columns = fold.scores[:, None] if fold.scores.ndim == 1 else fold.scores
    noise = [fold.noise * s * (1 - s) for s in columns.T]
    moved = [expected_scores(s, one) for s, one in zip(columns.T.copy(), noise, strict=True)]
    scores = np.clip(np.column_stack(moved), 0, 1)
    if scores.shape[1] > 1:
        scores /= np.maximum(scores.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return attrs.evolve(fold, scores=scores.reshape(fold.scores.shape))


def _decided(
    p: FloatArray,
    classes: NDArray[Any],
    threshold: float | None,
    positive: Any,
    costs: Any,
    asked: tuple[Metric, ...],
) -> Predictions:
    """Return what is decided of probabilities (m, k), and what it costs."""
    k = len(classes)
    at = k - 1
    if positive is not None:
        found = [j for j, label in enumerate(classes.tolist()) if str(label) == str(positive)]
        if not found or k != 2:
            raise InputError(
                f"positive must be one of two classes, got {positive!r} of {classes.tolist()[:8]}"
            )
        at = found[0]
    decided = p.argmax(axis=1)
    if threshold is not None:
        if k != 2 or not isinstance(threshold, Real) or not 0 <= float(threshold) <= 1:
            raise InputError(
                "threshold must be a probability in [0, 1] of the positive one of two classes, "
                f"got {threshold!r} for {k} classes"
            )
        decided = np.where(p[:, at] >= float(threshold), at, 1 - at)
    paid = None
    if "cost" in asked:
        matrix = CostMatrix.read(costs, classes)
        if threshold is None:
            taken = matrix.decide(p)
        elif set(matrix.decisions) == {str(label) for label in classes.tolist()}:
            places = [matrix.decisions.index(str(label)) for label in classes.tolist()]
            taken = np.asarray(places)[decided]
        else:
            raise InputError(
                "threshold must be None with costs of decisions that are not named as the classes "
                f"are, got {list(matrix.decisions)}"
            )
        paid = matrix.costs[:, taken].T
    counted = [at] if k == 2 else range(k)
    return Predictions(p, decided, list(counted), paid)


def density_ratios(
    estimator: Any, old: Any, new: Any, random_state: int
) -> tuple[FloatArray, FloatArray]:
    """Return the density of new rows divided by that of old ones, at old rows and at new ones.

    A calibrated classifier is trained to tell new rows from old, and the odds that it gives to a
    row that it was not trained on are the ratio, but for the numbers of rows (Bickel, Brückner &
    Scheffer 2009). Those at old rows have mean 1.
    """
    while isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    n, m = old.shape[0], new.shape[0]
    is_new = np.repeat([0, 1], [n, m])
    domain = CalibratedClassifier(clone(estimator), random_state=random_state, merge="pooled")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is said of training rows is not of the user's model
        p = domain.fit(_stack(old, new), is_new).oob_probability_
    odds = p[:, 1] / np.maximum(p[:, 0], np.finfo(float).tiny) * n / m
    odds[np.isnan(odds)] = 1.0  # rows that every tree of a small forest has seen
    ratios: FloatArray = np.clip(odds, 1 / MOST_RATIO, MOST_RATIO)
    ratios /= ratios[:n].mean()
    return ratios[:n], ratios[n:]


def _stack(above: Any, below: Any) -> Any:
    """Return the rows of two tables of the same kind as one table."""
    if issparse(above) or issparse(below):
        return vstack([above, below], format="csr")
    if not (is_frame(above) and is_frame(below)):
        return np.concatenate([np.asarray(above), np.asarray(below)])
    library = sys.modules[type(above).__module__.partition(".")[0]]
    if library.__name__ == "polars":
        return library.concat([above, below], how="vertical_relaxed")
    return library.concat([above, below], ignore_index=True)
