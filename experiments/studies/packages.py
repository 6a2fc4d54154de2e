"""Packages that calibrate, beside each other: ``python -m experiments.studies.packages``.

Appends to ``experiments/results/packages.csv`` a row for each data set and way to calibrate a
random forest of 100 trees, in three folds, and leaves out rows that the file has. Packages that are
not installed are left out: ``pip install venn-abers mapie betacal netcal probmetrics
calibrated-explanations catboost lightgbm``. Every package is called as its documentation says, with
its defaults. A package that takes a fitted model or scores gets a third of the training rows held
out, or what a user could give it by hand, the forest's out-of-bag scores. Three ways boost instead.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import importlib.util
import io
import time
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.data import losses, text_encoder
from experiments.studies.tables import RESULTS, append_row, read_rows
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split

from vennforest import CalibratedClassifier, MixedForestClassifier, TemperatureScaling
from vennforest_experiments.datasets import catalogue, load

SHIPPED = {"breast cancer": load_breast_cancer, "wine": load_wine}
SAME_CASES = {"wine", "australian", "cleveland", "spectf"}
"""Named sets of the same cases as another."""

MIN_CLASS_ROWS, MAX_ROWS = 9, 4_000


def data_set_names():
    """Return the names of the data sets, small ones first."""
    entries = sorted(catalogue().values(), key=lambda entry: entry.rows)
    return [*SHIPPED] + [
        entry.name
        for entry in entries
        if entry.name not in SAME_CASES
        and entry.rows <= MAX_ROWS
        and min(entry.class_counts.values()) >= MIN_CLASS_ROWS
    ]


def read_data_set(name, data_dir):
    """Return features as a data frame, and class codes."""
    if name in SHIPPED:
        X, y = SHIPPED[name](return_X_y=True, as_frame=True)
    else:
        data = load(name, data_dir)
        X, y = data.X, data.y
    return X, np.unique(y, return_inverse=True)[1]


class Split:
    """Training rows and new rows; forests that several ways need are fitted once.

    Parameters
    ----------
    X, X_new : ndarray of shape (n, d) and (m, d)
        Features of the training rows and of the new rows.
    y : ndarray of shape (n,)
        Class codes of the training rows.
    n_trees : int
        Number of trees of every forest.

    Attributes
    ----------
    shared_seconds : float
        CPU seconds of shared forests that were not fitted again: they count for every way.
    """

    def __init__(self, X, y, X_new, n_trees):
        self.X, self.y, self.X_new = X, y, X_new
        self.forest = RandomForestClassifier(n_trees, random_state=0)
        self.shared, self.shared_seconds = {}, 0.0

    def _share(self, name, make):
        if name in self.shared:
            self.shared_seconds += self.shared[name][1]
        else:
            start = time.process_time()
            models = make()
            self.shared[name] = models, time.process_time() - start
        # A copy: a package may change the model that it is given.
        return copy.deepcopy(self.shared[name][0])

    def held_out(self):
        """Return a forest fitted to two thirds, and rows and labels of the other third."""

        def make():
            X, X_cal, y, y_cal = train_test_split(
                self.X, self.y, test_size=1 / 3, stratify=self.y, random_state=0
            )
            return clone(self.forest).fit(X, y), X_cal, y_cal

        return self._share("held out", make)

    def out_of_bag(self):
        """Return a forest fitted to all rows, its out-of-bag scores and their labels."""

        def make():
            forest = clone(self.forest).set_params(oob_score=True).fit(self.X, self.y)
            has_score = np.isfinite(forest.oob_decision_function_).all(axis=1)
            return forest, forest.oob_decision_function_[has_score], self.y[has_score]

        return self._share("out of bag", make)


def answer(model, X_new):
    """Return a model's probabilities, and the mean width of the likeliest class's bounds."""
    p = model.predict_proba(X_new)
    if not hasattr(model, "predict_multiprobability"):
        return p, None
    width = model.predict_multiprobability(X_new).width
    return p, np.take_along_axis(width, p.argmax(axis=1)[:, None], axis=1).mean()


def on_all_rows(make):
    """Return a way: an estimator fitted to all training rows."""
    return lambda split: answer(make(split.forest).fit(split.X, split.y), split.X_new)


def on_held_out_rows(calibrate):
    """Return a way: a fitted forest, calibrated on the held-out third."""
    return lambda split: calibrate(*split.held_out(), split.X_new)


def on_held_out_scores(calibrate):
    """Return a way: a map of scores, fitted to those of the held-out third."""

    def way(split):
        model, X, y = split.held_out()
        return calibrate(model.predict_proba(X), y, model.predict_proba(split.X_new))

    return way


def on_out_of_bag_scores(calibrate):
    """Return a way: a map of scores, fitted to the forest's out-of-bag scores."""

    def way(split):
        forest, scores, y = split.out_of_bag()
        return calibrate(scores, y, forest.predict_proba(split.X_new))

    return way


def tuned_forest(split):
    """Return the answer of a forest tuned for depth and leaf size, and not calibrated."""
    grid = {"min_samples_leaf": [1, 3, 10], "max_depth": [None, 8]}
    search = GridSearchCV(split.forest, grid, scoring="neg_log_loss", cv=3, error_score=-np.inf)
    return search.fit(split.X, split.y).predict_proba(split.X_new), None


def venn_abers(scores, y, new):
    """Return the answer of the package venn-abers."""
    from venn_abers import VennAbersCalibrator

    calibrator = VennAbersCalibrator()
    if scores.shape[1] > 2:
        return calibrator.predict_proba(p_cal=scores, y_cal=y, p_test=new), None
    p, bounds = calibrator.predict_proba(p_cal=scores, y_cal=y, p_test=new, p0_p1_output=True)
    return p, float(np.mean(bounds[:, 1] - bounds[:, 0]))


def mapie(model, X, y, X_new):
    """Return the answer of MAPIE's Venn-Abers over a fitted model."""
    from mapie.calibration import VennAbersCalibrator

    return VennAbersCalibrator(model, cv="prefit").fit(X, y).predict_proba(X_new), None


def calibrated_explanations(model, X, y, X_new):
    """Return calibrated-explanations' probabilities."""
    from calibrated_explanations import WrapCalibratedExplainer

    wrapped = WrapCalibratedExplainer(model)
    wrapped.calibrate(X, y)
    return np.asarray(wrapped.predict_proba(X_new)), None


def one_vs_rest(fit):
    """Return a map of many classes: each against the rest, normalised."""

    def calibrate(scores, y, new):
        k = scores.shape[1]
        columns = [1] if k == 2 else range(k)
        p = np.column_stack([fit(scores[:, j], (y == j).astype(int), new[:, j]) for j in columns])
        p = np.hstack([1 - p, p]) if k == 2 else p
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1), 1 / p.shape[1]), None

    return calibrate


def betacal(scores, y, new):
    """Return betacal's probabilities."""
    from betacal import BetaCalibration

    return BetaCalibration(parameters="abm").fit(scores[:, None], y).predict(new)


def netcal(scores, y, new):
    """Return the probabilities of netcal's logistic calibration."""
    from netcal.scaling import LogisticCalibration

    calibrator = LogisticCalibration()
    calibrator.fit(scores, y)
    return np.asarray(calibrator.transform(new)).ravel()


def probmetrics(name):
    """Return a map of the package probmetrics."""

    def calibrate(scores, y, new):
        from probmetrics.calibrators import get_calibrator

        with contextlib.redirect_stdout(io.StringIO()):
            calibrator = get_calibrator(name)
            calibrator.fit(scores, y)
            return np.asarray(calibrator.predict_proba(new), np.float64), None

    return calibrate


def scikit_learn(method):
    """Return a way: scikit-learn's calibration over five folds."""
    return on_all_rows(lambda forest: CalibratedClassifierCV(forest, method=method))


def catboost():
    """Return CatBoost's classifier of 200 trees."""
    from catboost import CatBoostClassifier

    return CatBoostClassifier(
        200, verbose=False, allow_writing_files=False, thread_count=1, random_seed=0
    )


def lightgbm_with_temperature(split):
    """Return LightGBM's answer; a fifth of the rows ends its training and gives a temperature."""
    from lightgbm import LGBMClassifier, early_stopping

    X, X_held, y, y_held = train_test_split(
        split.X, split.y, test_size=0.2, stratify=split.y, random_state=0
    )
    model = LGBMClassifier(n_estimators=1_000, n_jobs=1, verbose=-1, random_state=0)
    stop = early_stopping(50, verbose=False)
    model.fit(X, y, eval_set=[(X_held, y_held)], callbacks=[stop])
    scaling = TemperatureScaling().fit(model.predict_proba(X_held), y_held)
    return scaling.predict_proba(model.predict_proba(split.X_new)), None


def default_on_held_out_rows(model, X, y, X_new):
    """Return the answer of the default calibration of a fitted forest."""
    return answer(CalibratedClassifier(FrozenEstimator(model)).fit(X, y), X_new)


def default_forest(forest):
    """Return the default model with as many trees as a forest."""
    return CalibratedClassifier(MixedForestClassifier(forest.n_estimators), random_state=0)


# Name of the way: the module that it needs besides vennforest, and the way.
WAYS = {
    "vennforest, default": (
        None,
        on_all_rows(lambda forest: CalibratedClassifier(forest, random_state=0)),
    ),
    "vennforest, default forest": (None, on_all_rows(default_forest)),
    "vennforest, vector": (
        None,
        on_all_rows(lambda forest: CalibratedClassifier(forest, method="vector", random_state=0)),
    ),
    "vennforest, held out": (None, on_held_out_rows(default_on_held_out_rows)),
    "the forest itself": (None, on_all_rows(lambda forest: forest)),
    "the forest, tuned": (None, tuned_forest),
    "scikit-learn, sigmoid, 5 folds": (None, scikit_learn("sigmoid")),
    "scikit-learn, isotonic, 5 folds": (None, scikit_learn("isotonic")),
    "scikit-learn, temperature, 5 folds": (None, scikit_learn("temperature")),
    "scikit-learn, boosting, temperature, 5 folds": (
        None,
        on_all_rows(
            lambda forest: CalibratedClassifierCV(
                HistGradientBoostingClassifier(random_state=0), method="temperature"
            )
        ),
    ),
    "CatBoost itself": ("catboost", on_all_rows(lambda forest: catboost())),
    "vennforest, CatBoost": (
        "catboost",
        on_all_rows(lambda forest: CalibratedClassifier(catboost(), random_state=0)),
    ),
    "LightGBM, early stopping, temperature": ("lightgbm", lightgbm_with_temperature),
    "venn-abers, held out": ("venn_abers", on_held_out_scores(venn_abers)),
    "venn-abers, out of bag by hand": ("venn_abers", on_out_of_bag_scores(venn_abers)),
    "MAPIE, Venn-Abers, held out": ("mapie", on_held_out_rows(mapie)),
    "calibrated-explanations, held out": (
        "calibrated_explanations",
        on_held_out_rows(calibrated_explanations),
    ),
    "betacal, held out": ("betacal", on_held_out_scores(one_vs_rest(betacal))),
    "netcal, logistic, held out": ("netcal", on_held_out_scores(one_vs_rest(netcal))),
    "probmetrics, logistic, held out": ("probmetrics", on_held_out_scores(probmetrics("logistic"))),
    "probmetrics, sms, out of bag by hand": (
        "probmetrics",
        on_out_of_bag_scores(probmetrics("sms")),
    ),
}


def make_splits(X, y, n_folds, n_trees):
    """Return (`Split`, test rows) of every fold; text as indicators, medians for missing cells."""
    splits = []
    for train, test in StratifiedKFold(n_folds, shuffle=True, random_state=0).split(X, y):
        encoder = text_encoder(SimpleImputer(strategy="median")).fit(X.iloc[train])
        X_train, X_test = (
            np.asarray(encoder.transform(X.iloc[rows]), float) for rows in (train, test)
        )
        splits.append((Split(X_train, y[train], X_test, n_trees), test))
    return splits


def measure(way, splits, y):
    """Return a way's losses, mean width of bounds and CPU seconds over the folds."""
    p, widths = np.zeros((len(y), y.max() + 1)), []
    shared, start = sum(split.shared_seconds for split, _ in splits), time.process_time()
    for split, test in splits:
        p[test], width = way(split)
        widths += [] if width is None else [width]
    seconds = time.process_time() - start
    seconds += sum(split.shared_seconds for split, _ in splits) - shared
    log_loss, brier = losses(p / p.sum(axis=1, keepdims=True), y) / len(y)
    return {
        "log_loss": f"{log_loss:.6f}",
        "brier_score": f"{brier:.6f}",
        "width": f"{np.mean(widths):.6f}" if widths else "",
        "cpu_seconds": f"{seconds:.2f}",
    }


def main():
    """Measure what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="folder of the named data sets")
    parser.add_argument("--data-sets", nargs="+", help="names; by default all")
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "packages.csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ways = {
        name: way
        for name, (module, way) in WAYS.items()
        if module is None or importlib.util.find_spec(module)
    }
    done = {(row["data_set"], row["method"]) for row in read_rows(options.output)}
    for data_set in options.data_sets or data_set_names():
        if all((data_set, name) in done for name in ways):
            continue
        X, y = read_data_set(data_set, options.data_dir)
        splits = make_splits(X, y, options.folds, options.trees)
        for name, way in ways.items():
            if (data_set, name) not in done:
                where = {"data_set": data_set, "classes": int(y.max()) + 1, "method": name}
                append_row(options.output, where | measure(way, splits, y))
        print(data_set, flush=True)


if __name__ == "__main__":
    main()
