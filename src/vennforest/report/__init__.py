"""Evaluate predictions, a model or a data set, and write what came out as one web page.

The module itself can be called: ``vennforest.report(y, predictions)`` is
``vennforest.report.report(y, predictions)``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from vennforest.decisions import CostMatrix
from vennforest.report.evaluate import evaluate, report, report_model, report_scores
from vennforest.report.evaluation import Evaluation
from vennforest.report.measures import Measures, Verdict

__all__ = [
    "CostMatrix",
    "Evaluation",
    "Measures",
    "Verdict",
    "evaluate",
    "report",
    "report_model",
    "report_scores",
]


class _CallableModule(ModuleType):
    """The package, which may be called like the function of its name."""

    def __call__(self, *args: Any, **options: Any) -> Evaluation:
        return report(*args, **options)


sys.modules[__name__].__class__ = _CallableModule
