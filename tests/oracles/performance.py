"""Measures under probable labels, from their definitions: every row, and every pair of rows."""

import math


def measures(q, p, decided, positive, costs=None):
    """Return expected measures if row i has the positive label with probability q[i]."""
    n = len(q)
    right = sum(q[i] if decided[i] else 1 - q[i] for i in range(n)) / n
    hits = sum(q[i] for i in range(n) if decided[i])
    chosen = sum(1 for i in range(n) if decided[i])
    least = 2.0**-52
    log = [
        (math.log(min(max(p[i], least), 1)), math.log(min(max(1 - p[i], least), 1)))
        for i in range(n)
    ]
    concordant = pairs = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                both = q[i] * (1 - q[j])
                pairs += both
                concordant += both * (1.0 if p[i] > p[j] else 0.5 if p[i] == p[j] else 0.0)
    found = {
        "accuracy": right,
        "precision": hits / chosen if chosen else math.nan,
        "recall": hits / sum(q) if sum(q) > 1e-12 else math.nan,
        "brier": sum(q[i] * (1 - p[i]) ** 2 + (1 - q[i]) * p[i] ** 2 for i in range(n)) / n,
        "log_loss": -sum(q[i] * log[i][0] + (1 - q[i]) * log[i][1] for i in range(n)) / n,
        "auc": concordant / pairs if pairs > 1e-12 else math.nan,
    }
    if costs is not None:
        # costs[observed][decided], the positive class last
        found["cost"] = (
            sum(
                q[i] * costs[1][int(decided[i])] + (1 - q[i]) * costs[0][int(decided[i])]
                for i in range(n)
            )
            / n
        )
    return found
