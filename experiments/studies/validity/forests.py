"""Many small forests quickly: the trees that scikit-learn's forest grows, without its checks.

At 200 examples most of the time of ``RandomForestClassifier.fit`` goes to cloning trees and
checking their arguments. Here the same compiled builder is called with the same seeds; a test holds
it to the same trees, node by node.
"""

import copy
from functools import cache

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree._criterion import Gini
from sklearn.tree._splitter import BestSplitter
from sklearn.tree._tree import DepthFirstTreeBuilder, Tree


def grow(X, y, n_trees, seed):
    """Return ``RandomForestClassifier(n_trees, random_state=seed).fit(X, y)``, and who saw what.

    The second is (n_trees, n), True where a tree did not see an example.
    """
    forest, n = copy.copy(_template(X.shape[1], tuple(np.unique(y).tolist()))), len(y)
    forest.random_state, forest._n_samples, forest._n_samples_bootstrap = seed, n, n
    model = forest.estimators_[0]
    table = np.ascontiguousarray(X, np.float32)
    codes = np.searchsorted(forest.classes_, y).astype(np.float64)[:, None]
    n_classes = np.array([len(forest.classes_)], np.intp)
    features = model.max_features_
    seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=n_trees)
    unseen = np.empty((n_trees, n), bool)
    trees, deepest = [], np.iinfo(np.int32).max
    random_state = np.random.RandomState()  # one, seeded anew: making it takes longer than a tree
    for own, out in zip(seeds, unseen, strict=True):
        random_state.seed(own)
        drawn = random_state.randint(0, n, n, dtype=np.int32)
        weight = np.bincount(drawn, minlength=n).astype(np.float64)
        np.equal(weight, 0, out=out)
        random_state.seed(own)
        splitter = BestSplitter(Gini(1, n_classes), features, 1, 0.0, random_state, None)
        tree = Tree(table.shape[1], n_classes, 1)
        DepthFirstTreeBuilder(splitter, 2, 1, 0.0, deepest, 0.0).build(
            tree, table, codes, weight, None
        )
        grown = object.__new__(type(model))
        grown.__dict__.update({**model.__dict__, "tree_": tree, "random_state": int(own)})
        trees.append(grown)
    forest.estimators_, forest.n_estimators = trees, n_trees
    return forest, unseen


@cache
def _template(n_features, labels):
    """Return a fitted forest of one tree, for what does not depend on the data."""
    X = np.zeros((len(labels), n_features))
    return RandomForestClassifier(1, random_state=0).fit(X, labels)


def first_trees(forest, n_trees):
    """Return the forest of the first trees: what the same seed grows when told to stop there."""
    part = copy.copy(forest)
    part.estimators_, part.n_estimators = forest.estimators_[:n_trees], n_trees
    return part
