"""Every map from scores to probabilities that the defaults are compared with.

A method is a function of a fold (calibration scores and labels, test scores) that returns test
probabilities; those of other packages are there where these are installed.
"""

import contextlib
import io
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator

from vennforest import (
    BetaCalibration,
    BostromScaling,
    IsotonicCalibration,
    MatrixScaling,
    PlattScaling,
    PooledCalibration,
    QuadraticScaling,
    SplineCalibration,
    TemperatureScaling,
    VennAbers,
)
from vennforest.multiprobability import merge_folds

DEFAULT = "pooled"


def vectors(scores):
    """Return scores (n, k) for (n,) or (n, k)."""
    return np.column_stack([1 - scores, scores]) if scores.ndim == 1 else scores


def ours(calibrator):
    """Return a method that fits a calibrator to the calibration scores."""

    def method(fold):
        model = calibrator.fit(fold["cal"], fold["ycal"], classes=np.arange(fold["k"]))
        return model.predict_proba(fold["all"])

    return method


def one_draw(fold):
    """Return the smooth merge with one left-out example, as the paper has it."""
    if "one" not in fold:
        return None
    model = VennAbers("smooth").fit(fold["cal"], fold["ycal"], classes=np.arange(fold["k"]))
    scores = fold["one"][0]
    scores = scores[:, 0] if scores.shape[1] == 1 else scores
    return model.predict_multiprobability(scores, fold["left"][0]).merge(
        "smooth", model.predict_smooth(scores)
    )


def clipped(fold):
    """Return the pooled point, clipped into the bounds of Venn–Abers on the same scores."""
    point = ours(PooledCalibration())(fold)
    bounds = (
        VennAbers("midpoint")
        .fit(fold["cal"], fold["ycal"], classes=np.arange(fold["k"]))
        .predict_multiprobability(fold["all"])
    )
    p = np.clip(point, bounds.lower, bounds.upper)
    return p / p.sum(axis=1, keepdims=True)


def mean_of_models(fold):
    """Return the mean of what one pool makes of the scores of each fold's model."""
    if "fold" not in fold:
        return None
    pool = PooledCalibration().fit(fold["cal"], fold["ycal"], classes=np.arange(fold["k"]))
    return np.mean([pool.predict_proba(scores) for scores in fold["tests"]], axis=0)


def cross_venn_abers(fold):
    """Return cross Venn–Abers: one calibrator per fold, merged as the library does."""
    if "fold" not in fold:
        return None
    bounds, merged = [], []
    for g, scores in enumerate(fold["tests"]):
        here = fold["fold"] == g
        model = VennAbers("log").fit(
            fold["cal"][here], fold["ycal"][here], classes=np.arange(fold["k"])
        )
        bounds.append(model.predict_multiprobability(scores))
        merged.append(model.predict_proba(scores))
    return merge_folds(bounds, "log", merged)


def cross_package(fold):
    """Return the cross predictor of the venn-abers package (two classes), one model per fold."""
    if "fold" not in fold or fold["k"] > 2:
        return None
    import venn_abers

    p0p1 = []
    for g, scores in enumerate(fold["tests"]):
        here = fold["fold"] == g
        model = venn_abers.VennAbers()
        model.fit(vectors(fold["cal"][here]), fold["ycal"][here])
        p0p1.append(model.predict_proba(vectors(scores))[1])
    p0, p1 = np.array(p0p1).transpose(2, 0, 1)
    gm1 = np.exp(np.log(np.maximum(p1, 1e-300)).mean(axis=0))
    gm0 = np.exp(np.log(np.maximum(1 - p0, 1e-300)).mean(axis=0))
    return np.column_stack([gm0, gm1]) / (gm0 + gm1)[:, None]


class RecordedBase(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose rows are indices of scores that were computed before."""

    def __init__(self, scores):
        self.scores = scores
        self.classes_ = np.arange(scores.shape[1])
        self.n_features_in_ = 1

    def fit(self, X, y):
        return self

    def predict(self, X):
        return self.scores[np.ravel(X)].argmax(axis=1)


class Recorded(RecordedBase):
    """One that has decision values: log-odds, or logits with mean 0."""

    def decision_function(self, X):
        logs = np.log(np.clip(self.scores[np.ravel(X)], 1e-15, 1))
        if logs.shape[1] == 2:
            return logs[:, 1] - logs[:, 0]
        return logs - logs.mean(axis=1, keepdims=True)


class RecordedProbabilities(RecordedBase):
    """One that has probabilities alone."""

    def predict_proba(self, X):
        return self.scores[np.ravel(X)]


def scikit_learn(how):
    """Return scikit-learn's CalibratedClassifierCV over the recorded models of five folds."""

    def method(fold):
        if "fold" not in fold:
            return None
        answers = []
        n = len(fold["cal"])
        kind = RecordedProbabilities if fold["family"] == "network" else Recorded
        for g, tests in enumerate(fold["tests"]):
            here = np.flatnonzero(fold["fold"] == g)
            if len(np.unique(fold["ycal"][here])) < fold["k"]:
                return None
            first, second = np.array_split(np.arange(len(here)), 2)
            model = CalibratedClassifierCV(
                FrozenEstimator(kind(np.vstack([vectors(fold["cal"]), vectors(tests)]))),
                method=how,
                cv=[(first, second), (second, first)],  # of no account to a frozen model
            ).fit(here[:, None], fold["ycal"][here])
            answers.append(model.predict_proba(n + np.arange(len(tests))[:, None]))
        return np.mean(answers, axis=0)

    return method


def probmetrics(name):
    """Return a calibrator of the probmetrics package."""

    def method(fold):
        from probmetrics.calibrators import get_calibrator

        if name == "quadratic-scaling" and fold["k"] > 2:
            return None
        with contextlib.redirect_stdout(io.StringIO()):
            model = get_calibrator(name)
            model.fit(vectors(fold["cal"]), fold["ycal"])
            return np.asarray(model.predict_proba(vectors(fold["all"])), np.float64)

    return method


OURS = {
    "uncalibrated": lambda fold: vectors(fold["all"]),
    "Platt": ours(PlattScaling()),
    "Platt on log-odds": ours(PlattScaling(on="logit")),
    "isotonic": ours(IsotonicCalibration()),
    "beta": ours(BetaCalibration()),
    "beta, hard targets": ours(BetaCalibration(targets="hard")),
    "temperature": ours(TemperatureScaling()),
    "Boström": ours(BostromScaling()),
    "quadratic": ours(QuadraticScaling()),
    "spline": ours(SplineCalibration()),
    "matrix, shared": ours(MatrixScaling("shared")),
    "matrix, diagonal": ours(MatrixScaling("diagonal")),
    "matrix, full": ours(MatrixScaling("full")),
    "Venn–Abers, log": ours(VennAbers("log")),
    "Venn–Abers, midpoint": ours(VennAbers("midpoint")),
    "Venn–Abers, smooth": ours(VennAbers("smooth")),
    "Venn–Abers, smooth, one draw": one_draw,
    "cross Venn–Abers": cross_venn_abers,
    "pooled": ours(PooledCalibration()),
    "pooled, clipped into the bounds": clipped,
    "pooled, mean of the folds' models": mean_of_models,
}
PEERS = {
    "probmetrics sms": probmetrics("sms"),
    "probmetrics svs": probmetrics("svs"),
    "probmetrics quadratic": probmetrics("quadratic-scaling"),
    "probmetrics logistic": probmetrics("logistic"),
    "probmetrics ts-mix": probmetrics("ts-mix"),
    "scikit-learn sigmoid": scikit_learn("sigmoid"),
    "scikit-learn isotonic": scikit_learn("isotonic"),
    "scikit-learn temperature": scikit_learn("temperature"),
    "venn-abers, cross": cross_package,
}


def losses(fold, method):
    """Return sums over test rows of log loss and Brier score, or None where a method has none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        p = method(fold)
    if p is None:
        return None
    rows = np.arange(len(fold["ytest"]))
    own = np.clip(p[rows, fold["ytest"]], 1e-15, 1)
    wrong = p.copy()
    wrong[rows, fold["ytest"]] -= 1
    return [float(-np.log(own).sum()), float((wrong**2).sum())]


def folds_of(path, family):
    """Yield the folds of a file of scores."""
    with np.load(path) as file:
        arrays = {key: file[key] for key in file.files}
    k = int(arrays["y"].max()) + 1
    for f in range(5):
        if f"cal{f}" not in arrays:
            return
        fold = {key[:-1]: value for key, value in arrays.items() if key[-1] == str(f)}
        if fold["cal"].ndim == 2:
            for key in ("cal", "all", "tests"):
                if key in fold:
                    fold[key] = fold[key] / fold[key].sum(axis=-1, keepdims=True)
        yield fold | {"k": k, "ycal": fold["ycal"].astype(int), "family": family}
