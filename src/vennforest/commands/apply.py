"""The command ``apply``: a calibrator and a table of scores in, probabilities out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from vennforest._validation import InputError, check_option
from vennforest.calibrators import Calibrator
from vennforest.commands.models import label_of_text, read_calibrator
from vennforest.commands.options import Apply
from vennforest.commands.predict import write_predictions
from vennforest.tables.files import TableFile


def run(options: Apply) -> None:
    """Write the probabilities for a table of scores, and print the number of rows."""
    check_option(options.missing_scores, Literal["refuse", "keep"], "--missing-scores")
    file = read_calibrator(options.calibrator, options.scores)
    calibrator = file.calibrator
    if options.prior:
        calibrator = calibrator.with_prior(_shares(options.prior, calibrator))
    table = TableFile(options.data, options.decimal)
    carried, keep = options.carried or table.names, options.missing_scores == "keep"
    write_predictions(
        options, calibrator, table, columns=file.scores, carried=carried, keep_missing=keep
    )


def _shares(prior: Sequence[str], calibrator: Calibrator) -> dict[Any, float]:
    """Return the share of each class of those typed as LABEL=SHARE."""
    labels, shares = label_of_text(calibrator.classes_), {}
    for entry in prior:
        text, _, share = entry.rpartition("=")
        try:
            shares[labels[text]] = float(share)
        except (KeyError, ValueError):
            raise InputError(
                f"--prior must be LABEL=SHARE with a label of {', '.join(labels)}, got {entry!r}"
            ) from None
    return shares
