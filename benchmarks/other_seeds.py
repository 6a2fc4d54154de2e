"""How far another seed of the forest moves probabilities: estimated, and observed over seeds.

    python benchmarks/other_seeds.py DATA TREES SEEDS FILE

appends a line for each data set (a name, or several with commas): root mean squares, over classes
and a third of the rows that was not trained on, of ``seed_deviation`` and of the standard deviation
of ``predict_proba`` over forests. The split and the forests' seeds are drawn from the system's
entropy, which the line holds as ``seed``. Data sets are those of vennforest-experiments.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer

from vennforest import CalibratedClassifier
from vennforest_experiments.datasets import load

names, trees, n_seeds, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
for name in names.split(","):
    seed = np.random.SeedSequence().entropy
    rng = np.random.default_rng(seed)
    data = load(name)
    X, y = pd.get_dummies(data.X).to_numpy(float), np.asarray(data.y)
    new = rng.permutation(len(y)) % 3 == 0
    X = SimpleImputer().fit(X[~new]).transform(X)
    p, moved = [], []
    for number in rng.integers(1 << 30, size=n_seeds):
        forest = RandomForestClassifier(trees, random_state=int(number))
        model = CalibratedClassifier(forest, random_state=int(number), calibrate_on="oob")
        model.fit(X[~new], y[~new])
        p.append(model.predict_proba(X[new]))
        moved.append(model.seed_deviation(X[new]))
    line = {
        "data": name,
        "rows": len(y),
        "classes": int(p[0].shape[1]),
        "trees": trees,
        "seeds": n_seeds,
        "seed": str(seed),
        "predicted": float(np.sqrt(np.mean(np.square(moved)))),
        "observed": float(np.sqrt(np.mean(np.var(p, axis=0, ddof=1)))),
    }
    with Path(out).open("a") as f:
        f.write(json.dumps(line) + "\n")
