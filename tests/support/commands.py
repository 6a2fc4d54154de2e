"""The command line, run in this process."""

from vennforest.cli import main


def run(*arguments):
    return main([str(argument) for argument in arguments])


def refused(capsys, *arguments):
    """Return the one sentence with which a command is refused."""
    capsys.readouterr()
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("Error: ") and err.count("\n") == 1, err
    assert "Traceback" not in err and "report this" not in err
    return err.removeprefix("Error: ").strip()
