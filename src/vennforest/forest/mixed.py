"""A random forest that mixes trees with several parameters."""

from __future__ import annotations

from itertools import product
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.ensemble import RandomForestClassifier

from vennforest._validation import check_option, require

Splitter = Literal["best", "random"]
"""How a tree splits: by the best threshold of each feature, or by one drawn at random."""

MIXED = ("splitter", "min_samples_leaf", "max_features")
"""The parameters that may have several values in one forest."""


class MixedForestClassifier(RandomForestClassifier):
    """A random forest that mixes trees of several kinds, so that their errors correlate less.

    The trees of a random forest search the best threshold of each feature (Breiman 2001), those of
    extra trees draw it at random (Geurts et al. 2006). Here each tree draws one of the two
    splitters, and its leaf size and number of features if several are given. Trees remain
    independent and identically distributed given the data. Each is grown on a bootstrap sample, so
    every row is out of bag for about a third of them.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    splitter : {"best", "random"} or sequence of these, default=("best", "random")
        How splits are found. If this or one of the next two parameters is a sequence, each tree
        draws one of its values.
    min_samples_leaf : int, float or sequence of these, default=1
    max_features : {"sqrt", "log2", None}, int, float or sequence of these, default="sqrt"
        As in a random forest, whose other parameters are the same for all trees.

    Attributes
    ----------
    estimators_ : list of DecisionTreeClassifier
        Fitted trees with the parameters that they drew. Other attributes are those of a random
        forest.

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
    0.97
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{
            name: [*rules, list, tuple] if name in MIXED else rules
            for name, rules in RandomForestClassifier._parameter_constraints.items()
        },
        "splitter": [str, list, tuple],
    }

    def __init__(
        self,
        n_estimators: int = 300,
        *,
        splitter: Any = ("best", "random"),
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: int | float = 2,
        min_samples_leaf: Any = 1,
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
        super().__init__(
            n_estimators,
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features,
            max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease,
            oob_score=oob_score,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
            class_weight=class_weight,
            ccp_alpha=ccp_alpha,
            max_samples=max_samples,
            monotonic_cst=monotonic_cst,
        )
        self.splitter = splitter

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the trees on X (n, d), y (n,) and weights (n,), as in a random forest.

        Raises
        ------
        ValueError
            If a value of a parameter is invalid, or a sequence of values is empty.
        """
        for kind in self._kinds():
            check_option(kind.pop("splitter"), Splitter, "splitter")
            RandomForestClassifier(**kind)._validate_params()
        super().fit(X, y, sample_weight)
        return self

    def _kinds(self) -> list[dict[str, Any]]:
        """Return the parameters of each kind of tree."""
        values = [getattr(self, name) for name in MIXED]
        options = [v if isinstance(v, list | tuple) else [v] for v in values]
        for name, name_options in zip(MIXED, options, strict=True):
            if not name_options:
                raise ValueError(f"{name} must have a value, got {name_options!r}")
        return [dict(zip(MIXED, kind, strict=True)) for kind in product(*options)]

    def _make_estimator(self, append: bool = True, random_state: Any = None) -> Any:
        """Return an unfitted tree whose kind is drawn by its seed; called by scikit-learn."""
        tree = super()._make_estimator(append, random_state)
        kinds = self._kinds()
        kind = np.random.default_rng(tree.random_state).integers(len(kinds))
        return tree.set_params(**kinds[kind])

    def _check_state(self) -> None:
        for tree in self.estimators_:
            require(tree.n_features_in_ == self.n_features_in_, "trees must have its features")
