"""What fitting a classifier makes: models with calibration sets, and calibrators fitted to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import attrs
from attrs.validators import instance_of, optional
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from vennforest._state import (
    array,
    check_array,
    labels,
    number,
    require,
    same_labels,
    stored,
)
from vennforest._validation import FloatArray, IntArray
from vennforest.calibrators import Calibrator
from vennforest.calibrators.pooled import PooledCalibration
from vennforest.classifier.settings import Settings
from vennforest.groups import Grouping
from vennforest.groups.cells import CalibratedGroups, SubModel, calibrate_groups
from vennforest.prior import ShiftedPrior, class_shares
from vennforest.sources import CalibrationExamples, Fold
from vennforest.sources.known_rows import KnownRows


@stored("fitted-classifier")
@attrs.frozen(eq=False)
class FittedClassifier:
    """Fitted models with their calibration sets, and what turns scores into probabilities.

    Attributes
    ----------
    classes : ndarray of shape (k,)
    folds : tuple of Fold
    calibrators : tuple of Calibrator
        One for each fold.
    point_calibrator : PooledCalibration or None
        What makes the probability of the score by the whole model, for all folds; None: the
        calibrators' own merge of their bounds does.
    calibrate_on, calibrate_on_reason : str
        Where the calibration scores came from, and why.
    n_rows : int or None
        How many rows ``fit`` was given; None: not known.
    row_groups : ndarray of shape (n_rows,) or None
        The group of each, where some were given.
    by : CalibratedGroups or None
        Calibrators of groups of objects.
    shift : ShiftedPrior or None
        Class frequencies that were set; None: those of the calibration examples.
    known_rows : KnownRows or None
        By which the rows given to ``fit`` are known again; None: they are not.
    """

    classes: NDArray[Any] = attrs.field(validator=labels)
    folds: tuple[Fold, ...] = attrs.field(validator=instance_of(tuple))
    calibrators: tuple[Calibrator, ...] = attrs.field(validator=instance_of(tuple))
    point_calibrator: PooledCalibration | None = attrs.field(
        validator=optional(instance_of(PooledCalibration))
    )
    calibrate_on: str = attrs.field(validator=instance_of(str))
    calibrate_on_reason: str = attrs.field(validator=instance_of(str))
    n_rows: int | None = attrs.field(default=None, validator=optional(number(1, integer=True)))
    row_groups: IntArray | None = attrs.field(
        default=None, validator=optional(array(None, kinds="i", low=0))
    )
    by: CalibratedGroups | None = attrs.field(
        default=None, validator=optional(instance_of(CalibratedGroups))
    )
    shift: ShiftedPrior | None = attrs.field(
        default=None, validator=optional(instance_of(ShiftedPrior))
    )
    known_rows: KnownRows | None = attrs.field(
        default=None, validator=optional(instance_of(KnownRows))
    )

    def __attrs_post_init__(self) -> None:
        """Refuse models, calibration examples and calibrators that do not belong together."""
        folds, n_features = self.folds, None
        require(folds, "folds must be one or more")
        require(len(folds) == len(self.calibrators), "calibrators must be as many as folds")
        for number_, (fold, calibrator) in enumerate(zip(folds, self.calibrators, strict=True)):
            require(isinstance(fold, Fold), "folds must be Folds")
            require(isinstance(calibrator, Calibrator), "calibrators must be Calibrators")
            self._check_same(calibrator.classes_)
            fold.check_classes(len(self.classes))
            n = len(fold.codes)
            require(calibrator.n_given == n, f"a calibrator must be of {n} examples")
            drawn = getattr(fold.scorer, "n_examples", n)
            require(drawn == n, f"a scorer must leave out one of {n} examples")
            self._check_same(getattr(fold.scorer, "classes", self.classes))
            own = getattr(fold.estimator, "n_features_in_", None)
            n_features = own if number_ == 0 else n_features
            require(own == n_features, f"n_features_in_ must be {n_features} in every fold")
            if fold.rows is not None:
                require(self.n_rows is not None, "n_rows must be known where folds have rows")
                check_array(fold.rows, "rows", (n,), "i", 0, (self.n_rows or 1) - 1)
        if self.point_calibrator is not None:
            self._check_same(self.point_calibrator.classes_)
        if self.row_groups is not None:
            require(len(self.row_groups) == self.n_rows, "row_groups must be of every row")
        if self.by is not None:
            self.by.check_folds(folds, self.classes)
        if self.shift is not None:
            require(len(self.shift.shares) == len(self.classes), "shares must be of every class")

    def _check_same(self, classes: Any) -> None:
        require(same_labels(classes, self.classes), "classes must be the same everywhere")

    @classmethod
    def calibrate(
        cls,
        settings: Settings,
        classes: NDArray[Any],
        folds: Sequence[Fold],
        calibrate_on: str,
        reason: str,
        *,
        grouping: Grouping | None = None,
        **known: Any,
    ) -> Self:
        """Fit a calibrator to each fold, and to each group of objects in it.

        Parameters
        ----------
        settings : Settings
        classes : ndarray of shape (k,)
        folds : sequence of Fold
        calibrate_on, reason : str
        grouping : Grouping, optional
            Groups that are calibrated each by itself; every fold has the group of each example.
        **known
            ``n_rows``, ``row_groups``, ``shift`` and ``known_rows``.

        Raises
        ------
        ValueError
            If the method does not take such scores.
        TypeError
            If the method cannot do what the source asks of it, or a fold lacks the groups.
        """
        settings.check_calibrator(folds)

        def calibrator_of(fold: Fold) -> Calibrator:
            return settings.calibrator_for(fold.estimator).fit(
                fold.scores, classes[fold.codes], sample_weight=fold.weight, classes=classes
            )

        calibrators = [calibrator_of(fold) for fold in folds]
        examples = CalibrationExamples.of(folds)
        # What scores are is known here, and not guessed from those at hand.
        proba = all(hasattr(fold.estimator, "predict_proba") for fold in folds)
        point = None
        if settings.pooled:
            # One pool for the scores of all folds is better than one per fold (docs/measured.md).
            point = PooledCalibration(on="probabilities" if proba else "logits").fit(
                examples.scores,
                classes[examples.codes],
                sample_weight=examples.weight,
                classes=classes,
            )
        groups = None
        if grouping is not None:
            groups = calibrate_groups(grouping, folds, classes, calibrator_of, point)
        return cls(
            classes,
            tuple(folds),
            tuple(calibrators),
            point,
            calibrate_on,
            reason,
            by=groups,
            **known,
        )

    @property
    def prior(self) -> FloatArray:
        """The class frequencies (k,) that probabilities are for."""
        if self.shift is not None:
            return self.shift.shares
        examples = CalibrationExamples.of(self.folds)
        return class_shares(examples.codes, examples.weight, len(self.classes))

    def sub_models(self, X: Any) -> Iterable[SubModel]:
        """Return what calibrates the rows of X, for each set of rows with the same calibrators."""
        points = (self.point_calibrator,) * len(self.folds)
        everything = SubModel(None, self.folds, self.calibrators, points)
        if self.by is None or not _num_samples(X):
            return (everything,)
        return self.by.sub_models(everything, X, _num_samples(X))
