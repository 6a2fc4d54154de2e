"""Values that stay what they are: ``python tests/golden/make.py`` writes them anew.

Small models of drawn integers, so that no library's data matter, and of few trees. Each number is
written in hexadecimal, to its last bit. After a change that is meant to change values, run it and
look at what the difference of ``values.json`` says.
"""

import hashlib
import json
import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from vennforest import CalibratedClassifier
from vennforest.calibrators import METHODS, make_calibrator

VALUES = Path(__file__).parent / "values.json"

FOREST = RandomForestClassifier(20, max_depth=4, random_state=0)
LABELS = np.array(["no", "so", "yes"])


def rows(k, n=120, seed=0):
    """Return features that 32 bits hold exactly, labels, and weights."""
    rng = np.random.default_rng([seed, k])
    X = rng.integers(-64, 65, (n, 4)) / 16
    y = np.digitize(X[:, 0] + rng.integers(-32, 33, n) / 16, [0.25] if k == 2 else [-1, 1])
    return X, LABELS[[0, 2] if k == 2 else [0, 1, 2]][y], rng.integers(1, 5, n) / 2


def scores(k, n=60, seed=0):
    """Return scores with ties, labels and weights."""
    rng = np.random.default_rng([seed, k, 1])
    raw = rng.integers(1, 17, (n, k)) / 1.0
    p = raw / raw.sum(axis=1, keepdims=True)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=k - 1)
    return (p[:, 1] if k == 2 else p), LABELS[[0, 2] if k == 2 else [0, 1, 2]][y], raw[:, 0]


def cases():
    """Yield a name, an unfitted calibrator or classifier, and the number of classes."""
    for k in (2, 3):
        for method in METHODS:
            yield f"map-{method}-{k}", make_calibrator(method), k
        for method in ("venn-abers", "venn", "platt", "isotonic"):
            yield f"map-{method}-{k}-weights", make_calibrator(method), k
    for k in (2, 3):
        for method in METHODS:
            yield f"forest-{method}-{k}", CalibratedClassifier(FOREST, method=method), k
        for subforest in ("all", "exchangeable"):
            yield (
                f"forest-venn-abers-{subforest}-{k}",
                CalibratedClassifier(FOREST, method="venn-abers", subforest=subforest),
                k,
            )
        trees = ExtraTreesClassifier(20, bootstrap=True, max_depth=4, random_state=0)
        yield f"extra-trees-{k}", CalibratedClassifier(trees), k
        linear = make_pipeline(StandardScaler(), LogisticRegression())
        yield f"folds-{k}", CalibratedClassifier(linear, calibrate_on="cv", cv=3), k
        few = RandomForestClassifier(5, max_depth=3, random_state=0)
        yield f"folds-trees-{k}", CalibratedClassifier(few, calibrate_on="cv", cv=3), k
        yield f"part-{k}", CalibratedClassifier(FOREST, calibrate_on="holdout"), k


def fitted(name, n_jobs=None, change=lambda X: X):
    """Return a fitted model of a name, and the rows it predicts."""
    kind, model, k = next(case for case in cases() if case[0] == name)
    if kind.startswith("map-"):
        given, y, weight = scores(k)
        weight = weight if kind.endswith("-weights") else None
        return model.fit(given, y, sample_weight=weight), scores(k, 20, 1)[0]
    X, y, weight = rows(k)
    model.set_params(random_state=0, n_jobs=n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few trees
        model.fit(change(X), y, **({"sample_weight": weight} if "-weights" in kind else {}))
    return model, change(rows(k, 20, 1)[0])


def answers(model, new):
    """Return what a model says of new rows, by name."""
    found = {"p": model.predict_proba(new)}
    if hasattr(model, "predict_multiprobability"):
        bounds = model.predict_multiprobability(new)
        found.update(lower=bounds.lower, upper=bounds.upper)
    return found


def trees(model):
    """Return a digest of what the estimators below say, which scikit-learn may change."""
    digest = hashlib.sha256()
    for estimator in getattr(model, "estimators_", []):
        digest.update(estimator.predict_proba(rows(len(model.classes_), 20, 1)[0]).tobytes())
    return digest.hexdigest()[:16]


def value(name, **options):
    """Return what is written of a model."""
    model, new = fitted(name, **options)
    found = {
        key: [[float(x).hex() for x in row] for row in array.tolist()]
        for key, array in answers(model, new).items()
    }
    return {"estimators": trees(model), **found}


def main():
    names = sys.argv[1:] or [name for name, _, _ in cases()]
    text = json.dumps({name: value(name) for name in names}, indent=0)
    if sys.argv[1:]:
        print(text)
    else:
        VALUES.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
