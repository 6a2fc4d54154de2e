"""Weights of the classes at each distinct score: the one form of labelled scores that adds up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._class_columns import (
    ScoreNames,
    class_columns,
    column_codes,
    column_names,
    in_class_order,
)
from vennforest._jit import kernel
from vennforest._messages import shown
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    WeightSums,
    check_count,
    check_labels,
    check_order,
    check_weights,
    encode_labels,
    label_vector,
    refuse_one_class,
)
from vennforest.scores import (
    On,
    as_numbers,
    check_finite,
    check_scores,
    columns,
    is_impossible,
    takes_minus_infinity,
)

__all__ = ["ScoreCounts"]

MAX_SCORES = 1 << 20  # distinct scores from which on `ScoreCounts.from_batches` coarsens
MIN_ROWS_TO_MERGE = 1 << 16  # rows that batches must have together before their counts are added up
LATTICE_BITS = 30  # binary digits of the finest lattice on which score vectors are put together


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """Labelled scores as the weight of each class at each distinct score.

    `from_scores` and `from_batches` make them, ``+`` and ``sum`` add the counts of parts of a data
    set, and ``fit_counts`` of every calibrator takes them in the place of scores and labels.

    Parameters
    ----------
    classes : ndarray of shape (k,)
        The labels, sorted.
    scores : ndarray of shape (m,) or (m, k)
        Distinct scores of the second of two classes, increasing, or score vectors, one column per
        class. They are as they were given: a calibrator decides what those of all parts are.
    weights : ndarray of shape (m, k)
        Sum of the weights of each class's examples at each score; without weights their number.
    error : float, default=0.0
        Share of the examples that `coarsen` moved past any one score, at most; in [0, 1].
    column_codes : ndarray of shape (k,), optional
        The class, by number, of each column of the arrays of scores that were counted, where these
        were in another order than the classes. New scores have the same order.

    Examples
    --------
    >>> monday = ScoreCounts.from_scores([0.1, 0.4, 0.4], ["no", "no", "yes"])
    >>> tuesday = ScoreCounts.from_scores([0.4, 0.8], ["yes", "yes"], classes=["no", "yes"])
    >>> both = monday + tuesday
    >>> len(both), both.total
    (3, 5.0)
    >>> both.weights
    array([[1., 0.],
           [1., 2.],
           [0., 1.]])
    """

    classes: NDArray[Any]
    scores: FloatArray
    weights: FloatArray
    error: float = 0.0
    column_codes: IntArray | None = None

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        on: On = "auto",
    ) -> ScoreCounts:
        """Count examples.

        Parameters
        ----------
        scores, y, sample_weight
            As in ``fit`` of calibrators. Of positive weights the largest is at most 1e9 times the
            smallest.
        on : {"auto", "probability", "logit", "score"}, default="auto"
            What the scores are; minus infinity is a logit.
        classes : array-like of shape (k,), optional
            Every class, in the order of the columns. All parts of one data set must name the same
            classes in the same order; a part of it may then have no rows.

        Raises
        ------
        ValueError
            If scores are NaN or infinite, shapes do not fit, a weight is refused, or there are
            fewer than two classes.
        """
        check_order(scores, y=y, sample_weight=sample_weight)
        x = as_numbers(scores)
        codes, labels, weight = read_examples(x, y, sample_weight, classes)
        x, k = as_numbers(in_class_order(scores, labels, on, named=classes)), len(labels)
        n_columns = 1 if x.ndim == 1 else x.shape[1]
        x = check_finite(x, lowest=takes_minus_infinity(on, n_columns))
        x = x if n_columns == k else columns(x, k)
        return replace(count_examples(labels, x, codes, weight), column_codes=column_codes(classes))

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[Any],
        *,
        score: ScoreNames,
        target: str,
        weight: str | None = None,
        classes: Sequence[Any] | None = None,
        on: On = "auto",
    ) -> ScoreCounts:
        """Count the rows of Arrow record batches, in bounded memory.

        More than 1,048,576 distinct scores are coarsened to half as many (see `coarsen`).

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
        score : str, sequence of str, or dict of label to str
            The column of the second class's scores, or a column for each class: in any order if
            they are called like the labels or ``p(label)``, else by label. One column of the first
            class, by its name or label, contains probabilities; the scores are 1 minus them.
        target : str
            The column of labels.
        weight : str, optional
            The column of weights, as ``sample_weight`` of `from_scores`.
        classes : sequence, optional
            Every class, when some may be missing from the rows.
        on : {"auto", "probability", "logit", "score"}, default="auto"
            What the scores are; minus infinity is a logit.

        Raises
        ------
        ValueError
            If a score or weight is missing or not finite, a label is missing or not one of the
            classes, or there are fewer than two classes or another number of columns.
        """
        counts, sums = cls._with_weight_sums(batches, score, target, weight, classes, on)
        sums.warn(repr(weight))
        return counts

    @classmethod
    def _with_weight_sums(
        cls,
        batches: Iterable[Any],
        score: ScoreNames,
        target: str,
        weight: str | None,
        classes: Sequence[Any] | None,
        on: On,
    ) -> tuple[ScoreCounts, WeightSums]:
        """Return `from_batches`, and the sums of the weights, which those of parts add up to."""
        names = column_names(score)
        one_column = len(names) == 1
        # Classes are numbered as they occur, and put in order at the end.
        codes_of = {label: code for code, label in enumerate(classes or [])}
        x = np.empty((0, len(names)))
        parts = [cls(np.empty(0), x[:, 0] if one_column else x, np.empty((0, 0)))]
        sums = WeightSums()
        for batch in batches:
            if not batch.num_rows:  # its columns may have no type yet
                continue
            x = np.column_stack([_numbers(batch, name, on, len(names)) for name in names])
            x = check_finite(x, lowest=True)
            codes = _codes(batch, target, codes_of)
            if classes is not None and len(codes_of) > len(classes):
                raise InputError(
                    f"{target!r} must contain labels of classes {shown(list(classes))}, got "
                    f"{list(codes_of)[len(classes)]!r}"
                )
            w = None if weight is None else _numbers(batch, weight, "score")
            if w is not None:
                if w.min(initial=0) < 0:
                    raise InputError(f"{weight!r} must not be negative, got {w.min()}")
                sums = sums.plus(WeightSums.of(w))
                sums.check(repr(weight))
            x = x[:, 0] if one_column else x
            parts.append(count_examples(np.arange(len(codes_of)), x, codes, w))
            if sum(map(len, parts[1:])) > max(len(parts[0]), MIN_ROWS_TO_MERGE):
                parts = [_sum(parts, MAX_SCORES)]
        counts = _sum(parts, MAX_SCORES)
        labels, order = np.unique(np.asarray(list(codes_of)), return_index=True)
        if len(labels) != max(2, len(names)):
            raise InputError(
                f"{target!r} must have {max(2, len(names))} classes for {len(names)} column(s) of "
                f"scores, got {len(labels)}: {labels.tolist()[:10]} (classes= names those without "
                "a row)"
            )
        weights = _padded(counts.weights, len(labels))[:, order]
        counts = cls(labels, counts.scores, weights, counts.error)
        of_classes, x = class_columns(score, labels.tolist(), "score", names), counts.scores
        if of_classes.names != names:
            x = x[:, list(map(names.index, of_classes.names))]
        return counts.moved_to(of_classes.of_second(x, on)), sums

    def check(self) -> ScoreCounts:
        """Return these counts, sorted; refuse scores, weights and shapes that are no counts."""
        scores, weights = check_scores(self.scores), np.asarray(self.weights, np.float64)
        shape = len(scores), len(self.classes)
        if weights.shape != shape or not (np.isfinite(weights) & (weights >= 0)).all():
            raise InputError(
                f"weights of counts must be finite, not negative, and of shape {shape}, got others "
                f"of shape {weights.shape}: ScoreCounts.from_scores counts examples"
            )
        check_labels(self.classes, "classes of counts")
        is_sorted = scores.ndim > 1 or bool((np.diff(scores) > 0).all())
        return self if is_sorted else self.moved_to(scores.copy())

    @cached_property
    def class_totals(self) -> FloatArray:
        """Weight of each class, (k,); without weights the number of its examples."""
        return np.asarray(self.weights.sum(axis=0))

    @property
    def column_classes(self) -> NDArray[Any]:
        """The classes in the order of the columns of arrays of scores, (k,)."""
        return self.classes if self.column_codes is None else self.classes[self.column_codes]

    @property
    def total(self) -> float:
        """Weight of all examples; without weights their number."""
        return float(self.class_totals.sum())

    def __len__(self) -> int:
        """Return the number of distinct scores."""
        return len(self.scores)

    def __add__(self, part: ScoreCounts) -> ScoreCounts:
        """Return the counts of two parts, of the same classes, together."""
        if not isinstance(part, ScoreCounts):
            return NotImplemented
        if not np.array_equal(self.column_classes, part.column_classes):
            raise ValueError(
                f"counts must be of the same classes to be added, got "
                f"{shown(self.column_classes.tolist())} and {shown(part.column_classes.tolist())}: "
                "name all of them with classes= in every part, in one order"
            )
        if self.scores.shape[1:] != part.scores.shape[1:]:
            raise InputError(
                "counts must be of the same columns of scores to be added, got scores of shape "
                f"{self.scores.shape} and {part.scores.shape}"
            )
        return _sum([self, part])

    def __radd__(self, start: object) -> ScoreCounts:
        """Let ``sum`` begin with its 0."""
        return self if isinstance(start, int) and start == 0 else NotImplemented

    def coarsen(self, n_scores: int) -> ScoreCounts:
        """Return counts at no more than ``n_scores`` scores; `error` grows by the change.

        Two classes: neighbouring scores are put together at the largest of them, so the share of
        examples at or below any score falls by at most ``1 / n_scores``. More: score vectors in
        one cell of a lattice are put together at their mean; the lattice is the finest whose
        spacing is the range of the scores divided by a power of two.
        """
        check_count(n_scores, "n_scores")
        if len(self) <= n_scores:
            return self
        total = self.weights.sum(axis=1)
        if self.scores.ndim == 1:
            # All scores of a group but the largest have at most total / n_scores together.
            before = np.cumsum(total) - total
            group = (before / (before[-1] + total[-1]) * n_scores).astype(np.intp)
            start = np.flatnonzero(np.append(True, group[1:] != group[:-1]))
            last = np.append(start[1:], len(self)) - 1
            moved = float((before[last] - before[start]).max())
            scores, weights = self.scores[last], np.add.reduceat(self.weights, start, axis=0)
        else:
            low, high = self.scores.min(), self.scores.max()
            finest = ((self.scores - low) / (high - low) * (1 << LATTICE_BITS)).astype(np.intp)
            finest = np.minimum(finest, (1 << LATTICE_BITS) - 1)
            cells, bits = finest, 0
            while len(cells) > n_scores:
                bits += 1
                cells = np.unique(cells >> 1, axis=0)
            cells, group = np.unique(finest >> bits, axis=0, return_inverse=True)
            weights = np.column_stack([np.bincount(group, w) for w in self.weights.T])
            scores = np.column_stack([np.bincount(group, total * s) for s in self.scores.T])
            scores /= weights.sum(axis=1, keepdims=True)
            # An example passes scores within its own slab of the lattice only.
            moved = max(float(np.bincount(slab, total).max()) for slab in (finest >> bits).T)
        error = min(self.error + moved / float(total.sum()), 1.0)
        return replace(self, scores=scores, weights=weights, error=error)

    def columns(self) -> list[ScoreCounts]:
        """Return counts of two classes: these, or of each of more classes against the rest."""
        if self.scores.ndim == 1:
            return [self]
        total, parts = self.weights.sum(axis=1), []
        # Counting examples is faster than adding up weights.
        are_examples = (self.weights.max(axis=1) == 1).all() and (total == 1).all()
        for column, weight in zip(self.scores.T, self.weights.T, strict=True):
            if are_examples:
                counts = count_examples(np.arange(2), column, weight.astype(np.intp), None)
                scores, weights = counts.scores, counts.weights
            else:
                scores, weights = _add_up(column, np.column_stack([total - weight, weight]))
            parts.append(ScoreCounts(np.arange(2), scores, weights, self.error))
        return parts

    def moved_to(self, scores: FloatArray) -> ScoreCounts:
        """Return counts with other scores (m,) or (m, k), of which equal ones are merged."""
        if scores is self.scores:
            return self
        scores, weights = _add_up(scores + 0.0, self.weights)
        return replace(self, scores=scores, weights=weights)


def read_examples(
    scores: FloatArray,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    classes: ArrayLike | None,
) -> tuple[IntArray, NDArray[Any], FloatArray | None]:
    """Return the codes (n,) of labels, the classes (k,), and weights (n,); None where all are 1."""
    if not len(scores) and classes is None:
        raise ValueError("classes must be named where there is no example, got None")
    y = label_vector(y, len(scores))
    codes, labels = encode_labels(y if len(scores) else np.asarray(classes)[:0], classes)
    refuse_one_class(labels)
    return codes, labels, check_weights(sample_weight, len(scores))


def count_examples(
    classes: NDArray[Any],
    scores: FloatArray,
    codes: IntArray,
    weight: FloatArray | None,
    *,
    sort: bool = True,
) -> ScoreCounts:
    """Return the counts of examples; without ``sort``, which takes time, a row for each."""
    if weight is not None:
        positive = weight > 0
        scores, codes, weight = scores[positive], codes[positive], weight[positive]
    if sort and weight is None and len(classes) == 2 and scores.ndim == 1:
        # Sorting each class by itself and merging is faster than an argsort of all.
        first, second = (np.sort(scores[codes == j] + 0.0) for j in (0, 1))  # without -0.0
        distinct, weights = np.empty(len(scores)), np.zeros((2, len(scores)))
        m = merge_sorted(first, second, distinct, weights)
        distinct, weights = distinct[:m], weights[:, :m]
        if 2 * m < len(scores):  # a view would keep all of the memory
            distinct, weights = distinct.copy(), weights.copy()
        return ScoreCounts(classes, distinct, weights.T)
    weights = np.array([codes == j for j in range(len(classes))], np.float64)
    weights *= 1.0 if weight is None else weight
    if sort:
        return ScoreCounts(classes, *_add_up(scores + 0.0, weights.T))
    return ScoreCounts(classes, scores + 0.0, weights.T)


@kernel
def merge_sorted(
    first: FloatArray, second: FloatArray, scores: FloatArray, weights: FloatArray
) -> int:
    """Write the distinct scores of two sorted classes, and their counts; return their number."""
    i, j, m = 0, 0, -1
    while i < len(first) or j < len(second):
        in_first = j == len(second) or (i < len(first) and first[i] <= second[j])
        score = first[i] if in_first else second[j]
        if m < 0 or score != scores[m]:
            m += 1
            scores[m] = score
        if in_first:
            weights[0, m] += 1
            i += 1
        else:
            weights[1, m] += 1
            j += 1
    return m + 1


def _add_up(scores: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the distinct ones of scores (n,) or (n, c), sorted, and the sums of weights (n, k)."""
    if not len(scores):
        return scores, weights
    order = np.argsort(scores) if scores.ndim == 1 else np.lexsort(scores.T[::-1])
    ordered = scores[order]
    is_new = ordered[1:] != ordered[:-1]
    if scores.ndim == 2:
        is_new = is_new.any(axis=1)
    start = np.append(0, np.flatnonzero(is_new) + 1)
    sums = [np.add.reduceat(column[order], start) for column in weights.T]
    return ordered[start], np.stack(sums).T


def _sum(parts: Sequence[ScoreCounts], max_scores: int | None = None) -> ScoreCounts:
    """Return the counts of all parts together, coarsened above ``max_scores`` distinct scores."""
    k = max(part.weights.shape[1] for part in parts)
    scores, weights = _add_up(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([_padded(part.weights, k) for part in parts]),
    )
    total = float(weights.sum())
    error = sum(part.error * part.total for part in parts) / total if total else 0.0
    counts = replace(parts[0], scores=scores, weights=weights, error=error)
    if max_scores is None or len(counts) <= max_scores:
        return counts
    return counts.coarsen(max_scores // 2)


def _padded(weights: FloatArray, k: int) -> FloatArray:
    """Return weights with columns of zeros for classes that have not occurred yet."""
    return np.pad(weights, ((0, 0), (0, k - weights.shape[1])))


def _numbers(batch: Any, name: str, on: On, n_columns: int = 1) -> FloatArray:
    """Return a column of finite numbers, or minus infinity where it is a score."""
    cells = batch[name]
    if str(cells.type).startswith("decimal"):  # whose cast to float64 misses the last digit
        cells = cells.cast("string")
    values = np.asarray(cells.cast("float64").to_numpy(zero_copy_only=False))
    wrong = values[is_impossible(values, on, n_columns)]
    if len(wrong):
        raise InputError(f"{name!r} must be finite, got {wrong[0]}: leave such rows out")
    return values


def _codes(batch: Any, name: str, codes_of: dict[Any, int]) -> IntArray:
    """Return the codes of a column of labels; new labels are added to ``codes_of``."""
    if n_missing := batch[name].null_count:
        raise InputError(f"{name!r} must have a label in every row, got {n_missing} rows without")
    encoded = batch[name].dictionary_encode()
    labels = encoded.dictionary.to_pylist()
    codes = np.array([codes_of.setdefault(label, len(codes_of)) for label in labels], np.intp)
    return np.asarray(codes[encoded.indices.to_numpy(zero_copy_only=False)])
