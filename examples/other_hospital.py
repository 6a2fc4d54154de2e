"""Heart disease: boosting of one hospital at another, its probabilities kept or updated.

The folder in the environment variable VENNFOREST_DATA has the tables heart_c (Cleveland) and
heart_h (Budapest) of the UCI repository, which ``vennforest-experiments datasets`` lists.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from vennforest import CalibratedClassifier, MixedForestClassifier, update
from vennforest.export import to_json
from vennforest.tables import table_pipeline

COLUMNS = ["age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak"]


def hospital(name):
    """Return the patients of a hospital, and whether their arteries are narrowed."""
    table = pd.read_csv(Path(os.environ["VENNFOREST_DATA"]) / f"{name}.csv.gz")
    table = table.rename(columns={"chest_pain": "cp"})
    return table[COLUMNS], np.where(table["target"] == "<50", "healthy", "ill")


def main(picture=None):
    """Train at Cleveland, and update the probabilities at Budapest."""
    X, y = hospital("heart_c")
    X_new, y_new = hospital("heart_h")
    boosting = table_pipeline(HistGradientBoostingClassifier(random_state=0)).fit(X, y)
    forest = table_pipeline(MixedForestClassifier(300, random_state=0))
    calibrated = CalibratedClassifier(forest, random_state=0).fit(X, y)
    for name, model in (("boosting", boosting), ("calibrated forest", calibrated)):
        result = update(model, y_new, X=X_new)
        print(f"{name}: {result.choice}. {result.reason}")
        print(result.gains.round(3), "\n")

    p = boosting.predict_proba(X_new)
    result = update(p, y_new)
    Path("update.json").write_text(to_json(result.calibrator), encoding="utf-8")
    if picture:
        from vennforest.plots import ReliabilityDisplay

        named = {"boosting of Cleveland": p[:, 1], "updated": result.predict_proba(p)[:, 1]}
        display = ReliabilityDisplay.from_predictions(y_new, named)
        display.figure_.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
