"""Learning curves draw what was computed."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from sklearn.datasets import make_classification  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402

from vennforest_experiments.comparison import learning_curve  # noqa: E402
from vennforest_experiments.plots import LearningCurveDisplay  # noqa: E402

LONG = "a method whose name is so long that no legend could ever hold all of it"


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("log_sizes", [True, False])
def test_learning_curves(log_sizes):
    rng = np.random.default_rng(2)
    sizes = [400, 50, 100, 200]
    values = {name: rng.random((4, 5)) for name in ("a", "b", LONG)}
    display = LearningCurveDisplay.from_values(
        sizes, values, measure="Brier score", plot_options={"log_sizes": log_sizes, "title": "t"}
    )
    curve = learning_curve(sizes, values["b"])
    np.testing.assert_array_equal(display.lines_[1].get_ydata(), curve.mean)
    np.testing.assert_array_equal(display.lines_[1].get_xdata(), [50, 100, 200, 400])
    assert display.ax_.get_ylabel() == "Brier score"
    assert len(display.ax_.get_legend().get_texts()) == 3
    display.figure_.canvas.draw()
    if log_sizes:
        assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["50", "100", "200", "400"]
    single = LearningCurveDisplay.from_values([1], [[2.0, 3.0]], ax=plt.figure().gca())
    assert single.ax_.get_legend() is None


def test_learning_curve_from_estimator():
    X, y = make_classification(120, random_state=0)
    display = LearningCurveDisplay.from_estimator(
        {"a": LogisticRegression(), "b": LogisticRegression(C=0.01)},
        X,
        y,
        cv=3,
        scoring="neg_brier_score",
    )
    assert display.measure == "neg_brier_score"
    assert len(display.lines_) == 2
    assert list(display.curves["a"].sizes) == [8, 26, 44, 62, 80]
