"""No calibration: the scores are the probabilities."""

from __future__ import annotations

from vennforest.calibrators.base import Calibrator
from vennforest.calibrators.formula import Terms, divided_by_sum
from vennforest.counts import ScoreCounts


class Uncalibrated(Calibrator):
    """The raw scores as probabilities, for comparison with calibrated ones."""

    title = "Uncalibrated"
    _takes_probabilities = True

    def _fit(self, counts: ScoreCounts) -> None:
        self._check_probabilities(counts.scores)

    def _formula(self, scores: Terms) -> Terms:
        return scores if len(scores) == 1 else divided_by_sum(scores)
