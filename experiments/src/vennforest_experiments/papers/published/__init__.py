"""The numbers printed in the papers' tables, as data: one row per number.

The available texts were scans: a number that had to be restored says so in its note, and agrees
with the sums, means and differences printed around it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from vennforest._validation import check_option

Paper = Literal["johansson2018", "bostrom2008", "vovk2014", "niculescu2005", "shaker2025"]
"""The papers' short names."""

MEAN = "(mean)"
"""In place of a data set: the number is a mean over all of them."""

MEAN_RANK = "(mean rank)"
"""In place of a data set: the number is a mean rank over all of them."""

ALL = "(all)"
"""In place of a data set: the number is about all of them together."""

BETTER = "significantly better than "
"""How a measure begins that is 1 if the method passes this test against another, else 0."""


@dataclass(frozen=True)
class Printed:
    """One printed number.

    Parameters
    ----------
    table : str
        The number of the table, or ``"text"``.
    dataset : str
        The data set as printed, or ``"(mean)"``, ``"(mean rank)"``, ``"(all)"``.
    method : str
        The method as printed; for Vovk & Petej the calibration method and, in brackets, the
        classifier: ``"SVA (NB)"``. Empty if the number describes a data set.
    measure : str
        The measure. ``"significantly better than …"`` is 1 or 0.
    value : float
        The number; infinity if infinity is printed.
    note : str
        How it was restored, or what it is based on; usually empty.
    """

    table: str
    dataset: str
    method: str
    measure: str
    value: float
    note: str


@cache
def load(paper: Paper) -> tuple[Printed, ...]:
    """Return every number of the paper's tables, in printed order.

    Parameters
    ----------
    paper : {"johansson2018", "bostrom2008", "vovk2014", "niculescu2005", "shaker2025"}
        The paper.

    Raises
    ------
    ValueError
        If ``paper`` is not one of these.
    """
    check_option(paper, Paper, "paper")
    text = resources.files(__package__).joinpath(f"{paper}.csv").read_text(encoding="utf-8")
    return tuple(
        Printed(
            table=row["table"],
            dataset=row["dataset"],
            method=row["method"],
            measure=row["measure"],
            value=float(row["value"]),
            note=row["note"],
        )
        for row in csv.DictReader(text.splitlines())
    )
