"""Critical-difference diagrams draw what the comparison computed."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from vennforest_experiments.comparison import compare  # noqa: E402
from vennforest_experiments.plots import CriticalDifferenceDisplay  # noqa: E402

LONG = "a method whose name is so long that no legend could ever hold all of it"


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("k", [2, 3, 10])
def test_critical_differences_of_a_comparison(k):
    rng = np.random.default_rng(3)
    table = rng.random((22, k)) + np.arange(k) / 10
    names = [f"{LONG} {i}" if i == 1 else f"method {i}" for i in range(k)]
    result = compare(table, lower_is_better=True, methods=names)
    display = CriticalDifferenceDisplay.from_comparison(result)
    assert len(display.bars_) == len(result.groups("nemenyi"))
    for bar, group in zip(display.bars_, result.groups("nemenyi"), strict=True):
        ranks = [result.mean_ranks[names.index(name)] for name in group]
        np.testing.assert_allclose(bar.get_xdata(), [min(ranks) - 0.04, max(ranks) + 0.04])
    shown = " ".join(text.get_text() for text in display.ax_.texts)
    for rank in result.mean_ranks:
        assert f"{rank:.2f}" in shown
    assert f"critical difference {result.critical_difference('nemenyi'):.2f}" in shown
    display.figure_.canvas.draw()
    no_length = CriticalDifferenceDisplay.from_comparison(result, test="bergmann-hommel")
    assert "critical" not in " ".join(text.get_text() for text in no_length.ax_.texts)


def test_bars_that_meet_are_drawn_at_different_heights():
    display = CriticalDifferenceDisplay(
        [1.5, 2.0, 2.9, 3.6], "abcd", groups=["ab", "bc", "cd"], critical_difference=1
    ).plot()
    heights = [bar.get_ydata()[0] for bar in display.bars_]
    assert heights[0] != heights[1] != heights[2]
    assert heights[0] == heights[2]
