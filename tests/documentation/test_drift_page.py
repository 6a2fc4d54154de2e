"""The page on drift: its code runs, and its pictures are there."""

import doctest
import re
from pathlib import Path

import numba
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "drift.md"


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="a doctest takes being stopped for failing")
def test_code_of_the_page_runs():
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 10 and not found.failed


def test_pictures_of_the_page_are_there():
    names = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", PAGE.read_text("utf-8"))
    assert len(names) == 2
    assert all((PAGE.parent / name).is_file() for name in names)
