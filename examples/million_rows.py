"""A million rows: calibration costs seconds where training costs minutes.

``python examples/million_rows.py 1000000`` takes some minutes and 3 GB; fewer rows by the argument.
"""

import sys
import time

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from vennforest import CalibratedClassifier, VennAbers


def main(n=20_000, trees=50):
    """Time the forest alone, with calibration, and answers."""
    n, trees = int(n), int(trees)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10)).astype(np.float32)
    y = (X[:, 0] + X[:, 1] * X[:, 2] + rng.logistic(size=n) > 0).astype(int)

    # Leaves of 20 rows keep a million rows' trees small; max_samples keeps each tree cheap, and
    # leaves nearly every row out of nearly every bag.
    forest = RandomForestClassifier(
        trees, min_samples_leaf=20, max_samples=0.1, n_jobs=-1, random_state=0
    )
    start = time.perf_counter()
    forest.fit(X, y)
    alone = time.perf_counter() - start
    start = time.perf_counter()
    model = CalibratedClassifier(forest, n_jobs=-1, random_state=0).fit(X, y)
    whole = time.perf_counter() - start
    start = time.perf_counter()
    bounds = model.predict_multiprobability(X[:10_000])
    asked = time.perf_counter() - start
    print(f"{n:,} rows: forest {alone:.1f} s, with calibration {whole:.1f} s; ", end="")
    print(f"bounds of {len(bounds):,} rows {asked:.2f} s, {bounds.width[:, 1].mean():.4f} wide")

    # Scores that are there already (from a database, from another system) need no model here.
    scores = forest.predict_proba(X)[:, 1]
    start = time.perf_counter()
    calibrator = VennAbers("log").fit(scores, y)
    m = calibrator.predict_multiprobability(scores)
    print(f"Venn–Abers of {n:,} scores: {time.perf_counter() - start:.2f} s")
    assert np.all(m.lower <= m.upper)


if __name__ == "__main__":
    main(*sys.argv[1:])
