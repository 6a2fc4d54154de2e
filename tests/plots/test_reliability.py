"""Reliability diagrams draw what the measures computed, into the axes they are given."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from plots.drawing import draw_predictions, drawn, ends_of, texts
from vennforest import metrics
from vennforest.plots import ReliabilityDisplay

LONG = "a method whose name is so long that no legend could ever contain all of it"


def test_reliability_shows_the_curve_of_the_measures():
    y, p = draw_predictions()
    display = ReliabilityDisplay.from_predictions(y, p, name="Venn–Abers", bins=7)
    curve = metrics.reliability_curve(y, p, bins=7)
    np.testing.assert_array_equal(display.line_.get_xdata(), curve.smooth_estimate)
    np.testing.assert_array_equal(display.line_.get_ydata(), curve.smooth_share)
    bars = ends_of(display.ax_.collections[0])
    np.testing.assert_array_equal(bars, [curve.bin_low, curve.bin_high])
    dots = display.ax_.collections[-1].get_offsets()
    np.testing.assert_allclose(dots, np.column_stack([curve.bin_estimate, curve.bin_share]))
    assert display.ax_.get_title() == "Venn–Abers"
    n_yes = int((y == "yes").sum())
    assert display.ax_histogram_.get_xlabel() == (
        f"Predicted probability of “yes”\nup: “yes” ({n_yes} rows), down: not ({200 - n_yes})"
    )
    assert display.ax_.get_ylabel() == "How often “yes” was observed"
    name, ideal = texts(display.ax_)
    assert ideal == "perfectly calibrated" and name.splitlines()[0] == "Venn–Abers"
    area = vars(metrics.auc_interval(y, p))
    numbers = [vars(getattr(curve.line, n)) for n in ("observed_expected", "intercept", "slope")]
    _, dots_line, bars_line, *lines = name.splitlines()
    assert (dots_line, bars_line) == ("dots: 7 groups of rows", "bars, band: 95% intervals")
    for line, estimate in zip(lines, [*numbers, area], strict=True):
        value, low, high, *_ = estimate.values()
        ends = f"{value:.2f} ({low:.2f} to {high:.2f})"
        assert line.split(maxsplit=1)[1] == ends.replace("-", "−")
    assert len(np.unique(drawn(display.figure_).reshape(-1, 4), axis=0)) > 10


@pytest.mark.parametrize(("n_methods", "n"), [(1, 1), (6, 400), (9, 1)])
def test_reliability_of_several_methods(n_methods, n):
    y, p = draw_predictions(n)
    methods = {f"{LONG} {i}" if i else "raw": p ** (1 + i / 4) for i in range(n_methods)}
    display = ReliabilityDisplay.from_predictions(y, methods, classes=["no", "yes"])
    assert len(display.lines_) == n_methods
    looks = {(line.get_color(), str(line.get_linestyle())) for line in display.lines_}
    assert len(looks) == n_methods
    assert all(len(line) <= 42 for text in texts(display.ax_) for line in text.splitlines())
    drawn(display.figure_)


def test_reliability_parts_can_be_left_out_and_axes_given():
    y, p = draw_predictions()
    plt = pytest.importorskip("matplotlib.pyplot")
    _, (left, right) = plt.subplots(1, 2, layout="constrained")
    ReliabilityDisplay.from_predictions(y, p, ax=left)
    options = {"histogram": False, "band": False, "statistics": False, "title": "Forest"}
    display = ReliabilityDisplay.from_predictions(y, p, ax=right, plot_options=options)
    assert display.ax_ is right
    assert display.figure_ is right.figure
    assert display.ax_histogram_ is None
    assert right.get_title() == "Forest"
    assert texts(right) == ["Estimates", "perfectly calibrated"]
    curve = metrics.reliability_curve(y, p)
    np.testing.assert_array_equal(display.line_.get_xdata(), curve.smooth_estimate)
    assert len(right.collections) == 2  # bars and dots, no band
    corp = ReliabilityDisplay.from_predictions(y, p, band="confidence")
    np.testing.assert_array_equal(corp.line_.get_ydata(), corp.curves["Estimates"].corp_share)
    drawn(corp.figure_)
    drawn(display.figure_)


@pytest.mark.parametrize("k", [2, 3])
def test_reliability_from_estimator(k):
    X, y = make_classification(300, n_informative=4, n_classes=k, random_state=0)
    model = LogisticRegression().fit(X, y)
    display = ReliabilityDisplay.from_estimator(model, X, y)
    assert display.ax_.get_title() == "LogisticRegression"
    direct = ReliabilityDisplay.from_predictions(y, model.predict_proba(X))
    np.testing.assert_array_equal(display.line_.get_ydata(), direct.line_.get_ydata())
    both = ReliabilityDisplay.from_estimator({"a": model, "b": model}, X, y)
    assert len(both.lines_) == 2
    # Labels of one class only still have the model's classes.
    ReliabilityDisplay.from_estimator(model, X[y == 0], y[y == 0])


def test_logarithmic_axes():
    rng = np.random.default_rng(0)
    p = rng.random(80)
    y = (rng.random(80) < p).astype(int)
    curve = ReliabilityDisplay.from_predictions(y, p).curves
    drawn = ReliabilityDisplay(curve).plot(log=True)
    assert drawn.ax_.get_xscale() == "log"
    drawn.figure_.canvas.draw()
    ticks = [label.get_text() for label in drawn.ax_.get_yticklabels()]
    assert "10%" in ticks and not any("$" in tick for tick in ticks)
    assert not any(tick.get_text() for tick in drawn.ax_.get_yticklabels(minor=True))


@pytest.mark.parametrize("scale", [1.0, 0.3, 3.0])
@pytest.mark.parametrize("share", [0.07, 0.5, 0.95])
def test_a_legend_without_a_title_hides_nothing_and_axes_end_where_the_estimates_do(scale, share):
    rng = np.random.default_rng(0)
    z = np.log(share / (1 - share)) + 0.8 * rng.normal(size=1000)
    y, p = rng.random(1000) < 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-scale * z))
    display = ReliabilityDisplay.from_predictions(y, p, plot_options={"title": ""})
    curve, ax = display.curves["Estimates"], display.ax_
    display.figure_.draw_without_rendering()
    box = ax.get_legend().get_window_extent()
    for x, values in (
        (curve.bin_estimate, curve.bin_share),
        (curve.band_estimate, curve.band_low),
        (curve.band_estimate, curve.band_high),
        (curve.smooth_estimate, curve.smooth_share),
    ):
        shown = values <= ax.get_ylim()[1]
        points = ax.transData.transform(np.column_stack([x, values])[shown])
        assert not box.count_contains(points)
    low, high = ax.get_xlim()
    assert low <= np.sort(p)[9] and np.sort(p)[-10] <= high
    if (share, scale) == (0.07, 1.0):
        assert high == 0.4 or high == 0.5
        assert not any("100%" in tick.get_text() for tick in ax.get_xticklabels())
    if share == 0.95 and scale == 1.0:
        assert low >= 0.5
