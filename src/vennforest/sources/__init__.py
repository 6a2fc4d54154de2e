"""From data to calibration scores: where the scores come from."""

from vennforest.sources.base import Draw, Part, TrainingData, with_seed
from vennforest.sources.out_of_bag import Subforest, is_bagged, out_of_bag
from vennforest.sources.routing import route
from vennforest.sources.whole_model import folds, frozen, holdout, training

__all__ = [
    "Draw",
    "Part",
    "Subforest",
    "TrainingData",
    "folds",
    "frozen",
    "holdout",
    "is_bagged",
    "out_of_bag",
    "route",
    "training",
    "with_seed",
]
