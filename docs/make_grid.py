"""Run every cell of the grid of sources and calibrators, and write the table docs/grid.md."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from vennforest import CalibratedClassifier

PAGE = Path(__file__).parent / "grid.md"

METHODS = [
    "none", "platt", "isotonic", "bostrom", "beta", "temperature", "matrix", "quadratic",
    "spline", "pooled", "venn", "venn-abers",
]  # fmt: skip

SOURCES = {
    "out of bag, all trees": {"calibrate_on": "oob", "subforest": "all"},
    "out of bag, exchangeable": {"calibrate_on": "oob", "subforest": "exchangeable"},
    "out of bag, votes": {"calibrate_on": "oob", "votes": "hard"},
    "held-out part": {"calibrate_on": "holdout"},
    "folds, one calibrator each": {"calibrate_on": "cv", "ensemble": True},
    "folds, pooled": {"calibrate_on": "cv", "ensemble": False},
    "the training set": {"calibrate_on": "training"},
    "a fitted model": {"frozen": True},
}

DATA = {"breast cancer (2 classes)": load_breast_cancer, "wine (3 classes)": load_wine}


def cell(method, source, load):
    """Return the mean log loss of one cell's predictions, or None where there is no such cell."""
    X, y = load(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
    forest = RandomForestClassifier(50, min_samples_leaf=3, random_state=0)
    if source.get("frozen"):
        half = len(X) // 2
        frozen = FrozenEstimator(forest.fit(X[:half], y[:half]))
        model, X, y = CalibratedClassifier(frozen, method=method), X[half:], y[half:]
    else:
        model = CalibratedClassifier(forest, method=method, random_state=0, **source)
    p = model.fit(X, y).predict_proba(X_new)
    assert p.shape == (len(X_new), len(np.unique(y)))
    assert np.isfinite(p).all()
    assert np.allclose(p.sum(axis=1), 1)
    if hasattr(model, "predict_multiprobability"):
        m = model.predict_multiprobability(X_new)
        assert (m.lower <= p + 1e-9).all()
        assert (p <= m.upper + 1e-9).all()
    return log_loss(y_new, p, labels=model.classes_)


def page():
    """Return the page as text."""
    lines = [
        "# Every source with every calibrator",
        "",
        "Each cell was run and checked: probabilities of the right shape whose rows sum to 1, and "
        "bounds that contain them where the method has bounds. The numbers are mean log losses on "
        "held-out rows of two small data sets, with forests of 50 trees: they show that a cell "
        "works, not which is best. The rows held out are 40%.",
        "",
        "Written by `python docs/make_grid.py`.",
        "",
        "![Change of log loss by calibrating, for every source and calibrator, on two data sets]"
        "(pictures/grid.svg)",
        "",
        "*Each cell against the first column of its row: purple is better than uncalibrated, brown "
        "is worse, as certainties that fail are. ×: run, with nothing uncalibrated beside it.*",
    ]
    for name, load in DATA.items():
        lines += ["", f"## {name.capitalize()}", ""]
        lines.append("| calibration scores from | " + " | ".join(METHODS) + " |")
        lines.append("|---|" + "---|" * len(METHODS))
        for row, source in SOURCES.items():
            values = [cell(method, source, load) for method in METHODS]
            shown = ["–" if v is None else f"{v:.3f}" for v in values]
            lines.append(f"| {row} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        PAGE.write_text(page(), encoding="utf-8")
    sys.exit(0)
