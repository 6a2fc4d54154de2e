"""False finds and power of the grouping loss: folds measured with all others, or with earlier ones.

    python benchmarks/grouping_loss.py ways FIRST COUNT FILE

appends a line for each draw: root and standard error both ways. A draw's seed is its number.

    python benchmarks/grouping_loss.py public PROBLEM ROWS COUNT FILE

appends what ``vennforest.metrics.grouping_loss`` says of draws from the system's entropy, which
each line holds as ``seed``, beside the true grouping loss.
"""

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestRegressor

from vennforest.metrics import grouping_loss
from vennforest.metrics.grouping_loss import _differences


def draw(problem, n, rng):
    X = rng.standard_normal((n, 5))
    if problem == "logistic":
        t = 1 / (1 + np.exp(-1.5 * X[:, 0]))
        p = t
    elif problem == "flat":
        t = np.full(n, 0.3)
        p = t
    elif problem == "squared":
        t = 1 / (1 + np.exp(-1.5 * X[:, 0]))
        p = t**2
    elif problem == "weak":  # truth varies more than p
        t = 1 / (1 + np.exp(-X[:, 0] - 0.7 * X[:, 1]))
        p = 1 / (1 + np.exp(-0.9 * X[:, 0]))
    elif problem == "mixture":
        t = np.where(X[:, 0] > 0, 0.38, 0.22)
        p = np.full(n, 0.3)
    return X, (rng.random(n) < t).astype(float), p, t


def parts(X, y, p, scheme, K, seed, levels=15):
    n = len(y)
    levels = max(1, min(levels, n // (K * 20)))
    fold = np.random.default_rng(seed).permutation(n) % K
    ranks = np.argsort(np.argsort(p, kind="stable"), kind="stable")
    g = np.unique(p, return_inverse=True)[1]
    first = np.full(g.max() + 1, n)
    np.minimum.at(first, g, ranks)
    b = first[g] * levels // n
    r = np.zeros(n)
    h = np.zeros(n)
    used = np.zeros(n, bool)
    for k in range(K):
        test = fold == k
        train = fold != k if scheme == "cross" else fold < k
        if scheme == "forward" and k == 0:
            continue
        trees = RandomForestRegressor(100, min_samples_leaf=20, max_features=0.5, random_state=seed)
        r[test], h[test] = _differences(trees, X, y, p, b, train, test)
        used |= test
    return r[used], h[used]


def stat(r, h):
    sq = (h**2).mean()
    root = (r * h).mean() / np.sqrt(sq)
    inf = r * h / np.sqrt(sq) - root * h**2 / (2 * sq)
    return root, inf.std(ddof=1) / np.sqrt(len(h))


def true_loss(problem, X, t):
    """Return the mean of (t - E[t | p])^2 over the rows."""
    if problem == "mixture":
        return float(((t - 0.3) ** 2).mean())
    if problem == "weak":
        z, w = np.polynomial.hermite_e.hermegauss(60)
        given_p = (1 / (1 + np.exp(-X[:, :1] - 0.7 * z))) @ (w / w.sum())
        return float(((t - given_p) ** 2).mean())
    return 0.0  # t is a function of p


def ways(first, count, out):
    for d in range(first, first + count):
        for problem, n in (
            ("logistic", 400),
            ("flat", 400),
            ("squared", 400),
            ("logistic", 1200),
            ("weak", 1200),
            ("mixture", 1200),
        ):
            rng = np.random.default_rng([20261123, d, n, len(problem)])
            X, y, p, _ = draw(problem, n, rng)
            seed = int(rng.integers(1 << 30))
            line = {"problem": problem, "n": n, "draw": d}
            for s, K in (("cross", 5), ("forward", 5)):
                line["forward" if s == "forward" else "all others"] = stat(
                    *parts(X, y, p, s, K, seed)
                )
            write(out, line)


def public(problem, n, count, out):
    for _ in range(count):
        seed = np.random.SeedSequence().entropy
        rng = np.random.default_rng(seed)
        X, y, p, t = draw(problem, n, rng)
        found = grouping_loss(X, y, p, random_state=int(rng.integers(1 << 30)))
        line = {"problem": problem, "n": n, "seed": str(seed), "true": true_loss(problem, X, t)}
        write(out, line | {"loss": found.loss, "lower": found.lower, "upper": found.upper})


def write(out, line):
    with Path(out).open("a") as f:
        f.write(json.dumps(line) + "\n")


if sys.argv[1] == "ways":
    ways(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
else:
    public(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
