"""Mean of p against the rate over the grid: ``python -m experiments.studies.mean_grid``.

Writes ``experiments/results/mean_grid.csv``: for drawn tables of 3,000 rows with a class of 2%,
the mean probability of that class over 4,000 new rows divided by its mean true probability, by
source of the scores, method and number of classes; ``prior_ratio`` is the same after `with_prior`
sets its share to 10%, where new rows are weighted as that population has them. The rate is
corrected for the number of rare rows drawn. A row is of one table; a stopped run goes on.
"""

import argparse
import secrets
import warnings

import numpy as np
from experiments.studies.tables import RESULTS, append_row, read_rows
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from vennforest import CalibratedClassifier

BOOSTING = HistGradientBoostingClassifier(max_iter=40, random_state=0)
SOURCES = {
    "out of bag, default": (None, {}),
    "out of bag, forest": (RandomForestClassifier(100, random_state=0), {"calibrate_on": "oob"}),
    "folds, boosting": (BOOSTING, {"calibrate_on": "cv"}),
    "folds, boosting, one model": (BOOSTING, {"calibrate_on": "cv", "ensemble": False}),
    "held-out third, boosting": (BOOSTING, {"calibrate_on": "holdout"}),
    "frozen logistic": (LogisticRegression(), {}),
}
METHODS = {
    "venn-abers": {}, "venn-abers, log": {"merge": "log"}, "venn-abers, brier": {"merge": "brier"},
    "venn-abers, midpoint": {"merge": "midpoint"}, "venn": {}, "platt": {}, "isotonic": {},
    "bostrom": {}, "beta": {}, "temperature": {}, "vector": {}, "spline": {},
}  # fmt: skip
N_ROWS, N_NEW, SHARE, OTHER_SHARE = 3_000, 4_000, 0.02, 0.1


def draw(rng, n, n_classes):
    """Return rows, codes and true probabilities (n, k); class 1 is rare."""
    X = rng.normal(size=(n, 6))
    logits = np.zeros((n, n_classes))
    logits[:, 1] = -5 + 1.2 * X[:, 0] + 0.8 * X[:, 1] + 0.5 * X[:, 2]
    if n_classes > 2:
        logits[:, 2] = -0.5 + X[:, 3] - 0.5 * X[:, 0]
    q = np.exp(logits)
    q /= q.sum(axis=1, keepdims=True)
    return X, (rng.random((n, 1)) > q.cumsum(axis=1)[:, :-1]).sum(axis=1), q


def measure(source, n_classes, rng):
    """Yield method, ratio, and ratio after a prior shift, for one table."""
    X, y, q = draw(rng, N_ROWS, n_classes)
    new, _, truth = draw(rng, N_NEW, n_classes)
    drawn = np.bincount(y, minlength=n_classes) / q.sum(axis=0)
    estimator, options = SOURCES[source]
    rows = slice(None)
    if source.startswith("frozen"):
        estimator, rows = FrozenEstimator(estimator.fit(X[::2], y[::2])), slice(1, None, 2)
        drawn = np.bincount(y[rows], minlength=n_classes) / q[rows].sum(axis=0)
    model = CalibratedClassifier(estimator, random_state=0, **options).fit(X[rows], y[rows])
    expected = truth * drawn
    expected /= expected.sum(axis=1, keepdims=True)
    for name, merge in METHODS.items():
        calibrated = model.recalibrate(name.split(",")[0], **merge)
        ratio = calibrated.predict_proba(new)[:, 1].mean() / expected[:, 1].mean()
        factors = np.full(n_classes, (1 - OTHER_SHARE) / (1 - calibrated.prior_[1]))
        factors[1] = OTHER_SHARE / calibrated.prior_[1]
        weight = expected @ factors
        shifted = calibrated.with_prior({model.classes_[1]: OTHER_SHARE}).predict_proba(new)[:, 1]
        of_shifted = expected[:, 1] * factors[1] / weight
        yield name, ratio, (weight @ shifted) / (weight @ of_shifted)


def main():
    """Measure the tables that the file does not have yet."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--tables", type=int, default=3)
    parser.add_argument("--sources", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    path = RESULTS / "mean_grid.csv"
    done = {(row["source"], row["classes"], row["table"]) for row in read_rows(path)}
    for table in range(options.tables):
        for source in options.sources:
            for n_classes in (2, 3):
                if (source, str(n_classes), str(table)) in done:
                    continue
                seed = secrets.randbits(32)
                row = {"source": source, "classes": n_classes, "table": table, "seed": seed}
                for name, *ratios in measure(source, n_classes, np.random.default_rng(seed)):
                    ratio, of_shifted = (f"{value:.4f}" for value in ratios)
                    ratios = {"ratio": ratio, "prior_ratio": of_shifted}
                    append_row(path, row | {"method": name} | ratios)


if __name__ == "__main__":
    main()
