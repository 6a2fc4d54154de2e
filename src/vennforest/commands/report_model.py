"""Report on a model in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from vennforest import persistence
from vennforest._files import one_line
from vennforest._validation import InputError
from vennforest.calibrators import Calibrator
from vennforest.commands.report_table import Columns, Judged, ReportTable, common_options
from vennforest.report import CostMatrix, Evaluation, report_model
from vennforest.tables.columns import TableColumns
from vennforest.tables.stream import TableFile


def report_on_model(
    table: ReportTable,
    data: Path | None,
    columns: Columns,
    judged: Judged,
    costs: CostMatrix | None,
    options: dict[str, Any],
) -> Evaluation:
    """Evaluate a model in a file."""
    assert judged.model is not None and data is not None
    if not judged.model.is_file():
        raise InputError(f"there is no model file {judged.model}")
    try:
        model = persistence.load(judged.model, trusted=judged.trusted)
    except OSError as error:
        raise InputError(f"{judged.model} cannot be read: {one_line(error)}") from error
    if isinstance(model, Calibrator):
        raise InputError(
            f"{judged.model} holds a {type(model).__name__}, which takes scores and no table: "
            "give the probabilities it makes with --probability"
        )
    header = persistence.read_header(judged.model)
    X = _as_trained(model, table, data)
    try:
        return report_model(
            model,
            table.named(X),
            table.labelled.y,
            n_trained=header.get("n_rows"),
            positive=options["positive"],
            random_state=options["seed"],
            **common_options(table, columns, costs),
        )
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"the model refuses the table: {one_line(error)}") from error


def _as_trained(model: Any, table: ReportTable, data: Path) -> Any:
    """Return the rows with a label as the model takes them."""
    fitted = getattr(model, "estimators_", None) or [getattr(model, "estimator_", None)]
    step = getattr(fitted[0], "steps", [(None, None)])[0][1]
    whole = table.labelled.X
    if isinstance(step, TableColumns):
        names = step.feature_names_in_.tolist()
        file = TableFile(data)
        step.check_names(file.names)
        import pandas as pd

        parts = [batch.rows for batch in file.batches(names, [], 1_000_000, step.plain_numbers)]
        return pd.concat(parts, ignore_index=True).iloc[whole.index.to_numpy()]
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        missing = [str(name) for name in names if str(name) not in whole.columns]
        if missing:
            raise InputError(f"the table lacks the column {missing[0]!r} of training")
        return whole[[str(name) for name in names]]
    try:
        return whole.to_numpy(dtype=np.float64)
    except ValueError as error:
        raise InputError(f"the model takes numbers: {one_line(error)}") from error
