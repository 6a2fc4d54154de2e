"""Forests in flat arrays, and who is out of bag for which tree."""

from vennforest.forest.leaves import LeafIndex
from vennforest.forest.membership import Membership
from vennforest.forest.packed import PackedForest

__all__ = ["LeafIndex", "Membership", "PackedForest"]
