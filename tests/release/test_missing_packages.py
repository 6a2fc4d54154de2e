"""Whatever needs an optional package that is missing says which extra installs it."""

import ast
import importlib
import importlib.util
import inspect
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import vennforest
from vennforest._messages import EXTRAS
from vennforest.persistence.model_file import VERSIONED

ROOT = Path(__file__).parents[2]
SOURCE = Path(vennforest.__file__).parent
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
FOR_DEVELOPERS = {"all", "test", "dev", "docs", "release"}
IMPORT_OTHERS = {"shap"}  # which cannot be imported without others of these packages


def names_of(dependencies):
    """Return the packages of dependencies, those of the extras that they name included."""
    names = set()
    for dependency in dependencies:
        own = re.fullmatch(r"vennforest\[(.*)\]", dependency)
        if own:
            names |= names_of(d for extra in own[1].split(",") for d in DECLARED[extra])
        else:
            names.add(re.match(r"[\w-]+", dependency)[0])
    return names


def outcomes_without(packages):
    """Return what each public function raised in a process in which the packages are missing."""
    script = ROOT / "tests/support/without_packages.py"
    done = subprocess.run(
        [sys.executable, str(script), *packages], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def says_what_to_install(error, packages):
    """Return whether an error names one of the packages, and an extra that installs it."""
    match = re.search(
        r"^ImportError: .*needs? (\w+): install it with pip install 'vennforest\[(\w+)\]'", error
    )
    return match and match[1] in packages and match[1] in names_of(DECLARED[match[2]])


def test_every_optional_package_has_an_extra_that_installs_it():
    optional = {extra: names_of(DECLARED[extra]) for extra in DECLARED.keys() - FOR_DEVELOPERS}
    assert set().union(*optional.values()) == set(EXTRAS)
    for package, extra in EXTRAS.items():
        assert package in names_of(DECLARED[extra])
    assert set(VERSIONED) - {"scikit-learn", "skrub"} <= set(EXTRAS)


def test_the_plain_library_names_the_extra_that_is_missing():
    outcomes = outcomes_without(EXTRAS)
    bad = {
        name: error
        for name, error in outcomes.items()
        if error is not None and not says_what_to_install(error, EXTRAS)
    }
    assert bad == {}
    for name in ("update", "report.check", "vennforest --help"):
        assert outcomes[name] is not None, name
    for name in ("audit", "estimate_performance", "population_stability", "Monitor", "to_sql"):
        assert outcomes[name] is None, name


@pytest.mark.slow
@pytest.mark.parametrize(
    "packages",
    [
        ("pandas",),
        ("pyarrow",),
        ("rich",),
        ("matplotlib", "onnx", "openpyxl", "shap", "skops"),
        ("jinja2", "skl2onnx", "sqlglot", "dask", "pyspark", "lightgbm", "xgboost", "catboost"),
    ],
    ids=" ".join,
)
def test_each_missing_package_is_named(packages):
    outcomes = outcomes_without(packages)
    absent = {p for p in EXTRAS if importlib.util.find_spec(p) is None}
    absent |= {*packages, *IMPORT_OTHERS}
    errors = {name: error for name, error in outcomes.items() if error is not None}
    bad = {name: e for name, e in errors.items() if not says_what_to_install(e, absent)}
    assert bad == {}
    for package in packages:
        assert any(f"{package}: install it" in error for error in errors.values()), package


def test_every_public_function_is_called():
    text = (ROOT / "tests/support/without_packages.py").read_text("utf-8")
    # Measures are called by the names that their module exports.
    for module in ("", ".decisions", ".export", ".persistence", ".validation"):
        loaded = importlib.import_module(f"vennforest{module}")
        for name in loaded.__all__:
            if inspect.isfunction(getattr(loaded, name)) and name != "write_model":
                assert re.search(rf"\b{name}\b", text), f"vennforest{module}.{name}"


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.stem)
def test_optional_packages_are_imported_where_a_message_stands_before(path):
    # The command line turns every missing package into a sentence.
    if path.parent.name == "commands" or path.name == "cli.py":
        return
    text = path.read_text("utf-8")
    above = [text] + [
        (folder / "__init__.py").read_text("utf-8")
        for folder in path.parents
        if SOURCE in folder.parents
    ]
    for package in imported_packages(ast.parse(text)) & set(EXTRAS):
        asked = rf'needed\(\s*"{package}[".]'
        loops = rf'for package in \(.*"{package}".*\):\n    needed\(package'
        assert any(re.search(f"{asked}|{loops}", t) for t in above), (path.name, package)


def imported_packages(tree):
    """Return the packages imported by statements, those for type checkers alone left out."""
    names = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.partition(".")[0])
        names |= imported_packages(node)
    return names
