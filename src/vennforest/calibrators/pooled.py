"""A weighted mean of several calibrators, each weighted by how well it does on folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from sklearn.base import clone

from vennforest._validation import FloatArray, InputError, IntArray, check_count
from vennforest.calibrators._folds import Cells
from vennforest.calibrators._log_scores import On, ToProbabilities
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.beta import BetaCalibration
from vennforest.calibrators.matrix import MatrixScaling
from vennforest.calibrators.platt import PlattScaling
from vennforest.calibrators.spline import SplineCalibration

PRIOR = 0.5
"""Examples that each member counts to have predicted before any is seen."""

MAX_STEPS = 1_000
"""Steps of expectation and maximisation."""

TOLERANCE = 1e-9
"""Largest change of a weight after which they are over."""


def default_members(n_classes: int) -> dict[str, Calibrator]:
    """Return the members that ``members="auto"`` stands for, by name."""
    return {
        "platt": PlattScaling(on="logit"),
        "beta": BetaCalibration(),
    }


class PooledCalibration(Calibrator):
    """A pool: the weighted mean of what several calibrators say.

    ``p = sum_m weight_m p_m``. Each member is fitted to all calibration examples; the weights are
    those under which the members, fitted to the rest, have predicted the labels of each fold best
    (stacking, Wolpert 1992; the linear opinion pool).

    Parameters
    ----------
    members : "auto", dict, or sequence of calibrators, default="auto"
        What is pooled. Names become the keys of the weights. ``"auto"``: see the notes.
    n_folds : int, default=4
        At least 2.
    on : {"auto", "probabilities", "logits"}, default="auto"
        What the scores are: see `MatrixScaling`. Decision values reach the members as
        probabilities.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The labels, sorted.
    members_ : dict of str to Calibrator
        The fitted members.
    weights_ : dict of str to float
        Their weights, not below 0, with sum 1.
    on_ : {"probabilities", "logits"}
        What the calibration scores were taken for.
    """

    members_: dict[str, Calibrator]
    weights_: dict[str, float]

    def __init__(
        self,
        members: Literal["auto"] | dict[str, Calibrator] | Sequence[Calibrator] = "auto",
        n_folds: int = 4,
        on: On = "auto",
    ) -> None:
        self.members = members
        self.n_folds = n_folds
        self.on = on

    def _fit(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> None:
        check_count(self.n_folds, "n_folds", 2)
        members = self._named_members()
        k = len(self.classes_)
        self._to_probabilities = ToProbabilities.fit(self.on, scores, codes, weight, k)
        self.on_ = self._to_probabilities.on
        cells = Cells.of(self._to_probabilities(scores), codes, weight)
        weights = pool_weights(*held_out(members, cells, k, self.n_folds))
        self.members_ = {name: fit_member(one, cells, k) for name, one in members.items()}
        self.weights_ = dict(zip(members, weights.tolist(), strict=True))

    def _named_members(self) -> dict[str, Calibrator]:
        if isinstance(self.members, str):
            if self.members != "auto":
                raise InputError(
                    f'members must be "auto" or calibrators, got {self.members!r}'
                )
            return default_members(len(self.classes_))
        return {}

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        p = self._to_probabilities(scores)
        total = np.zeros((len(scores), len(self.classes_)))
        for name, weight in self.weights_.items():
            if weight > 0:
                total += weight * self.members_[name]._predict_proba(p)
        total /= total.sum(axis=1, keepdims=True)
        return total
