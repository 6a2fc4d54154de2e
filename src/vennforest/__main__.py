"""``python -m vennforest``, and the command ``vennforest``."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command line, or say what to install if a package that it needs is missing."""
    try:
        from vennforest.cli import main as run

        # From here on other signals end a command as Ctrl-C does: no file stays half-written. While
        # libraries are imported they end the process, since these may swallow an interrupt.
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) == signal.SIG_DFL:  # not under nohup
                signal.signal(number, signal.default_int_handler)
        return run()
    except KeyboardInterrupt:  # while the command line is imported
        sys.stderr.write("Stopped: nothing was written.\n")
        return 130
    except ModuleNotFoundError as missing:
        from vennforest._messages import EXTRAS, how_to_install

        if missing.name not in EXTRAS:
            raise
        hint = how_to_install(missing.name)
        sys.stderr.write(f"Error: the command line needs {missing.name}: {hint}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
