"""Commands of other packages: found by their entry points, never in the way of our own."""

import subprocess
import sys

import pytest

typer = pytest.importorskip("typer")
pytest.importorskip("rich")

from vennforest import cli  # noqa: E402
from vennforest.commands import added  # noqa: E402

MODULE = '''
import typer

def hello(name: str, times: int = 1) -> None:
    """Greet somebody."""
    if times < 1:
        raise typer.BadParameter("times must be at least 1")
    print("hello", *[name] * times)
'''
ENTRIES = """[vennforest.commands]
hello = other:hello
fit = other:hello
broken = other:nothing
"""


@pytest.fixture
def other(tmp_path, monkeypatch):
    """An installed package with three commands: one good, one named as ours, one not there."""
    (tmp_path / "other.py").write_text(MODULE)
    (tmp_path / "other-1.0.dist-info").mkdir()
    (tmp_path / "other-1.0.dist-info" / "METADATA").write_text("Name: other\nVersion: 1.0\n")
    (tmp_path / "other-1.0.dist-info" / "entry_points.txt").write_text(ENTRIES)

    def run(*arguments):
        code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        code += "from vennforest.cli import main; sys.exit(main())"
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_a_command_of_another_package(other):
    assert other("hello", "you", "--times", "2").stdout == "hello you you\n"
    listed = other("--help").stdout
    assert "Greet somebody." in listed
    assert "broken" not in listed
    wrong = other("hello", "you", "--times", "0")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("Error: ") and "times must be at least 1" in wrong.stderr
    broken = other("broken")
    assert broken.returncode == 2
    assert broken.stderr.startswith("Error: broken (other:nothing) cannot be imported")
    assert "--target" in other("fit", "--help").stdout


@pytest.mark.parametrize("typed", [["datasets"], ["reproduce", "vovk2014", "-o", "x"]])
@pytest.mark.parametrize("more", [[], ["--help"]])
def test_commands_of_a_package_that_is_not_installed(typed, more, monkeypatch, capsys):
    app = typer.Typer()
    app.command()(lambda: None)
    monkeypatch.setattr(added, "entry_points", lambda group: [])
    monkeypatch.setattr(cli, "app", app)
    assert cli.main([*typed, *more]) == 2
    said = capsys.readouterr().err
    assert said == f"Error: {typed[0]} needs another package: pip install vennforest-experiments\n"
    assert all(command.hidden for command in app.registered_commands[1:])


def test_nothing_is_looked_for_where_a_command_of_ours_is_typed(monkeypatch):
    def looked(group):
        raise AssertionError

    monkeypatch.setattr(added, "entry_points", looked)
    app = typer.Typer()
    app.command("mine")(lambda: None)
    added.add_commands(app, ["mine", "--help"])
    assert len(app.registered_commands) == 1
