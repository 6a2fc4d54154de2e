"""The command line: runs a command, and says in one sentence what went wrong."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

import typer

from vennforest._errors import InputError
from vennforest.commands.arguments import Run, app
from vennforest.commands.terminal import Stopped, say

USERS_ERROR, OUR_ERROR, STOPPED = 2, 1, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 2 for the user's errors, 1 for ours.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.
    """
    run = Run()
    try:
        code = app(
            args=list(sys.argv[1:] if arguments is None else arguments),
            standalone_mode=False,
            obj=run,
        )
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    except Stopped as kept:
        say(str(kept))
        return STOPPED
    except (InputError, ImportError) as error:
        return _failed(str(error), USERS_ERROR, run)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone
        return OUR_ERROR
    except Exception as error:
        if hasattr(error, "format_message"):  # an argument that is none
            return _failed(error.format_message(), USERS_ERROR, run)
        return _unexpected(error, run)
    if code == STOPPED:  # what typer makes of an interrupt
        say("Stopped: nothing was written.")
    return int(code or 0)


def _failed(message: str, code: int, run: Run) -> int:
    if run.debug:
        traceback.print_exc()
    say(f"Error: {' '.join(message.split())}")
    return code


def _unexpected(error: Exception, run: Run) -> int:
    hint = "" if run.debug else " (with --debug it shows where)"
    what = " ".join(str(error).split())[:300]
    message = (
        f"vennforest failed in a way it should not, with {type(error).__name__}: {what}; "
        f"please report this to its developers{hint}"
    )
    return _failed(message, OUR_ERROR, run)
