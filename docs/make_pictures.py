"""Draw the pictures of the site that no example draws: ``make pictures``.

The examples draw theirs (``examples/*.py PICTURE``). All are kept under version control, so that
the site builds without running a model.
"""

from __future__ import annotations

from pathlib import Path

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


def main():
    """Draw them."""
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
            bounds, y=y_new[:120], title=f"calibrated by {n:,} examples"
        )
        save(display, f"why-bounds-{name}")
        print(f"{n} examples: bounds {bounds.width[:, 1].mean():.3f} wide")


if __name__ == "__main__":
    main()
