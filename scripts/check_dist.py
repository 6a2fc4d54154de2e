"""Look into the two archives of a release: every file, the licence, the version, the addresses.

``python scripts/check_dist.py DIST`` ends with a message where something is amiss. It reads the
archives and the working tree, and installs nothing.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Nothing of these folders belongs into an archive.
LEFT_OUT = (".ci/", ".gitignore")


def tracked():
    """Return the files under version control, as paths from the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}


def version():
    """Return the version, from its one place."""
    text = (ROOT / "src/vennforest/_version.py").read_text("utf-8")
    return re.search(r'__version__ = "([^"]+)"', text)[1]


def problems(dist):
    """Yield a sentence for everything that is amiss."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    v = version()
    [wheel], [sdist] = dist.glob("*.whl"), dist.glob("*.tar.gz")
    if wheel.name != f"vennforest-{v}-py3-none-any.whl" or sdist.name != f"vennforest-{v}.tar.gz":
        yield f"{wheel.name} and {sdist.name} must be named for version {v}"

    files = tracked()
    with tarfile.open(sdist) as archive:
        inside = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    for name in sorted(files - inside):
        if not name.startswith(LEFT_OUT):
            yield f"the source distribution must hold {name}"
    for name in sorted(inside - files - {"PKG-INFO", ".gitignore"}):
        yield f"the source distribution must not hold {name}: it is not under version control"

    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        info = f"vennforest-{v}.dist-info"
        metadata = message_from_bytes(archive.read(f"{info}/METADATA"))
        licence = f"{info}/licenses/LICENSE"
        if licence not in inside:
            yield "the wheel must hold the text of the licence"
        elif archive.read(licence) != (ROOT / "LICENSE").read_bytes():
            yield "the wheel's licence must be LICENSE"
    source = {name.removeprefix("src/") for name in files if name.startswith("src/")}
    for name in sorted(source - inside):
        yield f"the wheel must hold {name}"
    for name in sorted(inside - source):
        if not name.startswith(f"{info}/"):
            yield f"the wheel must not hold {name}"

    if metadata["Version"] != v:
        yield f"the wheel's version must be {v}, got {metadata['Version']}"
    if metadata["License-Expression"] != project["project"]["license"]:
        yield "the wheel must name the licence of pyproject.toml"
    for name in ("CHANGELOG.md", "CITATION.cff", "packaging/conda-forge/recipe.yaml"):
        if v not in (ROOT / name).read_text("utf-8"):
            yield f"{name} must speak of version {v}"
    addresses = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    told = metadata.get_all("Project-URL") or []
    if any(addresses.values()) != bool(told):
        yield "the wheel must tell the addresses of pyproject.toml"
    if addresses["repository"] and addresses["repository"] not in (ROOT / "CITATION.cff").read_text(
        "utf-8"
    ):
        yield "CITATION.cff must name the repository (repository-code)"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found = list(problems(folder))
    for sentence in found:
        sys.stderr.write(f"{sentence}\n")
    for path in sorted(folder.glob("vennforest-*")):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path.name)
    sys.exit(bool(found))
