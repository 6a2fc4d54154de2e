"""Scores: what columns of numbers mean, decided at one place for the whole library.

==========================================  ====================================================
input                                       kind with ``on="auto"``
==========================================  ====================================================
one column                                  ``"score"``, any increasing score; for maps on log-odds
                                            ``"probability"`` where all values lie in [0, 1]
k columns in [0, 1], rows sum to 1          ``"probability"``, each row divided by its sum; of two
                                            columns the second
k columns with values outside [0, 1]        ``"logit"``, each beside the largest of its row; of two
                                            columns the difference
k columns in [0, 1], sums elsewhere         refused: scores of each class need ``on="score"``
k columns above 0, all sums near 100        refused: percentages, or counts such as votes, which
or all equal, in 10 rows or more            must be divided by their sum
==========================================  ====================================================

Logits of minus infinity, and finite ones far below all others, are of masked classes, which are
impossible: all of them become `MASKED`. The kind, and the distance from which on a logit is one of
a masked class, are fixed at fit. Afterwards every row is read alone.
"""

from __future__ import annotations

from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vennforest._messages import InputError, warn
from vennforest._validation import FloatArray, check_option, numbers_of, refuse_masked

ScoreKind = Literal["probability", "logit", "score"]
On = Literal["auto", "probability", "logit", "score"]
"""What scores are; ``"auto"``: as the calibration scores show."""

RANGE_TOLERANCE = 1e-9
"""Distance from [0, 1] up to which a probability counts as rounded."""

SINGLE_TOLERANCE = 1e-5
"""Distance from 1 up to which a row may sum to in single precision, whatever its digits."""

HALF_TOLERANCE = 2.0**-8
"""Relative rounding error of half precision, of float16 and bfloat16 alike."""

DECIMALS = range(2, 7)
"""Numbers of decimals to which probabilities are looked upon as rounded."""

MIN_ROWS_OF_EQUAL_SUMS = 10
"""Rows, none with a negative value, from which on equal sums are no chance."""

MASKED = -1e30
"""The logit of a masked class beside the largest of its row; the log-odds of the class, and minus
those of the only class of its row that is not masked. Sums and differences do not change it."""

MIN_MASK_DISTANCE, MASK_GAP = 745.0, 10.0
"""Distance from the largest logit of its row from which on one may be masked (its probability is 0
in double precision), and how many times as far as all that are not masked a masked one is."""

MISSING_NUMBERS = (-1, *(sign * (10**digits - 1) for digits in range(1, 7) for sign in (-1, 1)))
"""Numbers that often stand for missing values: -1, and those of nines up to six digits."""

FAR_DISTANCES = np.array([1000.0, 10.0, 1.0])
"""Distance from the range of all others, in units of its width, from which on a score is far, by
how much speaks for a marker: that several examples have it, that it is of `MISSING_NUMBERS`."""

MAX_FAR_SCORES, MIN_OTHER_SCORES = 3, 5
"""Distinct scores that are far at either end, at most, and the others, at least."""

MIN_ROWS_OF_BINS = 1_000  # rows from which on sorting takes longer than counting

SPLITTER = 2.0**13 + 1
"""Factor that rounds to 53 - 13 = 40 binary digits (Veltkamp 1968; Dekker 1971)."""


class Scores(NamedTuple):
    """Scores as they are read.

    ``values`` are (n,), of the second of two classes, or (n, k), with `MASKED` for the logits of
    masked classes. Of logits, ``mask_distance`` is the distance from the largest of a row from
    which on they are masked, else None.
    """

    values: FloatArray
    kind: ScoreKind
    mask_distance: float | None = None


class ScoreError(InputError):
    """A score that cannot be used, at the first place of a mask ``wrong``, (n,) or (n, k).

    ``row`` and ``column`` count from 0; ``column`` is None where a whole row is wrong.
    ``without_place`` is the message without them.
    """

    def __init__(self, rule: str, value: str, wrong: NDArray[np.bool_], way_out: str = "") -> None:
        self.row, *columns = map(int, np.argwhere(wrong)[0])
        self.column = columns[0] if columns else None
        position = f"row {self.row}" + "".join(f", column {column}" for column in columns)
        self.without_place = f"{rule}, got {value}{way_out}"
        super().__init__(f"{rule}, got {value} in {position} (counted from 0){way_out}")


def as_numbers(scores: ArrayLike, name: str = "scores") -> FloatArray:
    """Return numbers of shape (n,) or (n, k) as a C-contiguous, writeable float64 array.

    Tensors of PyTorch are read in any precision, with gradients and on any device.
    """
    refuse_masked(scores, name)
    if hasattr(scores, "detach"):
        scores = scores.detach().cpu().double().numpy()
    array = numbers_of(scores, f"{name} must be numbers in a dense array")
    if array.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (n,) or (n, k), got {array.shape}")
    if not array.flags.writeable:  # kernels are compiled for arrays that may be written to
        array = array.copy()
    return array


def check_finite(array: FloatArray, name: str = "scores", lowest: bool = False) -> FloatArray:
    """Refuse NaN and infinite numbers; with ``lowest``, minus infinity becomes `MASKED`."""
    finite = np.isfinite(array)
    if finite.all():
        return array
    if lowest and (finite | (array == -np.inf)).all():
        is_masked_row = np.logical_and.reduce(~finite.reshape(len(finite), -1), axis=1)
        if array.ndim == 2 and array.shape[1] > 1 and is_masked_row.any():
            rule = f"{name} must have a finite logit in every row"
            raise ScoreError(rule, "-inf in all columns", is_masked_row)
        return np.where(finite, array, MASKED)
    finite |= lowest & (array == -np.inf)
    value = array[~finite][0]
    raise ScoreError(f"{name} must be finite", "NaN" if np.isnan(value) else str(value), ~finite)


def takes_minus_infinity(on: On, n_columns: int) -> bool:
    """Return whether minus infinity is a score: the logit of probability 0."""
    return on == "logit" or (on == "auto" and n_columns > 1)


def is_impossible(values: FloatArray, on: On, n_columns: int) -> NDArray[np.bool_]:
    """Return a mask of the values that no column of such scores can have: NaN and infinities."""
    impossible = ~np.isfinite(values)
    if takes_minus_infinity(on, n_columns):
        impossible &= values != -np.inf
    return impossible


def check_scores(scores: ArrayLike, name: str = "scores") -> FloatArray:
    """Return finite scores of shape (n,) or (n, k), whatever they mean."""
    if (
        type(scores) is np.ndarray
        and scores.dtype == np.float64
        and scores.ndim in (1, 2)
        and scores.flags.carray
        and np.isfinite(scores).all()
    ):
        return scores
    return check_finite(as_numbers(scores, name), name)


def columns(x: FloatArray, k: int) -> FloatArray:
    """Return scores for k classes: (n,) of the second of two classes, or (n, k)."""
    if k == 2 and (x.ndim == 1 or x.shape[1] in (1, 2)):
        return x if x.ndim == 1 else np.ascontiguousarray(x[:, -1])
    if k > 2 and x.ndim == 2 and x.shape[1] == k:
        return x
    raise InputError(f"scores must have a column for each of {k} classes, got {x.shape}")


def read_scores(
    scores: ArrayLike,
    k: int,
    on: On = "auto",
    *,
    on_log_odds: bool = False,
    mask_distance: float | None = None,
) -> Scores:
    """Return checked scores for k classes, and their kind.

    Parameters
    ----------
    scores : array-like of shape (n,) or (n, k)
        One column, of the second of two classes, or a column per class.
    k : int
        Number of classes.
    on : {"auto", "probability", "logit", "score"}
        The kind where it is known, as it is of new scores: every row is then read alone.
    on_log_odds : bool
        Whether one column in [0, 1] is of probabilities, for maps on log-odds.
    mask_distance : float, optional
        The distance from which on new logits are masked; by default as these scores show.

    Raises
    ------
    ScoreError
        If a value is impossible for its kind; the error names its row and column.
    InputError
        If the kind is in doubt, or there are too few columns.
    """
    check_option(on, On, "on")
    array = as_numbers(scores)
    columns(array, k)  # refuses other shapes
    is_table = array.ndim == 2 and array.shape[1] > 1
    kind: ScoreKind
    if on != "auto":
        kind = on
    elif is_table:
        kind = _kind_of_columns(array)
    else:
        array = check_finite(array)
        kind = "probability" if on_log_odds and not is_outside(array).any() else "score"
    array = check_finite(array, lowest=kind == "logit")
    if kind == "probability":
        array = read_probabilities(array)
    if kind == "logit":
        return _read_logits(array, k, mask_distance)
    return Scores(columns(array, k), kind)


def _read_logits(array: FloatArray, k: int, mask_distance: float | None) -> Scores:
    """Return log-odds (n,) of the second of two classes, or logits (n, k) beside their largest."""
    with np.errstate(over="ignore"):
        if k == 2:
            x = array.reshape(len(array), -1)
            x = np.ascontiguousarray(x[:, 1] - x[:, 0] if x.shape[1] == 2 else x[:, 0])
        else:
            x = array - array.max(axis=1, keepdims=True)
    distance = np.abs(x)
    limit = find_mask_distance(distance) if mask_distance is None else mask_distance
    return Scores(np.where(distance < limit, x, np.copysign(-MASKED, x)), "logit", limit)


def find_mask_distance(distance: FloatArray) -> float:
    """Return the distance from the largest logit of their row from which on logits are masked.

    Nothing lies between the logits that are not masked and `MASK_GAP` times their distance, which
    is `MIN_MASK_DISTANCE` at least.
    """
    is_far = distance >= MIN_MASK_DISTANCE
    nearest = max(distance.max(initial=0, where=~is_far), MIN_MASK_DISTANCE / MASK_GAP)
    distances = np.append(nearest, np.unique(distance[is_far]))
    is_gap = distances[1:] / MASK_GAP >= distances[:-1]
    nearest = distances[is_gap.argmax() if is_gap.any() else -1]
    return float(min(MASK_GAP * nearest, -MASKED))


def are_masked(x: FloatArray, kind: On) -> NDArray[np.bool_]:
    """Return a mask of the logits, or log-odds, that `read_scores` has made of masked classes."""
    return np.abs(x) >= -MASKED if kind == "logit" else np.zeros(x.shape, bool)


def read_probabilities(array: FloatArray, name: str = "scores") -> FloatArray:
    """Return probabilities (n,) or (n, k) in [0, 1], each row of several divided by its sum."""
    is_wrong = is_outside(array)
    if is_wrong.any():
        value = f"{array[is_wrong][0]:g}"
        way_out = ': give on="logit" for log-odds, on="score" for other scores'
        if name == "p":
            way_out = ": calibrate scores that are no probabilities first"
        raise ScoreError(f"{name} must lie in [0, 1]", value, is_wrong, way_out)
    if array.size and (array.min() < 0 or array.max() > 1):
        array = np.clip(array, 0.0, 1.0)
    if array.ndim == 1 or array.shape[1] == 1:
        return array
    total = array.sum(axis=1)
    wrong = ~sums_to_one(array, total)
    if wrong.any():
        rule = f"{name} must have rows that sum to 1 within what their digits allow"
        way_out = ": divide each row by its sum, or give the probabilities of all classes"
        raise ScoreError(rule, f"a sum of {total[wrong][0]:.6g}", wrong, way_out)
    # Division by sums that differ in the last digit would break ties between rows.
    divisor = np.where(np.abs(total - 1) <= 1e-12, 1.0, total)
    return array if (divisor == 1).all() else array / divisor[:, None]


def is_outside(array: FloatArray) -> NDArray[np.bool_]:
    """Return a mask of the values that are no probabilities, not even rounded."""
    return (array < -RANGE_TOLERANCE) | (array > 1 + RANGE_TOLERANCE)


def sums_to_one(p: FloatArray, total: FloatArray | None = None) -> NDArray[np.bool_]:
    """Return a mask (n,) of the rows (n, k) that sum to 1 within what their digits allow.

    Of k values with d decimals the sum is off by ``k / 2 * 10**-d`` at most.
    """
    total = p.sum(axis=1) if total is None else total
    error = np.abs(total - 1)
    is_one: NDArray[np.bool_] = error <= SINGLE_TOLERANCE
    rows = np.flatnonzero(~is_one & (error <= max(HALF_TOLERANCE, p.shape[1] * 0.005 + 1e-9)))
    if not len(rows):
        return is_one
    x, error = p[rows], error[rows]
    is_half = (x.astype(np.float16) == x).all(axis=1)
    is_half |= ((x.astype(np.float32).view(np.uint32) & 0xFFFF) == 0).all(axis=1) & (
        x.astype(np.float32) == x
    ).all(axis=1)
    tolerance = np.where(is_half, HALF_TOLERANCE, 0.0)
    precision = np.where(is_half, HALF_TOLERANCE / 2, 2.0**-23)[:, None]
    for d in reversed(DECIMALS):
        digits = x * 10.0**d
        is_rounded = (np.abs(digits - np.rint(digits)) <= digits * precision).all(axis=1)
        allowed = p.shape[1] / 2 * 10.0**-d + 1e-9
        tolerance = np.where(is_rounded, np.maximum(tolerance, allowed), tolerance)
    is_one[rows] = error <= tolerance
    return is_one


def _kind_of_columns(array: FloatArray) -> ScoreKind:
    """Return the kind of calibration scores (n, k) in two columns or more."""
    if not np.isfinite(array).all():
        check_finite(array, lowest=True)
        return "logit"
    total = array.sum(axis=1)
    if is_outside(array).any():
        are_percentages = bool((np.abs(total - 100) <= array.shape[1] / 2).all())
        are_equal = len(total) >= MIN_ROWS_OF_EQUAL_SUMS and np.allclose(total, total[0], 1e-6, 0)
        if (array >= 0).all() and (are_percentages or are_equal):
            divisor = f"{100 if are_percentages else total[0]:g}"
            raise InputError(
                f"scores must be probabilities, scores or logits, got rows that sum to {divisor}, "
                f"as percentages or counts do: divide by {divisor}"
            )
        return "logit"
    wrong = ~sums_to_one(array, total)
    if wrong.any():
        raise ScoreError(
            "scores must have rows that sum to 1, or values outside [0, 1] as logits have",
            f"a sum of {total[wrong][0]:.6g}",
            wrong,
            ': independent scores of each class: give on="score", or divide each row by its sum',
        )
    return "probability"


def warn_of_percentages(x: FloatArray) -> None:
    """Warn if scores of a map on log-odds, which are read as they are, look like percentages."""
    if x.size and x.min() >= 0 and 1 < x.max() <= 100 and (x % 1 != 0).any():
        warn(
            f"scores between {x.min():g} and {x.max():g} look like percentages: divide percentages "
            'by 100, so that the map is one of their log-odds, or set on="score" for other scores'
        )


def far_side(x: FloatArray, weight: FloatArray) -> NDArray[np.integer[Any]]:
    """Return -1 or 1 for scores (n,) as far below or above all others as markers of missing ones.

    It is 0 for all others. Tails as heavy as those of a Cauchy distribution are not far.
    """
    # Between six far scores and the others a gap is a seventh of the whole: it leaves a bin empty.
    # Often some scores already fill all bins.
    if (step := len(x) // MIN_ROWS_OF_BINS) > 1:
        ends = x.min() / 4, x.max() / 4
        if any(np.histogram(part / 4, 14, ends)[0].all() for part in (x[::step], x)):
            return np.zeros(len(x), np.int8)
    values, of_value = np.unique(x, return_inverse=True)
    ends = np.r_[: min(MAX_FAR_SCORES, len(values)), -min(MAX_FAR_SCORES, len(values)) : 0]
    speaks = np.bincount(of_value, weight)[ends] > 1
    factor = FAR_DISTANCES[speaks + np.isin(values[ends], MISSING_NUMBERS).astype(np.intp)]
    values = values / 4  # differences may overflow
    numbers = range(MAX_FAR_SCORES + 1)
    for n_low, n_high in sorted(product(numbers, numbers), key=sum, reverse=True):
        inner = values[n_low : len(values) - n_high]
        if len(inner) < MIN_OTHER_SCORES:
            continue
        low, high = inner[0], inner[-1]
        distance = np.maximum(low - values[ends], values[ends] - high)
        with np.errstate(over="ignore"):
            if ((distance <= 0) | (distance >= factor * (high - low))).all():
                break
    else:
        return np.zeros(len(x), np.int8)
    return np.asarray((x / 4 > high).astype(np.int8) - (x / 4 < low))


def round_scores(scores: FloatArray) -> FloatArray:
    """Return scores of a model, rounded to 40 binary digits.

    Another batch size, thread or processor may change the last digits of what a model returns,
    which would break ties with calibration scores.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        product = SPLITTER * scores
        rounded: FloatArray = product - (product - scores)
    return np.where(np.isfinite(product), rounded, scores)
