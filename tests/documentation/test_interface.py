"""Every public name is documented, and stands on the pages of the interface."""

import importlib
import inspect
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
try:
    from interface import interface_pages, public_modules
finally:
    sys.path.pop(0)

MODULES = {name: names for name, (_, names) in public_modules().items()}


def test_rooms_that_users_import_from_are_public():
    rooms = ("calibrators", "metrics", "plots", "sources", "report", "monitoring")
    assert {f"vennforest.{room}" for room in rooms} | {"vennforest"} <= set(MODULES)
    assert not any(part.startswith("_") for name in MODULES for part in name.split("."))


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_documented(name):
    try:
        module = importlib.import_module(name)
    except ImportError as missing:  # an engine, a server, that is not installed
        pytest.skip(str(missing))
    assert [n for n in module.__all__ if not n.startswith("_")] == MODULES[name]
    for public in MODULES[name]:
        value = getattr(module, public)
        if inspect.isclass(value) or inspect.isroutine(value):
            text = value.__doc__
            assert text, f"{name}.{public} must have a docstring"
            assert len(text.split()) > 2, f"{name}.{public} must say what it is"


def test_every_public_name_is_on_one_page():
    pages = interface_pages()
    lines = [line for text in pages.values() for line in text.splitlines() if line[:3] == ":::"]
    assert len(lines) == len(set(lines))
    top = set(MODULES["vennforest"])
    for module, names in MODULES.items():
        for name in names:
            expected = f"vennforest.{name}" if name in top else f"{module}.{name}"
            assert f"::: {expected}" in lines
