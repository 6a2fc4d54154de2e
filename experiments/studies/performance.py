"""Coverage of `estimate_performance`, simulated: ``python -m experiments.studies.performance``.

A draw is a process (linear or with interactions, a share of .1 to .5), a forest or a logistic
regression, 400 or 1,500 training rows, and 200 or 1,500 new rows that come alike, from another part
of the space (covariate shift), or with another relation of labels to rows (concept shift).
``experiments/results/performance.csv`` says how often the 95% interval contains the observed value
of a measure, and the mean absolute error of the estimate. The stored seed, 704634, was drawn.
"""

import argparse
from pathlib import Path

import numpy as np
from experiments.studies.tables import RESULTS, write_rows
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)

from vennforest import CalibratedClassifier, estimate_performance

MEASURES = ("accuracy", "precision", "recall", "brier", "log_loss", "auc")
ESTIMATES = (
    ("no shift", "none"),
    ("covariate shift", "none"),
    ("covariate shift", "covariate"),
    ("concept shift", "none"),
)


def make_process(rng):
    """Return a sampler of rows and labels, ``sample(n, new_rows)``."""
    d = 6
    slope = rng.normal(size=d)
    interactions = rng.normal(size=(d, d)) * rng.choice([0.0, 0.7])
    share = rng.uniform(0.1, 0.5)
    intercept = float(np.log(share) - np.log1p(-share))
    displacement = rng.normal(size=d)
    displacement *= rng.uniform(0.5, 1.0) / np.linalg.norm(displacement)
    turned = rng.normal(size=d)

    def sample(n, new_rows):
        X = rng.normal(size=(n, d))
        if new_rows == "covariate shift":
            X += displacement
        direction = 0.7 * slope + 0.7 * turned if new_rows == "concept shift" else slope
        line = X @ direction + np.einsum("ni,ij,nj->n", X, interactions, X)
        y = rng.random(n) < 1 / (1 + np.exp(-(intercept + 1.2 * line)))
        return X, y.astype(int)

    return sample


def observed(p, y):
    """Return the measures on labelled rows."""
    labels = p[:, 1] > p[:, 0]
    return {
        "accuracy": accuracy_score(y, labels),
        "precision": precision_score(y, labels, zero_division=np.nan),
        "recall": recall_score(y, labels, zero_division=np.nan),
        "brier": brier_score_loss(y, p[:, 1]),
        "log_loss": log_loss(y, p, labels=[0, 1]),
        "auc": roc_auc_score(y, p[:, 1]) if 0 < y.mean() < 1 else np.nan,
    }


def measure(seed, number):
    """Yield (new rows, shift, measure, is inside, absolute error) of one draw."""
    rng = np.random.default_rng([seed, number])
    sample = make_process(rng)
    n, n_new = int(rng.choice([400, 1500])), int(rng.choice([200, 1500]))
    if str(rng.choice(["forest", "logistic"])) == "forest":
        estimator = RandomForestClassifier(150, random_state=0)
    else:
        estimator = LogisticRegression(max_iter=500)
    X, y = sample(n, "no shift")
    model = CalibratedClassifier(estimator, random_state=0).fit(X, y)
    for new_rows in ("no shift", "covariate shift", "concept shift"):
        X_new, y_new = sample(n_new, new_rows)
        truth = observed(model.predict_proba(X_new), y_new)
        for kind, shift in ESTIMATES:
            if kind != new_rows:
                continue
            options = {} if shift == "none" else {"shift": shift, "reference": X}
            estimates = estimate_performance(model, X_new, **options)
            for name in MEASURES:
                estimate, lower, upper = estimates[name]
                if np.isfinite([truth[name], lower]).all():
                    is_inside = lower - 1e-12 <= truth[name] <= upper + 1e-12
                    yield kind, shift, name, is_inside, abs(truth[name] - estimate)


def main():
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=173)
    parser.add_argument("--seed", type=int, default=704634)
    parser.add_argument("-o", "--output", type=Path, default=RESULTS / "performance.csv")
    options = parser.parse_args()
    cells = {}
    for number in range(options.draws):
        for *key, is_inside, error in measure(options.seed, number):
            cells.setdefault(tuple(key), []).append((is_inside, error))
    names = ("new_rows", "shift", "measure", "draws", "coverage", "mean_absolute_error")
    write_rows(
        options.output,
        [
            dict(zip(names, (*key, len(v), *(f"{x:.4f}" for x in np.mean(v, 0))), strict=True))
            for key, v in sorted(cells.items())
        ],
    )


if __name__ == "__main__":
    main()
