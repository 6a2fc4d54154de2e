"""New objects that join the bags of a forest: ``subforest="joined"``, and honest trees.

All that serves this one setting is here, see the README.md beside this file.
"""

from vennforest.joined.honest import HonestForest

__all__ = ["HonestForest"]
