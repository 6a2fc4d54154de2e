"""What a group adds to a map that was fitted to everybody."""

from __future__ import annotations

from vennforest._loaded import expect
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.matrix import MatrixScaling

RIDGE = 10.0
"""How strongly a group's map is drawn to everybody's, in examples; of 1, 3 and 10 the best on six
groupings of the adult data with 2,000 and 12,000 rows."""


def correction() -> MatrixScaling:
    """Return the unfitted map from everybody's probabilities to a group's."""
    return MatrixScaling("shared", ridge=RIDGE, shrinkage=0, on="probabilities")


class GroupCorrection(Calibrator):
    """Everybody's map, corrected by a slope and intercepts that one group's labels ask for.

    The correction is `MatrixScaling` with a shared slope on the logarithms of what everybody's map
    says, with a ridge that keeps it near 1 and 0: a group of few examples has the map of all, one
    of many has its own.

    Parameters
    ----------
    base : Calibrator
        Fitted to everybody; not fitted again.
    """

    _correction: MatrixScaling

    def __init__(self, base: Calibrator) -> None:
        self.base = base

    def _fit(self, scores: FloatArray, codes: IntArray, weight: FloatArray | None) -> None:
        self._correction = correction().fit(
            self.base.predict_proba(scores),
            codes,
            sample_weight=weight,
            classes=range(len(self.classes_)),
        )

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        return self._correction.predict_proba(self.base.predict_proba(scores))

    def check_loaded(self) -> None:
        """Refuse maps of other classes.

        Raises
        ------
        ValueError
            If they are.
        """
        super().check_loaded()
        expect(isinstance(self.base, Calibrator), "base must be a calibrator")
        expect(len(self.base.classes_) == len(self.classes_), "base must be of the same classes")
        expect(isinstance(self._correction, MatrixScaling), "_correction must be MatrixScaling")
        expect(
            len(self._correction.classes_) == len(self.classes_),
            "_correction must be of the same classes",
        )
