"""Thresholds of scores with guaranteed precision, recall, false alarms or cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, inf, log
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainccinv
from scipy.stats import binom
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_inside,
    check_scores,
    class_index,
    encode_labels,
)
from vennforest.classifier import CalibratedClassifier
from vennforest.sources import CalibrationExamples

Promise = Literal["precision", "recall", "false alarms", "cost"]
"""Guaranteed quantities."""

START_RATIO = 2
"""Factor between the numbers of examples at which the search for a precision starts."""

INDEPENDENT_SOURCES = ("holdout", "frozen")
"""Sources that score calibration examples by the final model, which saw none of them."""


@dataclass(frozen=True, eq=False)
class Threshold:
    """A threshold of scores and its guarantee.

    Attributes
    ----------
    threshold : float or None
        Cases with this score or a higher one are flagged. None: no threshold keeps the promise
        with these data. Infinite where only ``lower`` exists.
    lower : float or None
        With ``abstain``: cases with this score or a lower one are not in the class; cases between
        the two are undecided. None without.
    promise : {"precision", "recall", "false alarms", "cost"}
    target : float
        Its value; false alarms and costs per case.
    delta : float
        Probability that the promise fails.
    observed : float or None
        The same quantity among the calibration examples at this threshold: not a promise.
    flagged : float
        Share of the calibration examples that are flagged, in [0, 1].
    undecided : float
        Share of them that are undecided, in [0, 1].
    n_examples : int
        Number of calibration examples.
    exact : bool
        Whether the promise is a theorem. False: calibration scores are out of bag or of folds, by
        other trees or models than those that score new cases.
    reason : str
        Why there is no threshold, in a sentence; empty where there is one.
    """

    threshold: float | None
    lower: float | None
    promise: Promise
    target: float
    delta: float
    observed: float | None
    flagged: float
    undecided: float
    n_examples: int
    exact: bool
    reason: str
    _score: Callable[[Any], FloatArray]

    def decide(self, rows: Any) -> IntArray:
        """Return decisions for new cases.

        Parameters
        ----------
        rows : array-like of shape (m, d) or (m,)
            Rows as the model takes them, or scores where scores were given.

        Returns
        -------
        ndarray of shape (m,)
            1: flagged; 0: not in the class; -1: undecided, with ``abstain``.

        Raises
        ------
        ValueError
            If there is no threshold.
        """
        if self.threshold is None:
            raise InputError(self.reason)
        scores = self._score(rows)
        is_out = np.full(len(scores), True) if self.lower is None else scores <= self.lower
        return np.where(scores >= self.threshold, 1, np.where(is_out, 0, -1)).astype(np.intp)


def threshold_for(
    model: Any,
    y: ArrayLike | None = None,
    *,
    precision: float | None = None,
    recall: float | None = None,
    false_alarms: float | None = None,
    rows: float | None = None,
    cost: float | None = None,
    costs: tuple[float, float] | None = None,
    delta: float = 0.05,
    abstain: bool = False,
    pos_label: Any = None,
) -> Threshold:
    """Return a threshold that guarantees a precision, recall, number of false alarms or cost.

    One of the four is given. Over the drawing of the calibration examples, the guarantee fails
    with probability ``delta`` at most.

    Parameters
    ----------
    model : CalibratedClassifier, or array-like of shape (n,)
        A fitted model, whose calibration scores are used. Or scores of any system, higher for the
        class, of examples that it was not trained on.
    y : array-like of shape (n,), optional
        Labels, where scores are given.
    precision : float, optional
        In (0, 1): minimum share of the class among flagged cases. The smallest such threshold.
    recall : float, optional
        In (0, 1): minimum share of the cases of the class that are flagged. The largest threshold.
    false_alarms : float, optional
        Above 0: maximum expected number of flagged cases of the other class among ``rows`` cases.
        The smallest threshold.
    rows : float, optional
        Number of cases among which so many false alarms are allowed, such as those of a day.
    cost : float, optional
        Above 0: maximum expected cost per case. The threshold with the smallest upper limit.
    costs : (float, float), optional
        Of a false alarm, and of a case of the class that is not flagged. Not negative.
    delta : float, default=0.05
        In (0, 1).
    abstain : bool, default=False
        With ``precision``: two thresholds, with undecided cases between. Both decisions have the
        precision, together with probability 1 - delta.
    pos_label : label, optional
        The class; by default the second of two.

    Raises
    ------
    NotFittedError
        Before ``fit``.
    ValueError
        If not exactly one promise is given, or its value is out of range; if calibration examples
        have weights or groups, so they are not independent, trained the model, or are of a
        population with another prior.

    Notes
    -----
    Precision: Learn then Test (Angelopoulos
    et al. 2021) from the highest threshold down. Of the n examples at or above one K are of the
    class; its p-value is P(Bin(n, precision) >= K). Thresholds are tested until one is not
    rejected, from as many examples on as could be rejected, and from 2, 4, 8 ... times as many;
    each start has its part of delta, and inherits the unspent parts of earlier ones (the fallback
    procedure, Wiens 2003). Recall and false alarms move in one direction with the threshold: one
    exact binomial limit serves for all. Costs: exact binomial limits of false alarms and misses at
    ranks 1, 2, 3, 5, 8 ..., with an equal part of delta for each.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(calibrate_on="holdout", random_state=0).fit(X[:400], y[:400])
    >>> threshold = threshold_for(model, precision=0.9, abstain=True)
    >>> threshold.decide(X[400:408])
    array([ 0,  1,  1,  1,  1,  1, -1, -1])
    """
    promise, target = _read_promise(precision, recall, false_alarms, rows, cost, costs)
    delta = check_inside(delta, "delta")
    if abstain and promise != "precision":
        raise InputError("abstain must be False except with precision, got True")
    scores, labels, exact, score = _examples(model, y, pos_label)
    n, positives = len(labels), int(labels.sum())
    if not n:
        raise InputError("y must contain at least one example, got none")
    lower = None
    if promise == "precision":
        threshold = _precision_threshold(scores, labels, target, delta / (2 if abstain else 1))
        if abstain:
            negated = _precision_threshold(-scores, ~labels, target, delta / 2)
            lower = -inf if negated is None else -negated
            if threshold is not None:  # where the two overlap no case is undecided
                lower = min(lower, float(np.nextafter(threshold, -inf)))
    elif promise == "recall":
        threshold = _recall_threshold(scores, labels, target, delta)
    elif promise == "false alarms":
        threshold = _false_alarm_threshold(scores, labels, target, delta)
    else:
        threshold = _cost_threshold(scores, labels, target, costs or (0, 0), delta)
    if threshold is None and lower in (None, -inf):
        reason = _reason(promise, target, delta, n, positives)
        return Threshold(
            None, None, promise, target, delta, None, 0.0, 0.0, n, exact, reason, score
        )
    threshold = inf if threshold is None else threshold
    flagged = scores >= threshold
    hits, alarms = int((flagged & labels).sum()), int((flagged & ~labels).sum())
    observed = {
        "precision": hits / (hits + alarms) if hits + alarms else None,
        "recall": hits / positives if positives else None,
        "false alarms": alarms / n,
        "cost": ((costs or (0, 0))[0] * alarms + (costs or (0, 0))[1] * (positives - hits)) / n,
    }[promise]
    undecided = 0.0 if lower is None else float((~flagged & (scores > lower)).mean())
    return Threshold(
        threshold,
        lower,
        promise,
        target,
        delta,
        observed,
        float(flagged.mean()),
        undecided,
        n,
        exact,
        "",
        score,
    )


def _read_promise(
    precision: float | None,
    recall: float | None,
    false_alarms: float | None,
    rows: float | None,
    cost: float | None,
    costs: tuple[float, float] | None,
) -> tuple[Promise, float]:
    """Return the promise and its value, of false alarms and costs per case."""
    values = {"precision": precision, "recall": recall, "false_alarms": false_alarms, "cost": cost}
    names = [name for name, value in values.items() if value is not None]
    if len(names) != 1:
        raise InputError(
            "one of precision, recall, false_alarms and cost must be given, got "
            f"{' and '.join(names) or 'none'}"
        )
    for name, value, needed_by in (("rows", rows, "false_alarms"), ("costs", costs, "cost")):
        if (value is None) == (names == [needed_by]):
            raise InputError(
                f"{name} must be given with {needed_by}, and only with it, got {value!r}"
            )
    if precision is not None:
        return "precision", check_inside(precision, "precision")
    if recall is not None:
        return "recall", check_inside(recall, "recall")
    if false_alarms is not None:
        share = _check_positive(false_alarms, "false_alarms") / _check_positive(rows, "rows")
        if share >= 1:
            raise InputError(f"false_alarms must be fewer than rows, got {false_alarms!r}")
        return "false alarms", share
    pair = np.asarray(costs, np.float64)
    if pair.shape != (2,) or not (np.isfinite(pair) & (pair >= 0)).all() or not pair.any():
        raise InputError(
            f"costs must be two numbers, of a false alarm and of a miss, got {costs!r}"
        )
    return "cost", _check_positive(cost, "cost")


def _check_positive(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < inf:
        raise InputError(f"{name} must be a number above 0, got {value!r}")
    return float(value)


def _examples(
    model: Any, y: ArrayLike | None, pos_label: Any
) -> tuple[FloatArray, NDArray[np.bool_], bool, Callable[[Any], FloatArray]]:
    """Return scores, whether they are of the class, exactness, and a function that scores rows."""
    if y is not None:
        scores = _one_column(model)
        check_consistent_length(scores, y)
        codes, classes = encode_labels(y)
        code = class_index(classes, pos_label)
        return scores, codes == code, True, _one_column
    if not hasattr(model, "predict_proba"):
        raise InputError(
            "model must be a fitted CalibratedClassifier, or scores with their labels as y, got "
            f"{type(model).__name__} and no y"
        )
    check_is_fitted(model, "classes_")
    if not isinstance(model, CalibratedClassifier):
        raise InputError(
            "model must be a CalibratedClassifier, whose calibration scores are kept, got "
            f"{type(model).__name__}: give the scores of other examples, and their labels as y"
        )
    fitted = model._state
    code = class_index(fitted.classes, pos_label)
    examples = CalibrationExamples.of(fitted.folds)
    way_out = "give scores of independent examples, and their labels as y"
    if fitted.calibrate_on == "training":
        raise InputError(
            'calibrate_on must not be "training" for a promise, as the model has seen these '
            f"examples: {way_out}"
        )
    for name, is_set in (
        ("sample_weight", examples.weight is not None),
        ("groups", fitted.row_groups is not None),
        ("with_prior", fitted.shift is not None),
    ):
        if is_set:
            raise InputError(
                f"model must be fitted without {name} for a promise, which counts independent "
                f"examples of the population at hand, got a model with: {way_out}"
            )

    def column(scores: FloatArray) -> FloatArray:
        if scores.ndim == 1:
            return -scores if code == 0 else scores
        return scores[:, code]

    def score(X: Any) -> FloatArray:
        mean: FloatArray = np.mean([column(f.score(X)) for f in fitted.folds], axis=0)
        return mean

    exact = len(fitted.folds) == 1 and fitted.calibrate_on in INDEPENDENT_SOURCES
    return column(examples.scores), examples.codes == code, exact, score


def _one_column(scores: Any) -> FloatArray:
    checked = check_scores(scores)
    if checked.ndim == 2 and checked.shape[1] == 1:
        checked = checked[:, 0]
    if checked.ndim != 1:
        raise InputError(f"scores must have shape (n,), got {checked.shape}: give one column")
    return checked


def min_examples(share: float, delta: float) -> int:
    """Return the number of examples, all hits, that reject a share of hits of at most this."""
    return max(1, ceil(log(delta) / log(share) - 1e-9))


def _starts(n: int, share: float, delta: float) -> tuple[list[int], float]:
    """Return the numbers of examples at which the search starts, and each start's part of delta.

    More starts need more examples for the first one: there are as many as n examples allow.
    """
    starts: list[int] = []
    for n_starts in range(1, 64):
        first = min_examples(share, delta / n_starts)
        longer = [first * START_RATIO**i for i in range(n_starts)]
        if longer[-1] > n:
            break
        starts = longer
    return starts, delta / max(len(starts), 1)


def _cumulate(
    scores: FloatArray, labels: NDArray[np.bool_]
) -> tuple[FloatArray, IntArray, IntArray]:
    """Return distinct scores (m,), falling, with the numbers of examples and hits from each up."""
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    hits: IntArray = np.cumsum(labels[order], dtype=np.intp)
    return ranked[last], last + 1, hits[last]


def _precision_threshold(
    scores: FloatArray, labels: NDArray[np.bool_], share: float, delta: float
) -> float | None:
    """Return the smallest threshold whose precision is at least the share, or None."""
    values, n, hits = _cumulate(scores, labels)
    starts, part = _starts(len(scores), share, delta)
    p_values = np.asarray(binom.sf(hits - 1, n, share))
    threshold, level, n_started = None, 0.0, 0
    for value, count, p in zip(values, n.tolist(), p_values.tolist(), strict=True):
        while n_started < len(starts) and count >= starts[n_started]:
            level, n_started = level + part, n_started + 1
        if level and p <= level:
            threshold = float(value)
        else:
            level = 0.0  # until the next start
    return threshold


def _recall_threshold(
    scores: FloatArray, labels: NDArray[np.bool_], share: float, delta: float
) -> float | None:
    """Return the largest threshold whose recall is at least the share, or None."""
    values, _, hits = _cumulate(scores, labels)
    valid = np.flatnonzero(binom.sf(hits - 1, hits[-1], share) <= delta)
    return float(values[valid[0]]) if len(valid) else None


def _false_alarm_threshold(
    scores: FloatArray, labels: NDArray[np.bool_], share: float, delta: float
) -> float | None:
    """Return the smallest threshold with at most this share of false alarms, or None."""
    values, n, hits = _cumulate(scores, labels)
    values = np.append(np.nextafter(values[0], inf), values)  # first flag no example
    alarms = np.append(0, n - hits)
    valid = np.flatnonzero(binom.cdf(alarms, len(scores), share) <= delta)
    return float(values[valid[-1]]) if len(valid) else None


def limits(counts: IntArray, n: int, delta: float) -> FloatArray:
    """Return upper limits of the probability of cases beyond thresholds, for all at once.

    Beyond the j-th of n examples in order lies a probability below the binomial limit for j - 1 of
    them, whatever the threshold, by its rank alone. Beyond a threshold with ``count`` examples
    lies no more than beyond the next rank below, of the ranks 1, 2, 3, 5, 8 ... One of the limits
    for counts (m,) is too low with probability delta.
    """
    ranks = [1]
    while ranks[-1] < n:
        ranks.append(min(n, int(1.6 * ranks[-1]) + 1))
    rank = np.array(ranks, dtype=np.float64)
    limit = np.append(betainccinv(rank, n - rank + 1, delta / len(ranks)), 1.0)
    return np.asarray(limit[np.searchsorted(rank, counts + 1)])


def _cost_threshold(
    scores: FloatArray,
    labels: NDArray[np.bool_],
    max_cost: float,
    costs: tuple[float, float],
    delta: float,
) -> float | None:
    """Return the threshold with the smallest limit of its expected cost, None if it is too high."""
    values, n, hits = _cumulate(scores, labels)
    values = np.append(np.nextafter(values[0], inf), values)  # first flag no example
    alarms, misses = np.append(0, n - hits), hits[-1] - np.append(0, hits)
    expected = costs[0] * limits(alarms, len(scores), delta / 2)
    expected += costs[1] * limits(misses, len(scores), delta / 2)
    best = int(expected.argmin())
    return float(values[best]) if expected[best] <= max_cost else None


def _reason(promise: Promise, target: float, delta: float, n: int, positives: int) -> str:
    """Return why no threshold keeps a promise, with the number of examples needed."""
    quantity = f"a {promise} of {target:g}"
    if promise in ("false alarms", "cost"):
        quantity = f"at most {target:g} of {promise} per case"
    text = (
        f"impossible with these data: no threshold promises {quantity} with probability "
        f"{1 - delta:g}"
    )
    if promise == "cost":
        return f"{text}; ask for less, or for a larger delta, or calibrate on more examples"
    n_needed = min_examples(1 - target if promise == "false alarms" else target, delta)
    need = {
        "precision": f"at least the {n_needed:,} examples with the highest scores, all of the "
        "class, would show it at best",
        "recall": f"{n_needed:,} examples of the class are needed",
        "false alarms": f"{n_needed:,} examples are needed",
    }[promise]
    available = positives if promise == "recall" else n
    return f"{text} ({need}; there are {available:,}); ask for less, or for a larger delta"
