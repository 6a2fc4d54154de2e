"""Evaluate a data set by cross-validation and write what came out as one web page."""

from vennforest.decisions import CostMatrix
from vennforest.report.evaluate import evaluate
from vennforest.report.evaluation import Evaluation
from vennforest.report.measures import Measures
from vennforest.report.verdict import Verdict

__all__ = ["CostMatrix", "Evaluation", "Measures", "Verdict", "evaluate"]
