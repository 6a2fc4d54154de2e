"""Write the page docs/hazards.md from the table of hazards that the tests run."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "hazards.md"

HEAD = (
    "# What is refused, and what you are warned of\n\n"
    "If a setting would break the guarantee, you get an error or a warning, not a wrong answer. "
    "These tables list the faults that the tests put in and the ways in which they were tried. "
    "`pytest tests/hazards` runs them all.\n"
)

PARTS = {
    ("refused",): "You get an error",
    ("warned",): "You get a warning",
    ("right",): "The answer is right",
    ("refused", "right"): "The answer is right, or you get an error",
    ("refused", "warned"): "You get a warning or an error",
}

FOOT = """
## False alarms

The same calls without the fault, on data drawn for each: {calls:,} calls of {twins} kinds, \
{alarms} (fewer than {high:.2%} of all calls, with 95% confidence). One alarm in two hundred would \
be seen in 600 draws, with a chance of 95%: {enough} kinds have that many, the others {fewest} or \
more. `python benchmarks/honest_calls.py table` lists them.

## What passes

Five faults cannot be seen:

- an estimator that keeps labels outside itself, such as a cache of your own that its copies share
- a feature recorded after the outcome, and rows sorted by label beside a column that follows the \
order: the [report](report.md) points at columns that look like it
- a frozen model that was trained on half of the rows: found with a chance of {half}, by how much \
it memorises; linear models pass
- a frozen model that was trained on these rows and more, cannot be trained again in five seconds, \
or draws at random: found only if it memorises, and not in a sparse table
- large arrays of a fitted model that you write to after its calibration
"""

HALF = "17% (boosting) to 75% (forests)"
"""The least and the most of five kinds of models, in a study of 36 draws each."""


def page() -> str:
    """Return the text of the page."""
    sys.path.insert(0, str(ROOT / "tests"))
    from hazards.entrances import HAZARDS

    rows: dict[tuple[str, ...], list[str]] = {part: [] for part in PARTS}
    for hazard in HAZARDS:
        outcomes = sorted({hazard.verdict_of(way).outcome for way in hazard.ways})
        ways = ", ".join(dict.fromkeys(way.split(",")[0] for way in hazard.ways))
        rows[tuple(outcomes)].append(f"{hazard.fault} | {ways}\n")
    tables = [
        f"\n## {title}\n\nfault | tried with\n---|---\n" + "".join(rows[part])
        for part, title in PARTS.items()
    ]
    return HEAD + "".join(tables) + foot()


def foot() -> str:
    """Return the figures of benchmarks/honest_calls.py in words."""
    figures = runpy.run_path(str(ROOT / "benchmarks" / "honest_calls.py"))["summary"]()
    warned = figures.pop("warned")
    named = " and ".join(f"{count} of {name}" for name, count in warned.items())
    return FOOT.format(
        alarms=f"with alarms: {named}" if named else "no alarm", half=HALF, **figures
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
