"""Few trees: the pooled map read at scores of all trees, or of subforests of out-of-bag size.

    python -m experiments.studies.few_trees experiments/studies/results/few_trees.jsonl

appends a line for each set of the first collection (with two classes only some), fold and number of
trees: log loss both ways, and ``noise``, the mean variance of the noise of out-of-bag scores as a
share of the variance of the scores. ``den``: the map fitted to scores with the noise taken out.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from experiments.studies.default_scores import encoder, names, read
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline

from vennforest import CalibratedClassifier
from vennforest.calibrators.likelihood_ratio import expected_scores

TWO = ("diabetes", "german", "haberman", "heart_c", "ionosphere", "kc2", "sonar", "tictactoe")
TREES = (20, 30, 60, 100, 200)
LARGEST = 2000


def measure(X, y, X_new, y_new, trees, seed):
    """Return what one forest shows."""
    forest = make_pipeline(encoder(), RandomForestClassifier(trees))
    model = CalibratedClassifier(forest, random_state=seed).fit(X, y)
    fold, point = model._state.folds[0], model._state.point_calibrator
    scores = fold.scores.reshape(len(fold.scores), -1)
    noise = fold.noise[:, None] * scores * (1 - scores)
    logs = [
        np.log(np.maximum(point.predict_proba(s), 1e-12)) for s in fold.scorer.point_scores(X_new)
    ]
    means = np.exp(np.mean(logs, axis=0))
    clean = [expected_scores(s, v).clip(0, 1) for s, v in zip(scores.T, noise.T, strict=True)]
    clean = clean[0] if len(clean) == 1 else np.column_stack(clean) / np.sum(clean, axis=0)[:, None]
    whole = fold.scorer.whole(X_new)
    ways = {
        "all": point.predict_proba(whole),
        "sub": means / means.sum(axis=1, keepdims=True),
        "den": clone(point).fit(clean, model.classes_[fold.codes]).predict_proba(whole),
    }
    found = {
        name: log_loss(y_new, p.clip(1e-12, 1), labels=model.classes_) for name, p in ways.items()
    }
    return {"noise": noise.mean(axis=0).sum() / scores.var(axis=0).sum(), **found}


def main():
    path = Path(sys.argv[1])
    done = (
        {tuple(json.loads(line)["key"]) for line in path.read_text().splitlines()}
        if path.exists()
        else set()
    )
    warnings.simplefilter("ignore")
    for name in names("first", None):
        X, y = read("first", name, None)
        if len(np.unique(y)) == 2 and name not in TWO:
            continue
        some = np.random.default_rng(0).permutation(len(y))[:LARGEST]
        X, y = X.iloc[some], y[some]
        kept = np.bincount(y)[y] >= 3
        X, y = X.iloc[kept], np.unique(y[kept], return_inverse=True)[1]
        folds = StratifiedKFold(3, shuffle=True, random_state=1).split(X, y)
        for number, (train, test) in zip(range(2), folds, strict=False):
            test = test[np.isin(y[test], y[train])]
            for trees in TREES:
                if (name, number, trees) in done:
                    continue
                parts = X.iloc[train], y[train], X.iloc[test], y[test]
                line = {"key": [name, number, trees], "classes": len(np.unique(y))}
                line |= {
                    key: round(float(v), 5) for key, v in measure(*parts, trees, number).items()
                }
                with path.open("a") as file:
                    file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
