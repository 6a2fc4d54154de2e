"""Does an exercise test improve decisions? Two models of heart disease at another hospital.

VENNFOREST_DATA is a folder with heart_c.csv.gz (Cleveland, 303 patients) and heart_h.csv.gz
(Budapest, 294) of the UCI repository's heart disease data.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest.metrics import calibration_band, decision_curve

AT_REST = ["age", "sex", "cp", "trestbps", "chol", "fbs", "restecg"]
EXERCISE = ["thalach", "exang", "oldpeak"]


def hospital(name):
    """Return a hospital's patients, and "disease" where an artery is narrowed by half."""
    table = pd.read_csv(Path(os.environ["VENNFOREST_DATA"]) / f"{name}.csv.gz")
    table = table.rename(columns={"chest_pain": "cp"})
    return table[AT_REST + EXERCISE], np.where(table["target"] == ">50_1", "disease", "absent")


def main(picture=None):
    """Fit both models at one hospital, and compare their decisions at the other."""
    (table, y), (new_table, y_new) = hospital("heart_c"), hospital("heart_h")
    n = len(table)
    probabilities = []
    for columns in (AT_REST + EXERCISE, AT_REST):
        X = pd.get_dummies(pd.concat([table, new_table])[columns]).to_numpy(float)
        forest = RandomForestClassifier(500, min_samples_leaf=3, random_state=0)
        model = CalibratedClassifier(forest, random_state=0).fit(X[:n], y[:n])
        probabilities.append(model.predict_proba(X[n:])[:, 1])
    p, q = probabilities

    x, lower, upper = calibration_band(y_new, p)
    is_outside = ((x < lower) | (x > upper)).any()
    print(f"the diagonal {'leaves' if is_outside else 'stays in'} the band")

    thresholds = np.linspace(0.05, 0.6, 56)
    curve = decision_curve(y_new, p, thresholds, versus=q)
    for i in range(5, 56, 10):
        print(
            f"threshold {thresholds[i]:.2f}: {1000 * curve.difference[i]:+.0f} per 1,000 patients "
            f"({1000 * curve.difference_low[i]:+.0f} to {1000 * curve.difference_high[i]:+.0f})"
        )

    if picture is not None:
        import matplotlib.pyplot as plt

        from vennforest.plots import ReliabilityDisplay

        figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained")
        options = {"band": "confidence", "ax": left, "name": "with exercise test"}
        ReliabilityDisplay.from_predictions(y_new, p, **options)
        low, high = 1000 * curve.difference_low, 1000 * curve.difference_high
        right.fill_between(thresholds, low, high, alpha=0.15, linewidth=0)
        right.plot(thresholds, 1000 * curve.difference)
        right.axhline(0, color="0.4", linewidth=0.8)
        right.set(title="with against without exercise test", xlabel="threshold")
        right.set_ylabel("gain of net benefit per 1,000 patients")
        right.spines[["top", "right"]].set_visible(False)
        figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
