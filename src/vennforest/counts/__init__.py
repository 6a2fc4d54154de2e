"""How many examples of each class there are at each score: the form in which parts add up."""

from vennforest.counts.grid import ScoreGrid
from vennforest.counts.score_counts import ScoreCounts, ScoreTable

__all__ = ["ScoreCounts", "ScoreGrid", "ScoreTable"]
