"""How much the members of an ensemble differ: the noise of a score that is their mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from vennforest._validation import FloatArray, IntArray
from vennforest.forest import Membership
from vennforest.forest.kinds import Answers

EXAMPLES = 512
"""Calibration examples from which the variance between members is taken."""


def member_variance(
    answers: Answers, X: Any, membership: Membership, kept: IntArray, scores: FloatArray
) -> float:
    """Return the variance between the members' answers to a row, as a share of s (1 - s).

    1 where every member answers 0 or 1, as fully grown trees do; measured at some calibration
    examples, on the members that did not see them, and pooled over rows and classes.

    Parameters
    ----------
    answers : Answers
    X : array-like of shape (n_training, d)
        The training rows.
    membership : Membership
    kept : ndarray of shape (n,)
        Which of them are calibration examples.
    scores : ndarray of shape (n,) or (n, k)
        Their out-of-bag scores.
    """
    chosen = np.unique(np.linspace(0, len(kept) - 1, EXAMPLES).astype(np.intp))
    members = membership.dense()[:, kept[chosen]].T.astype(np.float64)
    count = members.sum(axis=1)
    several = count > 1
    own = scores[chosen]
    every = answers.per_member(answers.check(_safe_indexing(X, kept[chosen])))
    if every.ndim == 3:
        members, count, several = (
            members[:, :, None],
            count[:, None],
            np.repeat(several[:, None], every.shape[2], 1),
        )
    squares = (members * (every - own[:, None]) ** 2).sum(axis=1) / np.maximum(count - 1, 1)
    most = float((own * (1 - own))[several].sum())
    return float(squares[several].sum()) / most if most > 0 else 0.0
