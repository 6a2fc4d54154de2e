"""Every cell of the grid runs, and the page in the docs is what the script writes."""

import importlib.util
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]

spec = importlib.util.spec_from_file_location("make_grid", ROOT / "docs" / "make_grid.py")
make_grid = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_grid)


def committed():
    """{(data set, source): {method: number or None}} of the committed page."""
    cells, data_set, methods = {}, None, None
    for line in make_grid.PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            data_set = line[3:].lower()
        elif line.startswith("| calibration"):
            methods = [c.strip() for c in line.strip("|").split("|")][1:]
        elif line.startswith("| "):
            row, *values = [c.strip() for c in line.strip("|").split("|")]
            numbers = [None if v == "–" else float(v) for v in values]
            cells[data_set, row] = dict(zip(methods, numbers, strict=True))
    return cells


def test_the_page_has_every_cell():
    cells = committed()
    assert set(cells) == {
        (name.lower(), source) for name in make_grid.DATA for source in make_grid.SOURCES
    }
    for (_, source), row in cells.items():
        assert list(row) == make_grid.METHODS
        for method, value in row.items():
            there = "transductive" not in make_grid.SOURCES[source] or "venn" in method
            assert (value is not None) == there
            assert not there or 0 < value < 3


@pytest.mark.parametrize("name", make_grid.DATA)
@pytest.mark.parametrize("source", make_grid.SOURCES)
def test_every_cell_runs_and_gives_what_the_page_says(source, name):
    row = committed()[name.lower(), source]
    for method, expected in row.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # out of bag for no tree
            value = make_grid.cell(method, make_grid.SOURCES[source], make_grid.DATA[name])
        if expected is None:
            assert value is None
        else:
            assert np.isclose(value, expected, rtol=0.02, atol=0.01), method


def test_the_page_says_how_it_is_made():
    text = make_grid.PAGE.read_text(encoding="utf-8")
    assert re.search(r"Written by `python docs/make_grid.py`", text)
