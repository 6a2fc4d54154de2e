"""Pages on the code name files that are there; that on the architecture names all packages."""

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
    elsewhere = {"groups", "counts", "decisions"}  # no row of their own
    assert packages - elsewhere <= named


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"])
def test_files_that_other_pages_name_are_there(page):
    if not page.exists():
        pytest.skip("this distribution does not contain the page")
    folders = [SOURCE, *(ROOT / name for name in ("benchmarks", "docs", "scripts", "tests"))]
    folders += [ROOT / "experiments"]
    known = [f"/{path.as_posix()}" for one in folders for path in one.rglob("*.py")]
    named = set(re.findall(r"`([\w/]+\.py)`", page.read_text("utf-8")))
    assert named
    assert [name for name in named if not any(one.endswith(f"/{name}") for one in known)] == []
