"""Commands in processes of their own, forked from one that has imported everything already."""

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

PRELOADED = ["vennforest.cli", "vennforest.commands.fit", "vennforest.commands.predict",
             "vennforest.commands.report", "skrub", "matplotlib.pyplot", __name__]  # fmt: skip


class Child:
    """A command that runs.

    Parameters
    ----------
    arguments : iterable
        Of the command line.
    before : tuple of callable
        Functions of a module, called in the process before the command.

    Signals have their default action, also where the tests run under nohup.
    """

    def __init__(self, *arguments, before=()):
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self._folder = tempfile.TemporaryDirectory()
        self.out, self.err = (Path(self._folder.name) / name for name in ("out", "err"))
        self.process = context.Process(
            target=_run, args=(list(map(str, arguments)), self.out, self.err, before)
        )
        self.process.start()

    def signal(self, number):
        """Send a signal; one that has ended takes none."""
        if self.process.exitcode is None:
            os.kill(self.process.pid, number)

    def wait(self, seconds=120):
        """Return the exit code, and what was said on stdout and stderr."""
        self.process.join(seconds)
        try:
            assert self.process.exitcode is not None, "hangs"
            return self.process.exitcode, self.out.read_text(), self.err.read_text()
        finally:
            self.process.kill()
            self._folder.cleanup()

    def wait_for(self, what, seconds=60):
        """Wait until something is so, or the process has ended."""
        limit = time.monotonic() + seconds
        while not what() and self.process.exitcode is None and time.monotonic() < limit:
            time.sleep(0.005)


def _run(arguments, out, err, before):
    with out.open("w") as sys.stdout, err.open("w", buffering=1) as sys.stderr:
        os.dup2(sys.stdout.fileno(), 1)
        os.dup2(sys.stderr.fileno(), 2)
        sys.argv = ["vennforest", *arguments]
        default_signals()
        for function in before:
            function()
        from vennforest.__main__ import main

        code = main()
        sys.stdout.flush()
    os._exit(code)


def default_signals():
    """Give signals that end a process their default action, which nohup changes."""
    for name in ("SIGTERM", "SIGHUP"):
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def few_rows_at_once():
    """Predict so few rows at once that there is time to stop a prediction."""
    from vennforest.commands import predict

    predict.ROWS_AT_ONCE = 20
