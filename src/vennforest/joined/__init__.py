"""New objects that join the bags of a forest: ``subforest="joined"``, and honest trees.

All that serves this one setting is here, see the README.md beside this file.
"""

from vennforest.joined.bounds import predict_joined, takes_joined
from vennforest.joined.honest import HonestForest
from vennforest.joined.scorer import Joined, JoinedBlock, JoinedScorer

__all__ = [
    "HonestForest",
    "Joined",
    "JoinedBlock",
    "JoinedScorer",
    "predict_joined",
    "takes_joined",
]
