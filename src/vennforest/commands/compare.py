"""The command ``compare``: two summaries of check or report in, changes of measures out."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import typer

from vennforest._files import read_json
from vennforest._program import __version__
from vennforest._validation import check_option
from vennforest.commands.options import Compare
from vennforest.commands.terminal import print_json, say, show
from vennforest.report.findings import for_json
from vennforest.report.numbers import fixed
from vennforest.validation import compare

MEASURE_TITLES = {
    "log_loss": "Log loss",
    "brier": "Brier score",
    "brier_skill": "Brier skill",
    "auc": "AUC",
    "observed_expected": "Observed / expected",
    "intercept": "Intercept",
    "slope": "Slope",
}
PAIRED = "Labels, weights and groups agree, so the rows are compared one by one."
UNPAIRED = "Labels, weights or groups, or their order, differ: rows are taken as independent."


def run_compare(options: Compare) -> None:
    """Print how the measures changed; fail if one is worse and that is asked for."""
    for failure in options.fail_on or ():
        check_option(failure, ("worse",), "--fail-on")
    paths = {"old": Path(options.old), "new": Path(options.new)}
    form = "the output of check or report with --json"
    summaries = {n: read_json(p, options.input_name(p), form) for n, p in paths.items()}
    frame, is_paired = compare(summaries["old"], summaries["new"], level=options.level)
    names = {v: frame.index[frame["verdict"] == v].tolist() for v in ("worse", "better")}
    parts = [
        f"{verdict} in {', '.join(MEASURE_TITLES[name] for name in of_verdict)}"
        for verdict, of_verdict in names.items()
        if of_verdict
    ]
    sentence = f"New is {' and '.join(parts)}." if parts else "No measure differs beyond chance."
    if options.as_json:
        sources = {
            name: {key: summary.get(key) for key in ("name", "target", "method", "rows", "version")}
            for name, summary in summaries.items()
        }
        measures = for_json(frame.rename_axis("method"))
        summary = {"version": __version__, **sources, "paired": is_paired, "level": options.level}
        print_json(summary | {"measures": measures, **names, "sentence": sentence})
    else:
        show(_table_of_changes(frame, options.level))
    say(f"{PAIRED if is_paired else UNPAIRED} {sentence}")
    if options.fail_on and names["worse"]:
        raise typer.Exit(1)


def _table_of_changes(frame: pd.DataFrame, level: float) -> str:
    """Return the table of changes; a change of observed over expected is a ratio."""
    rows = []
    for name, row in frame.iterrows():
        sign = "×" if name == "observed_expected" else ""
        change, low, high = (
            sign + fixed(row[key], 4) if row[key] == row[key] else "–"
            for key in ("change", "low", "high")
        )
        pvalue = "–" if row["pvalue"] != row["pvalue"] else f"{row['pvalue']:.2g}"
        ends = f"{low} to {high}" if low != "–" else "–"
        values = fixed(row["old"], 4), fixed(row["new"], 4)
        rows.append([MEASURE_TITLES[str(name)], *values, change, ends, pvalue, row["verdict"]])
    columns = ["", "old", "new", "change", f"{100 * level:.4g}% interval", "p", ""]
    return pd.DataFrame(rows, columns=columns).to_string(index=False)
