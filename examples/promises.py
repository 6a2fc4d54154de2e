"""Thresholds that keep a promise: flag cases so that nine of ten are real, or say that one cannot.

python examples/promises.py [PICTURE]
"""

import sys

import numpy as np

from vennforest import CalibratedClassifier
from vennforest.decisions import threshold_for


def sample(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    p = 1 / (1 + np.exp(-2.5 * X[:, 0] - 1.5 * X[:, 1]))
    return X, (rng.random(n) < p).astype(int)


def main(picture=None):
    X, y = sample(3000, 0)
    X_new, y_new = sample(20_000, 1)
    # --8<-- [start:model]
    model = CalibratedClassifier(calibrate_on="holdout", random_state=0).fit(X, y)
    found = threshold_for(model, precision=0.9, abstain=True)
    decided = found.decide(X_new)  # 1: flagged, 0: not in the class, -1: undecided
    # --8<-- [end:model]
    print(f"flagged {np.mean(decided == 1):.0%}, undecided {np.mean(decided == -1):.0%}")
    print(f"of those flagged {y_new[decided == 1].mean():.1%} are of the class,")
    print(f"of those taken for the others {1 - y_new[decided == 0].mean():.1%} are not")

    # Another system's scores, 300 to 850 and higher for the safer: turned round first.
    # --8<-- [start:scores]
    points = np.round(850 - 550 / (1 + np.exp(-2 * X[:, 0] - X[:, 1])))
    few = threshold_for(-points, y, false_alarms=5, rows=1000)
    none = threshold_for(-points[:20], y[:20], precision=0.9)
    # --8<-- [end:scores]
    print(f"at most 5 false alarms in 1,000 cases: flag from {-few.threshold:.0f} points down")
    print(none.reason)

    if picture:
        import matplotlib.pyplot as plt

        scores, labels = model.calibration_scores_, model.calibration_y_
        order = np.argsort(-scores)
        share = np.cumsum(labels[order]) / np.arange(1, len(order) + 1)
        figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
        ax.plot(scores[order][20:], share[20:], color="#0072B2", label="precision observed")
        ax.axhline(0.9, color="#b0b0b0", linestyle=":", label="promised")
        ax.axvspan(found.threshold, 1, color="#009E73", alpha=0.15, label="flagged")
        ax.axvspan(found.lower, found.threshold, color="#E69F00", alpha=0.15, label="undecided")
        ax.set(xlabel="score of the forest", ylabel="precision from here up", xlim=(0, 1))
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="lower right")
        figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
