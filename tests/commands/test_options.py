"""Every option of every command, given twice, and the names that options take."""

import re

import pytest
import typer

from support.commands import run
from vennforest._files import read_json
from vennforest._validation import InputError
from vennforest.calibrators import METHODS
from vennforest.classifier.parameters import SOURCE_NAMES
from vennforest.commands import options
from vennforest.commands.options import app
from vennforest.report.estimators import ESTIMATORS

COMMANDS = typer.main.get_command(app).commands
OPTIONS = [
    (name, param)
    for name, command in COMMANDS.items()
    for param in command.params
    if param.param_type_name == "option"
]


def parsed(name, monkeypatch, *words):
    """Return the options that a command is called with."""
    command, parsed = COMMANDS[name], {}
    monkeypatch.setattr(command, "callback", lambda **options: parsed.update(options))
    required = [p for p in command.params if p.required]
    for param in required:
        given = any(word.partition("=")[0] in param.opts for word in words)
        words += (
            () if given else ("x",) if param.param_type_name == "argument" else (param.opts[0], "x")
        )
    command.main(list(words), standalone_mode=False)
    return parsed


@pytest.mark.parametrize(
    ("name", "param"), OPTIONS, ids=[f"{name}{param.opts[0]}" for name, param in OPTIONS]
)
def test_an_option_twice(name, param, monkeypatch):
    option = param.opts[0]
    if getattr(param, "is_flag", False):
        assert parsed(name, monkeypatch, option, option)[param.name] is True
        return
    first, second = "2", "3"  # text, or numbers
    for other in param.opts:
        twice = (
            (f"{option}={first}", f"{other}={second}")
            if other[:2] == "--"
            else (f"{option}={first}", other, second)
        )
        if param.multiple:
            assert list(parsed(name, monkeypatch, *twice)[param.name]) == [first, second]
        else:
            with pytest.raises(InputError, match=f"{option} must be given once"):
                parsed(name, monkeypatch, *twice)


@pytest.mark.parametrize(
    ("name", "param"), [(n, p) for n, p in OPTIONS if "," in (p.metavar or "")]
)
def test_comma_lists_add_up(name, param, monkeypatch):
    option = param.opts[0]
    if option == "--figure-axes":  # two ends, and no list
        return
    words = f"{option}=a, b", f"{option}=c"
    assert parsed(name, monkeypatch, *words)[param.name] == ["a", "b", "c"]
    with pytest.raises(InputError, match=f"{option} must name one or more"):
        parsed(name, monkeypatch, f"{option}= ,")


@pytest.mark.parametrize(
    "text", ['{"x": "text", "x": "number"}', '{"a": {"x": 1, "y": 2, "x": 1}}']
)
def test_a_name_of_json_twice(text, tmp_path):
    (tmp_path / "types.json").write_text(text)
    for source in (text, tmp_path / "types.json"):
        with pytest.raises(InputError, match="types must have each name once, got x, "):
            read_json(source, "types", "JSON")


def test_help_names_what_comes_with_the_library(capsys):
    assert list(options.METHOD_CHOICES) == list(METHODS)
    assert set(options.SOURCES) <= set(SOURCE_NAMES)
    assert set(options.ESTIMATOR_NAMES) == set(ESTIMATORS)
    for command in ("fit", "report", "calibrate"):
        assert run(command, "--help") == 0
        assert set(METHODS) - {"none"} <= set(re.findall(r"[\w-]+", capsys.readouterr().out))
