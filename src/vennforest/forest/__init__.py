"""Forests in flat arrays, and who is out of bag for which tree."""

from vennforest.forest.membership import Membership
from vennforest.forest.packed import PackedForest

__all__ = ["Membership", "PackedForest"]
