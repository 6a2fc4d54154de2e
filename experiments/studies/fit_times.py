"""What a blend costs to fit: ``python -m experiments.studies.fit_times``.

Processor time to fit what ``vennforest fit`` trains by default, a blend of three models, and its
forest alone, on one thread: tables of 20 numbers, whose labels depend on ten of them, with 1,000
rows (the median of three tables), 8,000 and 50,000. ``experiments/results/fit_times.csv`` has the
seconds of both and their ratio.
"""

import time
import warnings

import numpy as np
import pandas as pd
from experiments.studies.tables import RESULTS, append_row
from scipy.special import softmax

from vennforest import CalibratedClassifier
from vennforest.report.estimators import table_estimator

N_REPEATS = {1_000: 3, 8_000: 1, 50_000: 1}
"""Tables by number of rows."""


def draw(n, k, seed):
    """Return a data frame of 20 numbers, four of them whole ones, and labels of k classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 20))
    X[:, 10:14] = rng.integers(0, 4, (n, 4))
    logits = X[:, :10] @ rng.normal(size=(10, k)) / 2 + np.abs(X[:, [0]]) * rng.normal(size=k)
    y = (softmax(logits, axis=1).cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(20)]), y


def seconds(name, X, y):
    """Return the processor seconds of the fit of an estimator by name."""
    estimator = table_estimator(name, n_trees=300, seed=0, n_jobs=1)
    start = time.process_time()
    CalibratedClassifier(estimator, random_state=0).fit(X, y)
    return time.process_time() - start


def main():
    """Measure all tables anew."""
    warnings.simplefilter("ignore")
    output = RESULTS / "fit_times.csv"
    output.unlink(missing_ok=True)
    for name in ("mixed-forest", "blend"):
        seconds(name, *draw(200, 2, 99))  # what is compiled at first use
    for k in (2, 5, 10, 20):
        for n, n_repeats in N_REPEATS.items():
            tables = [draw(n, k, seed) for seed in range(n_repeats)]
            times = [[seconds(name, *t) for name in ("mixed-forest", "blend")] for t in tables]
            forest, blend = np.median(times, axis=0)
            ratio = np.median([blend / forest for forest, blend in times])
            row = {"rows": n, "classes": k, "forest": f"{forest:.2f}", "blend": f"{blend:.2f}"}
            append_row(output, row | {"ratio": f"{ratio:.2f}"})
            print(row, flush=True)


if __name__ == "__main__":
    main()
