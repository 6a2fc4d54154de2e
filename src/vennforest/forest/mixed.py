"""A random forest whose trees are of several kinds."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.ensemble import RandomForestClassifier

from vennforest._state import stored
from vennforest._validation import check_array, check_option, require

Splitter = Literal["best", "random"]
"""How a tree finds a split: the best threshold of each feature, or one drawn at random."""

MIXED = ("splitter", "min_samples_leaf", "max_features")
"""The parameters of which a forest may have several values."""


@stored("mixed-forest")
class MixedForestClassifier(RandomForestClassifier):
    """A random forest whose trees are of several kinds, so their errors have less in common.

    A random forest's trees search the best threshold of each feature (Breiman 2001), those of
    extra trees draw it (Geurts et al. 2006). Here each tree draws which of the two it does, and
    which of several leaf sizes and numbers of features it has, if several are given: the trees
    stay independent and identically distributed given the data, and each is grown on a bootstrap
    sample, so every row is out of bag for a third of them. Measured in
    ``docs/results/mixtures.md``.

    Parameters
    ----------
    n_estimators : int, default=300
        Number of trees.
    splitter : {"best", "random"} or sequence of these, default=("best", "random")
        How splits are found. Of a sequence, here and below, each tree has one value, drawn by its
        own seed.
    min_samples_leaf : int, float or sequence of these, default=1
    max_features : {"sqrt", "log2", None}, int, float or sequence of these, default="sqrt"
        As in a random forest, whose other parameters are the same for all trees.

    Attributes
    ----------
    estimators_ : list of DecisionTreeClassifier
        Fitted; their parameters say of which kind each is. Other attributes are those of a random
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
        """Grow the trees: X (n, d), y (n,) and weights (n,) as of a random forest.

        Raises
        ------
        ValueError
            If a parameter has no such value, or a sequence of them is empty.
        """
        for kind in self._kinds():
            check_option(kind.pop("splitter"), Splitter, "splitter")
            RandomForestClassifier(**kind)._validate_params()
        super().fit(X, y, sample_weight)
        return self

    def _kinds(self) -> list[dict[str, Any]]:
        """Return the parameters of each kind of tree."""
        given = {name: getattr(self, name) for name in MIXED}
        several = {n: v if isinstance(v, list | tuple) else [v] for n, v in given.items()}
        for name, values in several.items():
            if not values:
                raise ValueError(f"{name} must have a value, got {given[name]!r}")
        return [dict(zip(MIXED, values, strict=True)) for values in product(*several.values())]

    def _make_estimator(self, append: bool = True, random_state: Any = None) -> Any:
        """Return an unfitted tree of the kind that its own seed draws, for scikit-learn's fit."""
        tree = super()._make_estimator(append, random_state)
        kinds = self._kinds()
        drawn = np.random.default_rng(tree.random_state).integers(len(kinds))
        return tree.set_params(**kinds[drawn])

    def to_state(self) -> Mapping[str, Any]:
        """Return what ``from_state`` makes this forest from: a plain forest for each kind of tree.

        Model files have the trees of a plain forest in a few arrays.
        """
        parameters = self.get_params(deep=False)
        if not hasattr(self, "estimators_"):
            return {"parameters": parameters, "forests": None, "places": None}
        kinds = [tuple(getattr(tree, name) for name in MIXED) for tree in self.estimators_]
        names = list(dict.fromkeys(kinds))
        places = np.array([names.index(kind) for kind in kinds], dtype=np.int64)
        fitted = {n: v for n, v in vars(self).items() if n not in (*parameters, "estimators_")}
        forests = []
        for number in range(len(names)):
            plain = RandomForestClassifier()
            members = [self.estimators_[t] for t in np.flatnonzero(places == number)]
            vars(plain).update(fitted, estimators_=members, n_estimators=len(members))
            forests.append(plain)
        return {"parameters": parameters, "forests": forests, "places": places}

    @classmethod
    def from_state(cls, parameters: dict[str, Any], forests: Any, places: Any) -> Self:
        """Return the forest that has this state, refused where ``fit`` could not have left it."""
        forest = cls(**parameters)
        if forests is None:
            return forest
        require(type(forests) is list and forests, "there must be a forest")
        for one in forests:
            require(type(one) is RandomForestClassifier, "forests must be random forests")
            same = ("classes_", "n_features_in_", "n_outputs_", "_n_samples")
            first: list[Any] = [getattr(forests[0], name, None) for name in same]
            found: list[Any] = [getattr(one, name, None) for name in same]
            same_data = all(np.array_equal(a, b) for a, b in zip(first, found, strict=True))
            require(same_data, "forests must be of the same data")
        check_array(places, "places", (None,), "i", 0, len(forests) - 1)
        counts = np.bincount(places, minlength=len(forests)).tolist()
        require(counts == [len(one.estimators_) for one in forests], "places must be of every tree")
        members = [iter(one.estimators_) for one in forests]
        forest.__dict__.update(
            {n: v for n, v in vars(forests[0]).items() if n not in parameters},
            estimators_=[next(members[place]) for place in places.tolist()],
        )
        return forest
