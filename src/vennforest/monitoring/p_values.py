"""Conformal p-values of a stream: uniform and independent while examples are exchangeable."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from vennforest._validation import FloatArray, check_scores
from vennforest.monitoring import kernels

SEEDS = 2**31 - 1


def conformal_p_values(
    scores: ArrayLike, reference: ArrayLike | None = None, *, random_state: object = None
) -> FloatArray:
    """Return the smoothed p-value of each score among the reference and all scores before it.

    ``p_n = (#{i: s_i > s_n} + U #{i: s_i = s_n}) / n`` over the reference, the scores before and
    the score itself, U uniform (Vovk, Gammerman & Shafer 2005, section 2.2). If all of these are
    exchangeable, the p-values are independent and uniform on [0, 1], whatever the distribution.
    Compared with a reference that does not grow they would not be independent: a reference that
    is unusual by chance would make every p-value after it unusual, and a martingale grow.

    Parameters
    ----------
    scores : array-like of shape (n,)
        Of the stream in its order; a large score is an unusual example, such as 1 minus the
        probability of the true label.
    reference : array-like of shape (m,), optional
        Scores of examples that come before, such as the calibration examples.
    random_state : int, RandomState or None
        Draws the U, which break ties.

    Returns
    -------
    ndarray of shape (n,)
        In [0, 1].

    Raises
    ------
    ValueError
        If a score is not finite, or scores are not vectors.

    Examples
    --------
    >>> from vennforest.monitoring import conformal_p_values
    >>> conformal_p_values([0.2, 0.9], reference=[0.1, 0.3, 0.5], random_state=0).round(3)
    array([0.681, 0.116])
    """
    stream = check_scores(scores)
    before = check_scores([] if reference is None else reference, "reference")
    if stream.ndim != 1 or before.ndim != 1:
        raise ValueError("scores must have shape (n,), one per example")
    seed = int(check_random_state(random_state).randint(SEEDS))
    values, places = np.unique(np.concatenate([before, stream]), return_inverse=True)
    out = np.empty(len(stream))
    kernels.p_values(places.astype(np.int64), len(values), len(before), seed, out)
    return out
