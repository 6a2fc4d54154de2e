"""The six classifiers of Vovk & Petej (2014), scikit-learn's in place of Weka's."""

from __future__ import annotations

from typing import Any

from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from vennforest_experiments.papers.protocol.learners import Density, FilledOneHot, MixedNaiveBayes
from vennforest_experiments.papers.vovk2014.j48 import J48

CLASSIFIERS = ("J", "JB", "LR", "NB", "NN", "SVM")
"""Decision tree, bagged trees, logistic regression, naïve Bayes, neural network, SVM with Platt."""


def classifier(kind: str, n_values: tuple[int, ...], density: Density) -> Any:
    """Return an untrained classifier.

    Parameters
    ----------
    kind : str
        One of `CLASSIFIERS`. Trees take a one-hot encoded table with missing cells; the others
        take a table of numbers and codes.
    n_values : tuple of int, length d
        For each column of that table 0 if it is numeric, else the number of values it codes.
    density : {"kernel", "normal"}
        How naïve Bayes estimates densities.

    Raises
    ------
    ValueError
        If there is no such classifier.
    """
    filled = FilledOneHot(n_values)
    if kind == "J":
        return J48()
    if kind == "JB":
        return BaggingClassifier(J48(), n_estimators=10)
    if kind == "LR":
        # Weka's ridge of 1e-8 on the log likelihood, with which Newton's method fails on separable
        # data.
        regression = LogisticRegression(C=0.5e8, max_iter=1000)
        return make_pipeline(filled, StandardScaler(), regression)
    if kind == "NB":
        return MixedNaiveBayes(n_values, density=density)
    if kind == "NN":
        # Few steps make two refits per test object feasible.
        network = MLPClassifier(
            (4,), activation="logistic", solver="lbfgs", alpha=0.01, max_iter=30
        )
        return make_pipeline(filled, MinMaxScaler((-1, 1)), network)
    if kind == "SVM":
        return make_pipeline(filled, MinMaxScaler(), SVC(kernel="linear"))
    raise ValueError(f"kind must be one of {list(CLASSIFIERS)}, got {kind!r}")
