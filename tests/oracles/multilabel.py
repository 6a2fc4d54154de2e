"""Out-of-bag scores of several labels, tree by tree and row by row."""

import numpy as np


def out_of_bag_scores(forest, X):
    """Mean over the trees that did not see a row of their probability of each label, (n, q)."""
    n, q = len(X), len(forest.classes_)
    total, count = np.zeros((n, q)), np.zeros(n)
    for tree, drawn in zip(forest.estimators_, forest.estimators_samples_, strict=True):
        every = tree.predict_proba(X.astype(np.float32))
        seen = set(drawn.tolist())
        for i in range(n):
            if i not in seen:
                count[i] += 1
                for j in range(q):
                    total[i, j] += every[j][i, 1]
    return total / count[:, None]
