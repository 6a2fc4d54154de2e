"""Census incomes: in which occupations and countries is a calibrated model wrong?

Reads adult.csv.gz from the folder in the environment variable VENNFOREST_DATA.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest.metrics import calibration_error
from vennforest.validation import segments

NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]


def main(picture=None):
    """Search the segments of a forest that did not see occupation and country."""
    data = pd.read_csv(Path(os.environ["VENNFOREST_DATA"]) / "adult.csv.gz")
    rows = np.random.default_rng(0).permutation(len(data))
    train, test = data.iloc[rows[:3000]], data.iloc[rows[3000:9000]]
    forest = RandomForestClassifier(200, min_samples_leaf=5, random_state=0)
    model = CalibratedClassifier(forest, random_state=0).fit(train[NUMBERS], train["target"])
    p, y = model.predict_proba(test[NUMBERS])[:, 1], test["target"] == ">50K"
    print(f"calibration error {calibration_error(y, p):.3f}")
    frame = segments(test[["occupation", "native-country", "education-num", "age"]], y, p)
    print(f"{(frame['pvalue'] <= 0.05).sum()} of {len(frame)} segments are off beyond chance")
    worst = frame.head(8)
    print(worst.round(3).to_string())
    if picture:
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=(7.2, 3.4), layout="constrained")
        worst = worst[::-1]
        ax.hlines(worst.index, worst["expected"], worst["observed"], color="#b0b0b0", zorder=1)
        look = {"s": 160, "color": "#D55E00", "marker": "|", "label": "expected"}
        ax.scatter(worst["expected"], worst.index, **look)
        ax.scatter(worst["observed"], worst.index, color="#0072B2", label="observed")
        ax.set(xlabel="share above $50K", xlim=(0, None))
        ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
        ax.spines[["top", "right"]].set_visible(False)
        figure.legend(frameon=False, loc="outside upper center", ncols=2)
        figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:2])
