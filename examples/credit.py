"""Credit: a forest that may only rise with debt, and a branch where defaults are rarer."""

import sys

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss

from vennforest import CalibratedClassifier


def applicants(n, seed, share=None):
    """Return debt, income, years in the job, and default; resampled to a share of defaults."""
    rng = np.random.default_rng(seed)
    size = n if share is None else 12 * n
    debt, income = rng.gamma(2, 1.5, size), rng.lognormal(0, 0.5, size)
    years = rng.exponential(5, size)
    log_odds = -1.6 + 0.6 * debt - 0.9 * income - 0.08 * years
    y = (rng.random(size) < 1 / (1 + np.exp(-log_odds))).astype(int)
    X = np.column_stack([debt, income, years])
    if share is None:
        return X, y
    bad = round(n * share)
    rows = np.concatenate([np.flatnonzero(y == 1)[:bad], np.flatnonzero(y == 0)[: n - bad]])
    rng.shuffle(rows)
    return X[rows], y[rows]


def main(picture=None):
    """Calibrate a monotone forest, and move it to another population."""
    X, y = applicants(1500, seed=0)
    # More debt never lowers, more income and years never raise the risk: +1, -1, -1. Bounds rise
    # with the score, and so does their merge; the default's point, a pool of maps, need not.
    forest = RandomForestClassifier(
        200, min_samples_leaf=5, monotonic_cst=[1, -1, -1], random_state=0
    )
    model = CalibratedClassifier(forest, merge="log", random_state=0).fit(X, y)
    more_debt = X[:200] + np.array([2.0, 0.0, 0.0])
    p, q = model.predict_proba(X[:200])[:, 1], model.predict_proba(more_debt)[:, 1]
    assert (q >= p - 1e-12).all()
    print(f"{y.mean():.1%} default; two more of debt raise the risk by {(q - p).mean():.3f}")

    X_new, y_new = applicants(1500, seed=1, share=0.05)  # a branch with other customers
    # There 5% default, and the good and the bad customers are as they are here.
    branch = model.with_prior({1: 0.05})
    here, there = model.predict_proba(X_new), branch.predict_proba(X_new)
    bounds = branch.predict_multiprobability(X_new)
    print(
        f"branch: {y_new.mean():.1%} default; mean risk {here[:, 1].mean():.1%} unmoved, ", end=""
    )
    print(
        f"{there[:, 1].mean():.1%} moved, bounds {bounds.p0.mean():.1%} to {bounds.p1.mean():.1%}"
    )
    print(f"log loss {log_loss(y_new, here):.3f} unmoved, {log_loss(y_new, there):.3f} moved")
    if picture:
        from vennforest.plots import ReliabilityDisplay

        display = ReliabilityDisplay.from_predictions(
            y_new, {"unmoved": here[:, 1], "moved": there[:, 1]}
        )
        display.figure_.savefig(picture, metadata={"Date": None})


if __name__ == "__main__":
    main(*sys.argv[1:])
