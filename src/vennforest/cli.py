"""The command line: runs a command, and says in one sentence what went wrong."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import typer

from vennforest._files import OutputError, one_line
from vennforest._messages import InputError
from vennforest.commands import report_options  # noqa: F401  # registers report
from vennforest.commands.options import Run, app
from vennforest.commands.terminal import Stopped, say

USERS_ERROR, OUR_ERROR, STOPPED = 2, 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 2 for the user's errors, 1 for ours.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.
    """
    return run_app(app, list(sys.argv[1:] if arguments is None else arguments))


def run_app(commands: typer.Typer, arguments: list[str]) -> int:
    """Run a command of an application and return its exit code; errors are one sentence."""
    run = Run()
    _spare_the_home()
    with warnings.catch_warnings():
        warnings.showwarning = _warned  # type: ignore[assignment]
        try:
            code = commands(args=arguments, standalone_mode=False, obj=run)
            sys.stdout.flush()
        except (KeyboardInterrupt, typer.Abort):
            code = STOPPED
        except Stopped as kept:
            say(str(kept))
            return STOPPED
        except BrokenPipeError:
            sys.stderr.close()  # whoever read our output has gone
            return OUR_ERROR
        except Exception as error:
            message = _sentence(error)
            if message is None:
                return _failed(_unexpected(error, run), OUR_ERROR, run)
            return _failed(message, USERS_ERROR, run)
    if code == STOPPED:  # what typer makes of an interrupt
        say("Stopped: nothing was written.")
    return int(code or 0)


def _spare_the_home() -> None:
    """Have what is imported later make its folders elsewhere, for this process only.

    skrub makes one for data sets, of which commands fetch none. matplotlib keeps a list of fonts
    and works without one, so its folders are used where they are, and else not made.
    """
    os.environ.setdefault("SKB_DATA_DIRECTORY", tempfile.gettempdir())
    if "matplotlib" in sys.modules or "MPLCONFIGDIR" in os.environ:
        return
    with suppress(RuntimeError):  # there may be no home
        home = Path.home()
        settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
        if (settings / "matplotlib").is_dir() or (home / ".matplotlib").is_dir():
            return
    folder = tempfile.mkdtemp(prefix="vennforest-")
    os.environ["MPLCONFIGDIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


def _warned(message: Warning | str, *_: object) -> None:
    say(f"Warning: {' '.join(str(message).split())}")


def _sentence(error: Exception) -> str | None:
    """Return what to tell the user; None: it is no error of theirs, nor of their machine."""
    if isinstance(error, InputError | ImportError | OutputError):
        return str(error)
    if hasattr(error, "format_message"):  # an argument that is none
        return str(error.format_message())
    if isinstance(error, MemoryError):
        reason = one_line(error) or "take fewer rows, columns or trees"
        return f"there is not enough memory: {reason}"
    if type(error).__name__ == "TerminatedWorkerError":
        return "a worker process was killed, as happens without enough memory: take fewer --jobs"
    if isinstance(error, OSError):
        return f"{error.filename}: {one_line(error)}" if error.filename else one_line(error)
    return None


def _failed(message: str, code: int, run: Run) -> int:
    if run.debug:
        say(traceback.format_exc().rstrip())
    say(f"Error: {' '.join(message.split())}")
    return code


def _unexpected(error: Exception, run: Run) -> str:
    hint = "" if run.debug else " (with --debug it shows where)"
    what = " ".join(str(error).split())[:300]
    return (
        f"vennforest failed in a way it should not, with {type(error).__name__}: {what}; "
        f"please report this to its developers{hint}"
    )
