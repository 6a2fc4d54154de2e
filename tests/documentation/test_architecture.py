"""Pages on the code name files and folders that exist."""

import re
from pathlib import Path

import pytest

import vennforest

ROOT = Path(__file__).parents[2]
SOURCE = Path(vennforest.__file__).parent
PAGES = ["docs/architecture.md", "CONTRIBUTING.md", "SECURITY.md"]
PATHS = {
    (page, path)
    for page in PAGES
    for path in re.findall(
        r"`([\w/.-]+(?:/|\.(?:py|toml|json|csv)))`", (ROOT / page).read_text("utf-8")
    )
}


@pytest.mark.parametrize(("page", "path"), sorted(PATHS))
def test_files_named_on_a_page_exist(page, path):
    if path.startswith("experiments/") and not (ROOT / "experiments").is_dir():
        pytest.skip("this distribution does not contain the experiments")
    # The library may be installed elsewhere than the pages are.
    in_library = SOURCE / path.removeprefix("src/vennforest/")
    assert (ROOT / path).exists() or in_library.exists()


def test_architecture_names_every_package():
    text = (ROOT / "docs/architecture.md").read_text("utf-8")
    packages = [path.parent.name for path in SOURCE.glob("*/__init__.py")]
    assert [name for name in packages if f"{name}/" not in text] == []


def test_names_of_code_in_the_table_of_changes_occur_in_the_files_of_their_row():
    lines = (ROOT / "docs/architecture.md").read_text("utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and ".py`" in line]
    assert len(rows) > 40
    for row in rows:
        quoted = re.findall(r"`([^`]+)`", row)
        paths = [folder / path for path in quoted for folder in (SOURCE, ROOT) if "." in path]
        text = "".join(path.read_text("utf-8") for path in paths if path.is_file())
        names = [n for n in quoted if re.fullmatch(r"[A-Za-z_]\w*(\.\w+)?", n)]
        names = [name for name in names if not name.endswith((".py", ".toml"))]
        for name in names:
            assert name.split(".")[-1] in text, (name, row[:80])
