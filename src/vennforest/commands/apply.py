"""The command ``apply``: a calibrator and a table of scores in, probabilities out."""

from __future__ import annotations

import re

from vennforest._class_columns import refuse_own_output
from vennforest._messages import listed
from vennforest._validation import check_option
from vennforest.calibrators import Calibrator
from vennforest.commands.models import read_calibrator, with_shares
from vennforest.commands.options import Apply
from vennforest.commands.predict import write_predictions
from vennforest.commands.terminal import say
from vennforest.tables.files import TableFile


def run(options: Apply) -> None:
    """Write the probabilities for a table of scores, and print the number of rows."""
    check_option(options.missing_scores, ("refuse", "keep"), "--missing-scores")
    table = TableFile(options.data, options.form)
    file = read_calibrator(options.calibrator, options.scores, table=table.names)
    calibrator = with_shares(file.calibrator, options.prior)
    refuse_own_output(file.columns.names, table.names, file.columns.classes)
    carried = options.carried or _without_predictions(table.names, calibrator)
    settings = {"columns": file.columns.by_label, "missing_scores": options.missing_scores}
    write_predictions(options, calibrator, table, carried=carried, **settings)


def _without_predictions(names: list[str], calibrator: Calibrator) -> list[str]:
    """Return the names of columns that are not predictions written by ``predict`` or ``apply``."""
    labels = list(map(str, calibrator.classes_))
    if not {"label", *(f"p({label})" for label in labels)} <= set(names):
        return names
    ends, any_label = r"lower|upper|(low|high)\d[\d.]*", "|".join(map(re.escape, labels))
    pattern = rf"label|probability|{ends}|(p|{ends})\(({any_label})\)"
    replaced = [name for name in names if re.fullmatch(pattern, name)]
    say(f"Note: {listed(replaced, 4)} of predict are replaced.")
    return [name for name in names if name not in replaced]
