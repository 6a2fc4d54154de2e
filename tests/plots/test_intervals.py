"""Bounds and intervals of rows, drawn as the measures compute them."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from plots.drawing import draw_predictions, drawn, ends_of, texts
from report.reading import numbers_in
from vennforest import CalibratedClassifier, metrics
from vennforest.multiprobability import Multiprobability
from vennforest.plots import IntervalDisplay


def intervals(n):
    _, p = draw_predictions(n)
    low, high = (p - 0.1).clip(0, 1), (p + 0.1).clip(0, 1)
    lower, upper = np.column_stack([1 - high, low]), np.column_stack([1 - low, high])
    return Multiprobability(lower, upper, np.array(["no", "yes"]))


@pytest.mark.parametrize(("n", "labelled"), [(1, False), (20, True), (3000, False)])
def test_intervals(n, labelled):
    y = draw_predictions(n)[0] if labelled else None
    display = IntervalDisplay.from_predictions(y, intervals(n))
    curve = metrics.interval_curve(y, intervals(n))
    np.testing.assert_array_equal(display.line_.get_xdata(), curve.x)
    np.testing.assert_array_equal(display.line_.get_ydata(), curve.p)
    assert display.ax_.get_ylabel() == "Probability of “yes”"
    assert ("It happened (top)" in texts(display.ax_)) == labelled
    shown = numbers_in(display.ax_.get_xlabel())
    assert shown[:2] == [400, 3000] if n == 3000 else len(curve.x) == n
    drawn(display.figure_)


@pytest.mark.parametrize("mostly", ["low", "high"])
def test_bounds_and_confidence_intervals_are_drawn_apart(mostly):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    y = rng.random(150) < 1 / (1 + np.exp(-2 * X[:, 0] - (2 if mostly == "high" else -2)))
    model = CalibratedClassifier(RandomForestClassifier(20, random_state=0), random_state=0)
    model.fit(X[30:], y[30:])
    new = X[:30]
    p, m = model.predict_proba(new)[:, 1], model.predict_multiprobability(new)
    known = model.predict_confidence(new)
    display = IntervalDisplay.from_estimator(model, new, y[:30])
    order = np.lexsort((m.p1, m.p0, p))
    np.testing.assert_array_equal(display.line_.get_ydata(), p[order])
    for drawn_bars, lower, upper in (
        (display.bounds_, m.lower, m.upper),
        (display.confidence_, known.lower, known.upper),
    ):
        low, high = ends_of(drawn_bars)
        np.testing.assert_array_equal(low, lower[order, 1])
        np.testing.assert_array_equal(high, upper[order, 1])
    thick, thin = display.bounds_.get_linewidth()[0], display.confidence_.get_linewidth()[0]
    assert thick > 2 * thin
    names = {"Probability", "Venn–Abers bounds", "95% confidence interval"}
    assert names <= set(texts(display.ax_))
    drawn(display.figure_)
