"""What the blend of ``vennforest fit`` gains: ``python -m experiments.studies.table_blends``.

The named data sets with 1,000 rows or more, as tables with text and missing cells. The members of
``vennforest fit --estimator blend`` and the blend are trained on seven tenths of the rows, at most
15,000, and tested on the others, at most 15,000. When the file was written the second member was
``hist-gradient-boosting``. A draw is another split and other seeds, drawn from the system.
``experiments/results/table_blends.csv`` has a row for each data set, draw and estimator: losses on
the test rows, their differences from those of the forest with their standard errors over rows, the
mean probability of the last class minus its rate, processor seconds to fit, and milliseconds for
one row.
"""

import argparse
import secrets
import time
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.tables import RESULTS, append_row, read_rows

from vennforest import CalibratedClassifier
from vennforest.report.estimators import BLENDED, table_estimator
from vennforest_experiments.datasets import catalogue, load

MIN_ROWS, MAX_ROWS = 1_000, 15_000
N_TIMED = 9
"""Predictions of one row of which the median time is taken."""


def milliseconds_of_a_row(model, X):
    """Return the median of the processor time of predicting one row."""
    times = []
    for i in range(N_TIMED):
        start = time.process_time()
        model.predict_proba(X.iloc[[i]])
        times.append(1_000 * (time.process_time() - start))
    return np.median(times)


def measure(X, y, seed):
    """Yield a row for each estimator of one draw."""
    order = np.random.default_rng(seed).permutation(len(y))
    n_training = min(int(0.7 * len(y)), MAX_ROWS)
    train, test = order[:n_training], order[n_training:][:MAX_ROWS]
    train, test = (rows[np.isin(y[rows], y[train])] for rows in (train, test))
    reference = None
    for name in (*BLENDED, "blend"):
        start = time.process_time()
        model = CalibratedClassifier(
            table_estimator(name, 300, seed % 2**31, 1), n_jobs=1, random_state=seed % 2**31
        ).fit(X.iloc[train], y[train])
        seconds = time.process_time() - start
        p = model.predict_proba(X.iloc[test])
        codes = np.searchsorted(model.classes_, y[test])
        of_label = np.clip(p[np.arange(len(test)), codes], 1e-15, 1)
        losses = -np.log(of_label)
        reference = losses if reference is None else reference
        weights = getattr(model, "blend_", {})
        yield {
            "estimator": name,
            "training_rows": len(train),
            "classes": len(model.classes_),
            "log_loss": f"{losses.mean():.5f}",
            "minus_forest": f"{(losses - reference).mean():.5f}",
            "standard_error": f"{(losses - reference).std(ddof=1) / len(test) ** 0.5:.5f}",
            "brier_score": f"{((p**2).sum(axis=1) - 2 * of_label + 1).mean():.5f}",
            "accuracy": f"{(p.argmax(axis=1) == codes).mean():.5f}",
            "mean_minus_rate": f"{p[:, -1].mean() - (codes == p.shape[1] - 1).mean():.5f}",
            "fit_seconds": f"{seconds:.2f}",
            "row_milliseconds": f"{milliseconds_of_a_row(model, X.iloc[test]):.2f}",
            "weights": " ".join(f"{weight:.2f}" for weight in weights.values()),
        }


def main():
    """Measure the draws that the file does not have yet, small data sets first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder of the named data sets")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--data-sets", nargs="+", help="names; by default all")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "table_blends.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done = {(row["data_set"], row["draw"]) for row in read_rows(options.output)}
    sizes = {name: entry.rows for name, entry in catalogue().items()}
    for draw in range(options.draws):
        for name in sorted(sizes, key=sizes.get):
            is_asked = sizes[name] >= MIN_ROWS and name in (options.data_sets or sizes)
            if is_asked and (name, str(draw)) not in done:
                data, seed = load(name, data_dir=options.data_dir), secrets.randbits(40)
                where = {"data_set": name, "draw": draw, "seed": seed}
                y = np.asarray(data.y).astype(str)
                rows = [where | row for row in measure(data.X, y, seed)]
                for row in rows:
                    append_row(options.output, row)
                print(name, draw, rows[-1]["minus_forest"], flush=True)


if __name__ == "__main__":
    main()
