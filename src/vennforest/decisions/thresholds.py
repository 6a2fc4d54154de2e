"""Thresholds of scores that keep a promise with a stated probability: Learn then Test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
"""What a threshold promises."""

RATIO = 2
"""The search for a precision begins at so many times more examples each time."""

KEPT_APART = ("holdout", "frozen")
"""Sources whose scores are of examples that no part of the model saw, by the model that is used."""


@dataclass(frozen=True, eq=False)
class Threshold:
    """From which score on a case is flagged, and what that promises.

    Attributes
    ----------
    threshold : float or None
        Cases with this score or a higher one are flagged. None: no threshold keeps the promise
        with these data. Infinite where it alone is impossible and ``lower`` is not.
    lower : float or None
        With ``abstain``: cases with this score or a lower one are not in the class; those between
        are left undecided. None without.
    promise : {"precision", "recall", "false alarms", "cost"}
    target : float
        What was asked for: false alarms and costs per case.
    delta : float
        The probability with which the promise fails.
    observed : float or None
        The same among the calibration examples at this threshold: not a promise.
    flagged : float
        Share of the calibration examples that are flagged, in [0, 1].
    undecided : float
        Share of them that are neither flagged nor taken for the other class, in [0, 1].
    n_examples : int
        Number of calibration examples.
    exact : bool
        Whether the promise is a theorem. False: calibration scores are out of bag or of folds,
        by other trees or models than score new cases; what was measured is in
        ``docs/promises.md``.
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
        """Return what to do with new cases.

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
        decided = np.full(len(scores), 0 if self.lower is None else -1, dtype=np.intp)
        if self.lower is not None:
            decided[scores <= self.lower] = 0
        decided[scores >= self.threshold] = 1
        return decided


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
    """Return the threshold that keeps a promise with a stated probability.

    One of ``precision``, ``recall``, ``false_alarms`` and ``cost`` is promised. Over the drawing of
    the calibration examples, the promise fails with probability ``delta`` at most.

    Parameters
    ----------
    model : CalibratedClassifier, or array-like of shape (n,)
        Fitted; its calibration scores are used. Or scores of any system, higher for the class, of
        examples that it was not trained on.
    y : array-like of shape (n,), optional
        Labels, where scores are given.
    precision : float, optional
        In (0, 1): least share of the class among flagged cases. The smallest threshold is returned.
    recall : float, optional
        In (0, 1): least share of the cases of the class that are flagged. The largest threshold.
    false_alarms : float, optional
        Above 0: most cases of the other class that are flagged, expected among ``rows`` cases.
        The smallest threshold.
    rows : float, optional
        How many cases come in the time in which so many false alarms are allowed, such as a day.
    cost : float, optional
        Above 0: largest expected cost per case. The threshold with the least upper limit of it.
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
        If not one promise is asked for, or not possible as such; if calibration examples have
        weights or groups, so they cannot be counted as independent, saw the model, or are of a
        population with another prior.

    Notes
    -----
    ``docs/promises.md`` has what is proved and measured. Precision: Learn then Test (Angelopoulos
    et al. 2021) from the highest threshold down. Of the n examples at or above one K are of the
    class; its p-value is P(Bin(n, precision) >= K). Thresholds are tested until one is not
    rejected, from as many examples on as could be rejected, and from 2, 4, 8 ... times as many;
    each start has its part of delta, and takes along what is left of earlier ones (the fallback
    procedure, Wiens 2003). Recall and false alarms move in one direction with the threshold: one
    exact binomial limit serves for all. Costs: exact binomial limits of false alarms and misses at
    ranks 1, 2, 3, 5, 8 ..., with an equal part of delta for each.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(calibrate_on="holdout", random_state=0).fit(X[:400], y[:400])
    >>> found = threshold_for(model, precision=0.9, abstain=True)
    >>> found.decide(X[400:408])
    array([ 0,  1,  1,  1,  1,  1, -1, -1])
    """
    promise, target = _asked(precision, recall, false_alarms, rows, cost, costs)
    delta = check_inside(delta, "delta")
    if abstain and promise != "precision":
        raise InputError("abstain must be False but with precision, got True")
    scores, labels, exact, score = _examples(model, y, pos_label)
    n, positives = len(labels), int(labels.sum())
    if not n:
        raise InputError("y must contain at least one example, got none")
    about = promise, target, delta
    threshold = lower = None
    if promise == "precision":
        threshold = _precise(scores, labels, target, delta / (2 if abstain else 1))
        if abstain:
            other = _precise(-scores, ~labels, target, delta / 2)
            lower = -np.inf if other is None else -other
            if threshold is not None:  # where the two overlap no one is undecided
                lower = min(lower, float(np.nextafter(threshold, -np.inf)))
    elif promise == "recall":
        threshold = _recalling(scores, labels, target, delta)
    elif promise == "false alarms":
        threshold = _quiet(scores, labels, target, delta)
    elif costs is not None:
        threshold = _cheap(scores, labels, target, costs, delta)
    if threshold is None and lower in (None, -np.inf):
        why = _why(promise, target, delta, n, positives)
        return Threshold(None, None, *about, None, 0.0, 0.0, n, exact, why, score)
    threshold = np.inf if threshold is None else threshold
    flagged = scores >= threshold
    hits, alarms = int((flagged & labels).sum()), int((flagged & ~labels).sum())
    paid = 0.0 if costs is None else (costs[0] * alarms + costs[1] * (positives - hits)) / n
    observed = {
        "precision": hits / (hits + alarms) if hits + alarms else None,
        "recall": hits / positives if positives else None,
        "false alarms": alarms / n,
        "cost": paid,
    }[promise]
    undecided = 0.0 if lower is None else float((~flagged & (scores > lower)).mean())
    share = float(flagged.mean())
    return Threshold(threshold, lower, *about, observed, share, undecided, n, exact, "", score)


def _asked(
    precision: float | None,
    recall: float | None,
    false_alarms: float | None,
    rows: float | None,
    cost: float | None,
    costs: tuple[float, float] | None,
) -> tuple[Promise, float]:
    """Return what is promised, and how much: of false alarms and costs how much per case."""
    given = {"precision": precision, "recall": recall, "false_alarms": false_alarms, "cost": cost}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise InputError(
            "one of precision, recall, false_alarms and cost must be given, got "
            f"{' and '.join(named) or 'none'}"
        )
    for name, value, own in (("rows", rows, "false_alarms"), ("costs", costs, "cost")):
        if (value is None) == (named == [own]):
            raise InputError(f"{name} must be given with {own}, and only with it, got {value!r}")
    if precision is not None:
        return "precision", check_inside(precision, "precision")
    if recall is not None:
        return "recall", check_inside(recall, "recall")
    if false_alarms is not None:
        share = _above(false_alarms, "false_alarms") / _above(rows, "rows")
        if share >= 1:
            raise InputError(f"false_alarms must be fewer than rows, got {false_alarms!r}")
        return "false alarms", share
    pair = np.asarray(costs, np.float64)
    if pair.shape != (2,) or not (np.isfinite(pair) & (pair >= 0)).all() or not pair.any():
        raise InputError(
            f"costs must be two numbers, of a false alarm and of a miss, got {costs!r}"
        )
    return "cost", _above(cost, "cost")


def _above(value: Any, name: str) -> float:
    sound = isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < np.inf
    if not sound:
        raise InputError(f"{name} must be a number above 0, got {value!r}")
    return float(value)


def _examples(
    model: Any, y: ArrayLike | None, pos_label: Any
) -> tuple[FloatArray, NDArray[np.bool_], bool, Callable[[Any], FloatArray]]:
    """Return scores and whether they are of the class, and what scores new cases."""
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
    for name, there in (
        ("sample_weight", examples.weight is not None),
        ("groups", fitted.row_groups is not None),
        ("with_prior", fitted.shift is not None),
    ):
        if there:
            raise InputError(
                f"model must be fitted without {name} for a promise, which counts independent "
                f"examples of the population at hand, got a model with: {way_out}"
            )

    def column(scores: FloatArray) -> FloatArray:
        own: FloatArray = scores if scores.ndim == 1 else scores[:, code]
        return -own if scores.ndim == 1 and code == 0 else own

    def score(X: Any) -> FloatArray:
        mean: FloatArray = np.mean([column(f.score(X)) for f in fitted.folds], axis=0)
        return mean

    exact = len(fitted.folds) == 1 and fitted.calibrate_on in KEPT_APART
    return column(examples.scores), examples.codes == code, exact, score


def _one_column(scores: Any) -> FloatArray:
    checked = check_scores(scores)
    if checked.ndim == 2 and checked.shape[1] == 1:
        checked = checked[:, 0]
    if checked.ndim != 1:
        raise InputError(f"scores must have shape (n,), got {checked.shape}: give one column")
    return checked


def fewest(share: float, delta: float) -> int:
    """Return how many examples without an exception reject that their share is at most this."""
    return max(1, int(np.ceil(np.log(delta) / np.log(share) - 1e-9)))


def _starts(n: int, share: float, delta: float) -> tuple[list[int], float]:
    """Return after how many examples the search begins, and each start's part of delta.

    More starts need more examples for the first: there are as many as there is room for.
    """
    starts: list[int] = []
    for number in range(1, 64):
        first = fewest(share, delta / number)
        more = [first * RATIO**i for i in range(number)]
        if more[-1] > n:
            break
        starts = more
    return starts, delta / max(len(starts), 1)


def _steps(scores: FloatArray, labels: NDArray[np.bool_]) -> tuple[FloatArray, IntArray, IntArray]:
    """Return distinct scores from the highest, how many examples have them or more, of the class.

    Shapes (m,).
    """
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    of_class: IntArray = np.cumsum(labels[order], dtype=np.intp)
    return ranked[last], last + 1, of_class[last]


def _precise(
    scores: FloatArray, labels: NDArray[np.bool_], share: float, delta: float
) -> float | None:
    """Return the smallest threshold whose precision is at least the share; None: there is none."""
    values, n, k = _steps(scores, labels)
    starts, part = _starts(len(scores), share, delta)
    found, level, nth = None, 0.0, 0
    p_values = np.asarray(binom.sf(k - 1, n, share))
    for value, count, p in zip(values, n.tolist(), p_values.tolist(), strict=True):
        while nth < len(starts) and count >= starts[nth]:
            level, nth = level + part, nth + 1
        if level and p <= level:
            found = float(value)
        else:
            level = 0.0  # until the next start
    return found


def _recalling(
    scores: FloatArray, labels: NDArray[np.bool_], share: float, delta: float
) -> float | None:
    """Return the largest threshold whose recall is at least the share; None: there is none."""
    values, _, k = _steps(scores, labels)
    sound = np.flatnonzero(binom.sf(k - 1, k[-1], share) <= delta)
    return float(values[sound[0]]) if len(sound) else None


def _quiet(
    scores: FloatArray, labels: NDArray[np.bool_], share: float, delta: float
) -> float | None:
    """Return the smallest threshold above which the share of others is at most this."""
    values, n, k = _steps(scores, labels)
    sound = np.flatnonzero(binom.cdf(n - k, len(scores), share) <= delta)
    if len(sound):
        return float(values[sound[-1]])
    nobody = bool(binom.cdf(0, len(scores), share) <= delta)
    return float(np.nextafter(values[0], np.inf)) if nobody else None


def limits(counts: IntArray, n: int, delta: float) -> FloatArray:
    """Return upper limits of the probability of cases beyond thresholds, for all at once.

    Beyond the j-th of n examples in order lies a probability below the binomial limit for j - 1 of
    them, whatever the threshold, which is a fact about the rank alone. Beyond a threshold with
    ``count`` examples lies no more than beyond the next rank below, of the ranks 1, 2, 3, 5, 8 ...
    One of the limits for counts (m,) is too low with probability delta.
    """
    ranks = [1]
    while ranks[-1] < n:
        ranks.append(min(n, int(1.6 * ranks[-1]) + 1))
    rank = np.array(ranks, dtype=np.float64)
    each = np.append(betainccinv(rank, n - rank + 1, delta / len(ranks)), 1.0)
    found: FloatArray = each[np.searchsorted(rank, counts + 1)]
    return found


def _cheap(
    scores: FloatArray,
    labels: NDArray[np.bool_],
    cost: float,
    costs: tuple[float, float],
    delta: float,
) -> float | None:
    """Return the threshold with the least limit of its expected cost; None: it is too high."""
    values, n, k = _steps(scores, labels)
    values = np.append(np.nextafter(values[0], np.inf), values)
    n, k = np.append(0, n), np.append(0, k)
    total = len(scores)
    alarms, misses = limits(n - k, total, delta / 2), limits(k[-1] - k, total, delta / 2)
    expected = costs[0] * alarms + costs[1] * misses
    best = int(expected.argmin())
    return float(values[best]) if expected[best] <= cost else None


def _why(promise: Promise, target: float, delta: float, n: int, positives: int) -> str:
    """Return why no threshold keeps a promise, with what would be needed."""
    what = f"a {promise} of {target:g}"
    if promise not in ("precision", "recall"):
        what = f"at most {target:g} of {promise} per case"
    start = f"impossible with these data: no threshold promises {what} with probability "
    start += f"{1 - delta:g}"
    if promise == "cost":
        return f"{start}; ask for less, or for a larger delta, or calibrate on more examples"
    need = fewest(1 - target if promise == "false alarms" else target, delta)
    end, have = {
        "precision": (
            f"at least the {need:,} examples with the highest scores, all of the class, would show "
            "it at best",
            n,
        ),
        "recall": (f"{need:,} examples of the class are needed", positives),
        "false alarms": (f"{need:,} examples are needed", n),
    }[promise]
    return f"{start} ({end}; there are {have:,}); ask for less, or for a larger delta"
