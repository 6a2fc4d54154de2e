"""What a fitted classifier tells of its parts."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from vennforest._loaded import expect, expect_array, expect_number
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators import Calibrator
from vennforest.calibrators.core.bounded import no_bounds
from vennforest.classifier.training_rows import predict_training_rows
from vennforest.multiprobability import Multiprobability
from vennforest.sources import Fold
from vennforest.sources.pipelines import feature_importances


class FittedAttributes:
    """The fitted attributes of a classifier that is made of parts, each with a calibrator."""

    classes_: NDArray[Any]
    _parts: list[Fold]
    _calibrators: list[Calibrator]
    _points: list[Calibrator | None]
    _n_rows: int
    _row_groups: IntArray | None

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

    @property
    def oob_probability_(self) -> FloatArray:
        """Probabilities of the rows given to ``fit``, each without its own label, (n, k).

        Each row is scored by models that did not see it: by the members of the ensemble that left
        it out of bag, the model of the fold that it was left out of, or the model that it was held
        out from or that is frozen. The calibrator answers without the row's label, and without
        its group (Venn and Venn–Abers leave it out exactly, others are fitted again five times).
        NaN for rows that no such model scored, such as those that a held-out part left for
        training. Computed at each access.
        """
        return self._of_training_rows()[1]

    @property
    def oob_multiprobability_(self) -> Multiprobability:
        """Bounds of the rows given to ``fit``, each without its own label: see the probability."""
        bounds, _ = self._of_training_rows()
        if bounds is None:
            raise AttributeError(no_bounds(self.calibrators_[0]))
        return bounds

    @property
    def feature_importances_(self) -> FloatArray:
        """The estimator's own importance of each column, (d,); the mean over several models."""
        each = [feature_importances(part.estimator) for part in self._fitted()]
        mean: FloatArray = np.mean(each, axis=0)
        return mean

    def _of_training_rows(self) -> tuple[Multiprobability | None, FloatArray]:
        parts = self._fitted()
        if self.__dict__.get("calibrate_on_") == "training":
            raise AttributeError(
                'a model with calibrate_on="training" has seen every row: it predicts no training '
                'row honestly; use calibrate_on="oob" or "cv"'
            )
        if "_n_rows" not in self.__dict__ or any(part.rows is None for part in parts):
            raise AttributeError(
                "this model does not know which of the rows given to fit its calibration examples "
                "are: it was saved by an earlier version, or its source does not say (Fold.rows)"
            )
        return self._predict_training_rows()

    def _predict_training_rows(self) -> tuple[Multiprobability | None, FloatArray]:
        return predict_training_rows(
            self._parts,
            self._calibrators,
            self._points,
            self.classes_,
            self._n_rows,
            self._row_groups,
        )

    def _check_loaded_rows(self) -> None:
        """Refuse rows that there are none of; older files say nothing of them."""
        if "_n_rows" not in self.__dict__:
            expect(all(part.rows is None for part in self._parts), "_n_rows must be there")
            return
        n = self._n_rows
        expect_number(n, "_n_rows", 1, integer=True)
        if self._row_groups is not None:
            expect_array(self._row_groups, "_row_groups", (n,), "i", 0)
        for part in self._parts:
            if part.rows is not None:
                expect_array(part.rows, "rows", (len(part.codes),), "i", 0, n - 1)

    def _fitted(self) -> list[Fold]:
        if "_parts" not in self.__dict__:
            raise AttributeError("a CalibratedClassifier has this after fit")
        return self._parts

    def _only(self, name: str, things: list[Any]) -> Any:
        if len(things) != 1:
            raise AttributeError(f"with one {name} a fold there is {name}s_, not {name}_")
        return things[0]
