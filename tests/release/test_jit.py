"""Kernels that cannot be kept are compiled in every process, and users are told why it takes long."""

import warnings

import pytest
from numba.core import caching, event

from vennforest import _jit
from vennforest._messages import CalibrationWarning


@pytest.fixture
def unwritable(monkeypatch):
    """Let numba find no folder for its cache."""
    monkeypatch.setattr(caching.CompileResultCacheImpl, "_locator_classes", [])
    registered = []
    monkeypatch.setattr(event, "register", lambda kind, timer: registered.append((kind, timer)))
    _jit._time_compilation.cache_clear()
    yield registered
    _jit._time_compilation.cache_clear()


def compiled(*functions):
    """Compile functions one after the other, and return the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CalibrationWarning)
        for function in functions:
            assert _jit.kernel(function)(1.0) == function(1.0)
    return [str(each.message) for each in caught if each.category is CalibrationWarning]


@pytest.mark.parametrize(("long", "n_warnings"), [(0.0, 1), (600.0, 0)])
def test_a_long_compilation_that_cannot_be_kept_names_the_setting(
    unwritable, monkeypatch, long, n_warnings
):
    monkeypatch.setattr(_jit, "LONG_COMPILATION", long)
    _jit.kernel(lambda x: x)
    ((kind, timer),) = unwritable
    with event.install_listener(kind, timer):
        messages = compiled(lambda x: x + 1, lambda x: x + 2, lambda x: x + 3)
    assert len(messages) == n_warnings
    assert all("set NUMBA_CACHE_DIR" in m and "\n" not in m for m in messages)
    assert len(unwritable) == 1


def test_nothing_is_timed_where_kernels_are_kept(monkeypatch):
    registered = []
    monkeypatch.setattr(event, "register", lambda *arguments: registered.append(arguments))
    _jit._time_compilation.cache_clear()
    _jit.kernel(lambda x: x)
    assert registered == []
