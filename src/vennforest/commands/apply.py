"""The command ``apply``: a calibrator and a table of scores in, probabilities out."""

from __future__ import annotations

from vennforest.commands.calibrator_file import read_calibrator
from vennforest.commands.options import Apply
from vennforest.commands.rows import make_predictor, open_table, write_predictions


def run(options: Apply) -> None:
    """Calibrate the scores of a table, and say how many rows."""
    file = read_calibrator(options.calibrator, options.scores or ())
    if options.prior:
        file = file.with_prior(options.prior)
    table, notes = open_table(options), list[str]()
    carried = options.carried or table.names
    predictor = make_predictor(
        options, file.calibrator, table, notes, columns=file.scores, carried=carried
    )
    write_predictions(options, table, predictor, notes)
