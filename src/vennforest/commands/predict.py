"""The command ``predict``: a model and a table in, probabilities with their bounds out."""

from __future__ import annotations

from vennforest import persistence
from vennforest._files import one_line
from vennforest._messages import listed
from vennforest._validation import InputError
from vennforest.batch import table_columns
from vennforest.calibrators import Calibrator
from vennforest.commands.model_rows import read_model
from vennforest.commands.options import Predict
from vennforest.commands.rows import make_predictor, open_table, write_predictions
from vennforest.monitoring import Monitor


def run(options: Predict) -> None:
    """Predict the rows of a table, and say how many rows."""
    model = read_model(options.model, options.trusted or ())
    if isinstance(model, Calibrator):
        raise InputError(
            f"{options.model} contains a {type(model).__name__}, which takes scores and no table: "
            "use vennforest.load in Python"
        )
    if isinstance(model, Monitor):
        raise InputError(f"{options.model} contains a monitor, which predicts nothing")
    table, carried, notes = open_table(options), list(options.carried or ()), list[str]()
    columns = None
    if table_columns(model) is None and not hasattr(model, "feature_names_in_"):
        columns = [name for name in table.names if name not in carried]
    if options.keep:
        carried += [name for name in table.names if name not in carried]
    predictor = make_predictor(
        options,
        model,
        table,
        notes,
        columns=columns,
        carried=carried,
        positive=options.positive,
        of_label=options.positive is None,
        rows_at_once=options.rows_at_once,
    )
    target = persistence.read_header(options.model).get("target")
    used = {*predictor.columns, *carried, target}
    unused = [name for name in table.names if name not in used]
    if unused:
        plural = "" if len(unused) == 1 else "s"
        notes.append(f"The model does not use the column{plural} {listed(unused, 5)}.")
    try:
        write_predictions(options, table, predictor, notes)
    except (InputError, MemoryError, OSError):
        raise
    except Exception as error:  # of a model of another package or version
        raise InputError(
            f"the model in {options.model} fails on this table, with {type(error).__name__}: "
            f"{one_line(error)}; with --debug it shows where"
        ) from error
