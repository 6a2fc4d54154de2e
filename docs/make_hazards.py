"""Write the page docs/hazards.md from the table of hazards that the tests run."""

from __future__ import annotations

import sys
from pathlib import Path

PAGE = Path(__file__).parent / "hazards.md"

HEAD = (
    "# What is refused, and what you are warned of\n\n"
    "If a setting would break the guarantee, you get an error or a warning, not a wrong answer. "
    "The table lists faults, the ways they were tried, and what happens. "
    "`pytest tests/hazards` runs them; without the fault the same call passes without a "
    "warning.\n\n"
    "| fault | tried with | what happens |\n|---|---|---|\n"
)

OUTCOMES = {"refused": "error", "warned": "warning", "right": "right answer"}

FOOT = (
    "\n`fit` cannot see four faults. An estimator keeps labels outside itself (a cache that its "
    "copies share). A frozen step of your own saw labels. A feature was recorded after the "
    "outcome. Rows are sorted by label beside a column that follows the order. The "
    "[report](report.md) names columns that look like the last two. A model that you refit or edit "
    "after it was calibrated is no longer calibrated. A frozen model's own rows are found where it "
    "remembers them (trees, boosting). Linear models, sparse tables and models fitted on half of "
    "the rows pass.\n"
)


def page() -> str:
    """Return the text of the page."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    from hazards.drawn import DRAWN
    from hazards.table import HAZARDS

    rows = []
    for hazard in [*HAZARDS, *DRAWN]:
        outcomes = {OUTCOMES[hazard.verdict_of(way).outcome] for way in hazard.ways}
        ways = dict.fromkeys(word for way in hazard.ways for word in way.split(", "))
        rows.append(f"| {hazard.fault} | {', '.join(ways)} | {' or '.join(sorted(outcomes))} |")
    return HEAD + "\n".join(rows) + "\n" + FOOT


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
