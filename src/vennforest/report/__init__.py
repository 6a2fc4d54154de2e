"""Compare calibration methods on a data set, or evaluate existing probabilities.

`evaluate` trains and compares; `check` judges. Both return an `Evaluation`: data frames, a verdict,
and one web page of them.
"""

from vennforest.decisions import CostMatrix
from vennforest.report.check import check
from vennforest.report.evaluate import evaluate
from vennforest.report.evaluation import Evaluation
from vennforest.report.words import Verdict

__all__ = ["CostMatrix", "Evaluation", "Verdict", "check", "evaluate"]
