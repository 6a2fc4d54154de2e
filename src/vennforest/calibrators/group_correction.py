"""What a group adds to a map that was fitted to all groups together."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from vennforest._state import stored
from vennforest._validation import FloatArray, IntArray, require
from vennforest.calibrators.core.formula import Terms
from vennforest.calibrators.core.interface import Calibrator, Learnt
from vennforest.calibrators.maps.softmax import MatrixScaling

RIDGES = (3.0, 10.0, 30.0, 100.0, 1000.0)
"""How strongly a group's map may be shrunk towards the overall one, in examples."""

FOLDS = 4
"""A ridge is judged on so many folds; from `MANY` examples on, on the first alone."""

MANY = 10_000


def correction(ridge: float) -> MatrixScaling:
    """Return the unfitted map from the overall map's probabilities to a group's."""
    return MatrixScaling("shared", ridge=ridge, shrinkage=0, on="probabilities")


def choose_ridge(
    p: FloatArray, codes: IntArray, weight: FloatArray, groups: Sequence[IntArray]
) -> float:
    """Return the ridge under which corrections of held-out examples have the least log loss.

    Of probabilities (n, k), class numbers and weights (n,), and the numbers of each group's
    examples, whose order makes the folds.
    """
    k = p.shape[1]
    losses = np.zeros(len(RIDGES))
    folds = 1 if len(p) >= MANY else FOLDS
    for rows in groups:
        fold = np.arange(len(rows)) % FOLDS
        for held in range(folds):
            own, rest = rows[fold == held], rows[fold != held]
            if not len(own) or not len(rest):
                continue
            for r, ridge in enumerate(RIDGES):
                model = correction(ridge).fit(
                    p[rest], codes[rest], sample_weight=weight[rest], classes=range(k)
                )
                said = model.predict_proba(p[own])[np.arange(len(own)), codes[own]]
                losses[r] -= weight[own] @ np.log(np.maximum(said, np.finfo(float).tiny))
    best = np.flatnonzero(losses <= losses.min() + 1e-9)
    return RIDGES[int(best[-1])]


@stored("corrected-map")
@attrs.frozen(eq=False)
class CorrectedMap(Learnt):
    """What a group's labels add to the overall map."""

    correction: MatrixScaling = attrs.field(validator=attrs.validators.instance_of(MatrixScaling))

    def check_classes(self, k: int) -> None:
        """Refuse a correction of other classes."""
        require(len(self.correction.classes_) == k, f"correction must be of {k} classes")


@stored("group-correction")
class GroupCorrection(Calibrator):
    """The overall map, corrected by a slope and intercepts that one group's labels ask for.

    The correction is `MatrixScaling` with a shared slope on the logarithms of what the overall map
    says, with a ridge that keeps it near 1 and 0: a group of few examples has the map of all, one
    of many has its own.

    Parameters
    ----------
    base : Calibrator
        Fitted to all groups together; not fitted again.
    ridge : float
        Above 0; see `choose_ridge`.
    """

    _learns = CorrectedMap

    def __init__(self, base: Calibrator, ridge: float = 10.0) -> None:
        self.base = base
        self.ridge = ridge

    def _fit(
        self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> CorrectedMap:
        p = self.base.predict_proba(scores)
        fitted = correction(self.ridge).fit(p, codes, sample_weight=weight, classes=range(k))
        return CorrectedMap(fitted)

    def _formula(self, scores: Terms) -> Terms:
        fitted: CorrectedMap = self._learnt
        return fitted.correction._formula(self.base._formula(scores))

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        fitted: CorrectedMap = self._learnt
        return fitted.correction.predict_proba(self.base.predict_proba(scores))

    def _check_parameters(self) -> None:
        require(isinstance(self.base, Calibrator), "base must be a calibrator")
        require(len(self.base.classes_) == len(self.classes_), "base must be of the same classes")
