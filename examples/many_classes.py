"""More than two classes: probabilities that sum to one, bounds for each class, and which label."""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from vennforest import CalibratedClassifier


def main(picture=None):
    """Calibrate a forest on ten digits."""
    X, y = load_digits(return_X_y=True)
    X, X_new, y, y_new = train_test_split(X, y, test_size=0.4, random_state=0)
    # --8<-- [start:fit]
    forest = RandomForestClassifier(100, random_state=0)
    model = CalibratedClassifier(forest, random_state=0).fit(X, y)
    p = model.predict_proba(X_new)  # (n, 10), rows sum to 1
    m = model.predict_multiprobability(X_new)  # m.lower, m.upper: (n, 10)
    # --8<-- [end:fit]
    raw = model.estimator_.predict_proba(X_new)
    print(f"log loss of the forest {log_loss(y_new, raw):.3f}, calibrated {log_loss(y_new, p):.3f}")

    # --8<-- [start:methods]
    # Other maps of the same out-of-bag scores: nothing is trained again.
    for method in ("matrix", "temperature", "venn"):
        other = model.recalibrate(method)
        print(f"{method:12s} log loss {log_loss(y_new, other.predict_proba(X_new)):.3f}")
    # --8<-- [end:methods]

    # --8<-- [start:doubt]
    # Rows whose label the bounds leave open: another class's upper bound is above the lower
    # bound of the likeliest one.
    best = p.argmax(axis=1)
    rows = np.arange(len(p))
    others = m.upper.copy()
    others[rows, best] = 0
    in_doubt = others.max(axis=1) >= m.lower[rows, best]
    right = model.classes_[best] == y_new
    print(f"{in_doubt.mean():.0%} in doubt; right: {right[in_doubt].mean():.0%} of them, ", end="")
    print(f"{right[~in_doubt].mean():.0%} of the others")
    # --8<-- [end:doubt]
    assert np.allclose(p.sum(axis=1), 1)
    if picture:
        from vennforest.plots import ReliabilityDisplay

        display = ReliabilityDisplay.from_predictions(y_new, {"forest": raw, "calibrated": p})
        display.figure_.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
