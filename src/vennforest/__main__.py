"""``python -m vennforest``, and the command ``vennforest``."""

from __future__ import annotations

import gc
import signal
import sys
from types import FrameType

from vennforest import _program

BETWEEN_COLLECTIONS = 100_000
"""Objects after which Python looks for those that hold one another: imports make many that stay."""

NEEDED = ("typer", "rich")
STOPPED = 130


class _Interrupt(KeyboardInterrupt):
    """An interrupt of our own: of Python's own, some end the process by SIGINT after all is done.

    Those do that go through code which Python was given as text, such as that of data classes.
    """


class _Stop:
    """Has signals that would end the process at once stop it as Ctrl-C does."""

    def __init__(self) -> None:
        self.signal: int | None = None
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            usual = (signal.SIG_DFL, signal.default_int_handler)
            if number is not None and signal.getsignal(number) in usual:
                signal.signal(number, self)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        raise _Interrupt


def main() -> int:
    """Run the command line; without what it needs, say in one sentence what to install."""
    stop = _Stop()
    _program.OWN_PROCESS = True
    gc.set_threshold(BETWEEN_COLLECTIONS)
    try:
        code = _run()
    except KeyboardInterrupt:  # before the command line is there to say so, or after
        sys.stderr.write("Stopped: nothing was written.\n")
        code = STOPPED
    gc.freeze()  # what goes with the process is not looked through once more
    return 128 + stop.signal if code == STOPPED and stop.signal else code


def _run() -> int:
    try:
        from vennforest.cli import main as run
    except ModuleNotFoundError as missing:
        if missing.name not in NEEDED:
            raise
        sys.stderr.write(
            f"Error: the command line needs {missing.name}: "
            "install it with pip install 'vennforest[all]'\n"
        )
        return 2
    return run()


if __name__ == "__main__":
    sys.exit(main())
