"""Draw the pictures of docs/drift.md: ``python docs/make_drift.py``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from experiments.studies.drifts import PROCESSES, stream  # noqa: E402

from vennforest.monitoring import Monitor, ProtectedClassifier  # noqa: E402
from vennforest.report.figures import paint_evidence  # noqa: E402

SEED = 1_802_338_914
REFERENCE, BEFORE, AFTER = 1000, 3000, 3000
NAMES = {
    "none": "no change",
    "base rate": "share .10 to .15",
    "rotated": "boundary turned by 45°",
    "lost column": "a column lost",
}


def evidence() -> Figure:
    """Evidence over four streams, three of which change in their middle."""
    process, found = PROCESSES["linear"], {}
    for drift, name in NAMES.items():
        X, y = stream(process, drift, SEED, REFERENCE + BEFORE, AFTER)
        scores = process.scores(X)
        monitor = Monitor(random_state=0).fit_scores(scores[:REFERENCE], y[:REFERENCE])
        found[name] = np.minimum(monitor.update_scores(scores[REFERENCE:], y[REFERENCE:]), 1e12)
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    paint_evidence(figure.subplots(), found, 20.0, BEFORE)
    return figure


def protected() -> Figure:
    """Mean log loss over the last 500 rows of a stream that changes, with and without."""
    process = PROCESSES["linear"]
    X, y = stream(process, "more frequent", SEED, BEFORE, AFTER)
    model = process.model()
    rows, codes = np.arange(len(y)), y.astype(int)
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    ax = figure.subplots()
    for name, p, colour in (
        ("the model as it is", model.predict_proba(X), "#0072B2"),
        ("protected", ProtectedClassifier(model).update(X, y), "#D55E00"),
    ):
        loss = np.cumsum(-np.log(p[rows, codes]))
        ax.plot(rows[500:], (loss[500:] - loss[:-500]) / 500, label=name, color=colour)
    ax.axvline(BEFORE, color="#767676", linewidth=1)
    ax.set_xlabel("Row of the stream")
    ax.set_ylabel("Log loss, last 500 rows")
    ax.legend(frameon=False)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return figure


def main() -> None:
    """Write both pictures."""
    (HERE / "drift").mkdir(exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "drift", "svg.fonttype": "none"}):
        for name, figure in (("evidence", evidence()), ("protected", protected())):
            figure.savefig(HERE / "drift" / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
