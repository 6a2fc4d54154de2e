"""Weights of the classes at each distinct score: the one form of labelled scores that adds up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_consistent_length

from vennforest._counts_kernels import count_two_classes, split_by_class
from vennforest._validation import (
    FloatArray,
    InputError,
    IntArray,
    check_count,
    check_scores,
    check_weights,
    columns,
    encode_labels,
)

__all__ = ["ScoreCounts"]

MAX_WEIGHT_RATIO = 1e9
"""Largest weight divided by the smallest one above zero: sums keep 7 digits of the smallest."""

MAX_SCORES = 1 << 20
"""Distinct scores from which on `ScoreCounts.from_batches` coarsens."""

MIN_ROWS_TO_MERGE = 1 << 16
"""Rows that batches must have together before their counts are added up."""


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
        Two classes: distinct scores of the second class, increasing. More: score vectors, one
        column a class.
    weights : ndarray of shape (m, k)
        Sum of the weights of each class's examples at each score; without weights their number.
    error : float, default=0.0
        Share of the examples that `coarsen` moved past any one score, at most; in [0, 1].

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

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> ScoreCounts:
        """Count examples.

        Parameters
        ----------
        scores : array-like of shape (n,) or (n, k)
            Of the second class (two classes; from two columns the second is taken), or one column
            a class in sorted order of the labels. There may be no rows if classes are named.
        y : array-like of shape (n,)
            Their labels, of any dtype.
        sample_weight : array-like of shape (n,), optional
            Non-negative; of the positive ones the largest is at most 1e9 times the smallest. A
            weight of 2 is the example twice, of 0 its absence.
        classes : array-like of shape (k,), optional
            Every class. All parts of one data set must name the same classes.

        Raises
        ------
        ValueError
            If scores are NaN or infinite, shapes do not fit, a weight is refused, or there are
            fewer than two classes.
        """
        x = check_scores(scores)
        codes, labels, weight = read_examples(x, y, sample_weight, classes)
        k = len(labels)
        x = columns(x, k) if x.size else np.empty((0,) if k == 2 else (0, k))
        if weight is not None:
            positive = weight > 0
            x, codes, weight = x[positive], codes[positive], weight[positive]
        return cls(labels, *tabulate(x, codes, weight, k))

    @classmethod
    def from_batches(
        cls,
        batches: Iterable[Any],
        *,
        score: str | Sequence[str],
        target: str,
        weight: str | None = None,
        classes: Sequence[Any] | None = None,
        max_scores: int = MAX_SCORES,
    ) -> ScoreCounts:
        """Count the rows of Arrow record batches, in bounded memory.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch or pyarrow.Table
            Read once, one after the other.
        score : str or sequence of str
            The column of the second class's scores; with more than two classes their columns, in
            sorted order of the labels.
        target : str
            The column of labels.
        weight : str, optional
            The column of weights, as ``sample_weight`` of `from_scores`.
        classes : sequence, optional
            Every class, when some may be missing from the rows.
        max_scores : int, default=1,048,576
            Distinct scores from which on they are coarsened (see `coarsen`) to half as many;
            ``error`` says what that did.

        Raises
        ------
        ValueError
            If a score or weight is missing or not finite, a label is missing or not one of the
            classes, or there are fewer than two classes or another number of columns. The message
            has the number of the row, from 0.
        """
        check_count(max_scores, "max_scores", 2)
        names = [score] if isinstance(score, str) else list(score)
        codes_of: dict[Any, int] = {} if classes is None else {c: j for j, c in enumerate(classes)}
        counts, waiting = _empty(len(names)), list[ScoreCounts]()
        n_rows, smallest, largest = 0, np.inf, 0.0
        for batch in batches:
            x = np.column_stack([_floats(batch, name, n_rows) for name in names])
            codes = _codes(batch, target, n_rows, codes_of, classes is not None)
            w = None if weight is None else _floats(batch, weight, n_rows)
            n_rows += len(x)
            if w is not None:
                if (w < 0).any():
                    raise InputError(f"{weight!r} must not be negative, got {w[w < 0][0]}")
                positive = w > 0
                x, codes, w = x[positive], codes[positive], w[positive]
                smallest, largest = w.min(initial=smallest), w.max(initial=largest)
                _check_ratio(float(smallest), float(largest), repr(weight))
            x = x[:, 0] if len(names) == 1 else x
            waiting.append(cls(np.empty(0), *tabulate(x, codes, w, len(codes_of))))
            if sum(map(len, waiting)) > max(len(counts), MIN_ROWS_TO_MERGE):
                counts, waiting = _sum([counts, *waiting], max_scores), []
        counts = _sum([counts, *waiting], max_scores)
        labels, order = np.unique(np.asarray(list(codes_of)), return_index=True)
        wanted = 2 if len(names) == 1 else len(names)
        if len(labels) != wanted:
            raise InputError(
                f"{target!r} must have {wanted} classes for {len(names)} column(s) of scores, got "
                f"{len(labels)}: {labels.tolist()[:10]} (classes= names those without a row)"
            )
        weights = _padded(counts.weights, len(labels))[:, order]
        return cls(labels, counts.scores, weights, counts.error)

    @property
    def class_totals(self) -> FloatArray:
        """Weight of each class, (k,); without weights the number of its examples."""
        totals: FloatArray = self.weights.sum(axis=0)
        return totals

    @property
    def total(self) -> float:
        """Weight of all examples; without weights their number."""
        return float(self.weights.sum())

    def __len__(self) -> int:
        """Return the number of distinct scores."""
        return len(self.scores)

    def __add__(self, other: ScoreCounts) -> ScoreCounts:
        """Return the counts of both parts together.

        Raises
        ------
        ValueError
            If they are of other classes.
        """
        if not isinstance(other, ScoreCounts):
            return NotImplemented
        if not np.array_equal(self.classes, other.classes):
            raise ValueError(
                "counts must be of the same classes to be added, got "
                f"{self.classes.tolist()} and {other.classes.tolist()}: name all of them with "
                "classes= in every part"
            )
        return _sum([self, other])

    def __radd__(self, other: object) -> ScoreCounts:
        """Let ``sum`` begin with its 0."""
        if isinstance(other, int) and other == 0:
            return self
        return NotImplemented

    def coarsen(self, n_scores: int) -> ScoreCounts:
        """Return counts at no more than ``n_scores`` scores, and add what that changes to `error`.

        Two classes: neighbouring scores are put together at the largest of them, so the share of
        examples at or below any score falls by at most ``1 / n_scores``. More: score vectors in
        one cell of a lattice are put together at their mean; the lattice is the finest whose
        spacing is the range of the scores divided by a power of two.

        Raises
        ------
        ValueError
            If ``n_scores`` is not an integer of at least 1.
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
            cells, group = _lattice(self.scores, n_scores)
            weights = np.column_stack([np.bincount(group, w) for w in self.weights.T])
            scores = np.column_stack([np.bincount(group, total * s) for s in self.scores.T])
            scores /= weights.sum(axis=1, keepdims=True)
            # An example passes scores within its own slab of the lattice only.
            moved = max(float(np.bincount(column, total).max()) for column in cells.T)
        error = min(self.error + moved / float(total.sum()), 1.0)
        return ScoreCounts(self.classes, scores, weights, error)

    def columns(self) -> list[ScoreCounts]:
        """Return counts of two classes: these, or with more classes one a class against the rest.

        Those of class j have its score, and the weights of the rest and of class j.
        """
        if self.scores.ndim == 1:
            return [self]
        total = self.weights.sum(axis=1)
        parts = []
        for column, weight in zip(self.scores.T, self.weights.T, strict=True):
            scores, weights = _add_up(column, np.column_stack([total - weight, weight]))
            parts.append(ScoreCounts(np.arange(2), scores, weights, self.error))
        return parts

    def reversed_at(self, center: float) -> ScoreCounts:
        """Return counts of two classes with ``center - s`` in the place of each score s."""
        return ScoreCounts(
            self.classes, center - self.scores[::-1] + 0.0, self.weights[::-1].copy(), self.error
        )


def read_examples(
    scores: FloatArray, y: ArrayLike, sample_weight: ArrayLike | None, classes: ArrayLike | None
) -> tuple[IntArray, NDArray[Any], FloatArray | None]:
    """Return the codes (n,) of labels, the classes (k,), and weights (n,); None where all are 1."""
    check_consistent_length(scores, y)
    if not len(scores) and classes is None:
        raise ValueError("classes must be named where there is no example, got None")
    codes, labels = encode_labels(y if len(scores) else np.asarray(classes)[:0], classes)
    if len(labels) < 2:
        raise ValueError(
            "y must contain at least two classes (or name them with classes=), "
            f"got one class: {labels.tolist()[0]!r}"
        )
    weight = check_weights(sample_weight, len(scores))
    if weight is not None and (positive := weight[weight > 0]).size:
        _check_ratio(float(positive.min()), float(positive.max()), "sample_weight")
    return codes, labels, weight


def _check_ratio(smallest: float, largest: float, name: str) -> None:
    if largest > MAX_WEIGHT_RATIO * smallest:
        raise InputError(
            f"{name} must differ by a factor of at most {MAX_WEIGHT_RATIO:g}, got {smallest:g} and "
            f"{largest:g}: set the smallest to 0, or cap the largest"
        )


def tabulate(
    scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
) -> tuple[FloatArray, FloatArray]:
    """Return the distinct scores (m,) or (m, k), and the weights (m, k) of the classes at each."""
    scores = scores + 0.0  # -0.0 becomes 0.0
    if weight is None and k == 2 and scores.ndim == 1:
        # Sorting each class by itself and merging is several times faster than an argsort of all.
        first, second = split_by_class(scores, np.ascontiguousarray(codes))
        first.sort()
        second.sort()
        counts: tuple[FloatArray, FloatArray] = count_two_classes(first, second)
        return counts
    return _add_up(scores, one_hot(codes, weight, k))


def one_hot(codes: IntArray, weight: FloatArray | None, k: int) -> FloatArray:
    """Return weights (n, k): those of the examples (n,) in the columns of their classes."""
    weights = np.zeros((len(codes), k))
    weights[np.arange(len(codes)), codes] = 1.0 if weight is None else weight
    return weights


def _add_up(scores: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return distinct scores in order, and the sums of the weights (n, k) at each."""
    if not len(scores):
        return scores, weights
    if scores.ndim == 1:
        order = np.argsort(scores)
        ordered = scores[order]
        is_new = ordered[1:] != ordered[:-1]
    else:
        order = np.lexsort(scores.T[::-1])
        ordered = scores[order]
        is_new = (ordered[1:] != ordered[:-1]).any(axis=1)
    start = np.append(0, np.flatnonzero(is_new) + 1)
    sums = [np.add.reduceat(column[order], start) for column in weights.T]
    return ordered[start], np.column_stack(sums)


def _sum(parts: Sequence[ScoreCounts], max_scores: int | None = None) -> ScoreCounts:
    """Return the counts of all parts, at no more than so many scores."""
    k = max(part.weights.shape[1] for part in parts)
    scores, weights = _add_up(
        np.concatenate([part.scores for part in parts]),
        np.concatenate([_padded(part.weights, k) for part in parts]),
    )
    total = float(weights.sum())
    error = sum(part.error * part.total for part in parts) / total if total else 0.0
    counts = ScoreCounts(parts[0].classes, scores, weights, error)
    if max_scores is None or len(counts) <= max_scores:
        return counts
    return counts.coarsen(max_scores // 2)


def _padded(weights: FloatArray, k: int) -> FloatArray:
    """Return weights with columns of zeros for classes that were not met yet."""
    return np.pad(weights, ((0, 0), (0, k - weights.shape[1])))


def _empty(n_columns: int) -> ScoreCounts:
    shape = (0,) if n_columns == 1 else (0, n_columns)
    return ScoreCounts(np.empty(0), np.empty(shape), np.empty((0, 0)))


def _lattice(scores: FloatArray, n_cells: int) -> tuple[IntArray, IntArray]:
    """Return the cells (m, k) of the finest lattice with so many non-empty ones, and their numbers.

    The lattice has one cell at least, so the search ends.
    """
    low, high = scores.min(), scores.max()
    for bits in range(30, -1, -1):
        cells = ((scores - low) / (high - low) * (1 << bits)).astype(np.intp)
        cells = np.minimum(cells, (1 << bits) - 1)
        order = np.lexsort(cells.T)
        is_new = np.append(True, (np.diff(cells[order], axis=0) != 0).any(axis=1))
        if is_new.sum() <= n_cells:
            break
    group = np.empty(len(scores), np.intp)
    group[order] = np.cumsum(is_new) - 1
    return cells, group


def _floats(batch: Any, name: str, first_row: int) -> FloatArray:
    """Return a column of numbers as finite float64."""
    values = np.asarray(batch.column(name).cast("float64").to_numpy(zero_copy_only=False))
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.flatnonzero(~finite)[0])
        value = batch.column(name)[row].as_py()
        raise InputError(
            f"{name!r} must be finite, got {value!r} in row {first_row + row}: leave such rows out"
        )
    return values


def _codes(
    batch: Any, name: str, first_row: int, codes_of: dict[Any, int], is_complete: bool
) -> IntArray:
    """Return the codes of a column of labels; new labels are added to ``codes_of``."""
    values = batch.column(name)
    values = values.combine_chunks() if hasattr(values, "combine_chunks") else values
    if values.null_count:
        row = int(np.flatnonzero(np.asarray(values.is_null()))[0])
        raise InputError(
            f"{name!r} must have a label in every row, got none in row {first_row + row}: leave "
            "such rows out"
        )
    encoded = values.dictionary_encode()
    numbers = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
    labels = encoded.dictionary.to_pylist()
    if is_complete and (unknown := [label for label in labels if label not in codes_of]):
        row = first_row + int(np.flatnonzero(numbers == labels.index(unknown[0]))[0])
        raise InputError(
            f"{name!r} must contain labels of classes {list(codes_of)}, got {unknown[0]!r} in row "
            f"{row}"
        )
    for label in labels:
        codes_of.setdefault(label, len(codes_of))
    of_labels: IntArray = np.array([codes_of[label] for label in labels], np.intp)
    codes: IntArray = of_labels[numbers]
    return codes
