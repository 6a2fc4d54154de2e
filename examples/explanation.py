"""Which features move a calibrated probability, and the two ends of its interval.

    python examples/explanation.py [PICTURE]

Needs the extra shap.
"""

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer

from vennforest import CalibratedClassifier, explain


def main(picture=None):
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = CalibratedClassifier(random_state=0).fit(X[:400], y[:400])
    case = X[406:407]
    p, lower, upper = explain(model, case, interval=True)
    for name, found in (("lower end", lower), ("probability", p), ("upper end", upper)):
        total = found.base_values[0] + found.values[0].sum()
        print(f"{name:12s} {1 / (1 + np.exp(-total)):.3f} = log-odds {total:+.2f}")
    total = p.base_values[0] + p.values[0].sum()
    assert np.isclose(1 / (1 + np.exp(-total)), model.predict_proba(case)[0, 1])
    top = np.argsort(-np.abs(p.values[0]))[:8][::-1]
    for j in top[::-1][:3]:
        print(f"{p.feature_names[j]:24s} {p.values[0, j]:+.2f}")
    if picture:
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
        places = np.arange(len(top))
        looks = [("lower end", lower, "#56B4E9", -0.25), ("probability", p, "#0072B2", 0.0)]
        for label, found, color, off in [*looks, ("upper end", upper, "#D55E00", 0.25)]:
            ax.barh(places + off, found.values[0, top], 0.25, color=color, label=label)
        ax.set_yticks(places, [p.feature_names[j] for j in top])
        ax.axvline(0, color="#808080", linewidth=0.8)
        ax.set(xlabel="part of the calibrated log-odds")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
