"""Few trees: what was fitted to out-of-bag scores is read at scores by as few trees as they are.

An out-of-bag score is the mean over about 37% of the trees. With 10 trees these are 4, whose mean
is so much noisier than that of all 10 that a map fitted to it is too flat for the latter. From 20
trees on the averaging costs more than that does (``docs/results/defaults.md``).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import attrs
import numpy as np

from vennforest._state import require
from vennforest._validation import FloatArray, IntArray
from vennforest.forest import Answers, Members, Membership

FEW_TREES = 20
"""Number of trees from which on a new object's point is that of its score by all of them."""

SUBFORESTS = 20
"""Subforests that a point is averaged over with fewer."""


def typical(n: int) -> IntArray:
    """Return calibration examples whose trees are the subforests: equally spaced, each once."""
    return np.unique(np.linspace(0, n - 1, SUBFORESTS).round().astype(np.intp))


@attrs.frozen(eq=False, slots=False)
class EnsembleScorer:
    """Base of scorers that score new objects with members of an ensemble behind transformers.

    Attributes
    ----------
    transformer : Pipeline or None
        What comes before the ensemble.
    members : Members
        The ensemble.
    """

    transformer: Any = attrs.field()
    members: Members = attrs.field(validator=attrs.validators.instance_of(Members))

    def __attrs_post_init__(self) -> None:
        sound = self.transformer is None or hasattr(self.transformer, "transform")
        require(sound, "transformer must transform")

    @property
    def answers(self) -> Answers:
        """What the members answer."""
        return self.members.answers

    @property
    @abstractmethod
    def _typical(self) -> Membership:
        """Which members did not see the `typical` calibration examples."""

    def _rows(self, X: Any) -> Any:
        """Return the rows of X as ``answers`` takes them."""
        return self.answers.check(X if self.transformer is None else self.transformer.transform(X))

    def whole(self, X: Any) -> FloatArray:
        """Return the scores of the rows of X by every member, (m,) or (m, k)."""
        return self.answers.mean(self._rows(X))

    @property
    def small_ensemble(self) -> bool:
        """Whether a point takes scores by subforests."""
        return self.answers.n_trees < FEW_TREES

    def point_scores(self, X: Any) -> list[FloatArray]:
        """Return the scores that a point is averaged over where members are few.

        Each (m,) or (m, k), by those that did not see one of some examples.
        """
        rows = self._rows(X)
        subforests = self._typical
        m = rows.shape[0]
        return [self.answers.mean(rows, subforests, np.full(m, i)) for i in range(subforests.n)]
