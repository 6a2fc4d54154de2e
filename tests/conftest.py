"""What all tests share."""

import os
import signal
import threading

import numpy as np
import pytest

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
"""Whether loops run as Python does: ``make test-nojit``."""

PATIENCE = float(os.environ.get("VENNFOREST_PATIENCE", "20"))
"""Seconds of processor time that a test may take where loops are not compiled; then what it saw
has to do."""

TRACER = {"coverage.collector", "coverage.control", "coverage.inorout"}
"""Where coverage decides what to measure, and may hold a lock."""


def _is_traced(frame):
    """Tell whether coverage is at work on what the test calls."""
    while frame is not None and frame.f_globals.get("__name__") not in TRACER:
        frame = frame.f_back
    return frame is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """End tests of thousands of cases early where each case takes a hundred times as long.

    They are shown as skipped: the cases before passed, the others were not reached.
    """
    if not UNCOMPILED or threading.current_thread() is not threading.main_thread():
        return (yield)

    def stop(signum, frame):
        if _is_traced(frame):  # interrupted here, its lock would be held for ever
            signal.setitimer(signal.ITIMER_PROF, 0.01)
            return
        pytest.skip(f"no failure within {PATIENCE:.0f} s, the other cases need compiled loops")

    old = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        with np.errstate(over="ignore"):  # compiled loops wrap round in silence, as hashes do
            return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, old)
