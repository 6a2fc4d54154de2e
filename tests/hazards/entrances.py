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

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

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
    forest,
    one_class,
    spelled,
)
from vennforest import CalibratedClassifier

QUICK = ("--folds", 2, "--trees", 30, "--methods", "venn-abers", "--jobs", 1)
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
    """Return the ways of a table through ``vennforest fit`` and ``vennforest report``."""

    def run(rng: Rng, name: str) -> None:
        X, y = make(rng)
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            table = pd.DataFrame(X).add_prefix("c").assign(y=y, **columns)
            table.to_csv(folder / "table.csv", index=False)
            output = ("-o", folder / "m.skops", "--trees", 30)
            if name == "report":
                output = ("-o", folder / "page.html", *QUICK)
            command(name, folder / "table.csv", "-t", "y", *output, *options)

    return {
        "fit command": lambda rng: run(rng, "fit"),
        "report command": lambda rng: run(rng, "report"),
    }


def nested(make: Callable[[Rng], Table]) -> dict[str, Run]:
    """Return the ways of a table through a search and a pipeline."""
    model = CalibratedClassifier(forest(), random_state=0)
    return {
        "search": lambda rng: GridSearchCV(model, {"method": ["platt"]}, cv=3).fit(*make(rng)),
        "pipeline": lambda rng: make_pipeline(StandardScaler(), model).fit(*make(rng)),
    }


def scored(rng: Rng, fault: str) -> pd.DataFrame:
    """Return scores, labels and weights of 60 rows, with a fault in some of them."""
    y = np.arange(60) % 2
    s = np.sort(rng.random(60))[np.argsort(np.argsort(y + rng.normal(size=60)))]
    frame = pd.DataFrame({"s": s, "y": y, "w": np.ones(60)})
    column, value = {
        "NaN": ("s", np.nan),
        "infinite": ("s", np.inf),
        "weights": ("w", -1.0),
        "none": ("w", 1.0),
    }.get(fault, ("w", 1.0))
    frame.loc[:8, column] = value
    if fault == "one class":
        frame["y"] = 0
    if fault == "sum":
        frame["w"] = 1 / 60
    return frame


def by_command(rng: Rng, fault: str) -> None:
    """Calibrate scores in a file."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        scored(rng, fault).to_csv(folder / "s.csv", index=False)
        named = ("-s", "s", "-t", "y", "--weight", "w", "-o", folder / "c.json")
        command("calibrate", folder / "s.csv", *named)


def by_dask(rng: Rng, fault: str) -> None:
    """Calibrate scores in a Dask frame."""
    dask = pytest.importorskip("dask")
    tables = pytest.importorskip("dask.dataframe")
    from vennforest.engines.dask import calibrate

    frame = tables.from_pandas(scored(rng, fault), npartitions=3)
    with dask.config.set(scheduler="synchronous"):
        calibrate(frame, score="s", target="y", weight="w")


def by_spark(rng: Rng, fault: str) -> None:
    """Calibrate scores in a Spark frame."""
    from support.systems import local_spark
    from vennforest.engines.spark import calibrate

    frame = local_spark().createDataFrame(scored(rng, fault))
    calibrate(frame, score="s", target="y", weight="w")


ENGINES = {"calibrate command": by_command, "Dask": by_dask, "Spark": by_spark}


def engines(*faults: str) -> dict[str, Run]:
    """Return the ways of scores through the command calibrate, Dask and Spark."""
    return {
        f"{name} ({fault})": lambda rng, run=run, fault=fault: run(rng, fault)
        for fault in faults
        for name, run in ENGINES.items()
    }


WAYS: dict[str, dict[str, Run]] = {
    "every row twice": nested(doubled) | through(doubled),
    'labels "yes" and "Yes "': nested(spelled) | through(spelled),
    "missing, continuous or mixed labels, or labels of one class": (
        {"pipeline (one class)": nested(one_class)["pipeline"]}
        | through(one_class)
        | engines("one class")
    ),
    "scores of a calibrator that are NaN, infinite, text, percentages or of another length, or "
    "negative weights": engines("NaN", "infinite", "weights"),
    "sample_weight divided by its sum": engines("sum"),
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
        lambda rng: (through(coin)["fit command"](rng), by_command(rng, ""), by_dask(rng, "")),
    )
]

HAZARDS = [
    *(replace(h, ways={**h.ways, **WAYS.get(h.fault, {})}) for h in (*REFUSED, *WARNED)),
    *ENTERED,
    *FOUND,
    *RIGHT,
]
