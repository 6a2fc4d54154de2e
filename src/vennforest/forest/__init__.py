"""Forests in flat arrays, and which examples are out of bag for which tree."""

from vennforest.forest.bags import (
    FORESTS,
    BagsError,
    Membership,
    is_ensemble,
    leaves_rows_out,
    read_membership,
)
from vennforest.forest.members import Members, PackedForest, Votes
from vennforest.forest.mixed import MixedForestClassifier

__all__ = [
    "FORESTS",
    "BagsError",
    "Members",
    "Membership",
    "MixedForestClassifier",
    "PackedForest",
    "Votes",
    "is_ensemble",
    "leaves_rows_out",
    "read_membership",
]
