"""Sorted bounds and intervals of rows, for plots."""

import numpy as np
import pytest

from support.cases import close
from vennforest import metrics
from vennforest.multiprobability import Multiprobability


def draw_intervals(rng, n, k, classes=None):
    p = rng.dirichlet(np.ones(k), n).round(1 if rng.random() < 0.3 else 9)
    lower = np.clip(p - rng.random((n, k)) / 5, 0, 1)
    upper = np.clip(p + rng.random((n, k)) / 5, 0, 1)
    if k == 2:
        upper[:, 0], lower[:, 0] = 1 - lower[:, 1], 1 - upper[:, 1]
    return Multiprobability(lower, upper, np.arange(k) if classes is None else np.array(classes))


@pytest.mark.parametrize(("y", "options", "message"), [
    (["a", "b", "c"], {}, "y must contain labels of classes"),
    (None, {"pos_label": "c"}, "pos_label must be one of"),
    (None, {"p": np.zeros(3)}, r"p must have shape \(3, 2\), got \(3,\)"),
])  # fmt: skip
def test_interval_curve_refuses_what_does_not_fit(y, options, message):
    m = draw_intervals(np.random.default_rng(0), 3, 2, ["a", "b"])
    with pytest.raises(ValueError, match=message):
        metrics.interval_curve(y, m, **options)


def test_interval_curve_orders_and_thins():
    rng = np.random.default_rng(3)
    m = draw_intervals(rng, 400, 2, ["no", "yes"])
    y = rng.choice(["no", "yes"], 400)
    curve = metrics.interval_curve(y, m)
    np.testing.assert_array_equal(curve.x, np.arange(1, 401))
    assert curve.event == "yes"
    assert curve.outcome.sum() == (y == "yes").sum()
    # Every object keeps its own bounds and label.
    rows = {(a, b, label == "yes") for a, b, label in zip(m.p0, m.p1, y, strict=True)}
    assert set(zip(curve.low, curve.high, curve.outcome == 1, strict=True)) == rows
    other = metrics.interval_curve(None, m, pos_label="no")
    close(np.sort(other.low), np.sort(1 - m.p1))
    m = draw_intervals(rng, 1000, 2, ["no", "yes"])
    thin = metrics.interval_curve(None, m)
    assert len(thin.x) == 400
    assert (thin.x[0], thin.x[-1], thin.n) == (1, 1000, 1000)
    close(thin.p, np.sort((m.p0 + m.p1) / 2)[thin.x.astype(int) - 1])
    many = draw_intervals(rng, 50, 4)
    curve = metrics.interval_curve(many.labels(), many)
    assert curve.event == "predicted label"
    assert curve.outcome.all()
    close(np.sort(curve.low), np.sort(many.of_label()[0]))
