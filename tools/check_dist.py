"""Look into the four archives of a release: every file, the licence, the version, the addresses.

``python tools/check_dist.py DIST [TAG]`` ends with a message where something is amiss. It reads
the archives and the working tree, and installs nothing.
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
# Nothing of these belongs into the archive of the library.
LEFT_OUT = (".ci/", ".gitignore", "experiments/", "paper/")
RELATIVE_LINK = r"""(?:\]\(|src="|href=")(?![a-z]+:|#)([^)"]+)"""


def tracked():
    """Return the files under version control, as paths from the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return {name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()}


def version():
    """Return the version, from its one place."""
    text = (ROOT / "src/vennforest/_program.py").read_text("utf-8")
    return re.search(r'__version__ = "([^"]+)"', text)[1]


def sdist_problems(sdist, expected, given):
    """Yield a sentence for every file that a source distribution lacks or has too many.

    ``expected`` must be in it, and nothing that is not in ``given``, but for what hatchling adds.
    """
    with tarfile.open(sdist) as archive:
        inside = {m.name.partition("/")[2] for m in archive.getmembers() if m.isfile()}
    for name in sorted(expected - inside):
        yield f"{sdist.name} must hold {name}"
    for name in sorted(inside - given - {"PKG-INFO", ".gitignore"}):
        yield f"{sdist.name} must not hold {name}"


def wheel_problems(wheel, info, source, project):
    """Yield a sentence for everything amiss with a wheel; ``source`` are its files of code."""
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
        metadata = message_from_bytes(archive.read(f"{info}/METADATA"))
        licence = f"{info}/licenses/LICENSE"
        if licence not in inside:
            yield f"{wheel.name} must hold the text of the licence"
        elif archive.read(licence) != (ROOT / "LICENSE").read_bytes():
            yield f"the licence of {wheel.name} must be LICENSE"
    for name in sorted(source - inside):
        yield f"{wheel.name} must hold {name}"
    for name in sorted(inside - source):
        if not name.startswith(f"{info}/"):
            yield f"{wheel.name} must not hold {name}"
    if metadata["Version"] != version():
        yield f"the version of {wheel.name} must be {version()}, got {metadata['Version']}"
    if metadata["License-Expression"] != project["project"]["license"]:
        yield f"{wheel.name} must name the licence of pyproject.toml"


def problems(dist, tag=None):
    """Yield a sentence for everything that is amiss, and with a tag for what is not filled in."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    v = version()
    expected = {
        f"{name}-{v}{ending}"
        for name in ("vennforest", "vennforest_experiments")
        for ending in ("-py3-none-any.whl", ".tar.gz")
    }
    found = {path.name for path in dist.glob("vennforest*")}
    if found != expected:
        yield f"{dist} must hold {sorted(expected)}, got {sorted(found)}"
        return

    files = tracked()
    library = {name for name in files if not name.startswith(LEFT_OUT)}
    yield from sdist_problems(dist / f"vennforest-{v}.tar.gz", library, library)
    own = {n.removeprefix("experiments/") for n in files if n.startswith("experiments/")}
    source = {name for name in own if name.startswith("src/")}
    archive = dist / f"vennforest_experiments-{v}.tar.gz"
    yield from sdist_problems(archive, source | {"README.md", "LICENSE", "pyproject.toml"}, own)

    for name, sources in (("vennforest", files), ("vennforest_experiments", own)):
        code = {n.removeprefix("src/") for n in sources if n.startswith("src/")}
        wheel = dist / f"{name}-{v}-py3-none-any.whl"
        yield from wheel_problems(wheel, f"{name}-{v}.dist-info", code, project)

    for name in ("CHANGELOG.md", "CITATION.cff", "packaging/conda-forge/recipe.yaml"):
        if v not in (ROOT / name).read_text("utf-8"):
            yield f"{name} must speak of version {v}"
    addresses = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]
    with zipfile.ZipFile(dist / f"vennforest-{v}-py3-none-any.whl") as archive:
        metadata = message_from_bytes(archive.read(f"vennforest-{v}.dist-info/METADATA"))
    told = metadata.get_all("Project-URL") or []
    if any(addresses.values()) != bool(told):
        yield "the wheel must tell the addresses of pyproject.toml"
    if tag is not None:
        if tag != f"v{v}":
            yield f"the tag must be v{v}, got {tag}"
        for name in (name for name, address in addresses.items() if not address):
            yield f"addresses must be filled in for a release: {name} in pyproject.toml"
        for link in sorted(set(re.findall(RELATIVE_LINK, metadata.get_payload()))):
            yield f"links of the package's page must be addresses, got {link}"
    if addresses["repository"] and addresses["repository"] not in (ROOT / "CITATION.cff").read_text(
        "utf-8"
    ):
        yield "CITATION.cff must name the repository (repository-code)"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    found = list(problems(folder, *sys.argv[2:]))
    for sentence in found:
        sys.stderr.write(f"{sentence}\n")
    for path in sorted(folder.glob("vennforest*")):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path.name)
    sys.exit(bool(found))
