"""Figures without a window, closed after each test."""

import pytest


@pytest.fixture(autouse=True)
def close_figures():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")
