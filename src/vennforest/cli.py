"""The command line: runs a command, and reports an error in one sentence."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from functools import partial

import typer

from vennforest._files import OutputError, one_line
from vennforest._messages import EXTRAS, InputError, how_to_install
from vennforest.commands.options import app
from vennforest.commands.terminal import leave_stdout, say

USERS_ERROR, OUR_ERROR, STOPPED = 2, 3, 130


def main(arguments: Sequence[str] | None = None, *, commands: typer.Typer = app) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Command-line arguments; by default those of the process.
    commands : typer.Typer
        The application; by default ``vennforest``.

    Returns
    -------
    int
        0 after success, 1 by ``--fail-on``, 2 for a user's error, 3 for a defect, 130 if stopped.
    """
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    os.environ["MPLBACKEND"] = "Agg"  # pictures are files; that of a notebook needs its packages
    printed: set[str] = set()
    with warnings.catch_warnings():
        warnings.showwarning = partial(_print_warning, printed)
        try:
            code = int(commands(args=arguments, standalone_mode=False) or 0)
            sys.stdout.flush()
        except BrokenPipeError:
            leave_stdout()
            code = 0
        except (KeyboardInterrupt, typer.Abort):
            code = STOPPED
        except Exception as error:
            if "--debug" in arguments:
                say(traceback.format_exc().rstrip())
            code, sentence = USERS_ERROR, _users_error(error)
            if sentence is None:
                code = OUR_ERROR
                sentence = (
                    f"vennforest failed in a way it should not, with {type(error).__name__}: "
                    f"{one_line(error)}; please report this to its developers (with --debug it "
                    "shows where)"
                )
            say(f"Error: {' '.join(sentence.split())}")
            return code
    if code == STOPPED:  # typer returns it for an interrupt
        say("Stopped: files are whole or as they were; standard output may end early.")
    return code


def _print_warning(printed: set[str], message: Warning | str, *_: object) -> None:
    """Print a warning, and add it to those that were printed and are not printed again."""
    text = " ".join(str(message).split())
    if text not in printed:
        printed.add(text)
        say(f"Warning: {text}")


def _users_error(error: Exception) -> str | None:
    """Return the message for an error of the user or their machine, None for a defect."""
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return f"this command needs {error.name}: {how_to_install(error.name)}"
    if isinstance(error, InputError | ImportError | OutputError):
        return str(error)
    if hasattr(error, "format_message"):  # of typer, about the arguments
        return str(error.format_message())
    if isinstance(error, MemoryError):
        reason = one_line(error) or "take fewer rows, columns or trees"
        return f"there is not enough memory: {reason}"
    if type(error).__name__ == "TerminatedWorkerError":  # of joblib
        return "a worker process was killed, as happens without enough memory: take fewer --jobs"
    if isinstance(error, OSError):
        return f"{error.filename}: {one_line(error)}" if error.filename else one_line(error)
    return None
