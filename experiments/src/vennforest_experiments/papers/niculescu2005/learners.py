"""The ten learners of Niculescu-Mizil & Caruana (2005), several settings each."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, RandomForestClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from vennforest._validation import FloatArray, IntArray
from vennforest_experiments.papers.protocol.learners import MixedNaiveBayes

LEARNERS = ("BST-DT", "SVM", "RF", "ANN", "BAG-DT", "KNN", "LOGREG", "BST-STMP", "NB", "DT")
"""Boosted trees, support vector machines, random forests, neural nets, bagged trees, memory-based
learning, logistic regression, boosted stumps, naïve Bayes, decision trees."""

TREE_STEPS = (4, 16, 64, 256)
STUMP_STEPS = (8, 32, 128, 512)


@dataclass(frozen=True)
class Model:
    """A trained model: ``score`` maps objects (n, d) to scores (n,), larger for positives.

    Attributes
    ----------
    setting : str
        The setting it was trained with.
    unbounded : bool
        Whether its scores are margins, to be scaled to [0, 1], rather than probabilities.
    """

    setting: str
    score: Callable[[FloatArray], FloatArray]
    unbounded: bool = False


def train(
    kind: str, X: FloatArray, y: IntArray, is_flag: Sequence[bool], seed: int, most: int | None
) -> list[Model]:
    """Train a learner with each of its settings.

    Parameters
    ----------
    kind : str
        One of `LEARNERS`.
    X : ndarray of shape (n, d)
        Objects, without missing cells.
    y : ndarray of shape (n,)
        Labels 0 and 1, both present.
    is_flag : sequence of d bool
        Which columns are binary; naïve Bayes takes them as nominal.
    seed : int
        Seed of all random numbers.
    most : int or None
        Number of settings to try, for boosting of base learners; None for all.
    """
    chosen = list(estimators(kind, is_flag).items())[:most]
    models: list[Model] = []
    for name, estimator in chosen:
        model = clone(estimator)
        if "random_state" in model.get_params():
            model.set_params(random_state=seed)
        elif "mlpclassifier__random_state" in model.get_params():
            model.set_params(mlpclassifier__random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # few epochs are intended
            model.fit(X, y)
        if kind in ("BST-DT", "BST-STMP"):
            steps = TREE_STEPS if kind == "BST-DT" else STUMP_STEPS
            models += _boosted(name, model, steps)
        elif kind == "SVM":
            models.append(Model(name, model.decision_function, unbounded=True))
        else:
            models.append(Model(name, _Second(model)))
    return models


def estimators(kind: str, is_flag: Sequence[bool]) -> dict[str, Any]:
    """Return a learner's untrained estimators by setting; for boosting by base learner.

    Raises
    ------
    ValueError
        If there is no such learner.
    """
    if kind not in SETTINGS:
        raise ValueError(f"kind must be one of {list(LEARNERS)}, got {kind!r}")
    return SETTINGS[kind](is_flag)


def _support_vector_machines(is_flag: Sequence[bool]) -> dict[str, Any]:
    d = len(is_flag)
    machines = {
        "linear, C .1": SVC(kernel="linear", C=0.1),
        "quadratic": SVC(kernel="poly", degree=2, gamma=1 / d, coef0=1),
        "cubic": SVC(kernel="poly", degree=3, gamma=1 / d, coef0=1),
        **{
            f"radial, width {width:g}/d, C {C:g}": SVC(gamma=width / d, C=C)
            for width in (0.25, 1, 4)
            for C in (1, 10)
        },
    }
    return {name: make_pipeline(StandardScaler(), m) for name, m in machines.items()}


def _neural_nets(is_flag: Sequence[bool]) -> dict[str, Any]:
    nets = {
        f"{hidden} hidden, {epochs} epochs{suffix}": MLPClassifier(
            (hidden,), max_iter=epochs, alpha=decay
        )
        for hidden in (8, 32, 128)
        for epochs in (20, 100)
        for suffix, decay in (("", 1e-4), (", decay", 1.0))
    }
    return {name: make_pipeline(StandardScaler(), net) for name, net in nets.items()}


def _decision_trees(is_flag: Sequence[bool]) -> dict[str, Any]:
    return {
        f"{criterion}, {leaf} per leaf": DecisionTreeClassifier(
            criterion=criterion, min_samples_leaf=leaf
        )
        for leaf in (10, 1, 3, 30, 100)
        for criterion in ("gini", "entropy")
    }


def _nearest_neighbours(is_flag: Sequence[bool]) -> dict[str, Any]:
    return {
        f"{k} neighbours, {weights}": make_pipeline(
            StandardScaler(), KNeighborsClassifier(k, weights=weights)
        )
        for k in (5, 15, 50, 150)
        for weights in ("uniform", "distance")
    }


def _bagged_trees(is_flag: Sequence[bool]) -> dict[str, Any]:
    return {
        f"{criterion}, {leaf} per leaf": BaggingClassifier(
            DecisionTreeClassifier(criterion=criterion, min_samples_leaf=leaf), 100
        )
        for criterion in ("gini", "entropy")
        for leaf in (1, 5)
    }


def _random_forests(is_flag: Sequence[bool]) -> dict[str, Any]:
    sizes: dict[str, Any] = {"2": min(2, len(is_flag)), "root": "sqrt", "a quarter": 0.25}
    return {
        f"{size} features per split": RandomForestClassifier(300, max_features=value)
        for size, value in sizes.items()
    }


def _boosted_trees(is_flag: Sequence[bool]) -> dict[str, Any]:
    return {
        f"depth {depth}": AdaBoostClassifier(
            DecisionTreeClassifier(max_depth=depth), n_estimators=TREE_STEPS[-1]
        )
        for depth in (6, 3, 10)
    }


def _boosted_stumps(is_flag: Sequence[bool]) -> dict[str, Any]:
    stump = DecisionTreeClassifier(max_depth=1)
    return {"stumps": AdaBoostClassifier(stump, n_estimators=STUMP_STEPS[-1])}


def _naive_bayes(is_flag: Sequence[bool]) -> dict[str, Any]:
    n_values = tuple(2 if flag else 0 for flag in is_flag)
    return {
        "normal": MixedNaiveBayes(n_values),
        **{f"{bins} bins": _BinnedNaiveBayes(n_values, bins) for bins in (5, 10, 20)},
    }


def _logistic_regression(is_flag: Sequence[bool]) -> dict[str, Any]:
    return {
        f"C {C:g}": make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=500))
        for C in (1, 0.01, 0.1, 100)
    }


SETTINGS: Mapping[str, Callable[[Sequence[bool]], dict[str, Any]]] = {
    "BST-DT": _boosted_trees,
    "SVM": _support_vector_machines,
    "RF": _random_forests,
    "ANN": _neural_nets,
    "BAG-DT": _bagged_trees,
    "KNN": _nearest_neighbours,
    "LOGREG": _logistic_regression,
    "BST-STMP": _boosted_stumps,
    "NB": _naive_bayes,
    "DT": _decision_trees,
}
"""For each learner a function from which columns are binary to its estimators by setting."""


@dataclass(frozen=True)
class _Second:
    """Scores objects by the probability of the second class."""

    model: Any

    def __call__(self, X: FloatArray) -> FloatArray:
        p: FloatArray = self.model.predict_proba(X)[:, 1]
        return p


class _BinnedNaiveBayes(MixedNaiveBayes):
    """Naïve Bayes on numeric columns cut into equal-frequency bins."""

    def __init__(
        self, n_values: tuple[int, ...] | None = None, bins: int = 10, smoothing: float = 1.0
    ) -> None:
        super().__init__(n_values, smoothing)
        self.bins = bins

    def fit(self, X: Any, y: Any) -> Any:
        """Bin the columns, then fit naïve Bayes on the bins."""
        kept = self.n_values or (0,) * np.shape(X)[1]
        shares = np.arange(1, self.bins) / self.bins
        self._edges = [
            None if size else np.unique(np.quantile(column, shares, method="inverted_cdf"))
            for column, size in zip(np.asarray(X).T, kept, strict=True)
        ]
        counted = tuple(
            size if edges is None else len(edges) + 1
            for edges, size in zip(self._edges, kept, strict=True)
        )
        self._counted = MixedNaiveBayes(counted, self.smoothing).fit(self._cut(X), y)
        self.classes_ = self._counted.classes_
        return self

    def _cut(self, X: Any) -> FloatArray:
        columns = [
            column if edges is None else np.searchsorted(edges, column)
            for column, edges in zip(np.asarray(X, np.float64).T, self._edges, strict=True)
        ]
        return np.column_stack(columns).astype(np.float64)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities of every class, shape (n, k)."""
        return self._counted.predict_proba(self._cut(X))


@dataclass(frozen=True)
class _Votes:
    """Scores objects by the weighted fraction of the first members' votes for the second class."""

    model: Any
    steps: int

    def __call__(self, X: FloatArray) -> FloatArray:
        weights = self.model.estimator_weights_[: self.steps]
        votes = np.zeros(len(X))
        for member, weight in zip(self.model.estimators_, weights, strict=False):
            votes += weight * member.predict(X)
        share: FloatArray = np.clip(votes / weights.sum(), 0, 1)
        return share


def _boosted(name: str, model: Any, steps: Sequence[int]) -> list[Model]:
    """Return the model after each of the steps that boosting reached."""
    reached = len(model.estimators_)
    kept = [s for s in steps if s <= reached] or [reached]
    return [Model(f"{name}, {s} steps", _Votes(model, s)) for s in kept]
