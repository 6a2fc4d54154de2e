"""The options of ``vennforest report``."""

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
    Trees,
    Trusted,
    Types,
    argument,
    command,
    option,
)

COMPARED = ", ".join(name for name in METHODS if name not in ("none", "pooled"))


@command("report_run")
@dataclass(frozen=True)
class Report(Options):
    """Compare ways of calibrating a forest on a table, and write a report.

    With --probability or --model nothing is trained.
    """

    data: Annotated[Path | None, argument("DATA", TABLE), Input("table")] = None
    target: OptionalTarget = None
    output: Page = Path("report.html")
    example: Annotated[
        str | None,
        option("Instead of DATA: breast-cancer, digits, iris, wine.", metavar="NAME"),
    ] = None
    probability: Annotated[
        list[str] | None,
        option(f"Judge this column of probabilities {SEVERAL}.", metavar="COLUMN"),
    ] = None
    model: Annotated[
        Path | None, option("Judge this model or calibrator.", metavar="FILE"), Input("model")
    ] = None
    scores: ScoreColumns = None
    trusted: Trusted = None
    estimator: Estimator = None
    test: Annotated[
        Path | None,
        option("Train on DATA, evaluate on this table.", metavar="TABLE"),
        Input("table to test on"),
    ] = None
    groups: Groups = None
    time: Annotated[
        str | None, option("Predict each row by a model of earlier rows.", metavar="COLUMN")
    ] = None
    by: Annotated[
        list[str] | None,
        option(f"Report on each value separately {SEVERAL}.", metavar="COLUMN"),
    ] = None
    positive: Annotated[
        str | None, option("The positive class.", metavar="LABEL", default="the rarer")
    ] = None
    decimal: Decimal = None
    drop: Drop = None
    keep: Keep = None
    types: Types = None
    missing: Missing = None
    methods: Annotated[str | None, option(f"{COMPARED}.", metavar="A,B,…", default="all")] = None
    costs: Annotated[
        str | None,
        option("What decisions cost, as JSON or a file.", metavar="JSON"),
        Input("file of costs"),
    ] = None
    tolerance: Annotated[
        float | None,
        option("Percentage points that may be off.", metavar="POINTS", default="2"),
    ] = None
    rows: Annotated[bool, option("List single rows with their values.", "--rows")] = False
    folds: Annotated[int, option("Folds of the cross-validation.", lowest=2)] = 10
    trees: Trees = 300
    seed: Seed = 0
    jobs: Jobs = -1
