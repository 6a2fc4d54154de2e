"""List what a person must fill in before a release: ``python tools/before_release.py TAG``."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def missing(tag):
    """Yield a sentence for everything that is not filled in."""
    text = (ROOT / "src/vennforest/_program.py").read_text("utf-8")
    version = re.search(r'__version__ = "([^"]+)"', text)[1]
    if tag != f"v{version}":
        yield f"__version__ in src/vennforest/_program.py is {version}: the tag must be v{version}"
    if subprocess.run(
        ["git", "rev-parse", "-q", "--verify", tag], cwd=ROOT, capture_output=True
    ).stdout:
        yield f"the tag {tag} exists: raise the version"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    for name, address in project["tool"]["hatch"]["metadata"]["hooks"]["custom"].items():
        if not address:
            yield f"{name} in pyproject.toml, [tool.hatch.metadata.hooks.custom], is empty"
    if "repository-code:" not in (ROOT / "CITATION.cff").read_text("utf-8"):
        yield "CITATION.cff names no repository-code"
    for name in ("CHANGELOG.md", "CITATION.cff", "packaging/conda-forge/recipe.yaml"):
        if version not in (ROOT / name).read_text("utf-8"):
            yield f"{name} does not speak of version {version}"


if __name__ == "__main__":
    sentences = list(missing(sys.argv[1]))
    for sentence in sentences:
        print(f"- {sentence}")
    print(
        "- the index knows .github/workflows/publish.yml as a trusted publisher of vennforest and"
    )
    print("  vennforest-experiments, and the environment pypi exists: nothing here can look")
    sys.exit(bool(sentences))
