"""The stored pages of full runs say of the method what the code says now."""

import importlib
from pathlib import Path

import pytest

from vennforest.papers import EXPERIMENTS, experiment
from vennforest.papers.protocol.experiment import command
from vennforest.papers.protocol.page import LEGEND

PAGES = Path(__file__).parents[2] / "docs" / "papers"


@pytest.mark.skipif(not PAGES.is_dir(), reason="needs docs/papers")
@pytest.mark.parametrize("paper", EXPERIMENTS)
def test_stored_pages_have_the_notes_of_the_code(paper):
    text = (PAGES / f"{paper}.md").read_text(encoding="utf-8")
    this = experiment(paper)()
    report = importlib.import_module(f"vennforest.papers.{paper}.report")
    # Niculescu-Mizil & Caruana's notes count in the records how often log loss would be infinite.
    records = ({},) if paper == "niculescu2005" else ()
    notes = report.notes(this, this.datasets(), *records)
    counted = [note for note in notes if "0 of 0 runs" in note]
    assert len(counted) == len(records)
    for note in notes:
        assert f"- {note.split('infinite in 0 of 0 runs')[0]}" in text
    for line in (LEGEND, f"    {command(this, this.datasets())}", "## How it was done"):
        assert f"\n{line}\n" in text
