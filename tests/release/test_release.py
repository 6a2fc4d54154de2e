"""What stands in several files of a release is the same in all of them."""

import re
import tomllib
from pathlib import Path

import pytest

import vennforest

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT, BUILD = PYPROJECT["project"], PYPROJECT["build-system"]
WORKFLOW = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
PUBLISHING = (ROOT / ".github/workflows/publish.yml").read_text("utf-8")
EXPERIMENTS = ROOT / "experiments"
MAKEFILES = {"": ROOT / "Makefile", "-f tools/Makefile ": ROOT / "tools" / "Makefile"}
TARGETS = {
    f"{options}{target}"
    for options, path in MAKEFILES.items()
    for target in re.findall(r"^([a-z][a-z-]*):", path.read_text("utf-8"), re.M)
}


@pytest.mark.parametrize(
    "name", ["CHANGELOG.md", "CITATION.cff", "packaging/conda-forge/recipe.yaml"]
)
def test_version(name):
    pattern = rf"(?<![\d.]){re.escape(vennforest.__version__)}(?![\d.])"
    assert re.search(pattern, (ROOT / name).read_text("utf-8"))


@pytest.mark.skipif(not EXPERIMENTS.is_dir(), reason="needs the experiments")
def test_experiments_are_released_with_the_library():
    text = (EXPERIMENTS / "src/vennforest_experiments/__init__.py").read_text("utf-8")
    assert f'__version__ = "{vennforest.__version__}"' in text
    theirs = tomllib.loads((EXPERIMENTS / "pyproject.toml").read_text("utf-8"))["project"]
    assert f"vennforest[report]=={vennforest.__version__}" in theirs["dependencies"]
    for key in ("license", "requires-python", "authors"):
        assert theirs[key] == PROJECT[key]
    for ours in PROJECT["classifiers"]:
        if re.search(r":: Python :: \d", ours):
            assert ours in theirs["classifiers"]


def test_python_versions():
    tested = re.search(r"python: \[(.*)\]", WORKFLOW)[1]
    versions = re.findall(r'"([\d.]+)"', tested)
    prefix = "Programming Language :: Python :: "
    classifiers = [c.removeprefix(prefix) for c in PROJECT["classifiers"] if c.startswith(prefix)]
    claimed = [c for c in classifiers if re.fullmatch(r"\d\.\d+", c)]
    assert claimed == versions
    assert claimed[0] == versions[0]
    assert PROJECT["requires-python"] == f">={versions[0]}"
    recipe = (ROOT / "packaging/conda-forge/recipe.yaml").read_text("utf-8")
    assert f'python_min: "{versions[0]}"' in recipe


def test_recipe_has_the_same_dependencies():
    recipe = (ROOT / "packaging/conda-forge/recipe.yaml").read_text("utf-8")
    conda = {"matplotlib": "matplotlib-base"}

    def listed(section):
        block = re.search(rf"^  {section}:\n((?:    - .*\n)+)", recipe, re.M)[1]
        lines = re.findall(r"- (.*)", block)
        return sorted(line.replace(" ", "") for line in lines if not line.startswith("python "))

    def declared(dependencies):
        split = [re.fullmatch(r"([\w-]+)(.*)", d) for d in dependencies]
        return sorted({conda.get(m[1], m[1]) + m[2] for m in split})

    extras = PROJECT["optional-dependencies"]
    assert listed("host") == declared([*BUILD["requires"], "pip"])
    assert listed("run") == declared(PROJECT["dependencies"])
    optional = [d for d in extras["all"] if not d.startswith("vennforest")]
    for named in re.findall(r"vennforest\[(.*?)\]", " ".join(extras["all"])):
        for extra in named.split(","):
            optional += extras[extra]
    assert listed("run_constraints") == declared(optional)


def test_recipe_says_what_the_project_says():
    recipe = (ROOT / "packaging/conda-forge/recipe.yaml").read_text("utf-8")
    assert f"  summary: {PROJECT['description']}\n" in recipe
    assert f"  license: {PROJECT['license']}\n" in recipe
    for name, function in PROJECT["scripts"].items():
        assert f"      - {name} = {function}\n" in recipe
    for path in (*PROJECT["license-files"], *re.findall(r"- (tools/\S+)\n", recipe)):
        assert (ROOT / path).is_file()


def test_workflow_calls_targets_that_exist_and_nothing_else():
    commands = re.findall(r"- run: (.*)", WORKFLOW + PUBLISHING)
    assert commands
    assert [c for c in commands if c.removeprefix("make ") not in TARGETS] == []


def test_hooks_and_pages_name_targets_that_exist():
    pages = [".pre-commit-config.yaml", "CONTRIBUTING.md", "README.md", "SECURITY.md"]
    text = "\n".join((ROOT / page).read_text("utf-8") for page in pages)
    named = set(
        re.findall(r"(?:`|entry: |^)make ((?:-f tools/Makefile )?[a-z][a-z-]*)", text, re.M)
    )
    assert named
    assert sorted(named - TARGETS) == []
