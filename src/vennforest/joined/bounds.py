"""Bounds for objects that change scores of calibration examples: Venn and Venn–Abers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray
from vennforest.calibrators import Venn, VennAbers
from vennforest.calibrators.core.interface import normalised_bounds
from vennforest.calibrators.venn_abers.calibrator import StepTable
from vennforest.joined import refit_kernels
from vennforest.multiprobability import Multiprobability


class JoinedBlock(NamedTuple):
    """Some new objects in the bags, with each tentative label.

    ``scores`` has shape (m, k) for two classes, (m, k, k) for more: the score (a column per class)
    of each object with each label. The calibration examples that this changes, of object i and
    label y, are ``rows[offsets[i * k + y] : offsets[i * k + y + 1]]``; ``changed``, (n_changed,)
    or (n_changed, k), contains their new scores.
    """

    scores: FloatArray
    offsets: NDArray[np.int64]
    rows: NDArray[np.int32]
    changed: FloatArray


def read_joined(
    table: StepTable,
    scores: FloatArray,
    labels: NDArray[np.int8],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int32],
    changed: FloatArray,
) -> FloatArray:
    """Return the fit, (m,), at scores (m,) of these labels, with other calibration scores.

    The table knows its examples one by one. ``offsets`` (m + 1,), ``rows`` and ``changed`` are as
    of `JoinedBlock`.
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


def takes_joined(calibrator: Any) -> bool:
    """Tell whether a calibrator gives bounds for objects that change calibration scores.

    Besides Venn and Venn–Abers those of a user's own that have a method ``predict_joined``.
    """
    own = callable(getattr(calibrator, "predict_joined", None))
    return own or isinstance(calibrator, Venn | VennAbers)


def predict_joined(calibrator: Any, block: JoinedBlock) -> Multiprobability:
    """Return bounds (m, k) for objects that change scores of a calibrator's examples.

    For each label y that an object might have, p_y is what the calibrator gives for the object
    among the n calibration examples with the scores they then have, and the object itself with
    label y: for `VennAbers` the isotonic fit at its score, for `Venn` the frequencies of the labels
    in its category, which stay as they were fitted. The bounds of a class are the least and the
    largest of its k values.
    """
    if isinstance(calibrator, Venn):
        return _venn(calibrator, block)
    if isinstance(calibrator, VennAbers):
        return _venn_abers(calibrator, block)
    bounds: Multiprobability = calibrator.predict_joined(*block)
    return bounds


def _venn(calibrator: Venn, joined: JoinedBlock) -> Multiprobability:
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


def _venn_abers(calibrator: VennAbers, joined: JoinedBlock) -> Multiprobability:
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
