"""Write the page docs/hazards.md from the table of hazards that the tests run."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "hazards.md"

HEAD = (
    "# Faults: what `fit` checks and what `audit` finds\n\n"
    "`fit` checks what is cheap and declared: shapes, labels, weights, groups, folds, tags of "
    "scikit-learn, exact copies of rows. If a setting would break the guarantee, you get an error "
    "or a warning. `vennforest.audit(model, X, y, groups=…)` trains and compares to find the rest, "
    "and returns a list of findings; `vennforest fit` and `vennforest report` run it and print "
    "them. These tables list the faults that the tests put in and the ways in which they were "
    "tried. `pytest tests/hazards` runs them all.\n"
)

PARTS = {
    ("refused",): "`fit` or `predict` gives an error",
    ("warned",): "`fit` or `predict` gives a warning",
    ("refused", "warned"): "`fit` gives a warning or an error",
    ("found",): "`audit` finds it",
    ("right",): "The answer is right",
    ("refused", "right"): "The answer is right, or you get an error",
    ("found", "refused"): "`fit` gives an error, or `audit` finds it",
}

FOOT = """
## What passes

Faults that neither finds:

- an estimator that keeps labels outside itself, such as a cache of your own that its copies share
- rows sorted by label beside a column that follows the order
- a frozen model that was trained on half of the rows: found with a chance of 17% (boosting) \
to 75% (forests), by how much it memorises; linear models pass
- a frozen model that was trained on these rows and more, or draws at random: found only if it \
memorises, and not in a sparse table
- out of bag, trees of a forest that you change after its calibration
"""


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
    return HEAD + "".join(tables) + FOOT


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
