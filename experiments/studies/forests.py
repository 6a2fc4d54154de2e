"""The default forest beside others: ``python -m experiments.studies.forests``.

Forests of 300 trees, calibrated out of bag, on the named data sets (at most 2,000 rows; 30% test
rows; two splits of sets of up to 700 rows). ``experiments/results/forests.csv`` has a row for each
split and forest. The seed was fixed before the first run.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.data import data_set_names, losses, read_data_set, text_encoder
from experiments.studies.tables import RESULTS, append_row, read_rows
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import StratifiedShuffleSplit

from vennforest import CalibratedClassifier, MixedForestClassifier

SEED = 582_414
MAX_ROWS = 2_000
FORESTS = {
    "random forest": RandomForestClassifier(300),
    "extra trees": ExtraTreesClassifier(300, bootstrap=True),
    "mixed forest": MixedForestClassifier(300, min_samples_leaf=1),
    "default": MixedForestClassifier(300),
}


def splits_of(name, data_dir):
    """Yield (number, X, y, training rows, test rows)."""
    X, y = read_data_set("first", name, data_dir)
    rng = np.random.default_rng([SEED, *name.encode()])
    order = rng.permutation(len(y))[:MAX_ROWS]
    order = order[np.bincount(y[order])[y[order]] >= 8]
    X, y = X.iloc[order], np.unique(y[order], return_inverse=True)[1]
    splitter = StratifiedShuffleSplit(
        2 if len(y) <= 700 else 1, test_size=0.3, random_state=int(rng.integers(2**31))
    )
    for number, (train, test) in enumerate(splitter.split(X, y)):
        yield number, X, y, train, test


def measure(forest, X, y, train, test, seed):
    """Return mean losses on the test rows, and CPU seconds to fit and calibrate."""
    encoder = text_encoder()
    X_train, X_test = encoder.fit_transform(X.iloc[train]), encoder.transform(X.iloc[test])
    start = time.process_time()
    model = CalibratedClassifier(forest, calibrate_on="oob", random_state=seed)
    model.fit(X_train, y[train])
    seconds = time.process_time() - start
    log_loss, brier = losses(model.predict_proba(X_test), y[test]) / len(test)
    return {
        "log_loss": f"{log_loss:.6f}",
        "brier_score": f"{brier:.6f}",
        "cpu_seconds": f"{seconds:.4f}",
    }


def main():
    """Measure what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder of the named data sets")
    parser.add_argument("--data-sets", nargs="+", help="names; by default all")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "forests.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done = {(row["data_set"], row["split"], row["forest"]) for row in read_rows(options.output)}
    for data_set in options.data_sets or data_set_names("first"):
        for number, X, y, train, test in splits_of(data_set, options.data_dir):
            for name, forest in FORESTS.items():
                if (data_set, str(number), name) not in done:
                    where = {"data_set": data_set, "split": number, "classes": int(y.max()) + 1}
                    figures = measure(forest, X, y, train, test, SEED + number)
                    append_row(options.output, where | {"forest": name} | figures)
        print(data_set, flush=True)


if __name__ == "__main__":
    main()
