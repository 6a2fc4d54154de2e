"""No calibration: the scores are the probabilities."""

from __future__ import annotations

from vennforest._state import stored
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators.core.formula import Terms, summed
from vennforest.calibrators.core.interface import Calibrator, Nothing
from vennforest.calibrators.core.scores import ANY_SCORES, check_probabilities

WAY_OUT = f' for method="none" ({ANY_SCORES})'


@stored("uncalibrated")
class Uncalibrated(Calibrator):
    """The raw scores as probabilities, for comparison with what calibration makes of them."""

    _learns = Nothing

    def _fit(
        self, scores: FloatArray, codes: IntArray, weight: FloatArray | None, k: int
    ) -> Nothing:
        check_probabilities(scores, WAY_OUT)
        return Nothing()

    @property
    def _takes_probabilities(self) -> bool:
        return True

    def _formula(self, scores: Terms) -> Terms:
        return scores if len(scores) == 1 else tuple(one / summed(scores) for one in scores)

    def _predict_proba(self, scores: FloatArray) -> FloatArray:
        return check_probabilities(scores, WAY_OUT)
