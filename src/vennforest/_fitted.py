"""What a fitted classifier tells of its parts."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from vennforest._validation import FloatArray
from vennforest.calibrators import Calibrator
from vennforest.sources import Part


class FittedAttributes:
    """The fitted attributes of a classifier that is made of parts, each with a calibrator."""

    classes_: NDArray[Any]
    _parts: list[Part]
    _calibrators: list[Calibrator]
    _points: list[Calibrator | None]

    @property
    def estimator_(self) -> Any:
        """The fitted model."""
        return self._only("estimator", [part.estimator for part in self._fitted()])

    @property
    def estimators_(self) -> list[Any]:
        """The fitted models, one a fold."""
        return [part.estimator for part in self._fitted()]

    @property
    def calibrator_(self) -> Calibrator:
        """The fitted calibrator."""
        self._fitted()
        return cast("Calibrator", self._only("calibrator", self._calibrators))

    @property
    def calibrators_(self) -> list[Calibrator]:
        """The fitted calibrators, one a fold."""
        self._fitted()
        return self._calibrators

    @property
    def point_calibrator_(self) -> Calibrator:
        """The fitted map from scores to probabilities, one for all folds."""
        self._fitted()
        if self._points[0] is None:
            raise AttributeError(
                'a CalibratedClassifier has a point calibrator with merge="pooled"'
            )
        return self._points[0]

    @property
    def calibration_scores_(self) -> FloatArray:
        """The calibration scores, (n_calibration,) or (n_calibration, k), fold after fold."""
        parts = self._fitted()
        return parts[0].scores if len(parts) == 1 else np.concatenate([p.scores for p in parts])

    @property
    def calibration_y_(self) -> NDArray[Any]:
        """The labels of the calibration examples, (n_calibration,), fold after fold."""
        labels: NDArray[Any] = self.classes_[np.concatenate([p.codes for p in self._fitted()])]
        return labels

    def _fitted(self) -> list[Part]:
        if "_parts" not in self.__dict__:
            raise AttributeError("a CalibratedClassifier has this after fit")
        return self._parts

    def _only(self, name: str, things: list[Any]) -> Any:
        if len(things) != 1:
            raise AttributeError(f"with one {name} a fold there is {name}s_, not {name}_")
        return things[0]
