"""The isotonic fit at a new score that changes scores of calibration examples."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray
from vennforest.calibrators.venn_abers.step_table import StepTable
from vennforest.joined import refit_kernels


def read_joined(
    table: StepTable,
    scores: FloatArray,
    labels: NDArray[np.int8],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int32],
    changed: FloatArray,
) -> FloatArray:
    """Return the fit, (m,), at scores (m,) of these labels, with other calibration scores.

    Parameters
    ----------
    table : StepTable
        Of the calibration examples with the scores they had; it knows them one by one.
    scores, labels : ndarray of shape (m,)
        New scores and whether each is of the positive class, 0 or 1.
    offsets : ndarray of shape (m + 1,)
        Where the changed examples of each new score begin.
    rows, changed : ndarray of shape (n_changed,)
        Their numbers, and the scores they have then.
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
