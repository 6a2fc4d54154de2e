"""The page on the architecture names files and folders that are there, and every package."""

import re
from pathlib import Path

import pytest

import vennforest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text("utf-8")
SOURCE = Path(vennforest.__file__).parent
PATHS = sorted(set(re.findall(r"`([\w/…]+(?:/|\.(?:py|toml|json)))`", PAGE)))
BASES = [ROOT, SOURCE, ROOT / "experiments/src/vennforest_experiments"]


@pytest.mark.parametrize("name", PATHS)
def test_what_the_page_names_is_there(name):
    if name.startswith(("experiments/", "datasets/")) and not (ROOT / "experiments").is_dir():
        pytest.skip("needs the experiments")
    pattern = f"**/{name}" if name.endswith("kernels.py") else name
    assert any(any(base.glob(pattern.replace("…", "*"))) for base in BASES)


def test_the_page_names_what_a_change_is_made_in():
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    named = {part for name in PATHS for part in name.split("/")}
    elsewhere = {"groups", "transductive", "counts", "decisions"}  # no row of their own
    assert packages - elsewhere <= named
