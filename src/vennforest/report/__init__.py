"""Compare calibration methods on a data set, or evaluate existing probabilities.

`evaluate` trains and compares; `check` judges. Both return an `Evaluation`: data frames, a verdict,
and one web page of them.
"""

from vennforest._messages import needed
from vennforest.decisions import CostMatrix

needed("pandas", "reports")

from vennforest.report.check import check  # noqa: E402
from vennforest.report.evaluate import evaluate  # noqa: E402
from vennforest.report.evaluation import Evaluation  # noqa: E402
from vennforest.report.verdict import Verdict  # noqa: E402

__all__ = ["CostMatrix", "Evaluation", "Verdict", "check", "evaluate"]
