"""Census incomes: grades of a model, tested, and compared with those of other rows.

Reads adult.csv.gz from the folder in the environment variable VENNFOREST_DATA.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier

from vennforest.validation import grades, population_stability

NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
LIMITS = [0.03, 0.1, 0.25, 0.5, 0.8]


def main(picture=None):
    """Test the grades of a forest that is not calibrated."""
    data = pd.read_csv(Path(os.environ["VENNFOREST_DATA"]) / "adult.csv.gz")
    rows = np.random.default_rng(0).permutation(len(data))
    train, earlier, later = (data.iloc[part] for part in np.split(rows[:9000], [3000, 6000]))
    forest = RandomForestClassifier(200, random_state=0).fit(train[NUMBERS], train["target"])
    p, q = (forest.predict_proba(part[NUMBERS])[:, 1] for part in (later, earlier))
    grade, earlier_grade = (np.array(list("ABCDEF"))[np.digitize(r, LIMITS)] for r in (p, q))
    frame = grades(later["target"] == ">50K", p, grade)
    print(frame.round(3).to_string())
    print(population_stability(grade, earlier_grade))
    if picture:
        import matplotlib.pyplot as plt

        figure, ax = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
        ends = (
            frame["observed"] - frame["observed_low"],
            frame["observed_high"] - frame["observed"],
        )
        ax.errorbar(
            frame.index, frame["observed"], ends, fmt="o", color="#0072B2", label="observed"
        )
        ax.scatter(
            frame.index, frame["expected"], marker="_", s=250, color="#D55E00", label="expected"
        )
        ax.set(yscale="log", xlabel="grade", ylabel="share above $50K")
        ax.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}%")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False)
        figure.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:2])
