"""``python -m vennforest``, and the command ``vennforest``."""

from __future__ import annotations

import signal
import sys
from types import FrameType

STOPPED = 130


class _Interrupt(KeyboardInterrupt):
    """An interrupt that Python itself does not turn into the end of the process by SIGINT.

    It does that to a `KeyboardInterrupt` that passes through ``exec``, as of data classes.
    """


class _Stop:
    """Make signals that would end the process stop the command as Ctrl-C does.

    A signal that is ignored stays ignored: under ``nohup`` a command goes on after a hangup.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            defaults = (signal.SIG_DFL, signal.default_int_handler)
            if number is not None and signal.getsignal(number) in defaults:
                signal.signal(number, self)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        raise _Interrupt


def main() -> int:
    """Run the command line; without its packages, say in one sentence what to install."""
    stop = _Stop()
    try:
        from vennforest.cli import main as run

        code = run()
    except KeyboardInterrupt:  # while the command line is imported
        sys.stderr.write("Stopped: nothing was written.\n")
        code = STOPPED
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        sys.stderr.write(
            f"Error: the command line needs {missing.name}: "
            "install it with pip install 'vennforest[all]'\n"
        )
        code = 2
    return 128 + stop.signal if code == STOPPED and stop.signal else code


if __name__ == "__main__":
    sys.exit(main())
