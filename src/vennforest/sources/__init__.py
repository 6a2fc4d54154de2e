"""From data to calibration scores: where the scores come from."""

from vennforest.sources.base import (
    CalibrationExamples,
    Fold,
    Joined,
    ModelScorer,
    SampledScores,
    Scorer,
    Source,
    TrainingData,
    model_scores,
    whole_scores,
    with_seed,
)
from vennforest.sources.ensembles import is_bagged
from vennforest.sources.holdout_cv import Folds, Frozen, Holdout, Training
from vennforest.sources.honest import HonestForest
from vennforest.sources.out_of_bag import OutOfBag, Subforest
from vennforest.sources.partitions import Partitions

__all__ = [
    "CalibrationExamples",
    "Fold",
    "Folds",
    "Frozen",
    "Holdout",
    "HonestForest",
    "Joined",
    "ModelScorer",
    "OutOfBag",
    "Partitions",
    "SampledScores",
    "Scorer",
    "Source",
    "Subforest",
    "Training",
    "TrainingData",
    "is_bagged",
    "model_scores",
    "whole_scores",
    "with_seed",
]
