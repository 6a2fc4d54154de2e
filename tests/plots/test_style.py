"""What all plots share: axes of matplotlib, or one sentence."""

import sys

import pytest

from vennforest.plots import ReliabilityDisplay


def test_without_matplotlib_one_sentence(monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r"plots need matplotlib: .* 'vennforest\[all\]'"):
        ReliabilityDisplay.from_predictions([0, 1], [0.2, 0.8])
