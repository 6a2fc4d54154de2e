"""``python -m vennforest``, and the command ``vennforest``."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line, or say what to install if a package that it needs is missing."""
    for name in ("SIGTERM", "SIGHUP"):  # end a command as Ctrl-C does: no file stays half-written
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # not under nohup
            signal.signal(number, signal.default_int_handler)
    try:
        from vennforest.cli import main as run

        return run()
    except KeyboardInterrupt:  # while the command line is imported
        sys.stderr.write("Stopped: nothing was written.\n")
        return 130
    except ModuleNotFoundError as missing:
        if missing.name not in ("typer", "rich"):
            raise
        sys.stderr.write(
            f"Error: the command line needs {missing.name}: "
            "install it with pip install 'vennforest[all]'\n"
        )
        return 2


if __name__ == "__main__":
    sys.exit(main())
