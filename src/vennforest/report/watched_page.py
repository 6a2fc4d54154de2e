"""The page about the findings of a monitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from vennforest.report import figures
from vennforest.report.page import render_page
from vennforest.report.watched import Findings
from vennforest.report.words import say

MAX_COLUMNS = 50
"""Maximum number of columns listed, those that differ most."""


def sentences_of(findings: Findings) -> list[str]:
    """Return the findings in sentences."""
    return say("watch", findings, template="watch.txt.j2")


def render_findings(
    findings: Findings,
    sentences: list[str],
    command: str,
    name: str,
    target: str,
    inputs: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Return the page; ``name`` is that of the table, and ``target`` of its labels, or ""."""
    evidence = figures.evidence_over_time(
        findings.curve, findings.monitor.threshold_, findings.began, findings.times
    )
    expected = [part for part in findings.over_time if not part["reason"]]
    return render_page(
        "watch.html.j2",
        command,
        inputs,
        picture=figures.draw("evidence", evidence),
        over_time=_over_time(expected, "accuracy", "Expected accuracy"),
        series=_over_time(findings.series, "auc", "AUC"),
        result=findings,
        sentences=sentences,
        name=name,
        target=target,
        max_columns=MAX_COLUMNS,
    )


def _over_time(parts: Sequence[Mapping[str, Any]], key: str, title: str) -> str:
    """Return the picture of a measure in each part, "" for a single one."""
    if len(parts) < 2:
        return ""
    columns = [key, f"{key}_low", f"{key}_high"]
    names = [part["name"] for part in parts]
    frame = pd.DataFrame([part[key] for part in parts], index=names, columns=columns, dtype=float)
    picture = figures.rates(frame, key, title, f"{title} over time, with intervals")
    return figures.draw(key, picture)
