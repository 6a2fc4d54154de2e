"""Forests in flat arrays, who is out of bag for which tree, and the kinds of bagged ensembles."""

from vennforest.forest.kinds import (
    Members,
    kind_of,
)
from vennforest.forest.membership import Bag, BagsError, Membership
from vennforest.forest.mixed import MixedForestClassifier
from vennforest.forest.packed import Answers, PackedForest

__all__ = [
    "Answers",
    "Bag",
    "BagsError",
    "Members",
    "Membership",
    "MixedForestClassifier",
    "PackedForest",
    "kind_of",
]
