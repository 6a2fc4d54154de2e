"""The command ``apply``: a calibrator and a table of scores in, probabilities out."""

from __future__ import annotations

from vennforest.commands.models import read_calibrator
from vennforest.commands.options import Apply
from vennforest.commands.predict import write_predictions
from vennforest.tables.files import TableFile


def run(options: Apply) -> None:
    """Calibrate the scores of a table, and say how many rows."""
    file = read_calibrator(options.calibrator, options.scores)
    if options.prior:
        file = file.with_prior(options.prior)
    table = TableFile(options.data, options.decimal)
    carried = options.carried or table.names
    write_predictions(options, file.calibrator, table, columns=file.scores, carried=carried)
