"""Forests in flat arrays, who is out of bag for which tree, and the kinds of forests there are."""

from vennforest.forest.kinds import (
    ForestKind,
    Members,
    forest_kinds,
    kind_of,
    register_forest,
)
from vennforest.forest.membership import Bag, BagsError, Membership
from vennforest.forest.mixed import MixedForestClassifier
from vennforest.forest.packed import Answers, PackedForest

__all__ = [
    "Answers",
    "Bag",
    "BagsError",
    "ForestKind",
    "Members",
    "Membership",
    "MixedForestClassifier",
    "PackedForest",
    "forest_kinds",
    "kind_of",
    "register_forest",
]
