"""Few trees: what was fitted to out-of-bag scores is read at scores by as few trees as they are.

An out-of-bag score is the mean over about 37% of the trees. With 10 trees these are 4, whose mean
is so much noisier than that of all 10 that a map fitted to it is too flat for the latter. From 20
trees on the averaging costs more than that does (``docs/defaults.md``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from vennforest._validation import FloatArray, IntArray
from vennforest.forest import Membership
from vennforest.sources.ensembles import Answers

FEW_TREES = 20
"""Number of trees from which on a new object's point is that of its score by all of them."""

SUBFORESTS = 20
"""Subforests that a point is averaged over with fewer."""


def typical(n: int) -> IntArray:
    """Return calibration examples whose trees are the subforests: equally spaced, each once."""
    return np.unique(np.linspace(0, n - 1, SUBFORESTS).round().astype(np.intp))


def point_scores(answers: Answers, rows: Any, membership: Membership) -> list[FloatArray]:
    """Return the scores of every row by all trees, or by each of a few subforests.

    Parameters
    ----------
    answers : Answers
        Of an ensemble.
    rows : object of m rows
        As ``answers.check`` returns them.
    membership : Membership
        Whose trees are the subforests: of the `typical` examples.

    Returns
    -------
    list of ndarray of shape (m,) or (m, k)
    """
    if answers.n_trees >= FEW_TREES:
        return [answers.mean(rows)]
    m = rows.shape[0]
    return [answers.mean(rows, membership, np.full(m, i)) for i in range(membership.n)]
