"""The stored pages of full runs say of the method what the code says now."""

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from vennforest_experiments.papers import EXPERIMENTS, experiment
from vennforest_experiments.papers.protocol.experiment import command
from vennforest_experiments.papers.protocol.page import LEGEND, heading

PAGES = Path(__file__).parents[3] / "docs" / "results" / "papers"


@pytest.mark.skipif(not PAGES.is_dir(), reason="needs docs/results/papers")
@pytest.mark.parametrize("paper", EXPERIMENTS)
def test_stored_pages_have_the_notes_of_the_code(paper):
    text = (PAGES / f"{paper}.md").read_text(encoding="utf-8")
    this = experiment(paper)()
    report = importlib.import_module(f"vennforest_experiments.papers.{paper}.report")
    # Niculescu-Mizil & Caruana's notes count in the records how often log loss would be infinite.
    records = ({},) if paper == "niculescu2005" else ()
    notes = report.notes(this, this.datasets(), *records)
    counted = [note for note in notes if "0 of 0 runs" in note]
    assert len(counted) == len(records)
    for note in notes:
        assert f"- {note.split('infinite in 0 of 0 runs')[0]}" in text
    for line in (LEGEND, f"    {command(this, this.datasets())}", "## How it was done"):
        assert f"\n{line}\n" in text


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda p: p.stem)
def test_pages_of_papers_are_headed_as_reproduce_heads_them(path):
    first, _, citation = path.read_text("utf-8").splitlines()[:3]
    assert first == "# " + heading(SimpleNamespace(title=citation))
    assert re.fullmatch(r"# .+ \(\d{4}\): [A-Z][^.]+", first)


def test_heading_of_a_title_without_a_year():
    assert heading(SimpleNamespace(title="Something else")) == "Something else"
