"""The options of ``vennforest report`` and ``vennforest check``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vennforest._files import Input
from vennforest.commands.options import (
    METHODS,
    SEVERAL,
    TABLE,
    Decimal,
    Drop,
    Estimator,
    Groups,
    Jobs,
    Keep,
    Missing,
    OptionalTarget,
    Options,
    Page,
    ScoreColumns,
    Seed,
    Target,
    Trees,
    Trusted,
    Types,
    argument,
    command,
    option,
)

COMPARED = ", ".join(name for name in METHODS if name not in ("none", "pooled"))

By = Annotated[
    list[str] | None, option(f"Report on each value separately {SEVERAL}.", metavar="COLUMN")
]
Positive = Annotated[
    str | None, option("The positive class.", metavar="LABEL", default="the rarer")
]
Costs = Annotated[
    str | None,
    option("What decisions cost, as JSON or a file.", metavar="JSON"),
    Input("file of costs"),
]
Tolerance = Annotated[
    float | None, option("Percentage points that may be off.", metavar="POINTS", default="2")
]


@command("report")
@dataclass(frozen=True)
class Report(Options):
    """Train models on a table, compare ways of calibrating them, and write a report."""

    data: Annotated[Path | None, argument("DATA", TABLE), Input("table")] = None
    target: OptionalTarget = None
    output: Page = Path("report.html")
    example: Annotated[
        str | None, option("Instead of DATA: breast-cancer, digits, iris, wine.", metavar="NAME")
    ] = None
    estimator: Estimator = None
    methods: Annotated[str | None, option(f"{COMPARED}.", metavar="A,B,…", default="all")] = None
    groups: Groups = None
    time: Annotated[
        str | None, option("Predict each row by a model of earlier rows.", metavar="COLUMN")
    ] = None
    by: By = None
    positive: Positive = None
    costs: Costs = None
    tolerance: Tolerance = None
    decimal: Decimal = None
    drop: Drop = None
    keep: Keep = None
    types: Types = None
    missing: Missing = None
    folds: Annotated[int, option("Folds of the cross-validation.", lowest=2)] = 5
    trees: Trees = 300
    seed: Seed = 0
    jobs: Jobs = -1


@command("check")
@dataclass(frozen=True)
class Check(Options):
    """Judge probabilities in a column, or a model on rows it has not seen, and write a report.

    PREDICTIONS is a table with --probability, or a model or calibrator whose rows are in DATA.
    Nothing is trained.
    """

    predictions: Annotated[
        Path, argument("PREDICTIONS", "A table, a model or a calibrator."), Input("predictions")
    ]
    target: Target
    data: Annotated[Path | None, argument("DATA", f"For a model: {TABLE[2:]}"), Input("table")] = (
        None
    )
    output: Page = Path("check.html")
    probability: Annotated[
        list[str] | None,
        option(f"Probabilities of a class or of a model {SEVERAL}.", metavar="COLUMN"),
    ] = None
    scores: ScoreColumns = None
    groups: Groups = None
    by: By = None
    positive: Positive = None
    costs: Costs = None
    tolerance: Tolerance = None
    decimal: Decimal = None
    trusted: Trusted = None
    seed: Seed = 0
