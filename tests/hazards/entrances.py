"""The ways in through the command line, the report, Dask and Spark."""

from __future__ import annotations

import contextlib
import io
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hazards.table import Rng

Make = Callable[[Rng], tuple[Any, Any]]


def written(X: Any, y: Any, folder: str) -> Path:
    """Return the file of a table with the labels in the column y."""
    path = Path(folder) / "table.csv"
    table = pd.DataFrame(X).add_prefix("c") if not hasattr(X, "columns") else X
    table.assign(y=y).to_csv(path, index=False)
    return path


def command(*words: object) -> None:
    """Run a command; what it says becomes a warning, and its failure an error."""
    from vennforest.cli import main

    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        code = main([str(word) for word in words])
    if code:
        raise ValueError(said.getvalue())
    notes = [line for line in said.getvalue().splitlines() if line.startswith(("Note", "Warning"))]
    if notes:
        warnings.warn("\n".join(notes), UserWarning, stacklevel=2)


def fit_command(*options: str) -> Callable[[Any, Any], None]:
    """Return ``vennforest fit`` with options."""

    def run(X: Any, y: Any) -> None:
        with tempfile.TemporaryDirectory() as folder:
            table = written(X, y, folder)
            model = Path(folder) / "model.skops"
            command("fit", table, "-t", "y", "-o", model, "--trees", "30", *options)

    return run
