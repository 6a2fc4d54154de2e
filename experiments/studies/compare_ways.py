"""Ways to calibrate a forest, ours and other packages', each called as its documentation says.

A way takes a `Split` and returns the probabilities of its new objects, of shape (n, k), and the
mean width of the bounds of the likeliest class, None where there are none or they were not asked
for. Packages are imported inside the functions: those that are not installed are left out.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import io
import time
import warnings
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, train_test_split

from vennforest import CalibratedClassifier, __version__

PACKAGES = {
    "vennforest": "vennforest",
    "scikit-learn": "sklearn",
    "venn-abers": "venn_abers",
    "mapie": "mapie",
    "crepes": "crepes",
    "calibrated-explanations": "calibrated_explanations",
    "betacal": "betacal",
    "netcal": "netcal",
    "probmetrics": "probmetrics",
}


def installed():
    """Return ``{package: version}`` of those that can be imported, and the names of the others."""
    there, missing = {}, []
    for package, module in PACKAGES.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(module)
            there[package] = __version__ if package == "vennforest" else version(package)
        except (ImportError, PackageNotFoundError):
            missing.append(package)
    return there, missing


class Split:
    """Training data and new objects; the forests that several ways need are fitted once.

    Parameters
    ----------
    X, new : ndarray of shape (n, d) and (m, d)
        Features of the training part and of the new objects.
    y : ndarray of shape (n,)
        Codes of the classes of the training part, 0 to k - 1.
    trees : int
        Number of trees of every forest.

    Attributes
    ----------
    seconds : float
        CPU seconds that were saved, for a forest was fitted already: they belong to every way that
        uses it.
    """

    def __init__(self, X, y, new, trees):
        self.X, self.y, self.new = X, y, new
        self.forest = RandomForestClassifier(trees, random_state=0)
        self.shared, self.seconds = {}, 0.0

    def _once(self, name, make):
        if name not in self.shared:
            start = time.process_time()
            made = make()
            self.shared[name] = made, time.process_time() - start
        else:
            self.seconds += self.shared[name][1]
        # A copy: a package may change the model that it is given.
        return copy.deepcopy(self.shared[name][0])

    def held_out(self):
        """Return a forest fitted to two thirds, and the third that it has not seen."""

        def make():
            X, X_cal, y, y_cal = train_test_split(
                self.X, self.y, test_size=1 / 3, stratify=self.y, random_state=0
            )
            return clone(self.forest).fit(X, y), X_cal, y_cal

        return self._once("held out", make)

    def by_hand(self):
        """Return a forest fitted to everything, its out-of-bag scores and their labels."""

        def make():
            forest = clone(self.forest).set_params(oob_score=True).fit(self.X, self.y)
            scored = np.isfinite(forest.oob_decision_function_).all(axis=1)
            return forest, forest.oob_decision_function_[scored], self.y[scored]

        return self._once("by hand", make)


def whole(make):
    """Return a way that fits one estimator to all training data."""

    def way(split):
        model = make(split.forest).fit(split.X, split.y)
        return answer(model, split.new)

    return way


def answer(model, new):
    """Return a fitted model's probabilities, and the width of its bounds."""
    p = model.predict_proba(new)
    if not hasattr(model, "predict_multiprobability"):
        return p, None
    m = model.predict_multiprobability(new)
    return p, np.take_along_axis(m.width, p.argmax(axis=1)[:, None], axis=1).mean()


def held_out(calibrate):
    """Return a way that calibrates with a held-out third."""

    def way(split):
        return calibrate(*split.held_out(), split.new)

    return way


def ours_held_out(model, X, y, new):
    """The default's map on held-out scores."""
    return answer(CalibratedClassifier(FrozenEstimator(model)).fit(X, y), new)


def tuned(split):
    """A forest tuned for depth and leaf size by log loss, and not calibrated."""
    grid = {"min_samples_leaf": [1, 3, 10], "max_depth": [None, 8]}
    search = GridSearchCV(split.forest, grid, scoring="neg_log_loss", cv=3, error_score=-np.inf)
    return search.fit(split.X, split.y).predict_proba(split.new), None


def venn_abers(scores, y, new):
    """venn-abers on scores; the width of two classes' bounds."""
    from venn_abers import VennAbersCalibrator

    calibrator = VennAbersCalibrator()
    if scores.shape[1] > 2:
        return calibrator.predict_proba(p_cal=scores, y_cal=y, p_test=new), None
    p, bounds = calibrator.predict_proba(p_cal=scores, y_cal=y, p_test=new, p0_p1_output=True)
    return p, float(np.mean(bounds[:, 1] - bounds[:, 0]))


def mapie(model, X, y, new):
    """MAPIE's Venn-Abers over a fitted model."""
    from mapie.calibration import VennAbersCalibrator

    return VennAbersCalibrator(model, cv="prefit").fit(X, y).predict_proba(new), None


def one_vs_rest(fit):
    """Return a map of many classes: one of two classes for each of them, normalised."""

    def calibrate(scores, y, new):
        k = scores.shape[1]
        columns = [1] if k == 2 else range(k)
        p = np.column_stack([fit(scores[:, j], (y == j).astype(int), new[:, j]) for j in columns])
        p = np.hstack([1 - p, p]) if k == 2 else p
        total = p.sum(axis=1, keepdims=True)
        return np.where(total > 0, p / np.where(total > 0, total, 1), 1 / p.shape[1]), None

    return calibrate


def betacal(s, y, new):
    """betacal's three parameters."""
    from betacal import BetaCalibration

    return BetaCalibration(parameters="abm").fit(s[:, None], y).predict(new)


def netcal(s, y, new):
    """netcal's logistic calibration."""
    from netcal.scaling import LogisticCalibration

    calibrator = LogisticCalibration()
    calibrator.fit(s, y)
    return np.asarray(calibrator.transform(new)).ravel()


def probmetrics(name):
    """Return a map of probmetrics."""

    def calibrate(scores, y, new):
        from probmetrics.calibrators import get_calibrator

        with contextlib.redirect_stdout(io.StringIO()):
            calibrator = get_calibrator(name)
            calibrator.fit(scores, y)
            return np.asarray(calibrator.predict_proba(new), np.float64), None

    return calibrate


def on_scores(calibrate):
    """Return a way of a map of scores, fitted to those of a held-out third."""

    def way(split):
        model, X, y, new = *split.held_out(), split.new
        return calibrate(model.predict_proba(X), y, model.predict_proba(new))

    return way


def by_hand(calibrate):
    """Return a way of a map of scores, fitted to a forest's out-of-bag scores."""

    def way(split):
        forest, scores, y = split.by_hand()
        return calibrate(scores, y, forest.predict_proba(split.new))

    return way


def folds(method):
    """Return scikit-learn's calibration on its five folds."""
    return whole(lambda forest: CalibratedClassifierCV(forest, method=method))


def calibrated_explanations(model, X, y, new):
    """calibrated-explanations' probabilities, Venn-Abers over a fitted model."""
    from calibrated_explanations import WrapCalibratedExplainer

    wrapped = WrapCalibratedExplainer(model)
    wrapped.calibrate(X, y)
    return np.asarray(wrapped.predict_proba(new)), None


DEFAULT = "vennforest, default"

# Each with the package that it needs.
WAYS = {
    DEFAULT: (None, whole(lambda f: CalibratedClassifier(f, random_state=0))),
    "vennforest, matrix": (
        None,
        whole(lambda f: CalibratedClassifier(f, method="matrix", random_state=0)),
    ),
    "vennforest, held out": (None, held_out(ours_held_out)),
    "the forest itself": (None, whole(lambda f: f)),
    "the forest, tuned": (None, tuned),
    "scikit-learn, sigmoid, 5 folds": ("scikit-learn", folds("sigmoid")),
    "scikit-learn, isotonic, 5 folds": ("scikit-learn", folds("isotonic")),
    "scikit-learn, temperature, 5 folds": ("scikit-learn", folds("temperature")),
    "venn-abers, held out": ("venn-abers", on_scores(venn_abers)),
    "venn-abers, out of bag by hand": ("venn-abers", by_hand(venn_abers)),
    "MAPIE, Venn-Abers, held out": ("mapie", held_out(mapie)),
    "calibrated-explanations, held out": (
        "calibrated-explanations",
        held_out(calibrated_explanations),
    ),
    "betacal, held out": ("betacal", on_scores(one_vs_rest(betacal))),
    "netcal, logistic, held out": ("netcal", on_scores(one_vs_rest(netcal))),
    "probmetrics, logistic, held out": ("probmetrics", on_scores(probmetrics("logistic"))),
    "probmetrics, sms, out of bag by hand": ("probmetrics", by_hand(probmetrics("sms"))),
}
