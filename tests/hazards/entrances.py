"""Faults that come in by a search, a pipeline, a command, Dask or Spark."""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from hazards.audits import FOUND, nearly_doubled
from hazards.table import (
    REFUSED,
    RIGHT,
    WARNED,
    Hazard,
    Rng,
    Run,
    Table,
    coin,
    doubled,
    one_class,
    spelled,
)

QUICK = ("--folds", 2, "--trees", 30, "--methods", "platt", "--jobs", 1)
INCOMPLETE = [None if j < 9 else f"p{j // 4}" for j in range(200)]


def command(*words: object) -> None:
    """Run a command; what it warns of becomes a warning, and its failure an error."""
    pytest.importorskip("typer")
    from vennforest.cli import main

    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in words])
    if code:
        raise ValueError(printed.getvalue())
    notes = [n for n in printed.getvalue().splitlines() if n.startswith(("Note", "Warning"))]
    if notes:
        warnings.warn("\n".join(notes), UserWarning, stacklevel=2)


def through(make: Callable[[Rng], Table], *options: str, **columns: Any) -> dict[str, Run]:
    def run(rng: Rng, name: str) -> None:
        X, y = make(rng)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            table = pd.DataFrame(X).add_prefix("c").assign(y=y, **columns)
            table.to_csv(folder / "table.csv", index=False)
            output = ("-o", folder / "m.skops", "--trees", 30, "--method", "platt")
            if name == "report":
                output = ("-o", folder / "page.html", *QUICK)
            command(name, folder / "table.csv", "-t", "y", *output, *options)

    return {
        "fit command": lambda rng: run(rng, "fit"),
        "report command": lambda rng: run(rng, "report"),
    }


WAYS: dict[str, dict[str, Run]] = {
    "every row twice": through(doubled),
    'labels "yes" and "Yes "': through(spelled),
    "missing, continuous or mixed labels, or labels of one class": through(one_class),
}
"""More ways for hazards of `fit`, by their faults."""

ENTERED = [
    Hazard(
        "a table with near-copies, or without a group in some rows",
        "warned",
        "near-copy|without a group",
        {f"{name} (near-copies)": run for name, run in through(nearly_doubled).items()}
        | {
            f"{name} (groups)": run
            for name, run in through(coin, "--groups", "g", g=INCOMPLETE).items()
        },
        through(coin)["fit command"],
    )
]

HAZARDS = [
    *(replace(h, ways={**h.ways, **WAYS.get(h.fault, {})}) for h in (*REFUSED, *WARNED)),
    *ENTERED,
    *FOUND,
    *RIGHT,
]
