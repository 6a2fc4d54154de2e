"""Draw the pictures of the site that no example draws: ``make pictures``.

The examples draw theirs (``examples/*.py PICTURE``). All are kept under version control, so that
the site builds without running a model.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest.plots import IntervalDisplay, ReliabilityDisplay

FOLDER = Path(__file__).parent / "pictures"


def sample(n, seed):
    """Return features, labels and the true probabilities that these were drawn with."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    p = 1 / (1 + np.exp(-5 * X[:, 0] + 4 * X[:, 1] * X[:, 2]))
    return X, (rng.random(n) < p).astype(int), p


def save(display, name):
    """Write one picture, the same for the same numbers."""
    display.figure_.savefig(FOLDER / f"{name}.svg", metadata={"Date": None})


def figures():
    """Return ``{family and classes: (uncalibrated, default)}``: log losses of docs/defaults.md."""
    text = (Path(__file__).parent / "defaults.md").read_text("utf-8")
    found = {}
    for family, default in [
        ("forest", "pooled"),
        ("logistic", "pooled, mean of the folds' models"),
        ("boosting", "pooled, mean of the folds' models"),
    ]:
        for classes in ("two classes", "more than two classes"):
            part = text.split(f"## {family}, the first collection, {classes}\n")[1].split("## ")[0]
            rows = [line.split(" | ") for line in part.splitlines() if line.startswith("| ")]
            loss = {row[0].removeprefix("| "): float(row[1]) for row in rows[1:]}
            found[family, classes] = loss["uncalibrated"], loss[default]
    return found


def gain():
    """Draw what the default is worth, by family and number of classes."""
    figure, ax = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
    for i, ((family, classes), (raw, default)) in enumerate(figures().items()):
        ax.plot([raw, default], [-i, -i], color="#767676", zorder=1)
        ax.scatter(raw, -i, color="#D55E00", marker="s", label="uncalibrated" if i == 0 else None)
        ax.scatter(default, -i, color="#0072B2", label="the default" if i == 0 else None)
        ax.text(0.78, -i, f"{family}, {classes}", va="center")
    ax.set(xlabel="mean log loss over data sets (docs/defaults.md)", yticks=[], xlim=(0.3, 1.13))
    ax.spines[["left", "top", "right"]].set_visible(False)
    ax.legend(loc="lower center", bbox_to_anchor=(0.3, 1.0), ncols=2, frameon=False)
    figure.savefig(FOLDER / "which-gain.svg", metadata={"Date": None})


def main():
    """Draw them."""
    gain()
    FOLDER.mkdir(exist_ok=True)
    X, y, _ = sample(1500, 0)
    X_new, y_new, _ = sample(3000, 1)
    model = CalibratedClassifier(RandomForestClassifier(150, random_state=0), random_state=0)
    model.fit(X, y)
    raw, p = model.estimator_.predict_proba(X_new)[:, 1], model.predict_proba(X_new)[:, 1]
    save(ReliabilityDisplay.from_predictions(y_new, raw, name="forest"), "why-before")
    save(ReliabilityDisplay.from_predictions(y_new, p, name="calibrated"), "why-after")
    both = {"forest": raw, "calibrated": p}
    save(ReliabilityDisplay.from_predictions(y_new, both), "start")
    for n, name in [(100, "few"), (1500, "many")]:
        model.fit(X[:n], y[:n])
        shown = X_new[:120]
        bounds = model.predict_multiprobability(shown)
        display = IntervalDisplay.from_predictions(
            y_new[:120], bounds, title=f"calibrated by {n:,} examples"
        )
        save(display, f"why-bounds-{name}")
        print(f"{n} examples: bounds {bounds.width[:, 1].mean():.3f} wide")


if __name__ == "__main__":
    main()
