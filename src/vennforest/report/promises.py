"""Thresholds that promise a sensitivity, specificity or precision, as a section of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from vennforest._messages import as_sentence
from vennforest._validation import InputError
from vennforest.decisions import threshold_for
from vennforest.metrics.intervals import share_interval
from vennforest.report.comparison import Comparison
from vennforest.report.section import Section


def promised_thresholds(c: Comparison, targets: Mapping[str, float]) -> Section:
    """Return the section on a threshold for each target: sensitivity, specificity, precision."""
    predictions, j, groups = c.predictions, c.predictions.positive, c.predictions.groups
    if j is None:
        raise InputError("promised thresholds need two classes, got more: leave the promises out")
    p, y = predictions.estimates[c.method].p[:, j], predictions.codes == j
    unit = "rows" if groups is None else "groups, one row of each"
    sentences = [
        f"Rows with a probability of “{predictions.label}” from the threshold on are flagged. Over "
        f"the drawing of these {unit}, each promise fails with probability 5% at most. Intervals "
        "of thresholds are of those whose sensitivity or specificity is exactly the target."
    ]
    rows: dict[str, dict[str, float]] = {}
    for name, target in targets.items():
        promise: dict[str, Any] = {"recall" if name == "sensitivity" else name: target}
        safe, *ends = (
            threshold_for(p, y, **promise, delta=delta, groups=groups, pos_label=True)
            for delta in (0.05, 0.025, 0.975)
        )
        sentences += [as_sentence(safe.reason)] if safe.reason else []
        values = [np.nan if t.threshold is None else t.threshold for t in (safe, *ends)]
        row = rows[f"{name} of {100 * target:g}%"] = {"threshold": values[0]}
        if name != "precision":
            row["threshold_low"], row["threshold_high"] = sorted(values[1:])
        flagged = p >= values[0]
        subsets = {"flagged": (flagged, np.ones(len(y), bool)), "sensitivity": (flagged, y)}
        subsets |= {"specificity": (~flagged, ~y), "precision": (y, flagged)}
        for share, (hits, of) in subsets.items():
            if safe.threshold is not None and of.any():
                some = None if groups is None else groups[of]
                row[share], interval = hits[of].mean(), share_interval(hits[of].astype(float), some)
                row[f"{share}_low"], row[f"{share}_high"] = interval
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("Promise")
    columns = [("threshold", "Threshold", "probability")]
    columns += [(share, share.capitalize(), "percent") for share in subsets]
    return Section("Promised thresholds", "promises", sentences, frame, columns)
