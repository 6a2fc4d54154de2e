"""The tables that the papers print, as data: one row a number.

Tables hold facts alone. The texts at hand came from scans: what had to be restored says so in
its note, and every restored number agrees with the sums, means and differences printed around it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from vennforest._validation import check_option

Paper = Literal["johansson2018", "bostrom2008", "vovk2014", "niculescu2005"]
"""The papers' short names."""

MEAN = "(mean)"
"""What stands for a data set where a number is the mean over all of them."""

MEAN_RANK = "(mean rank)"
"""What stands for a data set where a number is the mean rank over them."""

ALL = "(all)"
"""What stands for a data set where a number speaks of all of them together."""

BETTER = "significantly better than "
"""What a measure begins with that is 1 or 0: whether a method is so, as tested."""


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
        The method as printed; with Vovk & Petej the calibration method and, in brackets, the
        classifier: ``"SVA (NB)"``. Empty where the number describes a data set.
    measure : str
        What was measured. ``"significantly better than …"`` is 1 or 0.
    value : float
        The number; infinity where infinity is printed.
    note : str
        How it was restored, or what it rests on; empty as a rule.
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
    paper : {"johansson2018", "bostrom2008", "vovk2014", "niculescu2005"}
        The paper.

    Raises
    ------
    ValueError
        If ``paper`` is none of these.
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
