"""Seconds that a fit of the command line takes: ``python -m experiments.studies.fit_time``.

``experiments/results/fit_time.csv`` has, for tables of two and of five classes, the median over
draws of the processor time on one core of a fit of `--estimator mixed-forest` and of
`--estimator blend` (mixed forest, small boosting, linear), and their ratio. Tables have twelve
columns of numbers, in two of which cells are missing, and three of text.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from experiments.studies.tables import RESULTS, append_row
from sklearn.datasets import make_classification
from threadpoolctl import threadpool_limits

from vennforest import CalibratedClassifier
from vennforest.report.estimators import table_estimator

N_TREES = 300


def draw(n, k, seed):
    """Return a data frame of n rows and the labels (n,)."""
    X, y = make_classification(
        n, 12, n_informative=8, n_classes=k, flip_y=0.1, class_sep=0.7, random_state=seed
    )
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(12)])
    for j in (3, 7):
        frame.loc[rng.random(n) < 0.1, f"x{j}"] = np.nan
    for name, n_values in (("sex", 2), ("ward", 6), ("code", 25)):
        values = np.where(rng.random(n) < 0.3, y, rng.integers(n_values, size=n)) % n_values
        frame[name] = [f"{name} {value}" for value in values]
    return frame, y


def seconds(name, X, y, seed):
    """Return the processor time of a fit of the estimator with a name."""
    model = CalibratedClassifier(table_estimator(name, N_TREES, seed, 1), random_state=seed)
    start = time.process_time()
    with threadpool_limits(1):
        model.fit(X, y)
    return time.process_time() - start


def main():
    """Write a row for each number of rows and classes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 8_000, 50_000])
    parser.add_argument("--classes", type=int, nargs="+", default=[2, 5])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("-o", "--output", default=RESULTS / "fit_time.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = ("mixed-forest", "blend")
    for name in names:  # what is compiled or imported is not counted
        seconds(name, *draw(300, 3, 0), 0)
    for n in options.rows:
        for k in options.classes:
            drawn = [
                [seconds(name, *draw(n, k, seed), seed) for name in names]
                for seed in range(options.draws)
            ]
            forest, blend = np.median(drawn, axis=0)
            row = {"rows": n, "classes": k, "forest": f"{forest:.2f}", "blend": f"{blend:.2f}"}
            append_row(options.output, row | {"ratio": f"{blend / forest:.2f}"})
            print(row, f"{blend / forest:.2f}", flush=True)


if __name__ == "__main__":
    main()
