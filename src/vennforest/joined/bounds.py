"""Bounds for objects that change scores of calibration examples: Venn and Venn–Abers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators import Venn, VennAbers
from vennforest.calibrators.core.interface import normalised_bounds
from vennforest.calibrators.venn_abers.calibrator import StepTable
from vennforest.joined import refit_kernels
from vennforest.multiprobability import Multiprobability


def read_joined(
    table: StepTable,
    scores: FloatArray,
    labels: NDArray[np.int8],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int32],
    changed: FloatArray,
) -> FloatArray:
    """Return the fit, (m,), at scores (m,) of these labels, with other calibration scores.

    The table knows its examples one by one. ``offsets`` (m + 1,) says where the changed
    examples of each new score begin; ``rows`` and ``changed`` are their numbers, and the scores
    they have then.
    """
    examples = table.examples
    assert examples is not None  # who has others' scores change has asked for them before
    nothing = np.empty(0, np.intp)
    order, members = table.members if len(examples.weight) else (nothing, nothing)
    fits = np.empty(len(scores))
    refit_kernels.read_joined(
        scores,
        labels,
        offsets,
        rows,
        changed,
        examples.numbers_in(table.x),
        examples.labels,
        examples.weight,
        order,
        members,
        table.x,
        *table.sums,
        *table.hulls,
        fits,
    )
    return fits


class JoinedScores(NamedTuple):
    """Scores of new objects that change those of calibration examples: see `predict_joined`."""

    scores: FloatArray
    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    changed: FloatArray


def takes_joined(calibrator: Any) -> bool:
    """Tell whether a calibrator gives bounds for objects that change calibration scores.

    Besides Venn and Venn–Abers those of a user's own that have a method ``predict_joined``.
    """
    own = callable(getattr(calibrator, "predict_joined", None))
    return own or isinstance(calibrator, Venn | VennAbers)


def predict_joined(
    calibrator: Any, scores: ArrayLike, offsets: ArrayLike, rows: ArrayLike, changed: ArrayLike
) -> Multiprobability:
    """Return bounds for objects that change scores of calibration examples.

    For each label y that an object might have, p_y is what the calibrator gives for the object
    among the n calibration examples with the scores they then have, and the object itself with
    label y: for `VennAbers` the isotonic fit at its score, for `Venn` the frequencies of the labels
    in its category. The bounds of a class are the least and the largest of its k values.

    Parameters
    ----------
    calibrator : Venn, VennAbers or calibrator with a method ``predict_joined``
        Fitted.
    scores : array-like of shape (m, k) for two classes, else (m, k, k)
        The score, or a column of scores a class, of each object with each label.
    offsets : array-like of int of shape (m * k + 1,)
        Where the changed examples of each object and label begin, all labels of one object
        side by side.
    rows : array-like of int of shape (n_changed,)
        Numbers of calibration examples as given to ``fit``, each once an object and label.
    changed : array-like of shape (n_changed,) for two classes, else (n_changed, k)
        Their scores then. The categories of `Venn` stay as they were fitted.

    Returns
    -------
    Multiprobability
        Bounds of shape (m, k), in [0, 1].
    """
    if not isinstance(calibrator, Venn | VennAbers):
        bounds: Multiprobability = calibrator.predict_joined(scores, offsets, rows, changed)
        return bounds
    check_is_fitted(calibrator, "classes_")
    if calibrator.from_counts:
        raise ValueError("rows must be empty after fit_counts, which knows no single examples")
    joined = joined_scores(
        scores,
        offsets,
        rows,
        changed,
        len(calibrator.classes_),
        calibrator.n_given,
        calibrator.row_of,
    )
    if isinstance(calibrator, Venn):
        return _venn(calibrator, joined)
    return _venn_abers(calibrator, joined)


def _venn(calibrator: Venn, joined: JoinedScores) -> Multiprobability:
    """Return the frequencies of labels in each object's category, with the object in it."""
    m, k = joined.scores.shape[:2]
    category = calibrator.taxonomy_(joined.scores.reshape(m * k, *joined.scores.shape[2:]))
    # The last row is read for categories that no calibration example is in (number -1).
    known = np.vstack([calibrator.counts_, np.zeros(k)])
    counts = known[category].ravel()
    cell = calibrator.cell_of_examples[joined.rows]
    item = np.repeat(np.arange(m * k), np.diff(joined.offsets))
    weight = (
        np.ones(len(cell))
        if calibrator.weight_of_examples is None
        else calibrator.weight_of_examples[joined.rows]
    )
    before = category[item] == cell // k
    after = np.zeros(len(cell), bool)
    if len(cell):
        after = category[item] == calibrator.taxonomy_(joined.changed)
    gone, place = before & ~after, item * k + cell % k
    taken = np.bincount(place, np.where(gone, weight, 0.0), m * k * k)
    left = counts - taken
    if calibrator.weight_of_examples is not None:
        # Taking weights off a sum loses the digits of what is small beside them.
        for one in np.flatnonzero(left < taken):
            stays = calibrator.cell_of_examples == category[one // k] * k + one % k
            stays[joined.rows[gone & (place == one)]] = False
            left[one] = calibrator.weight_of_examples[stays].sum()
    come = np.bincount(place, np.where(after & ~before, weight, 0.0), m * k * k)
    p: FloatArray = (left + come).astype(np.float64).reshape(m, k, k)
    p[:, np.arange(k), np.arange(k)] += 1
    p /= p.sum(axis=2, keepdims=True)
    return Multiprobability(p.min(axis=1), p.max(axis=1), calibrator.classes_)


def _venn_abers(calibrator: VennAbers, joined: JoinedScores) -> Multiprobability:
    """Return the isotonic fit at each object's score, with the object among the examples."""
    m, k = joined.scores.shape[:2]
    labels = np.tile(np.arange(k), m)
    if k == 2:
        ones = labels.astype(np.int8)
        fits = read_joined(calibrator.tables_[0], joined.scores.ravel(), ones, *joined[1:])
        fits = fits.reshape(m, 2)
        upper, lower = fits.max(axis=1), fits.min(axis=1)
        return Multiprobability(
            np.column_stack([1 - upper, lower]),
            np.column_stack([1 - lower, upper]),
            calibrator.classes_,
        )
    p = np.empty((m, k, k))
    for j, table in enumerate(calibrator.tables_):
        p[:, :, j] = read_joined(
            table,
            np.ascontiguousarray(joined.scores[:, :, j]).ravel(),
            (labels == j).astype(np.int8),
            joined.offsets,
            joined.rows,
            np.ascontiguousarray(joined.changed[:, j]),
        ).reshape(m, k)
    lower, upper = normalised_bounds(p.min(axis=1), p.max(axis=1))
    return Multiprobability(lower, upper, calibrator.classes_)


def joined_scores(
    scores: ArrayLike,
    offsets: ArrayLike,
    rows: ArrayLike,
    changed: ArrayLike,
    k: int,
    n: int,
    row_of: IntArray | None,
) -> JoinedScores:
    """Return what `predict_joined` is given as plain arrays, examples as ``_fit`` knows them.

    ``row_of`` is that of `Fitted`; the rest is as given to `predict_joined`, of k classes and n
    examples.
    """
    own = np.require(scores, np.float64, ["C", "W"])
    then = np.require(changed, np.float64, ["C", "W"])
    who, ends = np.asarray(rows), np.asarray(offsets)
    m, shape = len(own), () if k == 2 else (k,)
    if own.shape != (m, k, *shape):
        raise ValueError(f"scores must have shape {('m', k, *shape)}, got {own.shape}")
    if who.ndim != 1 or then.shape != (len(who), *shape):
        raise ValueError(f"changed must have shape {(len(who), *shape)}, got {then.shape}")
    if ends.shape != (m * k + 1,) or ends[0] != 0 or ends[-1] != len(who):
        raise ValueError(f"offsets must be {m * k + 1} numbers from 0 to {len(who)}")
    if (np.diff(ends) < 0).any():
        raise ValueError("offsets must not decrease")
    if not np.isfinite(own).all() or not np.isfinite(then).all():
        raise ValueError("scores and changed must be finite, got NaN or inf")
    if ((who < 0) | (who >= n)).any():
        raise ValueError(f"rows must lie between 0 and {n - 1}")
    who, ends = who.astype(np.int32, copy=False), ends.astype(np.int64, copy=False)
    if row_of is not None:
        who = row_of[who].astype(np.int32)
        there = who >= 0
        ends = np.append(0, np.cumsum(there))[ends]
        who, then = who[there], then[there]
    return JoinedScores(own, ends, who, then)
