"""From data to calibration scores: where the scores come from."""

from vennforest.sources.base import (
    CalibrationExamples,
    Fold,
    ModelScorer,
    SampledScores,
    Scorer,
    Source,
    TrainingData,
    is_bagged,
    model_scores,
    whole_scores,
    with_seed,
)
from vennforest.sources.holdout_cv import Folds, Frozen, Holdout, Training
from vennforest.sources.out_of_bag import OutOfBag, Subforest
from vennforest.sources.registry import SourceSettings, make_source

__all__ = [
    "CalibrationExamples",
    "Fold",
    "Folds",
    "Frozen",
    "Holdout",
    "ModelScorer",
    "OutOfBag",
    "SampledScores",
    "Scorer",
    "Source",
    "SourceSettings",
    "Subforest",
    "Training",
    "TrainingData",
    "is_bagged",
    "make_source",
    "model_scores",
    "whole_scores",
    "with_seed",
]
