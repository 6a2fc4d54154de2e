"""Errors and sizes of prediction sets over five folds, by how the folds' p-values are combined.

    python benchmarks/cross_conformal.py [--draws 40]

Three classes of .6, .3 and .1, forests of 50 trees, 1,000 new objects a draw; seeds are drawn.
"pooled" counts the examples of all folds as one set (cross-conformal prediction, at most about
twice the error); the others are proven: twice the mean of the p-values, or K / j times the j-th.
"""

import argparse
import secrets

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier
from vennforest.decisions import conformal_p_values, prediction_sets

WAYS = {
    "twice the mean": lambda p: 2 * p.mean(axis=0),
    "3rd of 5": lambda p: np.sort(p, axis=0)[2] * 5 / 3,
    "4th of 5": lambda p: np.sort(p, axis=0)[3] * 5 / 4,
    "largest": lambda p: p.max(axis=0),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=40)
    draws = parser.parse_args().draws
    seed = secrets.randbits(32)
    print(f"seed {seed}, {draws} draws a cell: error (standard error), labels a set\n")
    print("| n | error | pooled | " + " | ".join(WAYS) + " |\n|---" + "|---" * 6 + "|")
    rng = np.random.default_rng(seed)
    for n in (300, 1500):
        seen = {}
        for _ in range(draws):
            X, y = make_classification(
                n + 1000,
                10,
                n_informative=5,
                n_classes=3,
                weights=[0.6, 0.3, 0.1],
                flip_y=0.1,
                random_state=int(rng.integers(2**31)),
            )
            forest = RandomForestClassifier(50, random_state=int(rng.integers(2**31)))
            model = CalibratedClassifier(forest, method="none", calibrate_on="cv")
            model.fit(X[:n], y[:n])
            new, truth = X[n:], y[n:]
            each = np.stack(
                [
                    conformal_p_values(
                        f.scores, f.codes, f.estimator.predict_proba(new), classes=range(3)
                    )
                    for f in model._fitted.folds
                ]
            )
            values = {"pooled": prediction_sets(model, new).p_values}
            values |= {name: way(each) for name, way in WAYS.items()}
            for error in (0.05, 0.1, 0.2):
                for name, p in values.items():
                    kept = p > error
                    missed = 1 - kept[np.arange(len(truth)), truth].mean()
                    seen.setdefault((error, name), []).append([missed, kept.sum(axis=1).mean()])
        for error in (0.05, 0.1, 0.2):
            cells = []
            for name in ("pooled", *WAYS):
                mean = np.mean(seen[error, name], axis=0)
                se = np.std(seen[error, name], axis=0)[0] / np.sqrt(draws)
                cells.append(f"{mean[0]:.3f} ({se:.3f}), {mean[1]:.2f}")
            print(f"| {n:,} | {error} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
