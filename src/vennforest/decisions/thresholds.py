"""Thresholds with a guaranteed sensitivity, specificity, precision, false-alarm rate or cost."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf, log
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binom
from sklearn.utils.validation import check_is_fitted

from vennforest._class_columns import in_class_order
from vennforest._messages import shown
from vennforest._numerics import binomial_bound
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_inside,
    check_order,
    class_index,
    encode_groups,
    encode_labels,
)
from vennforest.classifier import CalibratedClassifier
from vennforest.classifier.blend import BlendedModel
from vennforest.scores import as_numbers, check_scores
from vennforest.sources import CalibrationExamples

Promise = Literal["precision", "recall", "specificity", "false_alarms", "cost"]
"""Quantities that can be guaranteed."""

START_RATIO = 2
"""Ratio of successive numbers of examples at which the search for a precision starts."""

INDEPENDENT_SOURCES = ("holdout", "frozen")
"""Sources whose calibration examples are new to the final model, which scores them."""


@dataclass(frozen=True, eq=False)
class Threshold:
    """A threshold on scores and its guarantee.

    Attributes
    ----------
    threshold : float or None
        Cases with this score or a higher one are flagged. None if no threshold can be guaranteed.
    promise : {"precision", "recall", "specificity", "false_alarms", "cost"}
        The guaranteed quantity.
    target : float
        Guaranteed value of the quantity.
    delta : float
        Maximum probability that the guarantee fails.
    observed : float or None
        Value of the quantity among the calibration examples at this threshold, not guaranteed.
    flagged : float
        Share of the calibration examples that are flagged, in [0, 1].
    n_examples : int
        Number of calibration examples; with groups, of the examples drawn from them.
    exact : bool
        Whether the guarantee is exact. It is approximate if calibration scores are out of bag, of
        folds or of a blend, since other trees, models or weights score new cases.
    reason : str
        A sentence on why there is no threshold; empty if there is one.
    """

    threshold: float | None
    promise: Promise
    target: float
    delta: float
    observed: float | None
    flagged: float
    n_examples: int
    exact: bool
    reason: str
    _model: CalibratedClassifier | None
    _classes: NDArray[Any]
    _code: int

    def decide(self, X: Any) -> IntArray:
        """Return 1 for flagged rows and 0 for others, shape (m,).

        ``X`` are rows (m, d), or scores (m,) if `threshold_for` was given scores.

        Raises
        ------
        InputError
            If there is no threshold.
        """
        if self.threshold is None:
            raise InputError(self.reason)
        if self._model is None:
            scores = _one_column(X, self._classes, self._code)
        else:
            parts = [_of_class(fold.score(X), self._code) for fold in self._model._state.folds]
            scores = np.mean(parts, axis=0)
        return np.asarray(scores >= self.threshold, np.intp)


def threshold_for(
    model: Any,
    y: ArrayLike | None = None,
    *,
    precision: float | None = None,
    recall: float | None = None,
    specificity: float | None = None,
    false_alarms: float | None = None,
    cost: float | None = None,
    costs: tuple[float, float] | None = None,
    delta: float = 0.05,
    pos_label: Any = None,
    groups: ArrayLike | None = None,
) -> Threshold:
    """Return a threshold that guarantees a precision, sensitivity, specificity or another quantity.

    One of ``precision``, ``recall``, ``specificity``, ``false_alarms`` and ``cost`` is given. Over
    samples of calibration examples, the guarantee fails with probability at most ``delta``.

    Parameters
    ----------
    model : CalibratedClassifier, or array-like of shape (n,)
        A fitted model, whose calibration scores are used; or scores of any system, increasing with
        the probability of the positive class, for examples that it was not trained on.
    y : array-like of shape (n,), optional
        Labels of the examples, only with scores.
    precision : float, optional
        Minimum share of positives among flagged cases, in (0, 1), with the smallest threshold.
    recall : float, optional
        Minimum share of flagged cases among positives, in (0, 1), with the largest threshold.
    specificity : float, optional
        Minimum share of unflagged cases among negatives, in (0, 1), with the smallest threshold.
    false_alarms : float, optional
        Maximum share of flagged negatives among all cases, in (0, 1), with the smallest threshold.
    cost : float, optional
        Maximum expected cost per case, above 0, with the smallest upper limit of the cost.
    costs : (float, float), optional
        Costs of a false alarm and of an unflagged positive, not negative; only with ``cost``.
    delta : float, default=0.05
        Maximum probability that the guarantee fails, in (0, 1).
    pos_label : label, optional
        The positive class; by default the second of two.
    groups : array-like of shape (n,), optional
        Groups of dependent rows, such as patients; only with scores. The groups of a model are
        those given to ``fit``.

    Returns
    -------
    Threshold
        With ``threshold=None`` and a ``reason`` if no threshold can be guaranteed.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    ValueError
        If not exactly one quantity is given or a value is out of range; or if the model was
        calibrated on its training rows, fitted with sample weights, or made by ``with_prior``.

    Notes
    -----
    Precision: Learn then Test (Angelopoulos et al. 2021), from the highest threshold down. If K of
    the n examples at or above a threshold are positive, its p-value is P(Bin(n, precision) >= K).
    Sequences of tests start at the smallest n that allows a rejection, and at 2, 4, 8 ... times
    this n, and end at the first p-value that is too large. Each has an equal part of delta, and
    inherits the unspent parts of earlier ones (fallback procedure, Wiens 2003). Recall and false
    alarms are monotone in the threshold: one exact binomial test suffices. Cost: exact binomial
    limits of false alarms and misses at ranks 1, 2, 3, 5, 8 ..., with an equal part of delta each.

    One row of each group is drawn with a fixed seed: for recall a positive, for specificity a
    negative. These rows are independent, so the guarantee is as exact as without groups. It holds
    for a random row of a random group: each group counts once, however many rows it has.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from vennforest import CalibratedClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = CalibratedClassifier(calibrate_on="holdout", random_state=0).fit(X[:400], y[:400])
    >>> threshold = threshold_for(model, precision=0.9)
    >>> threshold.decide(X[400:408])
    array([0, 1, 1, 1, 1, 1, 1, 1])
    """
    values = precision, recall, specificity, false_alarms, cost
    promise, target = _read_promise(dict(zip(get_args(Promise), values, strict=True)), costs)
    delta = check_inside(delta, "delta")
    if y is not None:
        check_order(model, y=y, groups=groups)
        codes, classes = encode_labels(y, n=len(as_numbers(model, "scores")))
        exact, fitted, code = True, None, class_index(classes, pos_label)
        scores = _one_column(model, classes, code)
    else:
        if groups is not None:
            raise InputError("groups must be given with scores: a model has those of its fit")
        scores, codes, groups, exact = _threshold_examples(model)
        fitted, classes, code = model, model.classes_, class_index(model.classes_, pos_label)
        scores = _of_class(scores, code)
    labels, example_rows = codes == code, np.arange(len(codes))
    if (numbers := encode_groups(groups, labels)) is not None:
        rows_of = {"recall": example_rows[labels], "specificity": example_rows[~labels]}
        # One row of each group, drawn with a fixed seed.
        order = np.random.RandomState(0).permutation(rows_of.get(promise, example_rows))
        example_rows = order[np.unique(numbers[order], return_index=True)[1]]
    alarm_and_miss = costs or (0.0, 0.0)
    x, is_positive = scores[example_rows], labels[example_rows]
    n, positives = len(x), int(is_positive.sum())
    if promise == "specificity":  # the recall of scores up to one, which are not flagged
        threshold = _guaranteed_threshold("recall", -x, ~is_positive, target, delta)
        threshold = None if threshold is None else float(np.nextafter(-threshold, inf))
    else:
        threshold = _guaranteed_threshold(promise, x, is_positive, target, delta, alarm_and_miss)
    observed, share_flagged, reason = None, 0.0, ""
    if threshold is None:
        reason = _reason(promise, target, delta, n, positives)
    else:
        flagged = scores >= threshold
        share_flagged = float(flagged.mean())
        of_rows = {
            "precision": labels[flagged],
            "recall": flagged[labels],
            "specificity": ~flagged[~labels],
            "false_alarms": flagged & ~labels,
            "cost": np.where(labels, alarm_and_miss[1] * ~flagged, alarm_and_miss[0] * flagged),
        }[promise]
        observed = float(of_rows.mean()) if len(of_rows) else None
    return Threshold(
        threshold,
        promise,
        target,
        delta,
        observed,
        share_flagged,
        n,
        exact,
        reason,
        fitted,
        classes,
        code,
    )


def _read_promise(
    values: dict[Promise, float | None], costs: tuple[float, float] | None
) -> tuple[Promise, float]:
    """Return the name of the guaranteed quantity and its value."""
    targets = {name: value for name, value in values.items() if value is not None}
    if len(targets) != 1:
        raise InputError(
            f"one of {', '.join(values)} must be given, got {' and '.join(targets) or 'none'}"
        )
    ((promise, target),) = targets.items()
    if (costs is None) == (promise == "cost"):
        raise InputError(f"costs must be given with cost, and only with it, got {shown(costs)}")
    if promise != "cost":
        return promise, check_inside(target, promise)
    pair = as_numbers([] if costs is None else costs, "costs")
    if pair.shape != (2,) or not (np.isfinite(pair) & (pair >= 0)).all() or not pair.any():
        raise InputError(
            f"costs must be two numbers, of a false alarm and of a miss, got {shown(costs)}"
        )
    if isinstance(target, bool) or not isinstance(target, Real) or not 0 < float(target) < inf:
        raise InputError(f"cost must be a number above 0, got {shown(target)}")
    return promise, float(target)


def _threshold_examples(model: Any) -> tuple[FloatArray, IntArray, IntArray | None, bool]:
    """Return scores, class indices and groups of calibration examples, and if they are exact."""
    if not isinstance(model, CalibratedClassifier):
        raise InputError(
            "model must be a fitted CalibratedClassifier, or scores with their labels as y, got "
            f"{type(model).__name__} and no y"
        )
    check_is_fitted(model, "classes_")
    fitted = model._state
    examples = CalibrationExamples.of(fitted.folds)
    for name, is_set in (
        ('calibrate_on="training"', fitted.calibrate_on == "training"),
        ("sample_weight", examples.weight is not None),
        ("groups of unknown rows", examples.rows is None and fitted.row_groups is not None),
        ("with_prior", fitted.shift is not None),
    ):
        if is_set:
            raise InputError(
                f"model must be fitted without {name} for a promise, which counts independent "
                "examples of the population at hand: give scores of such examples, and their "
                "labels as y"
            )
    # Of several estimators the calibration scores are by other maps and weights than new ones.
    is_blend = isinstance(fitted.folds[0].model, BlendedModel)
    has_one_model = len(fitted.folds) == 1 and not is_blend
    exact = has_one_model and fitted.calibrate_on in INDEPENDENT_SOURCES
    groups = fitted.groups_of(examples)
    return examples.scores, examples.codes, groups, exact


def _of_class(scores: FloatArray, code: int) -> FloatArray:
    """Return scores (n,) that increase with the probability of class ``code``.

    ``scores`` are (n,) of the second of two classes, or (n, k).
    """
    if scores.ndim == 1:
        return -scores if code == 0 else scores
    return scores[:, code]


def _one_column(scores: Any, classes: NDArray[Any], code: int) -> FloatArray:
    """Return user-provided scores of class ``code``, (n,) or (n, 1), as an array of shape (n,).

    A column that is named as that of the other one of two classes becomes 1 - score.
    """
    ordered = in_class_order(scores, classes)
    checked = check_scores(ordered)
    if checked.size != len(checked) or not checked.size:
        raise InputError(f"scores must be one column, not empty, got shape {checked.shape}")
    is_of_other = ordered is not scores and code == 0
    return 1 - checked.reshape(-1) if is_of_other else checked.reshape(-1)


def min_examples(share: float, delta: float) -> int:
    """Return how many positives in a row reject a share of positives of at most ``share``."""
    return max(1, ceil(log(delta) / log(share) - 1e-9))


def _starts(n: int, share: float, delta: float) -> tuple[list[int], float]:
    """Return the numbers of examples at which tests start, and each start's part of delta.

    More starts need more examples for the first one; there are as many as n examples allow.
    """
    starts: list[int] = []
    for n_starts in range(1, 64):
        first = min_examples(share, delta / n_starts)
        longer = [first * START_RATIO**i for i in range(n_starts)]
        if longer[-1] > n:
            break
        starts = longer
    return starts, delta / max(len(starts), 1)


def limits(counts: IntArray, n: int, delta: float) -> FloatArray:
    """Return simultaneous upper limits (m,) of the probability beyond thresholds.

    ``counts`` (m,) are the numbers of the n examples beyond each threshold. The probability beyond
    the j-th example is below the binomial limit for j - 1 examples, so each count has the limit of
    the next larger rank of 1, 2, 4, 7, 12 ... Some limit is too low with probability delta at most.
    """
    ranks = [1]
    while ranks[-1] < n:
        ranks.append(min(n, int(1.6 * ranks[-1]) + 1))
    rank = np.array(ranks)
    limit = np.append(binomial_bound(rank - 1, n, delta / len(ranks), upper=True), 1.0)
    return np.asarray(limit[np.searchsorted(rank, counts + 1)])


def _guaranteed_threshold(
    promise: Promise,
    scores: FloatArray,
    labels: NDArray[np.bool_],
    target: float,
    delta: float,
    costs: tuple[float, float] = (0.0, 0.0),
) -> float | None:
    """Return a threshold with a guarantee for independent examples (n,), or None.

    The smallest one for precision and false alarms, the largest for recall, and for cost that with
    the smallest limit.
    """
    # Decreasing thresholds, and the examples and positives at or above them: the first threshold is
    # above all scores, and the others are the distinct scores.
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    hits = np.append(0, np.cumsum(labels[order], dtype=np.intp)[last])
    values, n = np.append(np.nextafter(ranked[0], inf), ranked[last]), np.append(0, last + 1)
    if promise == "precision":
        # Binomial tests from the highest threshold down, in sequences that share delta: Learn then
        # Test (Angelopoulos et al. 2021) with the fallback procedure (Wiens 2003).
        starts, part = _starts(len(scores), target, delta)
        p_values = np.asarray(binom.sf(hits - 1, n, target))
        threshold, level, n_started = None, 0.0, 0
        for value, count, p in zip(values, n.tolist(), p_values.tolist(), strict=True):
            while n_started < len(starts) and count >= starts[n_started]:
                level, n_started = level + part, n_started + 1
            if level and p <= level:
                threshold = float(value)
            else:
                level = 0.0  # until the next start
        return threshold
    if promise == "cost":
        expected = costs[0] * limits(n - hits, len(scores), delta / 2)
        expected += costs[1] * limits(hits[-1] - hits, len(scores), delta / 2)
        best = int(expected.argmin())
        return float(values[best]) if expected[best] <= target else None
    # One-sided binomial tests at level delta, that fewer positives are flagged or more negatives.
    if promise == "recall":
        valid = np.flatnonzero(binom.sf(hits - 1, hits[-1], target) <= delta)[:1]
    else:
        valid = np.flatnonzero(binom.cdf(n - hits, n[-1], target) <= delta)[-1:]
    return float(values[valid[0]]) if len(valid) else None


def _reason(promise: Promise, target: float, delta: float, n: int, positives: int) -> str:
    """Return a sentence on why no threshold is guaranteed, with the number of examples needed."""
    text = (
        f"no threshold promises {promise}={target:g} with probability {1 - delta:g} with these data"
    )
    if promise != "cost":
        if promise == "precision":  # the starts of tests share delta
            delta = _starts(n, target, delta)[1]
        n_needed = min_examples(1 - target if promise == "false_alarms" else target, delta)
        kind, available = {
            "false_alarms": ("examples", n),
            "specificity": ("examples of other classes", n - positives),
        }.get(promise, ("examples of the class", positives))
        text += f", for which {n_needed:,} {kind} are needed at least and {available:,} are there"
    return f"{text}: ask for less, or for a larger delta, or calibrate on more examples"
