"""A random forest that mixes trees with several parameters."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.class_weight import compute_sample_weight

from vennforest._validation import InputError, check_number, require
from vennforest.forest.bags import Membership
from vennforest.forest.members import PackedForest

TREE_SPLITTERS = ("best", "random")
"""How trees split: by the best threshold of each feature, or by one drawn at random."""

LARGE_LEAVES = (5, 20)
"""Rows that leaves of the second group of trees have at least; each tree draws one of them."""

HALF = 0.5
"""Share of the features that a tree of the second group may search, beside ``max_features``."""

SHARES = np.linspace(0, 1, 21)
"""Shares of the first group of trees, between which the out-of-bag rows choose."""


class MixedForestClassifier(RandomForestClassifier):
    """A random forest that mixes trees of several kinds, so that their errors correlate less.

    The trees of a random forest search the best threshold of each feature (Breiman 2001), those of
    extra trees draw it at random (Geurts et al. 2006). Here each tree draws one of the two
    splitters. Full trees are best where classes hardly overlap, trees with larger leaves where
    outcomes are noisy: by default the forest grows some of each, and the rows that are out of bag
    choose their shares. Trees are independent and, in each of the two groups, identically
    distributed. Each is grown on a bootstrap sample, so every row is out of bag for about a third.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    min_samples_leaf : "auto", int or float, default="auto"
        As in a random forest. ``"auto"``: two groups of trees, of which a quarter of
        ``n_estimators`` is grown each before the share of the first is chosen. The first has leaves
        of one row; trees of the second draw 5 or 20, and half of the features beside
        ``max_features``. The share is the mean of those from 0 to 1, weighted by the likelihood of
        the labels at the mixed probabilities out of bag. For labels of several columns it is 1.
        Copies of a row in other bags make full trees look too good: use weights in their place.
    max_features : {"sqrt", "log2", None}, int or float, default="sqrt"
        As in a random forest, whose other parameters are the same for all trees.

    Attributes
    ----------
    estimators_ : list of DecisionTreeClassifier
        Fitted trees with the parameters that they drew. Other attributes are those of a random
        forest.
    full_share_ : float
        With ``min_samples_leaf="auto"``, the share of trees with leaves of one row.

    References
    ----------
    Breiman (2001), https://doi.org/10.1023/A:1010933404324; Geurts, Ernst & Wehenkel (2006),
    https://doi.org/10.1007/s10994-006-6226-1.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> forest = MixedForestClassifier(random_state=0, oob_score=True).fit(X, y)
    >>> sorted({tree.splitter for tree in forest.estimators_})
    ['best', 'random']
    >>> round(forest.oob_score_, 2)
    0.96
    >>> round(forest.full_share_, 2)  # classes hardly overlap
    0.98
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **RandomForestClassifier._parameter_constraints,
        "min_samples_leaf": [
            *RandomForestClassifier._parameter_constraints["min_samples_leaf"],
            StrOptions({"auto"}),
        ],
    }
    _is_second_group = False
    """Whether the trees are those of the second group, which `_fit_groups` grows."""

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: Any = "auto",
        min_weight_fraction_leaf: float = 0.0,
        max_features: Any = "sqrt",
        max_leaf_nodes: int | None = None,
        min_impurity_decrease: float = 0.0,
        oob_score: Any = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        class_weight: Any = None,
        ccp_alpha: float = 0.0,
        max_samples: int | float | None = None,
        monotonic_cst: ArrayLike | None = None,
    ) -> None:
        parameters = dict(locals())
        del parameters["self"], parameters["__class__"]
        super().__init__(**parameters)

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees on X (n, d), y (n,) and weights (n,), as in a random forest.

        Raises
        ------
        ValueError
            If a value of a parameter is invalid.
        """
        self.__dict__.pop("full_share_", None)
        if not isinstance(self.min_samples_leaf, str):
            super().fit(X, y, sample_weight)
            return self
        self._validate_params()
        if self.warm_start:
            raise InputError(
                'warm_start must be False with min_samples_leaf="auto", whose groups grow '
                "together, got True: give min_samples_leaf a number"
            )
        seeds = check_random_state(self.random_state).randint(np.iinfo(np.int32).max, size=2)
        of_group = {"min_samples_leaf": 1, "warm_start": True, "oob_score": False}
        groups = [clone(self).set_params(**of_group, random_state=int(seed)) for seed in seeds]
        groups[1]._is_second_group = True
        n_first = max(1, self.n_estimators // 4)
        with warnings.catch_warnings():
            # Of warm_start: groups grow on the same rows, so balanced weights stay the same.
            warnings.filterwarnings("ignore", "class_weight presets")
            for group in groups:
                group.set_params(n_estimators=n_first).fit(X, y, sample_weight)
            share = _best_share(groups, X, y, sample_weight)
            n_full = round(share * self.n_estimators)
            trees = []
            for group, n_trees in zip(groups, (n_full, self.n_estimators - n_full), strict=True):
                if n_trees > n_first:
                    group.set_params(n_estimators=n_trees).fit(X, y, sample_weight)
                trees += group.estimators_[:n_trees]
        self.__dict__.pop("feature_names_in_", None)
        of_fit = {k: v for k, v in vars(groups[0]).items() if k[0] == "_" or k[-1] == "_"}
        self.__dict__.update(of_fit)
        self.estimators_, self.full_share_ = trees, share
        if self.oob_score:
            self._score_out_of_bag(X, y)
        return self

    def _score_out_of_bag(self, X: Any, y: ArrayLike) -> None:
        """Set ``oob_score_`` and ``oob_decision_function_`` as a random forest does."""
        n_classes, is_single = vars(self)["n_classes_"], self.n_outputs_ == 1
        classes = [self.classes_] if is_single else self.classes_
        columns = np.asarray(y).reshape(-1, self.n_outputs_).T
        codes = [np.searchsorted(c, labels) for c, labels in zip(classes, columns, strict=True)]
        # Its method takes lists for each column of labels, as they are before the end of its fit.
        self.n_classes_ = [n_classes] if is_single else n_classes
        score = {"scoring_function": self.oob_score} if callable(self.oob_score) else {}
        rows = self._validate_X_predict(X)
        self._set_oob_score_and_attributes(rows, np.column_stack(codes), **score)
        self.n_classes_ = n_classes

    def _kinds(self) -> list[dict[str, Any]]:
        """Return the parameters of each kind of tree, of which every tree draws one."""
        leaves: Any = (self.min_samples_leaf,)
        features: Any = (self.max_features,)
        if self._is_second_group:
            leaves, features = LARGE_LEAVES, (self.max_features, HALF)
        names = ("splitter", "min_samples_leaf", "max_features")
        kinds = product(TREE_SPLITTERS, leaves, features)
        return [dict(zip(names, kind, strict=True)) for kind in kinds]

    def _make_estimator(self, append: bool = True, random_state: Any = None) -> Any:
        """Return an unfitted tree whose kind is drawn by its seed; called by scikit-learn."""
        tree = super()._make_estimator(append, random_state)
        kinds = self._kinds()
        kind = np.random.default_rng(tree.random_state).integers(len(kinds))
        return tree.set_params(**kinds[kind])

    def _check_state(self) -> None:
        for tree in self.estimators_:
            require(tree.n_features_in_ == self.n_features_in_, "trees must have its features")
        check_number(getattr(self, "full_share_", 1), "full_share_", 0, 1)


def _best_share(
    groups: Sequence[MixedForestClassifier], X: Any, y: ArrayLike, sample_weight: ArrayLike | None
) -> float:
    """Return the share of the first of two groups of trees that the out-of-bag rows give.

    With the likelihood L(s) of the labels at ``s p_1 + (1 - s) p_2``, p the probabilities of the
    labels by the trees of each group that did not see the row, it is the mean of s with weights
    L(s): where rows are few it stays near one half.
    """
    first = groups[0]
    if first.n_outputs_ > 1:
        return 1.0
    labels = np.asarray(y).ravel()
    weight = np.ones(len(labels)) if sample_weight is None else np.array(sample_weight, np.float64)
    if (balance := first.class_weight) is not None:
        balance = "balanced" if balance == "balanced_subsample" else balance
        weight *= compute_sample_weight(balance, labels)
    codes, examples = np.searchsorted(first.classes_, labels), np.arange(len(labels))
    p = []
    for group in groups:
        packed = PackedForest.from_forest(group)
        membership = Membership.from_forest(group, len(codes))
        scores = packed.scores(packed.check_rows(X), membership, examples, n_jobs=1)
        if scores.ndim == 1:
            scores = np.column_stack([1 - scores, scores])
        p.append(scores[examples, codes])
    is_scored = np.isfinite(p[0] + p[1]) & (weight > 0)
    weight = weight[is_scored] / weight[weight > 0].mean()
    p1, p2 = (of_group[is_scored] for of_group in p)
    smallest = 0.5 / len(first.estimators_)  # no mean over so few trees is more certain
    log_likelihood = np.array(
        [weight @ np.log(np.maximum(s * p1 + (1 - s) * p2, smallest)) for s in SHARES]
    )
    return float(np.average(SHARES, weights=np.exp(log_likelihood - log_likelihood.max())))
