"""Kernels that cannot be kept are compiled in every process, and a warning says so."""

import warnings

import pytest
from numba.core import caching, event

from vennforest import _jit
from vennforest._messages import CalibrationWarning


@pytest.fixture
def timers(monkeypatch):
    """Kernels that are made from now on, and the timers that they register."""
    timers, register = [], event.register

    def recorded(kind, listener):
        if isinstance(listener, _jit.CompilationTimer):
            timers.append((kind, listener))
        register(kind, listener)

    monkeypatch.setattr(event, "register", recorded)
    _jit._time_compilation.cache_clear()
    yield timers
    _jit._time_compilation.cache_clear()
    for kind, timer in timers:
        event.unregister(kind, timer)


def compiled(*functions):
    """Compile functions one after the other, and return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        for function in functions:
            assert _jit.kernel(function)(1.0) == function(1.0)
    return [str(each.message) for each in caught if each.category is CalibrationWarning]


@pytest.mark.parametrize(("long", "n_warnings"), [(0.0, 1), (600.0, 0)])
def test_a_long_compilation_that_cannot_be_kept_names_the_setting(
    timers, monkeypatch, long, n_warnings
):
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    monkeypatch.setattr(_jit, "LONG_COMPILATION", long)
    messages = compiled(lambda x: x + 1, lambda x: x + 2, lambda x: x + 3)
    assert len(messages) == n_warnings
    assert all("set NUMBA_CACHE_DIR" in m and "\n" not in m for m in messages)
    assert len(timers) == 1


def test_nothing_is_timed_where_kernels_are_kept(timers):
    assert compiled(lambda x: x + 1) == []
    assert timers == []
