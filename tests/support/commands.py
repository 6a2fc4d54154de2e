"""The command line, run in this process."""

from vennforest.cli import main

FAST = ("--folds", "2", "--trees", 20, "--methods", "venn-abers", "--jobs", "1")
FAST += ("--estimator", "mixed-forest")  # beside no others
"""Options with which a report takes little time."""


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
